//! The sending half of a connection (RFC 9293 §3.8).
//!
//! An acknowledgment enters in `acks`: it updates scoreboard, RTT and delivery rate; `losses` finds losses
//! and changes the phase of recovery; the congestion control gets a report. `transmit` is then polled for
//! segments: retransmissions first, new data second, as far as congestion window, pacing and the peer's
//! window allow; `idle` records why nothing leaves. Timers that expire enter in `expiry`. `state` has the
//! fields of a sender, which `recovery`, `path`, `timers` and `window` define.

mod acks;
mod expiry;
mod idle;
mod losses;
mod path;
mod recovery;
mod state;
mod timers;
mod transmit;
mod window;

pub(crate) use path::rtt::MAX_RTO;
pub(crate) use state::{AckInfo, Sender};

#[cfg(test)]
mod tests;
