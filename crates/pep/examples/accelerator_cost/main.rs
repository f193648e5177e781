//! CPU time of the accelerator for a data segment and its acknowledgment, two packets in and two out:
//! `cargo run --release -p paceline-pep --example accelerator_cost`.
//!
//! From ten connections to a hundred thousand, with simulated packets, and with datagrams of 1500 bytes whose
//! payload the driver gathers, as in the gateway. Packets come and go in batches, as from a driver; making
//! and sending them does not count. The work per segment does not depend on the number of connections. With
//! many of them, a segment takes longer because of cache misses on the connection, its device and its
//! scoreboard.

mod bench;

use bench::{BATCH, TRAIN, bench};

/// The allocator of the program `paceline`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!("one device a flow, trains of {TRAIN} segments, batches of {BATCH} packets");
    println!("{:>8} {:>10} {:>14}", "flows", "packets", "ns / segment");
    for real in [false, true] {
        for flows in [10, 1_000, 100_000] {
            let mut bench = bench(flows, 1, real);
            // The first rounds allocate memory.
            (0..3).for_each(|_| bench.round());
            let rounds = (400_000 / (flows * TRAIN)).max(1);
            let mut all = [0.0; 9].map(|_: f64| {
                bench.spent = std::time::Duration::ZERO;
                (0..rounds).for_each(|_| bench.round());
                bench.spent.as_nanos() as f64 / f64::from(rounds * flows * TRAIN)
            });
            all.sort_unstable_by(f64::total_cmp);
            assert_eq!(bench.accelerator.flow_count() as u32, flows);
            assert_eq!(bench.accelerator.stats().retransmissions, 0);
            let kind = if real { "1500 bytes" } else { "simulated" };
            println!("{flows:>8} {kind:>10} {:>14.0}", all[all.len() / 2]);
        }
    }
}
