//! Counters of an ACK filter.

use paceline_net::{Packet, QueueCounters};

macro_rules! keep_reasons {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// Why the safe scheme kept an ACK. Each ACK that leaves is counted under one reason: the last one
        /// found.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum KeepReason { $($(#[$doc])* $name,)* }

        impl KeepReason {
            /// All reasons, in the order of the counters. By definition.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];
            /// The name of the counter; part of the interface, never changed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => concat!("kept-", $text),)* }
            }
        }
    };
}

keep_reasons! {
    /// No later ACK of the connection superseded it while it was queued (rule 2).
    Newest => "newest",
    /// A segment that is no plain ACK followed: no ACK is discarded across one (rule 4).
    Separated => "separated",
    /// A fragment, IPv4 option, IPv6 extension header, or inconsistent lengths (rule 5).
    NotPlainIp => "not-plain-ip",
    /// Its checksum is wrong: its receiver will drop it, so it supersedes nothing (rule 2).
    Corrupt => "corrupt",
    /// A TCP option other than timestamps, or a malformed one (rule 8).
    Options => "options",
    /// The ACK acknowledges less than an earlier one (rule 9).
    OldAck => "old-ack",
    /// Its sequence number is not the next one: a keepalive, a probe, or a gap (rule 10).
    Probe => "probe",
    /// Timestamps run backwards, or only one of the two ACKs carries them (rule 11).
    Timestamps => "timestamps",
    /// The ACK carries SACK blocks (rules 9, 12).
    Sack => "sack",
    /// The first advance after duplicate ACKs (rule 12).
    FirstAdvance => "first-advance",
    /// A duplicate ACK (rule 13).
    Duplicate => "duplicate",
    /// The ACK changes only the window, opens it from zero, closes it, or its right edge is beyond the later
    /// ACK's (rule 13).
    Window => "window",
    /// ECN bits in the IP header (rule 14).
    IpEcn => "ip-ecn",
    /// ECE or CWR differ from those of the next or the previous ACK (rule 14).
    EcnEcho => "ecn-echo",
    /// The handshake offered accurate ECN or an option that forbids filtering (rules 8, 14).
    Handshake => "handshake",
    /// Without it, one ACK would acknowledge too many segments (rule 15).
    SegmentFloor => "segment-floor",
    /// Without it, the gap between two ACKs would be too long (rule 15).
    TimeFloor => "time-floor",
    /// The ACK acknowledges one of the first 64 segments of the connection (rule 16).
    FirstSegments => "first-segments",
    /// The connection is closing (rule 16).
    Closing => "closing",
    /// Within a round trip of a duplicate ACK or SACK (rule 16).
    Recovery => "recovery",
    /// The connection sends few ACKs (rule 16).
    Sparse => "sparse",
    /// The start of the connection was not seen (rule 16).
    MidStream => "mid-stream",
    /// No standing queue (rule 17).
    NoStandingQueue => "no-standing-queue",
    /// The table of connections is full (rule 19).
    NoState => "no-state",
    /// Another filter seems to be upstream (rule 22).
    ThinnedUpstream => "thinned-upstream",
    /// The connection is held out for comparison (rule 20).
    HeldOut => "held-out",
}

/// Counters of an ACK filter: those of every queue, and the reasons for the ACKs that it kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckFilterStats {
    /// Counters that every queue has.
    pub queue: QueueCounters,
    kept: [u64; KeepReason::ALL.len()],
}

impl AckFilterStats {
    /// ACKs that the safe scheme kept for `reason`.
    pub fn kept(&self, reason: KeepReason) -> u64 {
        self.kept[reason as usize]
    }
    pub(super) fn count_out(&mut self, packet: &Packet, kept: Option<KeepReason>) {
        self.queue.count_out(packet);
        if let Some(reason) = kept {
            self.kept[reason as usize] += 1;
        }
    }
}
