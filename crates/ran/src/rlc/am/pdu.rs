//! AMD PDUs (TS 36.322 §6.2.1.4 and §6.2.1.5): sequence numbers, header lengths, fields.

/// Number of sequence numbers: 10 bits (TS 36.322 §6.2.2).
pub(super) const MODULUS: u16 = 1024;
/// AM_Window_Size (TS 36.322 §7.2).
pub(super) const WINDOW: u16 = 512;
/// Largest length in bytes that a length indicator of 11 bits states (TS 36.322 §6.2.2). A longer element can
/// only be the last of its PDU.
pub(super) const MAX_LENGTH_INDICATOR: u32 = 2047;
/// Largest data field in bytes: a segment offset has 15 bits, and all ones is reserved (TS 36.322 §6.2.2).
pub(super) const MAX_DATA: u32 = 0x7FFE;

/// Header bytes of a PDU or of a PDU segment with this many SDU elements (TS 36.322 §6.2.1.4 and §6.2.1.5).
pub const fn header_len(segment: bool, elements: u32) -> u32 {
    let fixed = if segment { 4 } else { 2 };
    fixed + (3 * elements.saturating_sub(1)).div_ceil(2)
}

/// Distance of `sn` above `base`, modulo the number space (TS 36.322 §7.1).
pub(super) const fn distance(sn: u16, base: u16) -> u16 {
    (sn + MODULUS - base) % MODULUS
}
pub(super) const fn plus(sn: u16, offset: u16) -> u16 {
    (sn + offset) % MODULUS
}

/// An AMD PDU, or a segment of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    pub sn: u16,
    /// Position in the stream of SDUs at which the PDU (not the segment) begins.
    pub(super) start: u64,
    /// SO: offset of the segment in the PDU's data field, in bytes.
    pub so: u32,
    pub data: u32,
    /// Whether the PDU's last byte is in it: LSF of a segment, always true for a PDU.
    pub last: bool,
    /// RF: whether it is a segment.
    pub segment: bool,
    /// P: whether a STATUS PDU is requested.
    pub poll: bool,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    pub len: u32,
}
