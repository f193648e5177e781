//! Why the policer passed or dropped an ACK.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// The decision on one packet. The numbers are those of the kernel program.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons, in the order of their numbers. By definition.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];
            /// The name of the counter; part of the interface, never changed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No pure ACK: passed, not counted as kept.
    NotAck => "not-ack",
    /// Dropped.
    Dropped => "dropped",
    /// The limit allows it.
    WithinLimit => "within-limit",
    /// An exempt prefix.
    Exempt => "exempt",
    /// A fragment, an IPv4 option, an IPv6 extension header, or inconsistent lengths (rule 5).
    NotPlainIp => "not-plain-ip",
    /// A TCP option other than timestamps, or a malformed one (rule 8).
    Options => "options",
    /// SACK blocks (rules 9, 12).
    Sack => "sack",
    /// ECN bits in the IP header (rule 14).
    IpEcn => "ip-ecn",
    /// ECE or CWR (rule 14).
    EcnEcho => "ecn-echo",
    /// The start of the connection was not seen in both directions (rules 16, 19).
    MidStream => "mid-stream",
    /// The handshake agreed on accurate ECN or on an option that forbids it (rules 8, 14).
    Handshake => "handshake",
    /// The connection is closing (rule 16).
    Closing => "closing",
    /// The ACK acknowledges less than an earlier one (rule 9).
    OldAck => "old-ack",
    /// A duplicate ACK (rule 13).
    Duplicate => "duplicate",
    /// The ACK changes only the window, closes it, opens it from zero, or moves its right edge back (rule
    /// 13).
    Window => "window",
    /// Its sequence number is not the next one: a keepalive, a probe, or a gap (rule 10).
    Probe => "probe",
    /// The first advance after duplicate ACKs (rule 12).
    FirstAdvance => "first-advance",
    /// Within a round trip of a duplicate ACK, SACK, ECN echo or retransmission (rule 16).
    Recovery => "recovery",
    /// The ACK acknowledges one of the first 64 segments (rule 16).
    FirstSegments => "first-segments",
    /// The connection sends few ACKs (rule 16).
    Sparse => "sparse",
    /// Another filter or an offload of the receiver has thinned the ACKs (rule 22).
    ThinnedUpstream => "thinned-upstream",
    /// No later ACK is certain: it may be the last one of a window (rule 2).
    MayBeLast => "may-be-last",
    /// Without it, one ACK would acknowledge too many segments or too much of the window (rule 15).
    SegmentFloor => "segment-floor",
    /// Without it, the gap between two ACKs would be too long (rule 15).
    TimeFloor => "time-floor",
}
