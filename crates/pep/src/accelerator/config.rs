//! Configuration of the accelerator: buffer limits, table sizes, timeouts, and the choice of rate control.

use crate::accelerator::rate::RateControl;
use paceline_net::{Bytes, Duration};

/// Each of a device's n busy connections may hold 1 / (8 n) of the device's buffer. Chosen: the windows of
/// the first connections are granted while these are few, and would fill the buffer alone. A segment that
/// arrives at a full buffer is refused, which costs its server a timeout.
const SHARE_DIVISOR: u64 = 8;
/// Smallest share of a connection. Chosen: a few segments keep a connection going.
const MIN_SHARE_BYTES: u64 = 8 << 10;
/// Largest super-packet: with headers and two VLAN tags it stays below the 65,536 bytes (GSO_LEGACY_MAX_SIZE
/// of Linux) that devices segment.
const MAX_SUPER_PACKET_BYTES: u64 = 65_400;

/// Parameters of an [`crate::accelerator::Accelerator`]. Impossible values count as the nearest possible
/// ones.
#[derive(Clone, PartialEq, Debug)]
pub struct AcceleratorConfig {
    /// The rate control of each device.
    pub control: RateControl,
    /// Largest number of bytes held of a connection that the client has not acknowledged: the window that the
    /// server sees. As many bytes again may be SACKed, so that a hole does not stop the server for a
    /// round trip. At least 16 KiB, at most 2^29.
    pub flow_buffer: Bytes,
    /// Largest exposure of a connection: bytes acknowledged to its server and not yet by its client.
    pub exposure: Bytes,
    /// Bytes held at most for all connections of one device.
    pub device_buffer: Bytes,
    /// Bytes held at most for all connections.
    pub total_buffer: Bytes,
    /// Connections accelerated at once; more pass untouched.
    pub max_flows: usize,
    /// Connections of one device accelerated at once.
    pub max_flows_per_device: usize,
    /// Handshakes and connections without data in the table. The oldest makes room and then passes untouched.
    pub max_openings: usize,
    /// Send past the client's advertised window while the client accepts it.
    pub overshoot: bool,
    /// Payload bytes of the largest packet towards the mobile side: 0 for single segments, up to 65,400 where
    /// the driver segments super-packets.
    pub super_packet: Bytes,
    /// Longest burst at the paced rate: the period in which the driver calls.
    pub tick: Duration,
    /// Verify the TCP checksums of datagrams. Off where the device below has verified them.
    pub verify_checksums: bool,
    /// Leave the checksums of data to the device that sends it (checksum offload).
    pub partial_checksums: bool,
    /// Send large payloads without copying: the packet has headers with a partial checksum, and the payload
    /// stands in [`crate::accelerator::Transmission::body`].
    pub gather: bool,
    /// Early acknowledgments stop when a client has not sent an outstanding acknowledgment for this long.
    pub silence: Duration,
    /// A client that has not sent an outstanding acknowledgment for this long is given up. Both ends are
    /// reset; where nothing was acknowledged early, the connection continues end to end instead.
    pub give_up: Duration,
    /// How long a server's reset waits for the delivery of the data ahead of it.
    pub reset_grace: Duration,
    /// Secret key of the hash tables, against collisions made on purpose.
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
    /// Bytes that one of a device's connections may hold beyond its client's acknowledgments, where `busy` of
    /// them have data in flight.
    pub(in crate::accelerator) fn buffer_share(&self, busy: usize) -> u64 {
        let part = self.device_buffer.0 / (SHARE_DIVISOR * busy.max(1) as u64);
        part.max(MIN_SHARE_BYTES).min(self.flow_buffer.0)
    }
    pub(in crate::accelerator) fn clamped(mut self) -> Self {
        // A smaller buffer than a few segments could not fill a delayed ACK; a larger one than 2^29 bytes
        // would make comparisons of 32-bit sequence numbers ambiguous.
        self.flow_buffer = Bytes(self.flow_buffer.0.clamp(16 << 10, 1 << 29));
        self.exposure = Bytes(self.exposure.0.min(2 * self.flow_buffer.0));
        self.super_packet = Bytes(self.super_packet.0.min(MAX_SUPER_PACKET_BYTES));
        self.max_flows = self.max_flows.min(1 << 24);
        self.max_openings = self.max_openings.clamp(1, 1 << 24);
        self
    }
}
