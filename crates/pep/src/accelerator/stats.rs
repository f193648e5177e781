//! Counters of the accelerator, with their names.

use crate::accelerator::histogram::Histogram;
use paceline_net::{Duration, Rate};

macro_rules! bypass_reasons {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// Why the accelerator passes a connection on untouched (bypass).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum BypassReason { $($(#[$doc])* $name,)* }

        impl BypassReason {
            /// All reasons, in the order of the counters. By definition.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];
            /// The name of the counter; part of the interface, never changed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => concat!("bypassed-", $text),)* }
            }
        }
    };
}

bypass_reasons! {
    /// Data of a connection without a known handshake; counted by segment.
    MidFlow => "mid-flow",
    /// Both ends sent a SYN.
    SimultaneousOpen => "simultaneous-open",
    /// Data from the server without an acknowledgment of its SYN: one direction takes another path.
    OneSided => "one-sided",
    /// Multipath TCP (RFC 8684).
    Mptcp => "mptcp",
    /// Signed segments: MD5 (RFC 2385) or TCP-AO (RFC 5925).
    Signed => "signed",
    /// Accurate ECN (RFC 9768).
    AccurateEcn => "accurate-ecn",
    /// An unknown or malformed option in the handshake.
    UnknownOption => "unknown-option",
    /// A fragment, IPv4 option or IPv6 extension header in the handshake.
    SpecialIp => "special-ip",
    /// An end accepts only segments of less than 64 bytes.
    SmallSegments => "small-segments",
    /// The table of connections is full.
    TableFull => "table-full",
    /// The device has as many connections as are allowed.
    DeviceFull => "device-full",
    /// The buffers are full, or the driver reported overload.
    Overload => "overload",
    /// The accelerator is draining before a stop.
    Draining => "draining",
    /// The connection has bytes that the accelerator has not seen.
    Unseen => "unseen",
}

/// Counters of an accelerator; none ever decreases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorStats {
    /// Connections taken into acceleration.
    pub flows: u64,
    /// Accelerated connections that ended.
    pub flows_ended: u64,
    /// Accelerated connections that were detached and continued end to end.
    pub flows_detached: u64,
    /// Accelerated connections that the accelerator reset at both ends.
    pub flows_reset: u64,
    /// Payload bytes received from servers.
    pub bytes_in: u64,
    /// Payload bytes acknowledged by clients.
    pub bytes_delivered: u64,
    /// Acknowledgments sent to servers.
    pub acks_sent: u64,
    /// Acknowledgments to servers of bytes that the client had not acknowledged.
    pub early_acks: u64,
    /// Pure ACKs of clients that were not passed on.
    pub acks_absorbed: u64,
    /// Duplicate ACKs among these: the accelerator repairs the loss.
    pub duplicates_suppressed: u64,
    /// Segments sent to clients for the first time.
    pub segments_sent: u64,
    /// Segments retransmitted to clients.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_probes: u64,
    /// Zero-window probes to clients.
    pub window_probes: u64,
    /// Segments of servers with bytes received before.
    pub server_retransmissions: u64,
    /// Segments among these whose bytes differ from the first ones, which are kept.
    pub conflicts: u64,
    /// Segments with a wrong checksum, passed on untouched.
    pub corrupt: u64,
    /// Segments whose sequence or acknowledgment numbers no endpoint would accept (RFC 5961).
    pub invalid: u64,
    /// Acknowledgments of bytes that were never sent.
    pub optimistic_acks: u64,
    /// Segments of servers that were dropped because buffers were full; the servers retransmit them.
    pub refused: u64,
    /// Times that a client, or a router ahead of it, dropped segments sent past its window, or reset the
    /// connection for them.
    pub overshoot_drops: u64,
    /// Connections on whose path full-sized segments vanished without a packet-too-big message.
    pub black_holes: u64,
    /// Handshakes removed from the table to make room.
    pub openings_forgotten: u64,
    /// Round-trip times of the mobile segment, in ns.
    pub round_trips: Times,
    /// Excess of these over the connection's shortest, which is the queueing delay, in ns.
    pub queue_delays: Times,
    /// Times for which data had been stored when it was first sent, in ns.
    pub ages: Times,
    /// Rates towards devices when a round-trip time was measured, in bit/s.
    pub rates: Rates,
    pub(in crate::accelerator) bypassed: [u64; BypassReason::ALL.len()],
}

/// Histogram of times in ns; the first bucket ends at 1 ms.
pub type Times = Histogram<1_000_000>;
/// Histogram of rates in bit/s; the first bucket ends at 64 kb/s.
pub type Rates = Histogram<64_000>;

impl AcceleratorStats {
    pub(in crate::accelerator) fn on_first_sent(&mut self, age: Duration) {
        self.ages.record(age.as_nanos());
    }
    pub(in crate::accelerator) fn on_rtt(&mut self, rtt: Duration, min: Duration, rate: Rate) {
        self.round_trips.record(rtt.as_nanos());
        self.queue_delays.record(rtt.saturating_sub(min).as_nanos());
        self.rates.record(rate.0);
    }
    /// Connections (for [`BypassReason::MidFlow`]: data segments) passed on untouched for `reason`.
    pub fn bypassed(&self, reason: BypassReason) -> u64 {
        self.bypassed[reason as usize]
    }
    pub(in crate::accelerator) fn bypass(&mut self, reason: BypassReason) {
        self.bypassed[reason as usize] += 1;
    }
}
