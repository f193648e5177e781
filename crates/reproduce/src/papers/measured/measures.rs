//! Our figures of a run or of a cell.

use paceline_net::Instant;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::results::{PingResult, RunResult, Sample};
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
    /// A percentile of the goodput in the seconds of all runs, Mb/s.
    Second(u8),
    /// A percentile of the round trips of pings less the 5th, ms.
    RttAbove5(u8),
    /// Median time of completed handovers without service, ms.
    Interruption,
    /// Share of the seconds of all runs in which less than 90% of the link's capacity is used, percent.
    Unfilled,
    /// From the end of the scheduling request to the hand-over of the reply's slot to the radio, ms.
    LogSrToReply,
}

impl Measure {
    /// The figure of all runs together, for distributions; none for the figures of single runs.
    pub fn of_all(self, scenario: &Scenario, runs: &[RunResult]) -> Option<f64> {
        let after = Instant::ZERO + scenario.run.warmup;
        let seconds = runs.iter().flat_map(|run| run.samples.windows(2).filter(|pair| pair[0].at >= after));
        let bytes = |pair: &[Sample]| (pair[1].downloaded - pair[0].downloaded) as f64;
        match self {
            Self::Second(percent) => {
                let mbps = |pair| 8e-6 * bytes(pair) / scenario.run.sample.as_secs_f64();
                let mut mbps: Vec<f64> = seconds.map(mbps).collect();
                mbps.sort_by(f64::total_cmp);
                mbps.get(mbps.len() * usize::from(percent) / 100).copied()
            }
            Self::Unfilled => {
                let unfilled = |pair: &[Sample]| {
                    let capacity = pair[1].capacity?.saturating_sub(pair[0].capacity?) as f64;
                    Some(f64::from(u8::from(bytes(pair) < 0.9 * capacity)))
                };
                let shares: Vec<f64> = seconds.filter_map(unfilled).collect();
                (!shares.is_empty()).then(|| 100.0 * shares.iter().sum::<f64>() / shares.len() as f64)
            }
            _ => None,
        }
    }
    /// The figure of one run; none if the run has none.
    pub fn of(self, scenario: &Scenario, run: &RunResult) -> Option<f64> {
        let ping = run.pings.first();
        match self {
            Self::Nothing | Self::Second(_) | Self::Unfilled => None,
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
            Self::RttAbove5(50) => Some(ping?.rtt.p50_ms - ping?.rtt.p5_ms),
            Self::RttAbove5(_) => Some(ping?.rtt.p95_ms - ping?.rtt.p5_ms),
            Self::Interruption => median(run.handovers.iter().filter_map(|change| change.interruption_ms)),
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
