//! RLC acknowledged mode (TS 36.322): every SDU arrives, in order and once, or the radio link fails.
//!
//! An [`Am`] is one direction of a bearer: the transmitting side of one entity (`tx`, §5.1.3.1, §5.2.1, §5.2.2),
//! the receiving side of its peer (`rx`, §5.1.3.2), and the SDUs between them. Its STATUS PDUs (`status`, §5.2.3)
//! travel with the blocks of the other direction. 10-bit sequence numbers, window 512; segmentation,
//! concatenation, re-segmentation, polling and all timers.
//!
//! The SDUs form one stream of bytes, and a PDU is a stretch of it; what is in flight carries positions, no
//! packets. Each packet stays in `sdus` from the moment it is numbered until the receiver has every byte up to its
//! end, or until the entities are re-established: so it leaves once, whatever is lost or repeated on the way.
//!
//! Left out: what re-establishment can save (§5.4 delivers complete SDUs, TS 36.323 §5.2.1.1 sends the others
//! again); the indication of delivery to upper layers; reordering of STATUS PDUs beyond what HARQ does to them.

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
