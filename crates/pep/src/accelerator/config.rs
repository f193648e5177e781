//! Configuration of the accelerator: memory, table sizes, timeouts, and the choice of rate control.

use crate::accelerator::rate::RateControl;
use paceline_net::pacing::Hint;
use paceline_net::{Bytes, Duration};

/// Largest buffer of a connection: half the space of sequence numbers that can be compared (RFC 1982), since
/// as many bytes again may be SACKed.
const MAX_FLOW_BUFFER_BYTES: u64 = 1 << 29;
/// Largest super-packet: with headers and two VLAN tags it stays below the 65,536 bytes (GSO_LEGACY_MAX_SIZE
/// of Linux) that devices segment.
const MAX_SUPER_PACKET_BYTES: u64 = 65_400;

/// Linux's own limit: 15 timeouts (`tcp_retries2`) that double from 200 ms (`TCP_RTO_MIN`) to 120 s
/// (`TCP_RTO_MAX`).
const GIVE_UP: Duration = Duration::from_millis(924_600);

/// Spacing of packets towards a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pacing {
    /// The rate of the rate control, with bursts of 2 ms where the driver called late.
    #[default]
    Control,
    /// None: as much as the window allows at once.
    None,
    /// Linux's rate, packet by packet.
    LinuxPerSegment,
    /// The same for a TDD cell: no packet waits for longer than the period, and where the slots are known and
    /// the queue is shallow, packets meet downlink slots.
    Tdd,
    /// The open window is spread over the time to the next bunch of ACKs of a TDD cell (Sawabe, Shinohara and
    /// Iwai, IEEE CCNC 2024).
    TddPublished,
}

impl Pacing {
    /// Whether the spacing uses the period of a TDD cell.
    pub const fn uses_period(self) -> bool {
        matches!(self, Self::Tdd | Self::TddPublished)
    }
}

/// Parameters of an [`crate::accelerator::Accelerator`]. Impossible values count as the nearest possible
/// ones.
#[derive(Clone, PartialEq, Debug)]
pub struct AcceleratorConfig {
    /// The rate control of each device.
    pub control: RateControl,
    /// Spacing of packets towards a device.
    pub pacing: Pacing,
    /// The TDD cell's pattern, for the spacings that use one; [`Hint::None`]: its period is learned.
    pub pacing_hint: Hint,
    /// Learn the period of TDD cells from the ACKs of each device, also where the spacing needs none.
    pub learns_pattern: bool,
    /// Largest number of bytes held of a connection that the client has not acknowledged: the window that the
    /// server sees. As many bytes again may be SACKed, so that a hole does not stop the server for a
    /// round trip. At least 16 KiB, at most 2^29. An upper limit: see `memory`.
    pub flow_buffer: Bytes,
    /// Largest exposure of a connection: bytes acknowledged to its server and not yet by its client. An upper
    /// limit: see `memory`.
    pub exposure: Bytes,
    /// Bytes held at most for all connections of one device. An upper limit: see `memory`.
    pub device_buffer: Bytes,
    /// Bytes held at most for all connections. Connections hold as much as their paths need, and each device
    /// a quarter of the memory that other devices leave. At most half of the memory may be exposed.
    pub memory: Bytes,
    /// Time for which data is stored ahead of the radio at most. `None`: as long as keeps the radio busy over
    /// a round trip to the server and the server's reaction, or with [`RateControl::Paper`] the published
    /// buffer.
    pub most_stored: Option<Duration>,
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
    /// A client that has not sent an outstanding acknowledgment for this long is given up: both ends are
    /// reset. Where nothing was acknowledged early, or everything was sent, the connection continues end to
    /// end instead.
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
            pacing: Pacing::Control,
            pacing_hint: Hint::None,
            learns_pattern: false,
            flow_buffer: Bytes(MAX_FLOW_BUFFER_BYTES),
            exposure: Bytes(MAX_FLOW_BUFFER_BYTES),
            device_buffer: Bytes(1 << 30),
            memory: Bytes(1 << 30),
            most_stored: None,
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
            give_up: GIVE_UP,
            reset_grace: Duration::from_secs(5),
            seed: 0,
        }
    }
}

impl AcceleratorConfig {
    pub(in crate::accelerator) fn clamped(mut self) -> Self {
        // A smaller buffer than a few segments could not fill a delayed ACK; a larger one than 2^29 bytes
        // would make comparisons of 32-bit sequence numbers ambiguous.
        self.flow_buffer = Bytes(self.flow_buffer.0.clamp(16 << 10, MAX_FLOW_BUFFER_BYTES));
        self.exposure = Bytes(self.exposure.0.min(2 * self.flow_buffer.0));
        self.super_packet = Bytes(self.super_packet.0.min(MAX_SUPER_PACKET_BYTES));
        self.max_flows = self.max_flows.min(1 << 24);
        self.max_openings = self.max_openings.clamp(1, 1 << 24);
        self
    }
}
