//! What an accelerator counts.

use crate::accelerator::histogram::Histogram;
use paceline_net::{Duration, Rate};

macro_rules! bypass_reasons {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// Why a connection passes untouched.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum BypassReason { $($(#[$doc])* $name,)* }

        impl BypassReason {
            /// All reasons, in the order of the counters.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];
            /// The name of the counter; names do not change.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => concat!("bypassed-", $text),)* }
            }
        }
    };
}

bypass_reasons! {
    /// Data of a connection whose handshake was not seen, or is forgotten; counted by segment.
    MidFlow => "mid-flow",
    /// Both ends sent a SYN.
    SimultaneousOpen => "simultaneous-open",
    /// Data from the server, but no acknowledgment of its SYN was seen: one direction goes elsewhere.
    OneSided => "one-sided",
    /// Multipath TCP.
    Mptcp => "mptcp",
    /// Signed segments: MD5 or the authentication option.
    Signed => "signed",
    /// Accurate ECN.
    AccurateEcn => "accurate-ecn",
    /// An unknown or malformed option in the handshake.
    UnknownOption => "unknown-option",
    /// A fragment, IPv4 option or IPv6 extension header in the handshake.
    SpecialIp => "special-ip",
    /// The table of connections is full.
    TableFull => "table-full",
    /// The device has too many connections.
    DeviceFull => "device-full",
    /// The buffers are full, or the driver said that it is overloaded.
    Overload => "overload",
    /// The accelerator is being stopped.
    Draining => "draining",
    /// Bytes of the connection went past the accelerator.
    Unseen => "unseen",
}

/// Counters of an accelerator; all grow only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorStats {
    /// Connections taken into acceleration.
    pub flows: u64,
    /// Of those, connections that ended.
    pub flows_ended: u64,
    /// Of those, connections that were detached and went on end to end.
    pub flows_detached: u64,
    /// Of those, connections reset by the accelerator at both ends.
    pub flows_reset: u64,
    /// Payload bytes taken from servers.
    pub bytes_in: u64,
    /// Payload bytes acknowledged by clients.
    pub bytes_delivered: u64,
    /// Acknowledgments sent to servers.
    pub acks_sent: u64,
    /// Of those, such that acknowledged bytes which the client had not.
    pub early_acks: u64,
    /// Empty acknowledgments of clients that were not passed on.
    pub acks_absorbed: u64,
    /// Of those, duplicates: the loss is repaired here.
    pub duplicates_suppressed: u64,
    /// Segments sent to clients for the first time.
    pub segments_sent: u64,
    /// Segments sent to clients again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes of a tail that was not acknowledged.
    pub tail_probes: u64,
    /// Probes of clients' zero windows.
    pub window_probes: u64,
    /// Segments that brought bytes which were already here.
    pub server_retransmissions: u64,
    /// Of those, such with other bytes; the first are kept.
    pub conflicts: u64,
    /// Segments with a wrong checksum, passed on unread.
    pub corrupt: u64,
    /// Segments with numbers that no endpoint would accept: injected, or long late.
    pub invalid: u64,
    /// Acknowledgments of bytes that were never sent.
    pub optimistic_acks: u64,
    /// Segments not taken because buffers were full; the server sends them again.
    pub refused: u64,
    /// Times that a client dropped what was sent past its window.
    pub overshoot_drops: u64,
    /// Connections whose full segments were swallowed on the way to the client.
    pub black_holes: u64,
    /// Handshakes forgotten to make room.
    pub openings_forgotten: u64,
    /// Round-trip times of the mobile segment, in ns, as acknowledgments show them.
    pub round_trips: Times,
    /// Of those, what is above the connection's shortest: the queue of the mobile segment, in ns.
    pub queue_delays: Times,
    /// Rates towards devices at the same moments, in b/s.
    pub rates: Rates,
    pub(in crate::accelerator) bypassed: [u64; BypassReason::ALL.len()],
}

/// Times in ns; the first bucket ends at 1 ms.
pub type Times = Histogram<1_000_000>;
/// Rates in b/s; the first bucket ends at 64 kb/s.
pub type Rates = Histogram<64_000>;

impl AcceleratorStats {
    pub(in crate::accelerator) fn on_rtt(&mut self, rtt: Duration, min: Duration, rate: Rate) {
        self.round_trips.record(rtt.as_nanos());
        self.queue_delays.record(rtt.saturating_sub(min).as_nanos());
        self.rates.record(rate.0);
    }
    /// Connections (for [`BypassReason::MidFlow`]: data segments) that passed untouched for `reason`.
    pub fn bypassed(&self, reason: BypassReason) -> u64 {
        self.bypassed[reason as usize]
    }
    pub(in crate::accelerator) fn bypass(&mut self, reason: BypassReason) {
        self.bypassed[reason as usize] += 1;
    }
}
