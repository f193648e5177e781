//! The limits of TCP: the senders' times by limit, and the verdict.
//!
//! `shares` has the shares of lifetimes and of round-trip times, `senders` their sums over connections,
//! `sides` the two sides of a proxy and the use of the path, `verdict` the sentence that names the limit.

mod senders;
mod shares;
mod sides;
mod verdict;

pub(super) use senders::SenderSums;
pub use shares::{LimitShares, RadioDelays};
pub(super) use sides::{ConnectionSenders, path_uses};
pub use sides::{Side, StationSenders};
pub use verdict::SideResult;
pub(super) use verdict::Verdict;
