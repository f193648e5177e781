//! PRACH occasions, and the sizes of random access messages.

use crate::cell::config::Carrier;
use crate::duplex::Direction;
use crate::lte::prach;
use crate::mac::random_access::is_prach_occasion as is_fdd_occasion;
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::rat::Rat;
use crate::slot::Slot;

/// The uplink process of Msg3 in asynchronous HARQ (TS 38.321 §5.4.2.1).
pub const MSG3_PROCESS: usize = 0;
/// Bytes of a random access response with its sub-header (TS 36.321 §6.1.5).
const RESPONSE_BYTES: u64 = 7;
/// Bytes of the backoff indicator's sub-header (TS 36.321 §6.1.5).
const BACKOFF_BYTES: u64 = 1;
/// Bytes of the smallest Msg3, 56 bits (TS 36.321 §5.1.4).
const MSG3_BYTES: u64 = 7;
/// Largest number of PRBs of Msg3. Chosen: few PRBs, at an MCS that reaches the cell edge.
const MSG3_MAX_PRBS: u16 = 3;
/// Bytes of Msg4. Chosen: about the contention resolution identity and RRC's answer.
const MSG4_BYTES: u64 = 40;

/// Whether a slot of the uplink is a PRACH occasion.
pub fn is_prach_occasion(carrier: &Carrier, slot: Slot) -> bool {
    let index = carrier.config.random_access.prach_index;
    match (&carrier.config.rat, carrier.tdd_configuration) {
        (Rat::Lte, None) => is_fdd_occasion(index, slot),
        (Rat::Lte, Some(configuration)) => prach::is_tdd_occasion(configuration, index, slot),
        (Rat::Nr(nr), _) => slot == carrier.config.duplex.next(slot.start_of(nr.prach_period), Direction::Up),
    }
}
/// The PRBs of PUSCH that the PRACH takes in a slot.
pub fn prach_prbs(carrier: &Carrier, slot: Slot) -> PrbSet {
    let config = &carrier.config;
    if !config.random_access.prach_reserved || !is_prach_occasion(carrier, slot) {
        return PrbSet::NONE;
    }
    config.pusch_prbs().lowest(config.rat.prach_prbs())
}
/// MCS and PRBs of a response PDU with so many responses.
pub fn response(carrier: &Carrier, size: PrbSize, responses: usize) -> (Mcs, u16) {
    let bytes = BACKOFF_BYTES + RESPONSE_BYTES * responses as u64;
    carrier.config.rat.most_robust(Direction::Down, size, bytes, carrier.config.downlink_prb)
}
/// MCS and PRBs of Msg3.
pub fn msg3(carrier: &Carrier) -> (Mcs, u16) {
    let max_prb = MSG3_MAX_PRBS.min(carrier.config.pusch_prbs().len() as u16);
    carrier.config.rat.most_robust(Direction::Up, carrier.pusch_size, MSG3_BYTES, max_prb)
}
/// MCS and PRBs of Msg4.
pub fn msg4(carrier: &Carrier, size: PrbSize) -> (Mcs, u16) {
    carrier.config.rat.most_robust(Direction::Down, size, MSG4_BYTES, carrier.config.downlink_prb)
}
