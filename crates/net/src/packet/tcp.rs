//! The TCP header with the options that a middlebox or an endpoint acts on (RFC 9293 §3.1).

use crate::seq::SeqNumber;
use std::fmt;
use std::net::IpAddr;

/// A TCP header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; meaningful with the ACK flag.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as on the wire, before window scaling.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload bytes, from the IP length (Ethernet padding does not count).
    pub payload_len: u32,
}

/// The control bits of a TCP header, with the reserved bits: the low 12 bits of octets 13 and 14.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender (RFC 9293 §3.1).
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers (RFC 9293 §3.1).
    pub const SYN: Self = Self(0x002);
    /// Reset the connection (RFC 9293 §3.1).
    pub const RST: Self = Self(0x004);
    /// Push function (RFC 9293 §3.1).
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment field is significant (RFC 9293 §3.1).
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer is significant (RFC 9293 §3.1).
    pub const URG: Self = Self(0x020);
    /// ECN-Echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN (RFC 9768), formerly the nonce sum.
    pub const AE: Self = Self(0x100);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let set = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.debug_list().entries(set.map(|(_, name)| *name)).finish()
    }
}

/// The TCP options that an endpoint or middlebox acts on; any other option sets `other`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3, RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4, RFC 2018).
    pub sack_permitted: bool,
    /// Timestamps (kind 8, RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (kind 5).
    pub sack: SackBlocks,
    /// Other options that are present, or a malformed option list.
    pub other: ForeignOptions,
}

/// A set of option kinds without a field in [`TcpOptions`]. With some of them a middlebox must not modify a
/// connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForeignOptions(pub u8);

impl ForeignOptions {
    /// Multipath TCP (kind 30, RFC 8684).
    pub const MPTCP: Self = Self(0x01);
    /// MD5 signatures (kind 19, RFC 2385).
    pub const MD5: Self = Self(0x02);
    /// The authentication option (kind 29, RFC 5925).
    pub const AUTHENTICATION: Self = Self(0x04);
    /// Fast Open (kind 34, RFC 7413).
    pub const FAST_OPEN: Self = Self(0x08);
    /// Accurate ECN (kinds 172 and 174, RFC 9768).
    pub const ACCURATE_ECN: Self = Self(0x10);
    /// Any other kind, or a malformed list. Chosen: the highest bit.
    pub const UNKNOWN: Self = Self(0x80);

    /// Whether the set is not empty.
    pub const fn any(self) -> bool {
        self.0 != 0
    }
    /// Whether the sets have a kind in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// The union.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// The set itself, or [`Self::UNKNOWN`] if it is empty.
    #[must_use]
    pub const fn or_unknown(self) -> Self {
        if self.any() { self } else { Self::UNKNOWN }
    }
    /// The kinds that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl From<bool> for ForeignOptions {
    /// [`Self::UNKNOWN`] or the empty set.
    fn from(present: bool) -> Self {
        if present { Self::UNKNOWN } else { Self::default() }
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval.
    pub val: u32,
    /// TSecr.
    pub ecr: u32,
}

/// Up to four SACK blocks: half-open ranges `[left, right)` in the order of the wire, the newest first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); 4],
    len: u8,
}

impl SackBlocks {
    /// The blocks present.
    #[inline]
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.blocks[..usize::from(self.len)]
    }
    /// Adds a block at the end; a fifth is ignored, since the option cannot carry it.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }
    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of blocks.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl TcpOptions {
    /// Length on the wire in bytes, padded to a multiple of four, in the layout that Linux writes.
    pub fn wire_len(&self) -> u32 {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4; // NOP + kind 3
        }
        len += match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => 12, // NOP NOP + kind 8, or SACK-permitted in place of the NOPs
            (false, true) => 4,
            (false, false) => 0,
        };
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.len() as u32; // NOP NOP + kind 5
        }
        len
    }
}

/// Addresses and ports of one direction of a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl FlowKey {
    /// The key of the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::net::SocketAddr;
        write!(
            f,
            "{} > {}",
            SocketAddr::new(self.src, self.src_port),
            SocketAddr::new(self.dst, self.dst_port)
        )
    }
}
