//! The uplink of a cell in one slot: the eNB processes HARQ feedback and scheduling requests and grants PUSCH
//! of a later slot (`scheduling`; TS 36.213 §8), and the stations transmit (`pusch`).

mod pusch;
mod scheduling;

pub(super) use pusch::Pusch;
pub(super) use scheduling::{PuschSlot, UplinkScheduling, process_feedback};
