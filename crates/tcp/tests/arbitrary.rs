//! The models of the fuzz targets with random bytes. `PACELINE_SWARM_SEED=17` starts at this seed.

use paceline_net::{Stream, test_support};

const RUNS: u64 = 400;

fn first_seed() -> u64 {
    std::env::var("PACELINE_SWARM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Runs a model on random bytes, seed by seed.
fn swarm(name: &str, length: u64, run: fn(&[u8])) {
    let first = first_seed();
    for seed in first..first + RUNS {
        println!("seed {seed}"); // shown on failure
        let mut stream = Stream::new(seed, name);
        let bytes: Vec<u8> = (0..stream.below(length)).map(|_| stream.next_u64() as u8).collect();
        run(&bytes);
    }
}

#[test]
fn an_endpoint_survives_arbitrary_segments() {
    swarm("segments", 2000, crate::model::segments::run);
}

#[test]
fn both_transfers_complete_over_an_arbitrary_network() {
    swarm("operations", 1500, crate::model::operations::run);
}

/// Inputs that fuzzing found, each named after the fault.
#[test]
fn inputs_that_once_failed_pass() {
    crate::model::segments::run(include_bytes!("found/early-ack-past-a-held-one"));
}

#[test]
fn inputs_of_the_fuzz_targets_pass() {
    for bytes in test_support::inputs(include_str!("../../../fuzz/seeds/tcp_segments.hex")) {
        crate::model::segments::run(&bytes);
    }
    for bytes in test_support::inputs(include_str!("../../../fuzz/seeds/tcp_operations.hex")) {
        crate::model::operations::run(&bytes);
    }
}
