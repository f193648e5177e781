//! One row's simulation with one way to send, and its figures.

use crate::links;
use crate::row::{Row, Yardstick};
use paceline_sim::{RunResult, scenario, simulate};
use paceline_study::scenario_file::read_trace;
use std::path::Path;

/// A way to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// CUBIC from server to client: most servers.
    Cubic,
    /// BBR from server to client.
    Bbr,
    /// The accelerator behind CUBIC servers.
    Accelerator,
}

pub const ARMS: [Arm; 3] = [Arm::Cubic, Arm::Bbr, Arm::Accelerator];

impl Arm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Accelerator => "accelerator",
        }
    }
}

/// Figures of a way to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Goodput, with headers, as a share of the capacity; of a cell, Mb/s.
    pub share: f64,
    /// 95th percentile of the queue's delay, ms.
    pub delay_ms: f64,
    /// Share of the segments that are sent again.
    pub again: f64,
    /// Jain's index of the stations.
    pub jain: f64,
    /// Mean goodput of the stations that are compared, and of those beside them, Mb/s.
    pub own_mbps: f64,
    pub others_mbps: f64,
    /// Mean time until a transfer has arrived, s.
    pub received_s: f64,
}

/// Headers of IP and TCP with timestamps beside a segment's payload.
const ON_THE_LINK: f64 = 1500.0 / 1448.0;

/// The scenario's text: with its words `@path`, `@proxy` and `@control` replaced.
fn text(row: &Row, arm: Arm) -> String {
    let (path, after, proxy) = match arm {
        Arm::Accelerator => ("proxy = \"accelerator\"", "proxy_after = 1", "proxy = false"),
        Arm::Cubic | Arm::Bbr => ("proxy = \"none\"", "", ""),
    };
    let control = if arm == Arm::Bbr { "bbr" } else { "cubic" };
    row.text
        .replace("@path", path)
        .replace("@after", after)
        .replace("@proxy", proxy)
        .replace("@control", control)
}

pub fn figures(row: &Row, arm: Arm) -> Figures {
    let read = |name: &str| links::turns(name).map_or_else(|| read_trace(Path::new(""), name), Ok);
    let scenario = scenario::load_with(&row.name, &text(row, arm), &[], &read)
        .unwrap_or_else(|error| panic!("{} {}: {error}", row.family, row.name));
    let result = simulate(&scenario, row.seed, None, &mut |_| ());
    let totals = &result.totals;
    let sent = totals.goodput_mbps * ON_THE_LINK;
    let (share, delay_ms) = match row.yardstick {
        Yardstick::Link | Yardstick::Transfers => {
            (sent / totals.link_capacity_mbps.max(1e-9), totals.link_delay_p95_ms)
        }
        Yardstick::Cell { before_ms } => (totals.goodput_mbps, round_trip(&result, arm, before_ms, 0.0)),
        Yardstick::Hop { mbps, before_ms, behind_ms, .. } => {
            (sent / mbps, round_trip(&result, arm, before_ms, behind_ms))
        }
    };
    let first = row.compared.min(result.stations.len());
    let mean = |stations: &[paceline_sim::results::StationResult]| {
        stations.iter().map(|station| station.goodput_mbps).sum::<f64>() / stations.len().max(1) as f64
    };
    let arrived: Vec<f64> = result
        .flows
        .iter()
        .map(|flow| flow.received_s.unwrap_or(scenario.run.duration.as_secs_f64()))
        .collect();
    Figures {
        share,
        delay_ms,
        again: totals.retransmission_share,
        jain: totals.jain_index,
        own_mbps: mean(&result.stations[..first]),
        others_mbps: mean(&result.stations[first..]),
        received_s: arrived.iter().sum::<f64>() / arrived.len().max(1) as f64,
    }
}

/// The round-trip time's 95th percentile without the propagation before and behind the accelerator. Its own
/// round trips are those towards the stations.
fn round_trip(result: &RunResult, arm: Arm, before_ms: f64, behind_ms: f64) -> f64 {
    let before = if arm == Arm::Accelerator { 0.0 } else { before_ms };
    (result.totals.rtt_p95_ms - before - behind_ms).max(0.0)
}
