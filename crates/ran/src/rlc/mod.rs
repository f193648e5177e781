//! Radio link control (TS 36.322) of one data radio bearer.
//!
//! Sender: MAC offers the room of a transport block; RLC takes SDUs from the buffer above through [`crate::pdcp`] and
//! cuts or joins them into PDUs of that size. Receiver: PDUs of decoded blocks are put in order and come out as whole
//! SDUs. Both ends of a direction live in one object ([`Rlc`]); they exchange nothing but the PDUs in transport blocks.
//!
//! - `bearer`: one direction in the configured mode; `um`: unacknowledged mode; [`am`]: acknowledged mode.
//! - `reassembled`: the result of reassembly.

pub mod am;
mod bearer;
mod reassembled;
pub mod um;

pub use bearer::{Pdu, Rlc, RlcConfig};
pub use reassembled::Reassembled;
