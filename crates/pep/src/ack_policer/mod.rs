//! An ACK policer for the path in front of a router, whose load depends on packets per second
//! (Pavilanskas and Statkus 2010). It sees pure ACKs in one direction of a connection, the policed one, and
//! data in the other. It drops ACKs above a rate, by a share, or above a number per round trip.
//!
//! The decision is integer arithmetic on a small fixed state, without clock, queue or allocation, since the
//! same decision stands in a kernel program in C: [`judge`] and [`Flow::on_data_direction`]. [`Policer`] adds
//! a bounded table of connections for the simulator, [`FramePolicer`] one for frames, as the kernel has it.
//!
//! `published` drops blindly, as the paper's bridge did. `safe` keeps every ACK that the rules of
//! docs/police.md protect.

mod flow;
mod frame;
mod frame_policer;
mod judge;
mod limiter;
mod policer;
mod reason;
mod segment;
mod tunnels;

pub use flow::Flow;
pub use frame::{FirstHeader, Frame, FrameKey, Tunnel, parse};
pub use frame_policer::FramePolicer;
pub use judge::judge;
pub use limiter::{Limit, Limiter};
pub use policer::{Policer, PolicerConfig, PolicerStats};
pub use reason::Reason;
pub use segment::{Segment, marks};

/// Which ACKs may be dropped.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// ACKs that no rule of docs/police.md protects.
    #[default]
    Safe,
    /// Every pure ACK, as published.
    Published,
}

/// The policy of one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Which ACKs may be dropped.
    pub mode: Mode,
    /// How many ACKs are to be dropped.
    pub limit: Limit,
    /// Rule 15, `safe`: segments that one kept ACK may newly acknowledge.
    pub max_segments: u32,
}

impl Policy {
    /// Default of `max_segments`. Chosen: a share of 80% of delayed ACKs (one for two segments) leaves one
    /// ACK for ten segments; the rule forbids more than 32.
    pub const MAX_SEGMENTS: u32 = 16;
}
