//! Changes of the serving cell.

use paceline_net::Instant;
use paceline_ran::{HandoverCause, HandoverRecord};
use serde::{Deserialize, Serialize};

/// A change of a station's serving cell: a handover, or a re-establishment after a radio-link failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandoverResult {
    /// Time of the handover command or of the failure, seconds.
    pub time_s: f64,
    /// Index of the station.
    pub station: usize,
    /// Index of the former serving cell.
    pub from_cell: usize,
    /// Index of the new one.
    pub to_cell: usize,
    /// `a3`, `scripted` or `link-failure`.
    pub cause: String,
    /// `served`; `failed` for a handover that ended with a radio-link failure; `running` at the end of the
    /// run.
    pub outcome: String,
    /// Time without service, ms; none if service did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_ms: Option<f64>,
    /// Coupling gain from the former cell without fast fading, dB.
    pub from_gain_db: f64,
    /// Coupling gain from the new cell, dB.
    pub to_gain_db: f64,
    /// Packets of RLC and HARQ of the former cell that were dropped, in both directions.
    pub dropped_packets: u64,
    /// Their bytes with IP headers.
    pub dropped_bytes: u64,
    /// Downlink packets that the former cell forwarded.
    pub forwarded_packets: u64,
    /// Position east of the middle site, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_m: Option<f64>,
    /// Position north of the middle site, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_m: Option<f64>,
}

impl From<&HandoverRecord> for HandoverResult {
    fn from(record: &HandoverRecord) -> Self {
        let since = |(left, served): (Instant, Instant)| served.since(left).as_secs_f64() * 1e3;
        let outcome = match (record.served_at, record.failed) {
            (Some(_), _) => "served",
            (None, true) => "failed",
            (None, false) => "running",
        };
        Self {
            time_s: record.at.as_secs_f64(),
            station: record.station,
            from_cell: record.from,
            to_cell: record.to,
            cause: match record.cause {
                HandoverCause::EventA3 => "a3".to_owned(),
                HandoverCause::Scripted => "scripted".to_owned(),
                HandoverCause::LinkFailure => "link-failure".to_owned(),
            },
            outcome: outcome.to_owned(),
            interruption_ms: record.left_at.zip(record.served_at).map(since),
            from_gain_db: record.gains_db.0,
            to_gain_db: record.gains_db.1,
            dropped_packets: record.dropped_packets,
            dropped_bytes: record.dropped_bytes,
            forwarded_packets: record.forwarded_packets,
            x_m: record.place.map(|place| place.x),
            y_m: record.place.map(|place| place.y),
        }
    }
}
