//! Loss detection and loss recovery.
//!
//! Every segment sent is on the `scoreboard` until it is acknowledged. An acknowledgment or a SACK block
//! marks segments as delivered and gives their send times to `rack`; then segments are marked as lost, by
//! time (`time_detection`, RFC 8985) or by count (`scoreboard`, RFC 6675). `phase` says whether a recovery is
//! under way and whether it proves spurious; `prr` gives the window meanwhile. `tlp` keeps the tail loss
//! probe.

mod phase;
mod prr;
mod rack;
mod scoreboard;
mod segment;
mod time_detection;
mod tlp;

pub(super) use phase::{FrtoVerdict, Phase, Recovery};
pub(super) use prr::Prr;
pub(super) use rack::RackContext;
pub(super) use scoreboard::Scoreboard;
pub(super) use segment::{AckContext, ScoreboardUpdate, SentSegment};
pub(super) use tlp::{ProbeAck, ProbeVerdict, TailProbe};
