//! One connection's packets, in and out on both sides, for `paceline gateway capture`.
//!
//! A worker without a capture pays a look at an empty list for each packet. What does not fit between worker and
//! writer is left out and counted: a capture never slows the traffic down.

use crate::clock;
use crate::pcapng::FlowWriter;
use anyhow::Context;
use nix::time::{ClockId, clock_gettime};
use paceline_net::{Duration, FlowKey, Instant, Packet, Payload};
use paceline_pep::accelerator::{PayloadSlice, Side};
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time;

/// Bytes kept of each packet: every header with room to spare.
pub const SNAP_LEN: usize = 256;
/// Packets between worker and writer.
const QUEUE: usize = 4096;
/// Longest capture.
pub const MAX_TIME: Duration = Duration::from_secs(3600);
/// Most packets.
pub const MAX_PACKETS: u64 = 10_000_000;

/// One packet, as it passed an interface.
pub struct Captured {
    at: Instant,
    side: Side,
    leaves: bool,
    len: u32,
    data: Vec<u8>,
}

/// A worker's end of a capture.
#[derive(Clone)]
pub struct Tap {
    key: FlowKey,
    until: Instant,
    packets: SyncSender<Captured>,
}

/// A new capture of a connection, whichever direction `key` has, and what its taps bring.
pub fn open(key: FlowKey, time: Duration) -> (Tap, Receiver<Captured>) {
    let (packets, captured) = sync_channel(QUEUE);
    (Tap { key, until: clock::now() + time, packets }, captured)
}

/// A worker's captures.
#[derive(Default)]
pub struct Taps(Vec<Tap>);

impl Taps {
    /// Takes in one more.
    pub fn add(&mut self, tap: Tap) {
        self.0.push(tap);
    }
    /// Takes out those that are over.
    pub fn sweep(&mut self, now: Instant) {
        self.0.retain(|tap| now < tap.until);
    }
    /// A packet of the connection (key from server to mobile) comes in by an interface, or leaves by it, with its payload
    /// beside it, if it is not in it.
    pub fn on_packet(
        &mut self,
        at: Instant,
        key: &FlowKey,
        (side, leaves): (Side, bool),
        packet: &Packet,
        body: &[PayloadSlice],
    ) {
        if self.0.is_empty() {
            return;
        }
        let Payload::Datagram(bytes) = &packet.payload else { return };
        self.0.retain(|tap| {
            if tap.key != *key && tap.key.reversed() != *key {
                return true;
            }
            let payload = body.iter().flat_map(|stretch| stretch.as_bytes());
            let data = bytes.iter().chain(payload).take(SNAP_LEN).copied().collect();
            let captured = Captured { at, side, leaves, len: packet.len, data };
            !matches!(tap.packets.try_send(captured), Err(TrySendError::Disconnected(_)))
        });
    }
}

/// Writes what comes as pcapng, until there are `packets` of them or `time` is over. Times are of the real-time clock.
pub fn write(
    out: impl Write,
    captured: &Receiver<Captured>,
    packets: u64,
    time: Duration,
) -> anyhow::Result<()> {
    let real = clock_gettime(ClockId::CLOCK_REALTIME).context("cannot read the clock")?;
    let real = real.tv_sec() as u64 * 1_000_000_000 + real.tv_nsec() as u64;
    let offset = real - clock::now().as_nanos();
    let until = clock::now() + time;
    let mut writer = FlowWriter::new(out, ["server", "mobile"])?;
    let mut written = 0;
    while written < packets {
        let wait = until.since(clock::now());
        if wait == Duration::ZERO {
            break;
        }
        match captured.recv_timeout(time::Duration::from_nanos(wait.as_nanos().min(100_000_000))) {
            Ok(Captured { at, side, leaves, len, data }) => {
                writer.write(offset + at.as_nanos(), side as u32, leaves, len, &data)?;
                written += 1;
            }
            // What is there is told, so that a reader who has gone is noticed.
            Err(RecvTimeoutError::Timeout) => writer.flush()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    writer.flush()
}
