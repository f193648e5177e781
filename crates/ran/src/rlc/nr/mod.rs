//! RLC of NR (TS 38.322) of one direction of a data radio bearer.
//!
//! Each SDU, or each segment of one, is a PDU of its own; nothing is concatenated, and RLC does not reorder:
//! PDCP does. A transport block carries contiguous SDUs as one run ([`runs`]), not as a list of PDUs. An SDU
//! gets its number when its first byte is sent; an SDU that the discard timer (§5.4) or an ACK filter removes
//! from the buffer above before that leaves no gap.
//!
//! Both ends of a direction stand in one object, an [`Um`] ([`um`]) or an [`Am`] ([`am`], with its sides
//! [`am_tx`] and [`am_rx`], and blocks of [`am_block`]). They exchange only runs and STATUS PDUs
//! ([`status`]); an SDU waits in the object for its delivery. [`headers`] has the sizes of headers;
//! [`ring`] and [`ranges`] hold the state per SDU. Sequence numbers are kept without wrap-around: HARQ
//! delays a block by less than half a number space.

pub mod am;
pub mod am_block;
pub mod am_rx;
pub mod am_tx;
pub mod headers;
pub mod ranges;
pub mod ring;
pub mod runs;
pub mod status;
pub mod um;

pub use am::Am;
pub use am_block::{AmBlock, AmConfig};
pub use headers::{Headers, SnLength};
pub use runs::{Position, Sdu, SduRun, SduSource};
pub use status::{Nack, Status};
pub use um::{Um, UmBlock, UmConfig};

#[cfg(test)]
mod am_tests;
