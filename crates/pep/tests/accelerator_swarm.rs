//! The accelerator between a server and a client over links on which everything goes wrong, by the thousand.

mod model;

use paceline_net::Stream;

/// `PACELINE_SWARM_SEED=17` starts at that seed and runs it alone.
#[test]
fn runs_from_many_seeds_keep_the_promises() {
    let only: Option<u64> = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = only.map_or(0..3000, |seed| seed..seed + 1);
    let (mut delivered, mut operations, mut rests, mut black_holes) = (0, 0, 0, 0);
    for seed in seeds {
        let mut stream = Stream::new(seed, "accelerator");
        let len = 20 + stream.below(1500);
        let bytes: Vec<u8> = (0..len).map(|_| stream.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| model::run(&bytes));
        match outcome {
            Ok(outcome) => {
                delivered += outcome.delivered;
                operations += outcome.operations;
                rests += outcome.rests;
                black_holes += outcome.black_holes;
            }
            Err(panic) => {
                eprintln!("failed with PACELINE_SWARM_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!(
        "{operations} operations, {delivered} bytes delivered, {rests} uploads past, {black_holes} black holes"
    );
    assert!(only.is_some() || rests > 300, "uploads went past {rests} times");
    assert!(only.is_some() || black_holes > 100, "{black_holes} paths were found to swallow segments");
    assert!(only.is_some() || delivered > 10_000_000, "the runs come to something: {delivered} bytes");
}

/// What fuzzing has found.
#[test]
fn a_fin_that_comes_again_is_acknowledged_again() {
    model::run(include_bytes!("found/fin-whose-acknowledgment-was-lost"));
}

#[test]
fn what_has_a_wrong_checksum_is_not_learned_in_a_handshake_either() {
    model::run(include_bytes!("found/acknowledgment-with-a-wrong-checksum"));
}

/// A client that lacks what it had selectively acknowledged, and goes on talking: each packet of it ends the backoff.
#[test]
fn what_a_talking_client_threw_away_is_sent_again_at_the_first_timeout() {
    model::run(include_bytes!("found/thrown-away-while-it-talks"));
}
