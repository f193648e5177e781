//! Radio link control (TS 36.322; TS 38.322 for NR) of one data radio bearer.
//!
//! Sender: MAC offers room in a transport block; RLC takes SDUs from the buffer above through [`crate::pdcp`]
//! and cuts or joins them into a PDU of that size. Receiver: RLC reorders the PDUs of decoded blocks and
//! delivers whole SDUs. Both ends of a direction stand in one object ([`Rlc`]); they exchange only the PDUs
//! in transport blocks.
//!
//! - `entity`: one direction in the configured mode; [`um`]: unacknowledged mode; [`am`]: acknowledged mode;
//!   [`nr`]: both modes of NR.
//! - `reassembled`: the result of reassembly.

pub mod am;
mod entity;
pub mod nr;
mod reassembled;
pub mod um;

pub use entity::{Pdu, Rlc, RlcConfig};
pub use reassembled::Reassembled;
