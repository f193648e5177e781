//! Goodput of a simulated cell over its SINR, around steps of MCS and rank; all steps of all tables are unit
//! tests of link adaptation in `paceline-ran`.

use paceline_sim::{scenario, simulate};

const NR: &str = "[run]\nduration = \"350 ms\"\nwarmup = \"50 ms\"\nsample = \"50 ms\"\n[cell]\nrat = \"nr\"\n\
                  bandwidth = \"100 MHz\"\npattern = \"DDDSU\"\ndownlink_buffer = \"20 MB\"\n[core]\n\
                  hops = [{ rate = \"20 Gb/s\", delay = \"1 ms\" }]\n[[station]]\ntraffic = \"udp\"\n\
                  udp_rate = \"2 Gb/s\"\n";
const LTE: &str = "[run]\nduration = \"1200 ms\"\nwarmup = \"200 ms\"\n[cell]\ndownlink_buffer = \"3 MB\"\n\
                   [[station]]\ntraffic = \"udp\"\nudp_rate = \"60 Mb/s\"\n";

/// Asserts that goodput does not fall in steps of 0.1 dB. A tenth of the first transmissions fails where it
/// is most, which a few hundred blocks count within 2%.
fn assert_rising(name: &str, text: &str, tenths_db: std::ops::RangeInclusive<i32>) {
    let mut most = 0.0;
    for tenths in tenths_db {
        let sinr = format!("station.downlink_sinr={} dB", f64::from(tenths) / 10.0);
        let scenario = scenario::load("test.toml", text, &[sinr]).unwrap();
        let goodput = simulate(&scenario, 1, None, &mut |_| {}).totals.goodput_mbps;
        assert!(
            goodput > 0.96 * most,
            "{name}: {goodput:.1} Mb/s at {tenths} tenths of a dB after {most:.1}"
        );
        most = f64::max(most, goodput);
    }
}

#[test]
fn a_step_of_mcs_or_rank_lowers_no_goodput() {
    assert_rising("LTE, CQI 5 to 7", LTE, 24..=36);
    assert_rising("LTE, CQI 12 to 13", LTE, 157..=161);
    for steps in [264..=269, 326..=331, 369..=373] {
        assert_rising("NR", NR, steps);
    }
}
