//! Throughput and queueing delay of the accelerator on links of all kinds, beside plain TCP where the
//! environment variable `BASE` is set: `cargo run --release -p paceline-pep --example accelerator_links
//! [TRACE ...]`, with traces in mahimahi's format.

use paceline_net::{Instant, Rate, Stream};
use paceline_pep::AcceleratorConfig;
use paceline_tcp::{Source, Variant};

#[path = "../tests/accelerator/network.rs"]
mod network;
use network::*;

const SECONDS: u64 = 60;
/// Bytes of an opportunity to send in a mahimahi trace.
const OPPORTUNITY: u64 = 1504;

/// A trace whose capacity is a random walk in steps of 20 ms, with rare outages: the millisecond of each
/// opportunity.
fn synthetic(seed: u64, mean_mbps: f64, spread: f64) -> Vec<u64> {
    let mut stream = Stream::new(seed, "trace");
    let (mut log, mut stamps, mut credit, mut outage) = (0.0, Vec::new(), 0.0, 0u32);
    for ms in 0..SECONDS * 1000 {
        if ms % 20 == 0 {
            log = 0.98 * log + 0.2 * spread * stream.normal();
            outage = outage.saturating_sub(20);
            if stream.chance(0.0005) {
                outage = 50 + stream.below(400) as u32;
            }
        }
        if outage == 0 {
            credit += mean_mbps * exponential(log) / 8.0 * 1000.0 / OPPORTUNITY as f64;
        }
        while credit >= 1.0 {
            credit -= 1.0;
            stamps.push(ms);
        }
    }
    stamps.push(SECONDS * 1000);
    stamps
}
/// e^x by its power series.
fn exponential(x: f64) -> f64 {
    (0..40).rev().fold(1.0, |sum, n| 1.0 + x * sum / f64::from(n + 1))
}

/// Bytes that a trace, repeated, carries until `until_ms`.
fn capacity(stamps: &[u64], until_ms: u64) -> u64 {
    let period = *stamps.last().expect("stamps");
    let full = until_ms / period * stamps.len() as u64;
    OPPORTUNITY * (full + stamps.iter().filter(|ms| **ms <= until_ms % period).count() as u64)
}

/// Runs a download over the link and prints throughput, share of the capacity, and queueing delays.
fn row(name: &str, delay_ms: u64, make: &dyn Fn() -> Capacity, capacity: u64, loss: f64) {
    print!("{name:32}");
    for (variant, accelerated) in [(Variant::Cubic, false), (Variant::Bbr, false), (Variant::Cubic, true)] {
        if !accelerated && std::env::var("BASE").is_err() {
            continue;
        }
        let config = accelerated.then(AcceleratorConfig::default);
        let (client, mut server) = configs(0);
        server.variant = variant;
        let down = Link::new(make(), delay_ms, 20_000_000).lossy(loss, 1, "loss");
        let up = Link::rate("20 Mb/s", delay_ms, 10_000_000);
        let mut network = Network::with((client, server), Source::Bulk, config, 15, [down, up]);
        network.run_ms(SECONDS * 1000);
        let line = &network.mobile[0];
        print!(
            " | {:6.2} Mb/s {:5.1}% p50 {:6.1} p95 {:7.1} ms",
            network.received() as f64 * 8.0 / SECONDS as f64 / 1e6,
            100.0 * line.carried as f64 / capacity as f64,
            line.percentile_ms(0.5),
            line.percentile_ms(0.95),
        );
        if let Middle::Accelerator(accelerator) = &network.middle {
            let stats = accelerator.stats();
            print!(" rtx {} rto {} tlp {}", stats.retransmissions, stats.timeouts, stats.tail_probes);
        }
    }
    println!();
}

fn main() {
    println!("{:32} | plain CUBIC | plain BBR | accelerated CUBIC, adaptive", "link");
    let files: Vec<String> = std::env::args().skip(1).collect();
    for delay_ms in [10, 30] {
        for file in &files {
            let text = std::fs::read_to_string(file).expect("a trace");
            let stamps: Vec<u64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
            let name = file.rsplit('/').next().unwrap_or(file);
            let total = capacity(&stamps, SECONDS * 1000);
            row(&format!("{name} {delay_ms}"), delay_ms, &|| Capacity::Trace(stamps.clone()), total, 0.0);
        }
        for (seed, mean, spread) in [(1, 5.0, 0.5), (2, 20.0, 1.0), (3, 50.0, 0.3)] {
            let stamps = synthetic(seed, mean, spread);
            let total = capacity(&stamps, SECONDS * 1000);
            let name = format!("synthetic {mean} Mb/s x{spread} {delay_ms}");
            row(&name, delay_ms, &|| Capacity::Trace(stamps.clone()), total, 0.0);
        }
        for (mbps, loss) in [(5u64, 0.0), (80, 0.0), (80, 0.01), (80, 0.05)] {
            let total = mbps * 1_000_000 / 8 * SECONDS;
            let name = format!("constant {mbps} Mb/s loss {loss} {delay_ms}");
            row(&name, delay_ms, &|| Capacity::Rate(Rate(mbps * 1_000_000)), total, loss);
        }
        let steps: Vec<(Instant, Rate)> = (0..SECONDS / 5)
            .map(|n| (Instant::from_millis(n * 5000), Rate(if n % 2 == 0 { 100_000_000 } else { 1_000_000 })))
            .collect();
        let total = SECONDS / 10 * 5 * 101_000_000 / 8;
        row(
            &format!("steps 100 / 1 Mb/s {delay_ms}"),
            delay_ms,
            &|| Capacity::Steps(steps.clone()),
            total,
            0.0,
        );
    }
}
