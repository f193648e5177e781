//! The result: figures of each connection and of the network, the capture point, sentences and notes.

mod connection;
mod network;
mod pseudonyms;
mod shares;
mod verdict;

pub use connection::{ConnectionReport, DirectionReport, HalfReport, OfferReport, Position, TimePoint};
pub use network::NetworkReport;
pub use pseudonyms::Pseudonyms;
pub use shares::CauseShares;

use crate::connection::Connection;
use crate::signs::middlebox;
use crate::signs::period::CellPeriods;
use crate::tracker::Tracker;
use serde::Serialize;
use std::collections::BTreeMap;

/// The explanation of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// All connections together.
    pub network: NetworkReport,
    /// The connections, those with most data first.
    pub connections: Vec<ConnectionReport>,
    /// Periods of the cell at each capture point that shows one.
    pub cells: Vec<CellReport>,
    /// Statements on the capture: damage, packets that were left out.
    pub notes: Vec<String>,
    /// Packets in the capture.
    pub packets: u64,
    /// TCP segments in it.
    pub segments: u64,
}

/// Periods of the cell behind a capture point.
#[derive(Clone, Debug, Serialize)]
pub struct CellReport {
    /// Name of the interface, empty where the capture has none.
    pub interface: String,
    /// The periods.
    #[serde(flatten)]
    pub periods: CellPeriods,
}

/// By group of files: the name of the first, and those of its interfaces.
pub type Names = BTreeMap<usize, (String, Vec<String>)>;

/// The report on all connections; `interface` leaves out the others.
pub fn report(tracker: &Tracker, names: &Names, interface: Option<&str>) -> Explanation {
    // Files of several points without names of interfaces are named instead.
    let name = |point: usize| {
        let (group, number) = tracker.points[point].id;
        let (file, own) = names.get(&group).map_or((None, None), |(file, own)| (Some(file), Some(own)));
        let named = own.and_then(|own| own.get(number as usize)).filter(|name| !name.is_empty());
        named.or(file.filter(|_| names.len() > 1)).cloned().unwrap_or_default()
    };
    let first = tracker.span.map(|(first, _)| first).unwrap_or_default();
    let all = tracker.connections.iter().enumerate();
    let reports = all.map(|(index, own)| (connection::report(own, name(own.point), first), index));
    let reports = reports.filter(|(report, _)| interface.is_none_or(|name| report.interface == name));
    let mut reports = nearest(reports, &tracker.connections);
    reports.sort_by_key(|(report, _)| std::cmp::Reverse(report.bytes()));
    let sums =
        reports.iter().map(|(report, index)| (report, connection::Sums::new(&tracker.connections[*index])));
    let network = network::report(sums);
    let connections = reports.into_iter().map(|(report, _)| report).collect();
    let counts = tracker.counts;
    let (packets, segments) = (counts.packets, counts.tcp);
    let cells = tracker
        .points
        .iter()
        .enumerate()
        .map(|(point, own)| CellReport { interface: name(point), periods: own.periods.cell() });
    let cells = cells.filter(|cell| {
        cell.periods != CellPeriods::default() && interface.is_none_or(|only| cell.interface == only)
    });
    let cells = cells.collect();
    Explanation { network, connections, cells, notes: notes(tracker), packets, segments }
}

/// Of a connection that passed several capture points, the report at the one nearest the sender of its data,
/// with its number.
fn nearest(
    reports: impl Iterator<Item = (ConnectionReport, usize)>,
    connections: &[Connection],
) -> Vec<(ConnectionReport, usize)> {
    let mut kept: Vec<(ConnectionReport, usize)> = Vec::new();
    let mut index: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (report, own) in reports {
        let places = index.entry((report.client.clone(), report.server.clone())).or_default();
        let same = places.iter().copied().find(|place| kept[*place].0.is_same(&report));
        match same {
            Some(place) => {
                let points = kept[place].0.capture_points + 1;
                let changes = middlebox::differences(&connections[kept[place].1], &connections[own]);
                if report.is_nearer(&kept[place].0) {
                    kept[place] = (report, own);
                }
                kept[place].0.capture_points = points;
                kept[place].0.add_signs(changes);
            }
            None => {
                places.push(kept.len());
                kept.push((report, own));
            }
        }
    }
    kept
}

/// Statements on the packets.
fn notes(tracker: &Tracker) -> Vec<String> {
    let counts = tracker.counts;
    let mirrored: u64 = tracker.connections.iter().map(|connection| connection.mirrored).sum();
    let merged: u64 = tracker.connections.iter().flat_map(|c| &c.senders).map(|sender| sender.merged).sum();
    let capped =
        tracker.connections.iter().flat_map(|c| &c.senders).filter(|s| s.space.capped).count() as u64;
    let notes = [
        (mirrored, "copies of mirrored packets: left out"),
        (merged, "segments longer than the announced size: merged by the interface of the capturing host"),
        (
            counts.cut_headers,
            "TCP headers not captured whole: left out; capture 96 bytes of each packet or more",
        ),
        (counts.cut_options, "TCP options not captured whole; capture 96 bytes of each packet or more"),
        (
            counts.disordered,
            "packets with a time before that of the packet in front: taken as of the same time",
        ),
        (counts.clock_steps, "steps back of the clock: the time goes on without them"),
        (counts.not_followed, "segments of connections beyond the most that are followed: left out"),
        (
            capped,
            "directions with more holes in the data than are remembered: their losses are counted in part",
        ),
    ];
    notes.into_iter().filter(|(count, _)| *count > 0).map(|(count, note)| format!("{count} {note}")).collect()
}
