//! Ten million operations of servers and clients against the accelerator, its invariants checked after each:
//! `cargo run --release -p paceline-pep --example accelerator_operations [FIRST_SEED [OPERATIONS]]`.
//!
//! A failure prints its seed; the same seed as FIRST_SEED repeats it.

#[path = "../tests/accelerator/model/mod.rs"]
mod model;

use paceline_net::Stream;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a whole number"));
    let first = arguments.next().unwrap_or(1_000_000);
    let wanted = arguments.next().unwrap_or(10_000_000);
    println!("seeds from {first}");
    let (mut operations, mut delivered, mut offloads, mut black_holes) = (0, 0, 0, 0);
    let mut seed = first;
    while operations < wanted {
        let mut stream = Stream::new(seed, "accelerator");
        let len = 20 + stream.below(8_000);
        let bytes: Vec<u8> = (0..len).map(|_| stream.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| model::run(&bytes)).unwrap_or_else(|_| {
            eprintln!("failed with seed {seed}");
            std::process::exit(1)
        });
        operations += outcome.operations;
        delivered += outcome.delivered;
        offloads += outcome.offloads;
        black_holes += outcome.black_holes;
        seed += 1;
    }
    let runs = seed - first;
    println!(
        "{operations} operations in {runs} runs, {delivered} bytes delivered, {offloads} uploads offloaded, {black_holes} black \
         holes, no violation"
    );
}
