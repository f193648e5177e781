//! Measurements of the path by a sender, and the pacing that depends on them.
//!
//! Acknowledgments give samples: of the round-trip time, from which the retransmission timeout follows
//! (`rtt`), and of the delivery rate (`rate`), which the congestion control gets. `pacing` spaces segments by
//! the control's rate or by one that follows from window and round-trip time.

pub(super) mod pacing;
pub(super) mod rate;
pub(crate) mod rtt;
