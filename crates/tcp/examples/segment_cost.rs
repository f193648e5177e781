//! Measures the CPU time of one data segment in both endpoints together, its acknowledgment included, over a
//! path that is a queue and a delay: `cargo run --release -p paceline-tcp --example segment_cost`.
//!
//! Two windows show that the cost does not depend on the window, two runs have losses. Also prints the memory
//! of an endpoint.
#![allow(clippy::disallowed_types)] // a benchmark reads the wall clock

#[path = "../tests/link/path.rs"]
mod path;

use paceline_net::{Bytes, Duration};
use paceline_tcp::{Endpoint, EndpointConfig, SlowStartExit, Source};
use path::{Losses, Path};
use std::time;

/// Interval between two data segments at the bottleneck.
const SPACING: Duration = Duration::from_micros(10);

/// A bulk transfer over a path with this one-way delay that loses every `lose_every`-th segment, none if that
/// is 0.
fn transfer(delay: Duration, lose_every: u64) -> Path {
    let addresses = ["198.18.0.1:5000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
    let config = |local: usize| EndpointConfig {
        receive_buffer: Bytes(64 << 20),
        send_buffer: Bytes(64 << 20),
        autotune: false,
        hystart: SlowStartExit::Off,
        ..EndpointConfig::new(addresses[local], addresses[1 - local])
    };
    let sides = [Endpoint::connect(config(0), Source::Bulk), Endpoint::listen(config(1), Source::Nothing)];
    Path::new(sides, delay, SPACING, Losses { period: lose_every, remainder: 0 })
}

/// Bytes of memory per endpoint with a window of ten to twenty segments, from the growth of the process.
fn memory() -> f64 {
    const PAIRS: usize = 20_000;
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
        let pages = text.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok());
        pages.expect("the second field is the resident set") * 4096.0
    };
    let mut paths: Vec<Path> = Vec::with_capacity(PAIRS);
    let before = resident();
    for _ in 0..PAIRS {
        let mut path = transfer(Duration::from_millis(10), 0);
        path.run_to(20);
        path.clear(); // packets in flight are not the endpoints' memory
        paths.push(path);
    }
    (resident() - before) / (2 * PAIRS) as f64
}

fn main() {
    println!("an endpoint takes {:.0} bytes, {} of them fixed", memory(), size_of::<Endpoint>());
    const SEGMENTS: u64 = 2_000_000;
    for (name, delay_ms, lose_every) in [
        ("short path", 1, 0),
        ("long path", 100, 0),
        ("short path, 1% loss", 1, 100),
        ("long path, rare loss", 100, 50_000),
    ] {
        let mut path = transfer(Duration::from_millis(delay_ms), lose_every);
        path.run_to(SEGMENTS / 4);
        let start = time::Instant::now();
        let before = path.sent;
        path.run_to(before + SEGMENTS);
        let ns = start.elapsed().as_nanos() as f64 / (path.sent - before) as f64;
        let window = path.sides[0].snapshot().cwnd.0 / 1448;
        println!("{name:22} {ns:6.0} ns per segment, window {window} segments");
    }
}
