//! Runs of the parts by their settings: medians over phases, and gains of one pacing over another.

use super::parts::{Buffers, Part};
use crate::Estimate;
use paceline_sim::results::RunResult;
use std::collections::BTreeMap;

/// The experiment: the parts that ran, with the runs of every point.
pub struct Experiment<'a> {
    parts: BTreeMap<&'a str, (&'a Part, &'a [Vec<RunResult>])>,
    phases: usize,
}

/// One cell of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapCell {
    /// Name of the part.
    pub part: String,
    /// Congestion control.
    pub control: &'static str,
    /// Value of `tcp.pacing`.
    pub mode: &'static str,
    /// Buffer in period-bytes, or in bytes.
    pub buffer: f64,
    /// Base round-trip time, ms.
    pub rtt_ms: f64,
    /// Median of the goodput, Mb/s.
    pub goodput_mbps: f64,
    /// Median of the gain in goodput over no pacing, percent.
    pub gain_percent: f64,
    /// Medians of the mean and of the 95th percentile of the round-trip time, ms.
    pub round_trip_ms: (f64, f64),
    /// Median share of retransmitted segments, percent.
    pub retransmitted_percent: f64,
}

/// A point of a part: indices of its buffer and of its base round-trip time.
pub(super) type At = (usize, usize);

/// Median and half of its 95% confidence interval by order statistics; with fewer than six values half of
/// their range.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Estimate {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    if count == 0 {
        return Estimate::default();
    }
    let middle = (values[(count - 1) / 2] + values[count / 2]) / 2.0;
    // Of ten values, the second and the ninth: the median lies between them with a probability of 97.9%.
    let outer =
        if count >= 6 { (count / 2).saturating_sub((0.98 * (count as f64).sqrt()) as usize + 1) } else { 0 };
    let half = (values[count - 1 - outer] - values[outer]) / 2.0;
    Estimate { mean: Some(middle), half: (count > 1).then_some(half) }
}

impl<'a> Experiment<'a> {
    /// Parts with the runs of every point, in the order of [`Part::over`].
    ///
    /// # Panics
    /// If the runs of a point are missing.
    pub fn new(parts: impl IntoIterator<Item = (&'a Part, &'a [Vec<RunResult>])>, phases: usize) -> Self {
        let parts: BTreeMap<_, _> =
            parts.into_iter().map(|(part, runs)| (part.name.as_str(), (part, runs))).collect();
        for (part, runs) in parts.values() {
            let points = part.controls.len() * part.modes.len() * part.buffers.count() * part.rtts_ms.len();
            assert_eq!(runs.len(), points * phases, "runs of every point of {}", part.name);
        }
        Self { parts, phases }
    }
    pub(super) fn part(&self, name: &str) -> Option<&'a Part> {
        self.parts.get(name).map(|(part, _)| *part)
    }
    /// The parts with maps.
    pub(super) fn maps(&self) -> impl Iterator<Item = &'a Part> {
        self.parts.values().map(|(part, _)| *part).filter(|part| part.is_map())
    }
    /// A figure of every phase; empty for a part, control or mode that did not run.
    pub(super) fn phases(
        &self,
        part: &str,
        (control, mode): (&str, &str),
        (buffer, rtt): At,
        of: impl Fn(&RunResult) -> f64,
    ) -> Vec<f64> {
        let Some((part, runs)) = self.parts.get(part) else { return Vec::new() };
        let control = part.controls.iter().position(|name| *name == control);
        let (Some(control), Some(mode)) = (control, part.modes.iter().position(|name| *name == mode)) else {
            return Vec::new();
        };
        let point = (control * part.modes.len() + mode) * part.buffers.count() + buffer;
        let first = (point * part.rtts_ms.len() + rtt) * self.phases;
        runs[first..first + self.phases].iter().flatten().map(of).collect()
    }
    /// Gain in percent of a figure of one setting over that of another, phase by phase.
    pub(super) fn gain_of(
        &self,
        part: &str,
        control: &str,
        (mode, over): (&str, &str),
        at: At,
        of: impl Fn(&RunResult) -> f64,
    ) -> Estimate {
        let (new, old) =
            (self.phases(part, (control, mode), at, &of), self.phases(part, (control, over), at, &of));
        median(new.into_iter().zip(old).map(|(new, old)| 100.0 * (new / old - 1.0)))
    }
    /// Gain in goodput, percent.
    pub(super) fn gain(&self, part: &str, control: &str, modes: (&str, &str), at: At) -> Estimate {
        self.gain_of(part, control, modes, at, |run| run.totals.goodput_mbps)
    }
    /// Every point of every part.
    pub fn cells(&self) -> Vec<MapCell> {
        let mut cells = Vec::new();
        for (part, _) in self.parts.values() {
            for (control, mode, at) in points(part) {
                let value = |of: fn(&RunResult) -> f64| {
                    median(self.phases(&part.name, (control, mode), at, of)).mean.unwrap_or(f64::NAN)
                };
                cells.push(MapCell {
                    part: part.name.clone(),
                    control,
                    mode,
                    buffer: part.buffers.values()[at.0],
                    rtt_ms: part.rtts_ms[at.1],
                    goodput_mbps: value(|run| run.totals.goodput_mbps),
                    gain_percent: self.gain(&part.name, control, (mode, "none"), at).mean.unwrap_or(f64::NAN),
                    round_trip_ms: (value(|run| run.totals.rtt_mean_ms), value(|run| run.totals.rtt_p95_ms)),
                    retransmitted_percent: value(|run| 100.0 * run.totals.retransmission_share),
                });
            }
        }
        cells
    }
}

/// Every control, mode and point of a part.
fn points(part: &Part) -> impl Iterator<Item = (&'static str, &'static str, At)> {
    let (buffers, rtts) = (part.buffers.count(), part.rtts_ms.len());
    let modes = part.modes.clone();
    part.controls.clone().into_iter().flat_map(move |control| {
        let ats = (0..buffers).flat_map(move |buffer| (0..rtts).map(move |rtt| (buffer, rtt)));
        modes.clone().into_iter().flat_map(move |mode| ats.clone().map(move |at| (control, mode, at)))
    })
}

impl Buffers {
    pub(super) fn values(&self) -> &[f64] {
        match self {
            Self::Periods(values) | Self::Bytes(values) => values,
        }
    }
    pub(super) fn count(&self) -> usize {
        self.values().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_ten_lies_between_the_second_and_the_ninth() {
        let estimate = median((1..=10).rev().map(f64::from));
        assert_eq!((estimate.mean, estimate.half), (Some(5.5), Some(3.5)));
        assert_eq!(median([3.0, f64::NAN, 1.0]), Estimate { mean: Some(2.0), half: Some(1.0) });
        assert_eq!(median([]), Estimate::default());
    }
}
