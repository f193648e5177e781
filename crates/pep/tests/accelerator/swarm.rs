//! Thousands of random runs of the model: the accelerator between a server and a client over faulty links.

use crate::accelerator::model;
use paceline_net::Stream;

/// `PACELINE_SWARM_SEED=17` starts at that seed and runs it alone.
// keeps: accelerator.wrap, accelerator.hostile, accelerator.prefix, accelerator.contiguous
// keeps: accelerator.store, accelerator.right-edge, accelerator.tsval, accelerator.exposure
// keeps: accelerator.bypass
#[test]
fn random_runs_keep_the_rules() {
    let only: Option<u64> = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = only.map_or(0..3000, |seed| seed..seed + 1);
    let (mut delivered, mut operations, mut offloads, mut black_holes) = (0, 0, 0, 0);
    for seed in seeds {
        let mut stream = Stream::new(seed, "accelerator");
        let len = 20 + stream.below(1500);
        let bytes: Vec<u8> = (0..len).map(|_| stream.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| model::run(&bytes));
        match outcome {
            Ok(outcome) => {
                delivered += outcome.delivered;
                operations += outcome.operations;
                offloads += outcome.offloads;
                black_holes += outcome.black_holes;
            }
            Err(panic) => {
                eprintln!("failed with PACELINE_SWARM_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!(
        "{operations} operations, {delivered} bytes delivered, {offloads} uploads offloaded, {black_holes} black holes"
    );
    assert!(only.is_some() || offloads > 300, "{offloads} uploads were offloaded");
    assert!(only.is_some() || black_holes > 100, "{black_holes} black holes were detected");
    assert!(only.is_some() || delivered > 10_000_000, "{delivered} bytes are delivered");
}

#[test]
fn inputs_of_the_fuzz_target_keep_the_rules() {
    let inputs = paceline_net::test_support::inputs(include_str!("../../../../fuzz/seeds/accelerator.hex"));
    for bytes in inputs {
        model::run(&bytes);
    }
}

/// Found by fuzzing.
// keeps: accelerator.fin
#[test]
fn a_retransmitted_fin_is_acknowledged_again() {
    model::run(include_bytes!("found/fin-whose-acknowledgment-was-lost"));
}

// keeps: accelerator.handshake
#[test]
fn a_corrupt_handshake_segment_is_ignored() {
    model::run(include_bytes!("found/acknowledgment-with-a-wrong-checksum"));
}

/// The client has reneged on SACKed data and keeps sending; each of its packets resets the backoff.
// keeps: accelerator.store
#[test]
fn reneged_data_is_retransmitted_at_the_first_timeout() {
    model::run(include_bytes!("found/thrown-away-while-it-talks"));
}
