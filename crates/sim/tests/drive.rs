//! Stations that drive through the sites of a deployment: connections stay, and handovers cost what their
//! parameters say.

use paceline_sim::{RunResult, scenario, simulate};

const DRIVE: &str = include_str!("../../../scenarios/drive.toml");
const SCRIPTED: [&str; 6] = [
    "handover.trigger=scripted",
    "handover.times=[\"4 s\", \"8 s\", \"12 s\"]",
    "run.duration=16 s",
    "deployment.fading=none",
    "station.0.count=1",
    "station.1.count=1",
];

fn run(set: &[&str], seed: u64) -> RunResult {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::load("drive.toml", DRIVE, &set).unwrap();
    simulate(&scenario, seed, None, &mut |_| {})
}
/// Times without service of the completed handovers, in ms.
fn interruptions_ms(run: &RunResult) -> Vec<f64> {
    run.handovers.iter().filter_map(|handover| handover.interruption_ms).collect()
}

#[test]
fn a_drive_has_a_row_for_every_handover_and_its_connections_stay() {
    for (seed, fate) in [(1, "forward"), (2, "drop"), (3, "duplicate")] {
        let run = run(&["run.duration=60 s", &format!("handover.fate={fate}")], seed);
        println!("seed {seed}, {fate}: {} handovers", run.handovers.len());
        for station in 0..2 {
            let own: Vec<_> = run.handovers.iter().filter(|handover| handover.station == station).collect();
            assert!(own.len() >= 3, "{} handovers of station {station}", own.len());
            for pair in own.windows(2) {
                let from = if pair[0].outcome == "failed" { pair[0].from_cell } else { pair[0].to_cell };
                assert!(pair[1].from_cell == from || pair[0].outcome == "failed", "{pair:?}");
                assert!(pair[0].time_s < pair[1].time_s);
            }
            assert!(run.stations[station].goodput_mbps > 0.5, "{}", run.stations[station].goodput_mbps);
        }
        assert!(run.flows.iter().all(|flow| flow.bytes > 0), "seed {seed}");
        assert_eq!(run.handovers.iter().any(|handover| handover.dropped_packets > 0), fate == "drop");
    }
}

#[test]
fn interruption_and_forwarding_follow_from_their_keys() {
    let mean = |set: &[&str]| {
        let run = run(&[&SCRIPTED[..], set].concat(), 1);
        let times = interruptions_ms(&run);
        assert_eq!(times.len(), 6, "{set:?}");
        times.iter().sum::<f64>() / 6.0
    };
    let short = mean(&["handover.interruption=5 ms"]);
    let long = mean(&["handover.interruption=45 ms"]);
    assert!((long - short - 40.0).abs() < 12.0, "occasions of PRACH are 10 ms apart: {short} and {long} ms");
    assert_eq!(mean(&["handover.fate=duplicate", "handover.interruption=0 ms"]), 0.0);

    let run = run(&SCRIPTED, 1);
    assert!(run.handovers.iter().all(|handover| handover.forwarded_packets > 0));
}

#[test]
fn forwarding_costs_no_loss_and_a_late_end_of_it_costs_reordering() {
    // Fresh packets that overtake forwarded ones reach TCP out of order, and it retransmits needlessly.
    // Without RACK-TLP, whose probes would count too.
    let lossless = ["cell.downlink_buffer=16 MiB", "tcp.receive_buffer=256 KiB", "tcp.loss_recovery=sack"];
    let resent = |set: &[&str]| {
        let run = run(&[&SCRIPTED[..], &lossless, set].concat(), 1);
        run.flows.iter().map(|flow| flow.retransmissions).sum::<u64>()
    };
    assert_eq!(resent(&[]), 0);
    assert_eq!(resent(&["handover.fate=duplicate"]), 0);
    assert!(resent(&["handover.fate=drop"]) > 0);
    let overtaken =
        resent(&["handover.end_marker=false", "handover.forward_delay=50 ms", "handover.path_switch=100 ms"]);
    assert!(overtaken > 0);
    assert_eq!(
        resent(&["handover.end_marker=true", "handover.forward_delay=50 ms", "handover.path_switch=100 ms"]),
        0
    );
}

#[test]
fn a_station_that_never_hands_over_loses_its_link_and_finds_another_cell() {
    let run = run(&["handover.trigger=none", "run.duration=60 s"], 1);
    let failures: Vec<_> = run.handovers.iter().filter(|handover| handover.station == 0).collect();
    assert!(!failures.is_empty());
    for failure in &failures {
        assert_eq!(failure.cause, "link-failure");
        if let Some(interruption_ms) = failure.interruption_ms {
            // Cell selection, random access and signalling.
            assert!((50.0..2000.0).contains(&interruption_ms), "{interruption_ms}");
        }
    }
    assert!(failures.iter().any(|failure| failure.from_cell != failure.to_cell));
    assert!(run.stations[0].goodput_mbps > 0.5);
}

/// Goodput in Mb/s of a drive from cell to cell beside stations that stand still, with a hop of its own for
/// each cell.
fn behind_own_hops(rate: &str) -> f64 {
    let hops = format!("core.hops=[{{ rate = \"{rate}\", delay = \"5 ms\", per_cell = true }}]");
    let run = run(&["run.duration=40 s", "run.warmup=2 s", &hops], 1);
    assert!(!run.handovers.is_empty());
    run.stations.iter().map(|station| station.goodput_mbps).sum()
}

#[test]
fn hops_of_each_cell_carry_the_stations_that_it_serves() {
    let (narrow, wide) = (behind_own_hops("2 Mb/s"), behind_own_hops("1 Gb/s"));
    // The stations are in several cells, each of which has 2 Mb/s.
    assert!(narrow > 4.0 && narrow < 0.7 * wide, "{narrow} and {wide} Mb/s");
}
