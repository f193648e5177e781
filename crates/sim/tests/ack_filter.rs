//! Goodput with the ACK filter for live traffic, in the scenario of docs/ack-filter.md.

use paceline_sim::{scenario, simulate};

const SCENARIO: &str = include_str!("../../../scenarios/uplink-limited.toml");
const SEEDS: u64 = 3;

/// Mean goodput of all stations in Mb/s.
fn goodput(scheme: &str, stations: u32, segment_bytes: u32) -> f64 {
    let overrides = [
        "run.duration = \"12 s\"".to_owned(),
        "run.warmup = \"4 s\"".to_owned(),
        format!("ack_filter.scheme = \"{scheme}\""),
        format!("tcp.segment_size = \"{segment_bytes} B\""),
        format!("station.count = {stations}"),
    ];
    let scenario = scenario::load("uplink-limited.toml", SCENARIO, &overrides).unwrap();
    let run = |seed| simulate(&scenario, seed, None, &mut |_| {}).totals.goodput_mbps;
    (1..=SEEDS).map(run).sum::<f64>() / SEEDS as f64
}

/// Rule 15: the time between two kept ACKs grows with the round trip, which many stations make long.
#[test]
fn the_safe_scheme_has_nine_tenths_of_the_per_station_optimum() {
    for (stations, segment_bytes) in [(10, 536), (30, 536), (10, 1448), (30, 1448)] {
        let (optimum, safe) =
            (goodput("hybrid-opt", stations, segment_bytes), goodput("safe", stations, segment_bytes));
        println!("{stations} stations, {segment_bytes} B: {safe:.2} of {optimum:.2} Mb/s");
        assert!(
            safe >= 0.9 * optimum,
            "{stations} stations, {segment_bytes} B: {safe:.2} of {optimum:.2} Mb/s"
        );
    }
}
