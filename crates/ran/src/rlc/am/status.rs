//! The STATUS PDU (TS 36.322 §6.2.1.6): ACK_SN and the missing PDUs before it.

/// Bits of D/C, CPT, ACK_SN and E1 (TS 36.322 §6.2.1.6).
const FIXED_BITS: u32 = 15;
/// Bits of NACK_SN, E1 and E2 (TS 36.322 §6.2.1.6).
const NACK_BITS: u32 = 12;
/// Bits of SOstart and SOend (TS 36.322 §6.2.1.6).
const OFFSET_BITS: u32 = 30;
/// SOend value for the end of the PDU (TS 36.322 §6.2.2).
pub(super) const TO_THE_END: u32 = 0x7FFF;

/// A missing PDU, or a missing byte range of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nack {
    pub sn: u16,
    /// The missing bytes of a PDU received in part: the first, and the one after the last.
    pub range: Option<(u32, u32)>,
}

impl Nack {
    /// Its size in a STATUS PDU in bits.
    pub const fn bits(&self) -> u32 {
        NACK_BITS + if self.range.is_some() { OFFSET_BITS } else { 0 }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// ACK_SN: all PDUs before it have been received, except those in `nacks`.
    pub ack_sn: u16,
    /// Missing PDUs and byte ranges in ascending order.
    pub nacks: Vec<Nack>,
    pub len: u32,
}

/// Length in bytes of a STATUS PDU whose NACKs take `nack_bits` bits.
pub const fn len_of(nack_bits: u32) -> u32 {
    (FIXED_BITS + nack_bits).div_ceil(8)
}
