//! BBR: congestion control by a model of the path.
//!
//! Delivery rate samples give the bandwidth (`windowed_max` in version 1), round-trip times the smallest RTT;
//! pacing rate and window follow from both. `bbr1` is version 1, whose `policer` detects token buckets;
//! `bbr3` is version 3, whose reaction to losses, ProbeRTT and cycle of probing have files of their own.
//! `ack_aggregation` estimates how much more the window needs because ACKs come in bursts.

mod ack_aggregation;
mod bbr1;
mod bbr3;
mod bbr3_cycle;
mod bbr3_losses;
mod bbr3_probe_rtt;
mod policer;
mod windowed_max;

pub use bbr1::Bbr;
pub use bbr3::Bbr3;
