//! Measured quantities, and the rows of a report.

use super::statistics::Comparison;
use super::sums::{DeviceSums, SIZES};
use serde::{Deserialize, Serialize};

/// A lower goodput, or a longer time by as much, is harmful from this ratio on. Chosen: acceleration that
/// costs less in one size of transfer may still be worth its gain in others; the report shows it.
const HARMFUL_RATIO: f64 = 0.95;
/// More unfinished transfers are harmful from this difference of shares on. Chosen: one in a hundred.
const HARMFUL_UNFINISHED: f64 = 0.01;
/// The smallest change of a share that matters, as a part of that of a ratio. Chosen: 1% beside 5%.
const PRACTICAL_SHARE: f64 = 0.2;

/// A measured quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Bytes of a transfer by its time, in b/s.
    Goodput,
    /// Time of a transfer, in seconds.
    Time,
    /// Mean round-trip time between gateway and device in a transfer, in seconds.
    Rtt,
    /// Share of the bytes sent to the device that had been sent before.
    Repeated,
    /// Share of transfers that did not finish.
    Unfinished,
}

impl Measure {
    /// Measures of each size of transfer.
    pub const BY_SIZE: [Self; 4] = [Self::Goodput, Self::Time, Self::Rtt, Self::Repeated];

    /// Whether groups are compared by the ratio of geometric means, rather than by the difference of means.
    pub fn is_ratio(self) -> bool {
        !matches!(self, Self::Repeated | Self::Unfinished)
    }
    /// Whether a larger value is better.
    fn is_better_if_more(self) -> bool {
        self == Self::Goodput
    }
    /// Whether a change is one for the better.
    fn is_better(self, change: f64) -> bool {
        (change > 0.0) == self.is_better_if_more()
    }
    /// The change that a difference of the devices' values means.
    fn change(self, difference: f64) -> f64 {
        if self.is_ratio() { libm::expm1(difference) } else { difference }
    }
    /// The smallest change that matters, and the smallest harmful one, as absolute values.
    fn thresholds(self, practical: f64) -> (f64, f64) {
        let (practical, harmful) = match self {
            Self::Goodput => (practical, 1.0 - HARMFUL_RATIO),
            Self::Time => (practical, 1.0 / HARMFUL_RATIO - 1.0),
            Self::Rtt => (practical, f64::INFINITY),
            Self::Repeated => (practical * PRACTICAL_SHARE, f64::INFINITY),
            Self::Unfinished => (practical * PRACTICAL_SHARE, HARMFUL_UNFINISHED),
        };
        (practical, harmful)
    }
    /// A device's value; None without transfers.
    pub(super) fn of(self, sums: &DeviceSums, class: Option<usize>) -> Option<f64> {
        let of = sums.of(class);
        let (sum, count) = match self {
            Self::Goodput => (of.log_goodput, u64::from(of.transfers)),
            Self::Time => (of.log_time, u64::from(of.transfers)),
            Self::Rtt => (of.log_rtt, u64::from(of.timed)),
            Self::Repeated => (of.repeated as f64, of.sent),
            Self::Unfinished => (sums.unfinished.into(), sums.transfers() + u64::from(sums.unfinished)),
        };
        (count > 0).then(|| sum / count as f64)
    }
}

/// The finding of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Fewer than five devices in an arm, or six pairs of periods.
    TooFewDevices,
    /// Chance explains the difference.
    NoDifference,
    /// There is a difference, which is too small to matter.
    Small,
    /// Accelerated devices fare better.
    Better,
    /// Accelerated devices fare worse.
    Worse,
}

/// One measure of one size of transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The size of transfers; None: all.
    pub size: Option<String>,
    /// The measure.
    pub measure: Measure,
    /// Devices: accelerated, untouched. Where periods are compared, the pairs of periods, twice.
    pub devices: [usize; 2],
    /// Mean over the devices of each arm: geometric for ratios.
    pub means: [f64; 2],
    /// Ratio of the accelerated mean to the untouched less 1, or the difference of the means.
    pub change: f64,
    /// Confidence interval of the change.
    pub interval: [f64; 2],
    /// p-value, adjusted for all rows by Holm's method.
    pub chance: f64,
    /// The finding.
    pub finding: Finding,
    /// Without a difference, the smallest true change for the better that would have been found with a
    /// probability of 80%; None: no change could have been found with so few devices.
    #[serde(default)]
    pub detectable: Option<f64>,
}

impl Row {
    /// Whether acceleration has to end.
    pub fn is_harmful(&self) -> bool {
        let (_, harmful) = self.measure.thresholds(0.0);
        self.finding == Finding::Worse && self.change.abs() >= harmful
    }
    pub(super) fn new(
        (size, measure): (Option<usize>, Measure),
        devices: [usize; 2],
        found: Option<&Comparison>,
    ) -> Self {
        let size = size.map(|class| SIZES[class].0.to_owned());
        let mut row = Self {
            size,
            measure,
            devices,
            means: [0.0; 2],
            change: 0.0,
            interval: [0.0; 2],
            chance: 1.0,
            finding: Finding::TooFewDevices,
            detectable: None,
        };
        if let Some(&Comparison { first, second, difference, margin, chance, .. }) = found {
            let mean: fn(f64) -> f64 = if measure.is_ratio() { libm::exp } else { |x| x };
            let change = |difference| measure.change(difference);
            row.means = [mean(first), mean(second)];
            row.change = change(difference);
            row.interval = [change(difference - margin), change(difference + margin)];
            (row.chance, row.finding) = (chance, Finding::NoDifference);
        }
        row
    }
    /// Draws the conclusion from an adjusted p-value. A change for the worse matters from the smaller of the
    /// two thresholds on.
    pub(super) fn decide(&mut self, chance: f64, level: f64, practical: f64) {
        let (matters, harmful) = self.measure.thresholds(practical);
        let better = self.measure.is_better(self.change);
        let least = if better { matters } else { matters.min(harmful) };
        self.chance = chance;
        self.finding = match (chance <= level, self.change.abs() >= least) {
            (false, _) => Finding::NoDifference,
            (true, false) => Finding::Small,
            (true, true) if better => Finding::Better,
            (true, true) => Finding::Worse,
        };
    }
    /// Sets what a row without a difference could have found at `level`: a change that matters at least.
    pub(super) fn state_detectable(&mut self, found: Option<&Comparison>, level: f64, practical: f64) {
        if self.finding != Finding::NoDifference {
            return;
        }
        let sign = if self.measure.is_better_if_more() { 1.0 } else { -1.0 };
        let (matters, _) = self.measure.thresholds(practical);
        let change = found
            .and_then(|found| found.detectable(level))
            .map(|difference| self.measure.change(sign * difference));
        // Values that are all equal have no standard error, and a change of 0.
        self.detectable =
            change.map(|change| if change == 0.0 { 0.0 } else { sign * change.abs().max(matters) });
    }
}
