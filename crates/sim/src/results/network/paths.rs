//! Paths of pairs of stations with direct links: the share of each path, and the changes.

use crate::counters::PathReading;
use paceline_ran::sidelink::{FlowDirection, PathKind, Switch};
use serde::{Deserialize, Serialize};

/// Packets of one direction of a pair that one path has delivered, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// Index of the station.
    pub station: usize,
    /// `to-station` or `to-peer`.
    pub direction: String,
    /// `direct` or `infrastructure`.
    pub path: String,
    /// Packets.
    pub packets: u64,
    /// Bytes with IP headers.
    pub bytes: u64,
}

/// A change of path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchResult {
    /// Time, seconds.
    pub time_s: f64,
    /// Index of the station.
    pub station: usize,
    /// `to-station` or `to-peer`.
    pub direction: String,
    /// The new path: `direct` or `infrastructure`.
    pub path: String,
    /// CQI of the direct link.
    pub direct_cqi: u8,
    /// CQI of the sender's uplink.
    pub uplink_cqi: u8,
    /// Packets of the former path that were dropped.
    pub dropped_packets: u64,
    /// Their bytes with IP headers.
    pub dropped_bytes: u64,
}

fn direction(direction: FlowDirection) -> String {
    match direction {
        FlowDirection::ToStation => "to-station".to_owned(),
        FlowDirection::ToPeer => "to-peer".to_owned(),
    }
}
fn path(path: PathKind) -> String {
    match path {
        PathKind::Direct => "direct".to_owned(),
        PathKind::Infrastructure => "infrastructure".to_owned(),
    }
}

impl From<&Switch> for SwitchResult {
    fn from(switch: &Switch) -> Self {
        Self {
            time_s: switch.at.as_secs_f64(),
            station: switch.pair,
            direction: direction(switch.direction),
            path: path(switch.to),
            direct_cqi: switch.cqi.0,
            uplink_cqi: switch.cqi.1,
            dropped_packets: switch.dropped.packets,
            dropped_bytes: switch.dropped.bytes,
        }
    }
}

/// Shares and changes of the paths.
pub(in crate::results) fn results(reading: &PathReading) -> (Vec<PathResult>, Vec<SwitchResult>) {
    let carried = reading.carried.iter().map(|(station, way, kind, carried)| PathResult {
        station: *station,
        direction: direction(*way),
        path: path(*kind),
        packets: carried.packets,
        bytes: carried.bytes,
    });
    (carried.collect(), reading.switches.iter().map(SwitchResult::from).collect())
}
