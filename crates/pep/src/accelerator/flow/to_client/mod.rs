//! (to be written)

pub(in crate::accelerator) mod black_hole;
pub(in crate::accelerator) mod losses;
pub(in crate::accelerator) mod outbound;
pub(in crate::accelerator) mod overshoot;
pub(in crate::accelerator) mod ranges;
pub(in crate::accelerator) mod recovery;
pub(in crate::accelerator) mod rtt;
pub(in crate::accelerator) mod scoreboard;
pub(in crate::accelerator) mod sent;
