//! The accelerator's detection of bottlenecks that devices share: in a queue for all of them it warns, and
//! where each device has a queue of its own it does not, whatever that queue and its radio lose.
//!
//! `cargo test -p paceline-sim --test main shared_bottleneck -- --nocapture` prints the stations found.

use paceline_sim::{scenario, simulate};

/// Stations found to share a bottleneck, and the share of segments sent again.
fn found(name: &str, text: &str, set: &[&str]) -> usize {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::load_with(name, text, &set, &|_| unreachable!("no files"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{name}: {error}"));
    let result = simulate(&scenario, 1, None, &mut |_| ());
    println!(
        "{name} {set:?}: {} of {} stations; {:.1} Mb/s, {:.1}% sent again, Jain {:.2}, p95 {:.0} ms",
        result.shared_bottleneck,
        result.stations.len(),
        result.totals.goodput_mbps,
        100.0 * result.totals.retransmission_share,
        result.totals.jain_index,
        result.totals.rtt_p95_ms
    );
    result.shared_bottleneck
}

/// Stations behind one hop, each with a link of twice its rate.
fn one_queue(stations: u32, queue: &str) -> String {
    format!(
        "[run]\nduration = \"20 s\"\nwarmup = \"5 s\"\n[core]\npath = \"accelerator\"\npath_after = 1\n\
         hops = [{{ rate = \"10 Gb/s\", delay = \"5 ms\" }}, {{ rate = \"100 Mb/s\", delay = \"15 ms\", queue = \"{queue}\" }}]\n\
         [link]\ndelay = \"2 ms\"\nqueue = \"4 MB\"\n[link.fixed]\ndownlink_rate = \"200 Mb/s\"\n\
         uplink_rate = \"100 Mb/s\"\n[[station]]\ncount = {stations}\n"
    )
}

#[test]
fn devices_behind_one_queue_are_found() {
    for queue in ["125 kB", "500 kB", "2 MB"] {
        for stations in [2, 8] {
            let shared = found(&format!("{stations} behind {queue}"), &one_queue(stations, queue), &[]);
            assert!(shared >= stations as usize - 1, "{shared} of {stations} behind {queue}");
        }
    }
}
