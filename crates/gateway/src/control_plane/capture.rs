//! Captures of one connection's packets, as they arrive and leave on both interfaces (`paceline gateway
//! capture`).
//!
//! Workers copy the packets to a bounded channel, from which the thread of the request writes pcapng. If the
//! channel is full, packets are left out, so that a capture never slows the traffic down.

use anyhow::Context;
use nix::time::{ClockId, clock_gettime};
use paceline_linux::clock;
use paceline_linux::files::pcapng::FlowWriter;
use paceline_net::{Duration, FlowKey, Instant, Packet, Payload};
use paceline_pep::accelerator::{PayloadSlice, Side};
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time;

/// Bytes captured of each packet. Chosen: IPv6 and TCP headers with all options have 100.
pub const SNAP_LEN: usize = 256;
/// Packets in the channel from the workers to the writer. Chosen: about 1 MB.
const CHANNEL_PACKETS: usize = 4096;
/// Longest capture. Chosen: bounds forgotten captures.
pub const MAX_TIME: Duration = Duration::from_secs(3600);
/// Most packets of a capture. Chosen: bounds forgotten captures, to about 3 GB.
pub const MAX_PACKETS: u64 = 10_000_000;

/// A packet at an interface.
pub struct Captured {
    at: Instant,
    side: Side,
    leaves: bool,
    len: u32,
    data: Vec<u8>,
}

/// A worker's end of a capture: packets of the connection `key`, or of the reversed direction, go to the
/// channel.
#[derive(Clone)]
pub struct Tap {
    key: FlowKey,
    until: Instant,
    packets: SyncSender<Captured>,
}

/// A new capture of a connection; `key` may have either direction. Returns the tap for the workers and the
/// channel's end.
pub fn open(key: FlowKey, time: Duration) -> (Tap, Receiver<Captured>) {
    let (packets, captured) = sync_channel(CHANNEL_PACKETS);
    (Tap { key, until: clock::now() + time, packets }, captured)
}

/// A worker's captures.
#[derive(Default)]
pub struct Taps(Vec<Tap>);

impl Taps {
    /// Adds a capture.
    pub fn add(&mut self, tap: Tap) {
        self.0.push(tap);
    }
    /// Removes captures whose time is over.
    pub fn sweep(&mut self, now: Instant) {
        self.0.retain(|tap| now < tap.until);
    }
    /// Captures a packet of the connection `key` (from server to mobile) at the interface of `side`, where it
    /// arrives or `leaves`. `body` is payload that follows the packet's own bytes.
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
            let payload = body.iter().flat_map(|slice| slice.as_bytes());
            let data = bytes.iter().chain(payload).take(SNAP_LEN).copied().collect();
            let captured = Captured { at, side, leaves, len: packet.len, data };
            !matches!(tap.packets.try_send(captured), Err(TrySendError::Disconnected(_)))
        });
    }
}

/// Writes captured packets as pcapng, until there are `packets` of them or `time` is over. Their timestamps
/// are of the real-time clock.
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
            // Flushing detects a client that has disconnected.
            Err(RecvTimeoutError::Timeout) => writer.flush()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    writer.flush()
}
