//! The record of a change of the serving cell.

use crate::radio::Point;
use paceline_net::Instant;

/// Cause of a change of the serving cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandoverCause {
    /// Event A3.
    EventA3,
    /// A stated time.
    Scripted,
    /// Cell selection after a radio-link failure, to the same cell or another one.
    LinkFailure,
}

/// A change of a station's serving cell.
#[derive(Clone, Debug, PartialEq)]
pub struct HandoverRecord {
    /// Index of the station.
    pub station: usize,
    /// The former serving cell, among the served cells.
    pub from: usize,
    /// The cell of the handover or of the re-establishment.
    pub to: usize,
    /// Cause.
    pub cause: HandoverCause,
    /// Time of the handover command, or of the radio-link failure.
    pub at: Instant,
    /// Time since which the station had no service: that of `served_at` where the source was kept.
    pub left_at: Option<Instant>,
    /// Time at which service in the new cell began; none before.
    pub served_at: Option<Instant>,
    /// Whether a handover ended with a radio-link failure in place of service in the target.
    pub failed: bool,
    /// Position of the station in metres from site 0; none for a stated SINR.
    pub place: Option<Point>,
    /// Coupling gains in dB from the former cell and from the new one.
    pub gains_db: (f64, f64),
    /// Packets that ended with the source's path, in both directions.
    pub dropped_packets: u64,
    /// Their bytes with IP headers.
    pub dropped_bytes: u64,
    /// Downlink packets in the source's buffer at the command, or that arrived there afterwards.
    pub forwarded_packets: u64,
}
