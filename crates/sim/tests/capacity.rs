//! TCP against the capacity of the cell, and the same run twice.

use paceline_ran::lte::{cqi, mcs, tbs};
use paceline_sim::{scenario, simulate};

fn run(text: &str, seed: u64) -> paceline_sim::RunResult {
    let scenario = scenario::load("test.toml", text, &[]).unwrap();
    simulate(&scenario, seed, None, &mut |_| {})
}

#[test]
fn a_lone_stations_tcp_takes_the_schedulers_capacity() {
    for (sinr, control) in [(25.0, "cubic"), (12.0, "cubic"), (4.0, "newreno"), (25.0, "newreno")] {
        let text = format!(
            "[run]\nduration = \"25 s\"\nwarmup = \"10 s\"\n[tcp]\ncongestion_control = \"{control}\"\n\
             [[station]]\ndownlink_sinr = \"{sinr} dB\"\nuplink_sinr = \"12 dB\"\n"
        );
        let index = cqi::mcs(cqi::of_sinr(sinr)).unwrap();
        let capacity = tbs::transport_block_bits(mcs::DOWNLINK[usize::from(index)].i_tbs, 100);
        let goodput = run(&text, 1).totals.goodput_mbps;
        let share = goodput / (f64::from(capacity) / 1000.0);
        assert!(
            (0.95..1.0).contains(&share),
            "{sinr} dB, {control}: {goodput} Mb/s are {share} of {capacity}"
        );
    }
}

#[test]
fn upload_is_limited_by_the_uplink_alone() {
    let text = "[run]\nduration = \"15 s\"\nwarmup = \"5 s\"\n\
                [[station]]\nuplink_sinr = \"25 dB\"\ndirection = \"upload\"\n";
    let totals = run(text, 1).totals;
    // MCS 20 without uplink 64QAM, on the 96 resource blocks that PUCCH leaves.
    let capacity = f64::from(tbs::transport_block_bits(19, 96)) / 1000.0;
    assert!(totals.upload_mbps > 0.93 * capacity && totals.upload_mbps < capacity, "{}", totals.upload_mbps);
}

#[test]
fn files_complete_and_say_when() {
    let text = "[run]\nduration = \"10 s\"\n[[station]]\ncount = 3\nflows = 2\nfile = \"300 kB\"\nfading = \"3 dB\"\n";
    let result = run(text, 4);
    assert_eq!(result.flows.len(), 6);
    for flow in &result.flows {
        assert_eq!(flow.bytes, 300_000);
        assert!(flow.completed_s.is_some_and(|s| s > 0.05 && s < 5.0), "{flow:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let text = "[run]\nduration = \"4 s\"\nwarmup = \"1 s\"\n[[station]]\ncount = 4\nfading = \"3 dB\"\n";
    assert_eq!(run(text, 9), run(text, 9));
    assert_ne!(run(text, 9).totals, run(text, 10).totals);
}
