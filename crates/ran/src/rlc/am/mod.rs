//! RLC acknowledged mode (TS 36.322): every SDU is delivered once and in order, or the radio link fails.
//!
//! An [`Am`] (`entity`) is one direction of a bearer: the transmitting side of one entity (`tx`, §5.1.3.1,
//! §5.2.1, §5.2.2), the receiving side of its peer (`rx`, §5.1.3.2), and the SDUs between them (`sdus`).
//! STATUS PDUs (`status`, §5.2.3) travel in the blocks of the other direction. Implemented: 10-bit sequence
//! numbers, window 512, segmentation, concatenation, re-segmentation, polling, all timers.
//!
//! The SDUs form one stream of bytes, and a PDU (`pdu`) is a byte range of it without packets. A packet stays
//! in `sdus` from the time it is numbered until the receiver has all bytes up to its end, or until
//! re-establishment: it leaves once, even if PDUs are lost or duplicated. Left out: the SDUs that
//! re-establishment can save (§5.4 delivers complete SDUs, TS 36.323 §5.2.1.1 sends the others again);
//! delivery indications; reordering of STATUS PDUs other than by HARQ.

mod config;
mod entity;
mod pdu;
mod ranges;
mod rx;
mod sdus;
mod status;
mod tx;

pub use config::AmConfig;
pub use entity::Am;
pub use pdu::Pdu;
pub use status::Status;

#[cfg(test)]
mod tests;
