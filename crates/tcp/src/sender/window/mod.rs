//! The two windows of a sender: the one that the peer advertises, and how much of the congestion window is
//! used.

mod peer;
mod usage;

pub(super) use peer::PeerWindow;
pub(super) use usage::WindowUsage;
