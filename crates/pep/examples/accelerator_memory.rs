//! Memory of the accelerator for a connection that has received some segments and is idle: `cargo run
//! --release -p paceline-pep --example accelerator_memory`. Counts allocated bytes, tables included, without
//! the reserve of the allocator.

#[path = "accelerator_cost/bench.rs"]
mod bench;

use bench::bench;
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

fn main() {
    println!("{:>8} {:>16} {:>14}", "flows", "flows / device", "bytes / flow");
    for (flows, per_device) in [(10, 1), (10, 10), (1_000, 1), (1_000, 100), (100_000, 1), (100_000, 100)] {
        let before = ALLOCATOR.allocated();
        let mut bench = bench(flows, per_device, true);
        bench.round();
        let delivers = |_: &u32| {
            bench.deliver();
            bench.accelerator.held() > 0
        };
        assert!((0..1_000).take_while(delivers).count() < 1_000, "all bytes are delivered");
        let bytes = ALLOCATOR.allocated() - before;
        println!("{flows:>8} {per_device:>16} {:>14}", bytes / flows as usize);
    }
}
