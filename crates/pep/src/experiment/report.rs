//! The findings of an experiment: both arms compared by every measure, for every size of transfer.

use super::assignment::Arm;
use super::statistics::{Comparison, compare, holm};
use super::sums::{DeviceSums, SIZES};
use paceline_net::Stream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Devices of each arm below which nothing is said. Chosen: with five and five, 252 assignments are possible.
pub const LEAST_DEVICES: usize = 5;
/// A lower goodput is harmful from this ratio on. Chosen: acceleration that costs less in one size of
/// transfer may still be worth its gain in others; the report shows it.
const HARMFUL_RATIO: f64 = 0.95;
/// More unfinished transfers are harmful from this difference of shares on. Chosen: one in a hundred.
const HARMFUL_UNFINISHED: f64 = 0.01;

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
    /// The change that a difference of the devices' values means.
    fn change(self, difference: f64) -> f64 {
        if self.is_ratio() { libm::expm1(difference) } else { difference }
    }
    /// A device's value; None without transfers.
    fn of(self, sums: &DeviceSums, class: Option<usize>) -> Option<f64> {
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
    /// Fewer than five devices in an arm.
    TooFewDevices,
    /// Chance explains the difference.
    NoDifference,
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
    /// Devices: accelerated, untouched.
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
        self.finding == Finding::Worse
            && match self.measure {
                Measure::Goodput => self.change <= HARMFUL_RATIO - 1.0,
                Measure::Unfinished => self.change >= HARMFUL_UNFINISHED,
                _ => false,
            }
    }
    fn new(size: Option<usize>, measure: Measure, devices: [usize; 2], found: Option<&Comparison>) -> Self {
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
}

/// All rows of a look.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Number of the look.
    pub look: u32,
    /// Probability that any row of this look says "better" or "worse" where there is no effect, at most. The
    /// intervals cover with the probability that is left, each.
    pub level: f64,
    /// Devices with transfers: accelerated, untouched.
    pub devices: [usize; 2],
    /// Finished transfers.
    pub transfers: [u64; 2],
    /// Unfinished transfers.
    pub unfinished: [u64; 2],
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// Compares the arms by `permutations` random assignments.
    pub fn new(
        devices: &BTreeMap<IpAddr, DeviceSums>,
        arm: impl Fn(IpAddr) -> Arm,
        (look, level): (u32, f64),
        permutations: usize,
        seed: u64,
    ) -> Self {
        let (accelerated, untouched): (Vec<_>, Vec<_>) =
            devices.iter().partition(|(device, _)| arm(**device) == Arm::Accelerated);
        let arms =
            [accelerated, untouched].map(|arm| arm.into_iter().map(|(_, sums)| sums).collect::<Vec<_>>());
        let classes = std::iter::once(None).chain((0..SIZES.len()).map(Some));
        let measures = classes.flat_map(|class| Measure::BY_SIZE.map(|measure| (class, measure)));
        let (mut rows, found): (Vec<Row>, Vec<Option<Comparison>>) = measures
            .chain([(None, Measure::Unfinished)])
            .enumerate()
            .map(|(n, (class, measure))| {
                let values = arms
                    .each_ref()
                    .map(|arm| arm.iter().filter_map(|sums| measure.of(sums, class)).collect::<Vec<f64>>());
                let counts = values.each_ref().map(Vec::len);
                let enough = counts.iter().all(|count| *count >= LEAST_DEVICES);
                let mut stream = Stream::new(seed, &format!("experiment/{look}/{n}"));
                let found = enough.then(|| compare(&values[0], &values[1], level, permutations, &mut stream));
                let found = found.flatten();
                (Row::new(class, measure, counts, found.as_ref()), found)
            })
            .unzip();
        decide(&mut rows, level);
        state_detectable(&mut rows, &found, level);
        let sum = |of: fn(&DeviceSums) -> u64| arms.each_ref().map(|arm| arm.iter().map(|one| of(one)).sum());
        Self {
            look,
            level,
            devices: arms.each_ref().map(Vec::len),
            transfers: sum(DeviceSums::transfers),
            unfinished: sum(|sums| sums.unfinished.into()),
            rows,
        }
    }
    /// The rows for which acceleration has to end.
    pub fn harm(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_harmful())
    }
    /// The row of a measure over all sizes.
    pub fn overall(&self, measure: Measure) -> Option<&Row> {
        self.rows.iter().find(|row| row.size.is_none() && row.measure == measure)
    }
}

/// Adjusts the p-values for their number, and decides.
fn decide(rows: &mut [Row], level: f64) {
    let mut tested: Vec<&mut Row> =
        rows.iter_mut().filter(|row| row.finding != Finding::TooFewDevices).collect();
    let adjusted = holm(&tested.iter().map(|row| row.chance).collect::<Vec<f64>>());
    for (row, chance) in tested.iter_mut().zip(adjusted) {
        row.chance = chance;
        row.finding = match chance <= level {
            false => Finding::NoDifference,
            true if (row.change > 0.0) == row.measure.is_better_if_more() => Finding::Better,
            true => Finding::Worse,
        };
    }
}

/// Rows without a difference get the change that would have been found. By Holm's method, one of them would
/// have had a finding if its p-value had been at most the level by the number of such rows.
fn state_detectable(rows: &mut [Row], found: &[Option<Comparison>], level: f64) {
    let without = rows.iter().filter(|row| row.finding == Finding::NoDifference).count();
    let level = level / without.max(1) as f64;
    for (row, found) in rows.iter_mut().zip(found) {
        if row.finding == Finding::NoDifference {
            let sign = if row.measure.is_better_if_more() { 1.0 } else { -1.0 };
            let difference = found.as_ref().and_then(|found| found.detectable(level));
            row.detectable = difference.map(|difference| row.measure.change(sign * difference));
        }
    }
}
