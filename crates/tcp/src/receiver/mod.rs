//! The receiving half of a connection.
//!
//! A segment enters in `reassembly`: data in order becomes readable, data above a gap is held and reported in
//! SACK blocks. The application reads it, which opens the window (`receive_window`). `ack_policy` decides
//! when an ACK leaves; `ack_thinning` may hold it below TCP, as modems do.

mod ack_policy;
mod ack_thinning;
mod reassembly;
mod receive_window;

pub(crate) use ack_thinning::AckThinning;
pub(crate) use reassembly::{Arrival, Receiver};
pub(crate) use receive_window::ReceiveWindow;

#[cfg(test)]
mod tests;
