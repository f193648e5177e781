//! The response function of RFC 9438 §5 by simulation: the average window of one connection, in segments,
//! when every `1/p`-th data segment is lost and nothing else disturbs it. Both ends are whole endpoints; the
//! path is a constant round-trip time without a queue, as in the RFC's model.
//!
//! Mechanisms that the model does not have are off: delayed ACKs, pacing, HyStart, fast convergence (as the
//! RFC recommends for a single flow), limits by buffers.

#![allow(dead_code)] // the test and the example each use their part

use paceline_net::{Bytes, Duration};
use paceline_tcp::{CwndUnit, DelayedAck, Endpoint, EndpointConfig, SlowStartExit, Source};
use path::{Losses, Path};
use tables::Entry;

pub mod law;
#[path = "../link/path.rs"]
mod path;
pub mod tables;

/// Payload bytes of a full segment. Chosen: small, so that windows of many segments fit into the buffers.
const SEGMENT: u32 = 100;

/// The average window of an entry's control in segments, that is the segments delivered per round-trip time,
/// when one of `period` segments is lost: over `periods` periods, after as many to converge.
///
/// The first segment is the first to be lost, out of a window of `peak` segments, the top of the cycle. The
/// start matters: around CUBIC's plateau the window hardly depends on the time, so that the cycle converges
/// slowly (by the cube of the distance) and another start takes thousands of losses.
pub fn response(entry: &Entry, unit: CwndUnit, peak: u64, periods: u64) -> f64 {
    let (variant, rtt, period) = (entry.variant, entry.rtt, entry.period);
    let addresses = ["198.18.0.1:5000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
    let config = |local: usize| EndpointConfig {
        variant,
        cwnd_unit: unit,
        initial_window: peak as u32,
        segment_size: SEGMENT,
        receive_buffer: Bytes(1 << 30),
        send_buffer: Bytes(1 << 30),
        autotune: false,
        hystart: SlowStartExit::Off,
        fast_convergence: false,
        sack_compression: None,
        delayed_ack: DelayedAck { segments: 1, quick_acks: 0, adaptive: false, ..DelayedAck::default() },
        ..EndpointConfig::new(addresses[local], addresses[1 - local])
    };
    let sides = [Endpoint::connect(config(0), Source::Bulk), Endpoint::listen(config(1), Source::Nothing)];
    let mut path = Path::new(sides, rtt / 2, Duration::ZERO, Losses { period, remainder: 1 });
    let next_end = |path: &Path| (path.sent / period + periods) * period + 1;
    path.run_to(next_end(&path));
    let (started_at, acked) = (path.now, path.sides[0].stats().bytes_acked);
    path.run_to(next_end(&path));
    let span = path.now.since(started_at);
    let segments = (path.sides[0].stats().bytes_acked - acked) as f64 / f64::from(SEGMENT);
    assert_eq!(path.sides[0].stats().timeouts, 0, "losses are repaired without a timeout");
    segments * rtt.as_secs_f64() / span.as_secs_f64()
}
