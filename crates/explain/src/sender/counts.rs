//! Segments that were sent again, by reason and place, and the repair that goes on.

use crate::causes::Cause;
use serde::Serialize;

/// The reason why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Duplicate ACKs or SACK blocks showed the loss.
    Fast,
    /// The retransmission timer expired.
    Timeout,
    /// A tail loss probe (RFC 8985 §7).
    TailProbe,
    /// None of these.
    Other,
}

/// Counts of segments that were sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// All of them.
    pub retransmissions: u64,
    /// After duplicate ACKs or SACK blocks.
    pub fast: u64,
    /// After expiries of the retransmission timer.
    pub timeout: u64,
    /// As tail loss probes.
    pub tail_probe: u64,
    /// For none of these reasons.
    pub other: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Needless: the first copy arrived (RFC 2883, RFC 3522).
    pub spurious: u64,
    /// The first copy passed the capture point.
    pub lost_behind: u64,
    /// The first copy did not pass.
    pub lost_before: u64,
    /// Segments that others had overtaken.
    pub out_of_order: u64,
}

/// A repair that goes on until all data that were sent before it are acknowledged.
#[derive(Clone, Debug)]
pub struct Episode {
    /// [`Cause::Recovery`] or [`Cause::Timeout`].
    pub cause: Cause,
    /// Behind the data that were sent before it.
    pub point: u64,
    /// First byte that was sent again, and the TSval then.
    pub start: u64,
    pub tsval: Option<u32>,
    /// Time of the episode under its cause, ns.
    pub spent_ns: u64,
}
