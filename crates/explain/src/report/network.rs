//! The report on all connections together.

use super::connection::{ConnectionReport, Position, Sums};
use super::shares::CauseShares;
use super::verdict::{self, Facts};
use crate::causes::CauseTimes;
use crate::quantiles::Quantiles;
use serde::Serialize;
use std::collections::BTreeMap;

/// All connections together: sums over their lifetimes, as in the simulator's verdict on a group.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// Number of connections.
    pub connections: u64,
    /// Bytes in both directions, each counted once.
    pub bytes: u64,
    /// Place of the capture for most bytes.
    pub position: Position,
    /// Segments that were sent again.
    pub retransmission_share: f64,
    /// Round trips of all connections: least, ms.
    pub rtt_min_ms: Option<f64>,
    /// Median, ms.
    pub rtt_median_ms: Option<f64>,
    /// 95th percentile, ms.
    pub rtt_p95_ms: Option<f64>,
    /// Shares of the lifetimes by cause.
    pub cause_shares: CauseShares,
    /// The largest cause.
    pub cause: &'static str,
    /// The largest cause in words.
    pub verdict: String,
    /// Where the round trip passed, in words.
    pub round_trip: String,
}

pub(super) fn report<'a>(reports: impl Iterator<Item = (&'a ConnectionReport, Sums)>) -> NetworkReport {
    let (mut times, mut rtt, mut facts) = (CauseTimes::default(), Quantiles::default(), Facts::default());
    let mut positions: BTreeMap<Position, u64> = BTreeMap::new();
    let mut bytes = 0;
    for (report, sums) in reports {
        bytes += report.bytes();
        times.merge(&sums.times);
        rtt.merge(&sums.rtt);
        facts.merge(&sums.facts);
        *positions.entry(report.position).or_default() += report.bytes();
    }
    let quantile = |share| rtt.quantile(share).map(|ns| ns / 1e6);
    let position = positions.into_iter().rev().max_by_key(|(_, bytes)| *bytes);
    let (sent_again, segments) = facts.segments();
    NetworkReport {
        connections: facts.connections(),
        bytes,
        position: position.map_or(Position::Unknown, |(position, _)| position),
        retransmission_share: sent_again as f64 / segments.max(1) as f64,
        rtt_min_ms: rtt.least().map(|ns| ns as f64 / 1e6),
        rtt_median_ms: quantile(0.5),
        rtt_p95_ms: quantile(0.95),
        cause_shares: CauseShares::new(&times),
        cause: times.largest().key(),
        verdict: verdict::verdict(&times, &facts),
        round_trip: verdict::round_trip(&facts),
    }
}
