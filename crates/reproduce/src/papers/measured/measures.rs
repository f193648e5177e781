//! Our figures of a run or of a cell.

use paceline_sim::cell_facts::CellFacts;
use paceline_sim::results::{PingResult, RunResult};
use paceline_sim::scenario::{self, Scenario};

/// A figure of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// None.
    Nothing,
    /// Downloaded payload, Mb/s.
    Goodput,
    /// Uploaded payload, Mb/s.
    Upload,
    /// Mean round trip of the pings, ms.
    Rtt,
    /// Mean one-way delay of the requests, ms.
    There,
    /// Least of it.
    ThereLeast,
    /// Median of it.
    ThereMedian,
    /// From its 5th to its 95th percentile.
    ThereWidth,
    /// Mean over slots from an uplink block to its earliest retransmission, ms.
    UplinkHarqMean,
    /// The largest.
    UplinkHarqMax,
    /// Least time from a block to the next one that carries a segment of the same packet, ms.
    SegmentStep,
    /// Median of the falls of the round trip from ping to ping, ms.
    Fall,
    /// Median of its rises, ms.
    Jump,
    /// From the end of the scheduling request to the hand-over of the reply's slot to the radio, ms.
    LogSrToReply,
}

impl Measure {
    /// The figure of one run; none if the run has none.
    pub fn of(self, scenario: &Scenario, run: &RunResult) -> Option<f64> {
        let ping = run.pings.first();
        match self {
            Self::Nothing => None,
            Self::Goodput => Some(run.totals.goodput_mbps),
            Self::Upload => Some(run.totals.upload_mbps),
            Self::Rtt => Some(ping?.rtt.mean_ms),
            Self::There => Some(ping?.there.mean_ms),
            Self::ThereLeast => Some(ping?.there.min_ms),
            Self::ThereMedian => Some(ping?.there.p50_ms),
            Self::ThereWidth => Some(ping?.there.p95_ms - ping?.there.p5_ms),
            Self::UplinkHarqMean => Some(facts(scenario).latency.uplink_harq.mean_ms),
            Self::UplinkHarqMax => Some(facts(scenario).latency.uplink_harq.max_ms),
            Self::SegmentStep => part(ping?, "uplink segmentation").map(|times| times.min_ms),
            Self::Fall => median(steps(ping?).filter(|step| *step < 0.0).map(|step| -step)),
            Self::Jump => median(steps(ping?).filter(|step| *step > 0.0)),
            Self::LogSrToReply => {
                let slot_ms = facts(scenario).slot_ms;
                let grant = part(ping?, "uplink grant")?.mean_ms;
                let queue = part(ping?, "downlink queue")?.mean_ms;
                let decoding_ms = cell(scenario).decode_delay.as_millis_f64();
                // From the start of the SR's slot to the PUSCH, its slot and decoding, and to the PDSCH.
                let to_air = grant + slot_ms + decoding_ms + queue;
                Some(to_air - slot_ms - cell(scenario).lead().radio.as_millis_f64())
            }
        }
    }
}

/// The cell, which every measured network has.
fn cell(scenario: &Scenario) -> &scenario::Cell {
    scenario.cell().expect("the scenario has a cell")
}

fn facts(scenario: &Scenario) -> CellFacts {
    CellFacts::of(cell(scenario))
}

fn part<'a>(ping: &'a PingResult, name: &str) -> Option<&'a paceline_sim::results::Times> {
    ping.parts.iter().find(|part| part.part == name).map(|part| &part.times)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Differences of the round trips of pings in a row.
fn steps(ping: &PingResult) -> impl Iterator<Item = f64> {
    ping.series.windows(2).map(|pair| pair[1].1 - pair[0].1)
}
