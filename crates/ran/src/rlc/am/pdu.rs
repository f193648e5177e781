//! AMPDU

/// Number of sequence numbers.
pub(super) const MODULUS: u16 = 1024;
/// AM_Window_Size (§7.2).
pub(super) const WINDOW: u16 = 512;
/// Largest value of a length indicator: 11 bits. A longer element can only be the last of its PDU.
pub(super) const MAX_LENGTH_INDICATOR: u32 = 2047;
/// Largest data field: a segment offset has 15 bits, and all ones is reserved.
pub(super) const MAX_DATA: u32 = 0x7FFE;

/// Header bytes of a PDU, or of a PDU segment, with this many SDU elements (§6.2.1.4 and §6.2.1.5).
pub const fn header_len(segment: bool, elements: u32) -> u32 {
    let fixed = if segment { 4 } else { 2 };
    fixed + (3 * elements.saturating_sub(1)).div_ceil(2)
}

/// Distance of `sn` above `base`, modulo the number space (§7.1).
pub(super) const fn distance(sn: u16, base: u16) -> u16 {
    (sn + MODULUS - base) % MODULUS
}
pub(super) const fn plus(sn: u16, offset: u16) -> u16 {
    (sn + offset) % MODULUS
}

/// An AMD PDU, or a segment of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Sequence number.
    pub sn: u16,
    /// Where the PDU, not its segment, begins in the stream of SDUs.
    pub(super) start: u64,
    /// SO: where the segment begins in the PDU's data field.
    pub so: u32,
    /// Bytes of data.
    pub data: u32,
    /// Whether the PDU's last byte is in it (LSF, or no segment at all).
    pub last: bool,
    /// Whether it is a segment (RF).
    pub segment: bool,
    /// P: the peer is asked for a STATUS PDU.
    pub poll: bool,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    /// Length with its header.
    pub len: u32,
}
