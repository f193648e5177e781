//! The time series of a cell: MCS and ACKs of the samples, compared with the standard's tables and computed
//! by hand.

use paceline_sim::results::{Origin, Sample};
use paceline_sim::{RunResult, Summary, scenario, simulate};

fn run(text: &str) -> RunResult {
    let scenario = scenario::load("series.toml", text, &[]).unwrap();
    simulate(&scenario, 1, None, &mut |_| {})
}
fn of(run: &RunResult, station: usize) -> Vec<&Sample> {
    run.samples.iter().filter(|sample| sample.station == station).collect()
}

#[test]
fn the_mcs_of_a_constant_channel_is_that_of_the_tables() {
    // TS 36.213 Table 7.2.3-1 with the curves of `lte_cqi_sinr.csv`: 13 dB lies between CQI 11 (12.29 dB) and
    // 12 (14.17 dB), and CQI 11 takes MCS 20; 1 dB lies between CQI 5 (0.76 dB) and 6 (2.70 dB), MCS 8. In
    // the uplink `lte_mcs_sinr.csv` decides: 5 dB lies between I_TBS 11 (4.83 dB) and 12 (5.72 dB), and Table
    // 8.6.1-1 has I_TBS 11 at MCS 12; -2 dB lies between I_TBS 5 (-2.19 dB) and 6 (-1.24 dB), MCS 5.
    for (down, up, mcs) in [("13 dB", "5 dB", (20.0, 12.0)), ("1 dB", "-2 dB", (8.0, 5.0))] {
        let run = run(&format!(
            "[run]\nduration = \"2 s\"\nwarmup = \"0 s\"\nsample = \"50 ms\"\n\
             [[station]]\ndownlink_sinr = \"{down}\"\nuplink_sinr = \"{up}\"\nfading = \"0 dB\"\n"
        ));
        let samples = of(&run, 0);
        assert_eq!(samples.len(), 40);
        let [downlink, uplink] = [0, 1].map(|direction| {
            let of = |sample: &&Sample| [sample.downlink_mcs, sample.uplink_mcs][direction];
            samples.iter().filter_map(of).collect::<Vec<f64>>()
        });
        assert!(downlink.len() > 30 && uplink.len() > 30, "{downlink:?} {uplink:?}");
        assert!(downlink.iter().all(|value| *value == mcs.0), "{downlink:?}");
        assert!(uplink.iter().all(|value| *value == mcs.1), "{uplink:?}");
    }
}

#[test]
fn samples_without_a_transport_block_have_no_mcs() {
    let run = run("[run]\nduration = \"2 s\"\nwarmup = \"0 s\"\nsample = \"100 ms\"\n\
                   [[station]]\n[[station]]\nstart = \"1 s\"\n");
    let late = of(&run, 1);
    assert!(late[..10].iter().all(|sample| sample.downlink_mcs.is_none() && sample.uplink_mcs.is_none()));
    assert!(late[12..].iter().all(|sample| sample.downlink_mcs.is_some()), "{late:?}");
    let origin = Origin { version: String::from("0"), commit: String::from("none") };
    let text = "[[station]]\n[[station]]\n";
    let scenario = scenario::load("series.toml", text, &[]).unwrap();
    let csv = Summary::new(origin, "series", "simulated", &scenario, vec![run]).timeseries_csv();
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].contains(",downlink_mcs,uplink_mcs,accelerator_in_flight,"), "{}", rows[0]);
    assert!(rows[2].starts_with("1,0.100,1,0,") && rows[2].ends_with(",,,,,,,,,,1,station.1"), "{}", rows[2]);
    assert!(rows.iter().all(|row| row.split(',').count() == rows[0].split(',').count()), "{csv}");
}

/// A sample's mean MCS covers its own interval, not the whole run.
#[test]
fn the_mcs_of_samples_varies_around_the_mean_of_the_run() {
    let run = run("[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\nsample = \"20 ms\"\n\
                   [[station]]\ndownlink_sinr = \"13 dB\"\nfading = \"4 dB\"\n");
    let means: Vec<f64> = of(&run, 0).iter().filter_map(|sample| sample.downlink_mcs).collect();
    let (low, high) = means.iter().fold((f64::MAX, f64::MIN), |(l, h), m| (l.min(*m), h.max(*m)));
    assert!(means.iter().all(|mcs| (0.0..=28.0).contains(mcs)), "{means:?}");
    assert!(low + 2.0 < high, "the channel varies: {low} to {high}");
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!((mean - run.stations[0].downlink_mcs).abs() < 1.0, "{mean} {}", run.stations[0].downlink_mcs);
}

/// A downloading station sends one ACK per two segments, in the series as in the run's figures.
#[test]
fn acks_accumulate_over_the_samples() {
    let run = run("[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\n[tcp]\ndelayed_ack_segments = 2\n\
                   [[station]]\nfading = \"0 dB\"\n");
    let acks: Vec<u64> = of(&run, 0).iter().map(|sample| sample.acks_sent).collect();
    assert!(acks.is_sorted() && acks[39] == run.stations[0].acks_sent, "{acks:?}");
    let (bytes, last) = (of(&run, 0)[39].downloaded - of(&run, 0)[19].downloaded, acks[39] - acks[19]);
    let segments = bytes as f64 / 1448.0;
    assert!((last as f64 / segments - 0.5).abs() < 0.05, "{last} ACKs for {segments} segments");
}

#[test]
fn the_accelerators_quantities_lead_from_startup_to_the_links_capacity() {
    let text = "[run]\nduration = \"3 s\"\nwarmup = \"0 s\"\n[core]\nproxy = \"accelerator\"\n\
                [link]\ndelay = \"15 ms\"\n[link.fixed]\ndownlink_rate = \"20 Mb/s\"\n[[station]]\n";
    let run = run(text);
    let states: Vec<_> = of(&run, 0).iter().filter_map(|sample| sample.accelerator).collect();
    assert_eq!(states[0].control.state.name(), "startup", "{:?}", states[0]);
    let control = states[states.len() - 1].control;
    assert!(control.state.name() != "startup" && control.window < 1 << 20, "{control:?}");
    assert!((18e6..20e6).contains(&(control.capacity.0 as f64)), "{control:?}");
    assert!((30.0..32.0).contains(&control.min_rtt.as_millis_f64()), "{control:?}");
    let direct = text.replace("accelerator", "none");
    let scenario = scenario::load("series.toml", &direct, &[]).unwrap();
    assert!(simulate(&scenario, 1, None, &mut |_| {}).samples[0].accelerator.is_none());
}
