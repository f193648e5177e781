//! The built-in scenarios of NR carry what `paceline cell show` says: the peak rate less the headers.

use paceline_sim::cell_facts::CellFacts;
use paceline_sim::scenario::load;
use paceline_sim::{Scenario, simulate};

const PRESETS: [(&str, &str); 5] = [
    ("private-5g", include_str!("../../../scenarios/private-5g.toml")),
    ("private-5g-n79", include_str!("../../../scenarios/private-5g-n79.toml")),
    ("fwa-5g", include_str!("../../../scenarios/fwa-5g.toml")),
    ("mmwave", include_str!("../../../scenarios/mmwave.toml")),
    ("nr-fdd-20mhz", include_str!("../../../scenarios/nr-fdd-20mhz.toml")),
];
/// Headers: IP and UDP have 28 of 1500 bytes, PDCP, RLC and MAC 8 more.
const PAYLOAD_SHARE: f64 = 1472.0 / 1508.0;

fn with(name: &str, text: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    load(name, text, &set).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn one_station_gets_the_ceiling_less_the_headers() {
    for (name, text) in PRESETS {
        let scenario = with(
            name,
            text,
            &[
                "station.count=1",
                "station.downlink_sinr=55 dB",
                "station.fading=0 dB",
                "station.start_spread=0 s",
                "station.traffic=udp",
                "station.udp_rate=3 Gb/s",
                "core.hops=[{rate=\"20 Gb/s\",delay=\"1 ms\"}]",
                "run.duration=120 ms",
                "run.warmup=60 ms",
                "run.sample=20 ms",
            ],
        );
        let ceiling = CellFacts::of(scenario.cell().unwrap()).rates.downlink.ceiling_mbps;
        let goodput = simulate(&scenario, 1, None, &mut |_| ()).totals.goodput_mbps;
        let share = goodput / (ceiling * PAYLOAD_SHARE);
        assert!((0.97..1.005).contains(&share), "{name}: {goodput:.1} of {ceiling:.1} Mb/s, {share:.4}");
    }
}
