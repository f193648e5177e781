//! What an accelerator is built from.

use crate::accelerator::rate::adaptive::AdaptiveParameters;
use crate::accelerator::rate::paper::PaperParameters;
use paceline_net::{Bytes, Duration};

/// A device's buffer is promised to its connections in eighths of an equal share, so that they fill it together and not
/// the first ones alone, to which more was promised while they were few: what comes past a full buffer is refused, which
/// costs its server a timeout.
const SHARES: u64 = 8;
/// But each is promised this, in bytes.
const LEAST_SHARE: u64 = 8 << 10;

/// With headers and two VLAN tags ahead, a super-packet stays below the 65,536 bytes up to which devices cut.
const MOST_SUPER_PACKET: u64 = 65_400;

/// How the rate towards a device is found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RateControl {
    /// The published control, with an operator's numbers.
    Paper(PaperParameters),
    /// Measured delivery rate and minimum round-trip time; no operator's number.
    Adaptive(AdaptiveParameters),
}

impl Default for RateControl {
    fn default() -> Self {
        Self::Adaptive(AdaptiveParameters::default())
    }
}

/// Parameters of an [`crate::accelerator::Accelerator`]. Values that make no sense count as the nearest that do.
#[derive(Clone, PartialEq, Debug)]
pub struct AcceleratorConfig {
    /// The rate control, one for each device.
    pub control: RateControl,
    /// Bytes of a connection that are held at most and that the client is not known to have: the window that its
    /// server sees. As much again is held of what the client has acknowledged selectively, so that a hole does not
    /// stop the flow for a round trip.
    pub flow_buffer: Bytes,
    /// Bytes of a connection that may be acknowledged to its server and not yet by the client.
    pub exposure: Bytes,
    /// Bytes held at most for all connections of one device.
    pub device_buffer: Bytes,
    /// Bytes held at most in all.
    pub total_buffer: Bytes,
    /// Connections accelerated at once; more pass untouched.
    pub max_flows: usize,
    /// Connections of one device accelerated at once.
    pub max_flows_per_device: usize,
    /// Handshakes and connections without data that are remembered; the oldest is forgotten, and passes untouched.
    pub max_openings: usize,
    /// Send past the client's advertised window while the client takes it.
    pub overshoot: bool,
    /// Payload bytes of the largest packet towards the mobile side: 0 for single segments, up to 65,400 where
    /// the driver cuts super-packets.
    pub super_packet: Bytes,
    /// Packets leave in bursts of at most this long at the paced rate: the driver's tick.
    pub tick: Duration,
    /// Verify TCP checksums of datagrams; off where the device below has done it.
    pub verify_checksums: bool,
    /// Leave the checksums of data to the device that sends it.
    pub partial_checksums: bool,
    /// Data leaves without a copy where that pays: as headers, their checksum partial, with
    /// [`crate::accelerator::Transmission::body`] beside them.
    pub gather: bool,
    /// A client that owes an acknowledgment for so long stops early acknowledgments.
    pub silence: Duration,
    /// A client that owes an acknowledgment for so long is given up: what it was to get is lost, and both ends are
    /// reset; if nothing was acknowledged ahead of it, its connection goes on end to end.
    pub give_up: Duration,
    /// A server's reset waits so long for what is held ahead of it.
    pub reset_grace: Duration,
    /// Key of the hash tables, which an outsider should not know.
    pub seed: u64,
}

impl Default for AcceleratorConfig {
    fn default() -> Self {
        Self {
            control: RateControl::default(),
            flow_buffer: Bytes(2 << 20),
            exposure: Bytes(4 << 20),
            device_buffer: Bytes(16 << 20),
            total_buffer: Bytes(1 << 30),
            max_flows: 100_000,
            max_flows_per_device: 1024,
            max_openings: 65_536,
            overshoot: true,
            super_packet: Bytes(0),
            tick: Duration::from_micros(250),
            verify_checksums: true,
            partial_checksums: false,
            gather: false,
            silence: Duration::from_secs(3),
            give_up: Duration::from_secs(120),
            reset_grace: Duration::from_secs(5),
            seed: 0,
        }
    }
}

impl AcceleratorConfig {
    /// What may be promised to the server of one of a device's connections ahead of what its client has, in bytes. `busy` of
    /// them have something on the way.
    pub(in crate::accelerator) fn share(&self, busy: usize) -> u64 {
        let part = self.device_buffer.0 / (SHARES * busy.max(1) as u64);
        part.max(LEAST_SHARE).min(self.flow_buffer.0)
    }
    pub(in crate::accelerator) fn clamped(mut self) -> Self {
        // A buffer below a few segments could not even fill a delayed ACK; beyond 2^29 serial numbers end.
        self.flow_buffer = Bytes(self.flow_buffer.0.clamp(16 << 10, 1 << 29));
        self.exposure = Bytes(self.exposure.0.min(2 * self.flow_buffer.0));
        self.super_packet = Bytes(self.super_packet.0.min(MOST_SUPER_PACKET));
        self.max_flows = self.max_flows.min(1 << 24);
        self.max_openings = self.max_openings.clamp(1, 1 << 24);
        self
    }
}
