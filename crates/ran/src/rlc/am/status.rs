//! The STATUS PDU (TS 36.322 §6.2.1.6): one ACK_SN, and what is missing before it.

/// D/C, CPT, ACK_SN and E1.
const FIXED_BITS: u32 = 15;
/// NACK_SN, E1 and E2.
const NACK_BITS: u32 = 12;
/// SOstart and SOend.
const OFFSET_BITS: u32 = 30;
/// SOend that stands for the end of the PDU.
pub(super) const TO_THE_END: u32 = 0x7FFF;

/// A PDU, or a stretch of one, that has not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nack {
    /// NACK_SN.
    pub sn: u16,
    /// The missing bytes of a PDU that has come in part: the first, and the one behind the last.
    pub stretch: Option<(u32, u32)>,
}

impl Nack {
    /// Its size in a STATUS PDU.
    pub const fn bits(&self) -> u32 {
        NACK_BITS + if self.stretch.is_some() { OFFSET_BITS } else { 0 }
    }
}

/// A STATUS PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// ACK_SN: everything before it has come, but for what follows.
    pub ack_sn: u16,
    /// What is missing, in ascending order.
    pub nacks: Vec<Nack>,
    /// Length in bytes.
    pub len: u32,
}

/// Length of a STATUS PDU whose missing stretches take this many bits.
pub const fn len_of(nack_bits: u32) -> u32 {
    (FIXED_BITS + nack_bits).div_ceil(8)
}
