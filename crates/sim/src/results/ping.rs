//! Figures of pings.

use crate::counters::PingReading;
use crate::pings::{Parts, Ping};
use paceline_net::Instant;
use serde::{Deserialize, Serialize};

/// Figures of the pings of one station after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingResult {
    /// Index of the station.
    pub station: usize,
    /// Pings sent.
    pub sent: u64,
    /// Pings answered.
    pub answered: u64,
    /// Round-trip times.
    pub rtt: Times,
    /// One-way delays of the requests.
    pub there: Times,
    /// One-way delays of the answers.
    pub back: Times,
    /// Parts of both ways within a cell.
    pub parts: Vec<PingPart>,
    /// Time of each ping and its round trip: seconds, ms.
    #[serde(skip)]
    pub series: Vec<(f64, f64)>,
    /// One-way delays of the requests and of the answers, ms.
    #[serde(skip)]
    pub ways: [Vec<f64>; 2],
}

/// A part of the pings' ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingPart {
    /// Direction and part.
    pub part: String,
    /// Pings that had this part.
    pub count: u64,
    /// Their times.
    pub times: Times,
}

/// Mean and percentiles, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Mean.
    pub mean_ms: f64,
    /// Least value.
    pub min_ms: f64,
    /// 5th percentile.
    pub p5_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest value.
    pub max_ms: f64,
}

impl Times {
    /// Figures of these times; zeros without any.
    pub fn of(mut ms: Vec<f64>) -> Self {
        if ms.is_empty() {
            return Self::default();
        }
        ms.sort_by(f64::total_cmp);
        let at = |share: f64| ms[((share * ms.len() as f64).ceil() as usize).clamp(1, ms.len()) - 1];
        Self {
            mean_ms: ms.iter().sum::<f64>() / ms.len() as f64,
            min_ms: ms[0],
            p5_ms: at(0.05),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: ms[ms.len() - 1],
        }
    }
}

impl PingResult {
    /// Figures of the pings that were made from `from` on.
    pub(super) fn new(reading: &PingReading, from: Instant, sent: u64) -> Self {
        let pings: Vec<&Ping> = reading.pings.iter().filter(|ping| ping.made_at >= from).collect();
        let ms = |ns: u64| ns as f64 / 1e6;
        let of = |value: fn(&Ping) -> u64| pings.iter().map(|ping| ms(value(ping))).collect::<Vec<f64>>();
        let ways = [of(|ping| ping.there_ns), of(|ping| ping.rtt_ns - ping.there_ns)];
        let mut parts = Vec::new();
        for (index, direction) in ["uplink", "downlink"].into_iter().enumerate() {
            let mut add = |name: &str, value: fn(&Parts) -> Option<u64>| {
                let values = pings.iter().filter_map(|ping| ping.parts[index].as_ref().and_then(value));
                let values: Vec<f64> = values.map(ms).collect();
                if !values.is_empty() {
                    let (part, count) = (format!("{direction} {name}"), values.len() as u64);
                    parts.push(PingPart { part, count, times: Times::of(values) });
                }
            };
            add("request", |parts| parts.request);
            add("grant", |parts| parts.grant);
            add("queue", |parts| parts.queue);
            add("segmentation", |parts| Some(parts.segmentation));
            add("harq", |parts| Some(parts.harq));
        }
        Self {
            station: reading.station,
            sent,
            answered: pings.len() as u64,
            rtt: Times::of(of(|ping| ping.rtt_ns)),
            there: Times::of(ways[0].clone()),
            back: Times::of(ways[1].clone()),
            parts,
            series: pings.iter().map(|ping| (ping.made_at.as_secs_f64(), ms(ping.rtt_ns))).collect(),
            ways,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let times = Times::of((1..=100).rev().map(f64::from).collect());
        let Times { mean_ms, min_ms, p5_ms, p50_ms, p95_ms, p99_ms, max_ms } = times;
        assert_eq!((mean_ms, min_ms, max_ms), (50.5, 1.0, 100.0));
        assert_eq!([p5_ms, p50_ms, p95_ms, p99_ms], [5.0, 50.0, 95.0, 99.0]);
        assert_eq!(Times::of(vec![7.0]).p5_ms, 7.0);
    }
}
