//! RLC acknowledged mode (TS 36.322): every SDU is delivered once and in order, or the radio link fails.
//!
//! An [`Am`] (`entity`) is one direction of a bearer: the transmitting side of one entity (`tx`), the
//! receiving side of its peer (`rx`), and the SDUs between them (`sdus`). STATUS PDUs (`status`) travel in
//! the blocks of the other direction. The SDUs form one stream of bytes, and a PDU (`pdu`) is a byte range of
//! it. A packet stays in `sdus` from its numbering to its delivery or to re-establishment, even if PDUs are
//! lost or duplicated.
//!
//! Sequence numbers have 10 bits, the window is 512. Left out: the SDUs that re-establishment can save (§5.4,
//! TS 36.323 §5.2.1.1), delivery indications, reordering of STATUS PDUs other than by HARQ.

mod config;
mod entity;
mod pdu;
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
