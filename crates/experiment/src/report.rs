//! The findings of an experiment: acceleration compared by every measure, for every size of transfer.
//!
//! Devices of both arms are compared with each other, and untouched ones with themselves; in a switchback,
//! devices of periods with acceleration with themselves in periods without.

use super::assignment::Arm;
use super::measure::{Finding, Measure, Row};
use super::pairs::{PairValue, rows};
use super::plan::{Design, Plan};
use super::statistics::{Comparison, compare, compare_pairs, holm};
use super::sums::DeviceSums;
use paceline_net::Stream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Devices of each arm below which nothing is said. Chosen: with five and five, 252 assignments are possible.
pub const LEAST_DEVICES: usize = 5;
/// Pairs of periods below which nothing is said: one of the 64 orders of six has a probability of 1.6%, below
/// the level of the last look.
pub const LEAST_PAIRS: usize = 6;
/// Difference of the arms' mean logarithms of sizes from which on the mixes of sizes differ. Chosen: the
/// goodput of short transfers grows as their size, and 10% of it would be a gain.
const MIXED_SIZES: f64 = 0.1;

/// The data of a look.
pub(super) struct Data<'a> {
    /// Sums of each device.
    pub devices: &'a BTreeMap<IpAddr, DeviceSums>,
    /// The values of each pair of periods.
    pub pairs: Vec<Vec<Option<PairValue>>>,
    /// Number of the look, and its level.
    pub look: (u32, f64),
    pub permutations: usize,
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
    /// Pairs of periods that were compared.
    #[serde(default)]
    pub pairs: usize,
    /// Geometric mean of the transfers' sizes in bytes: of accelerated and of untouched devices.
    #[serde(default)]
    pub sizes: [f64; 2],
    /// The arms' transfers differ in size, so that there are no rows over all sizes.
    #[serde(default)]
    pub mixed: bool,
    /// The rows.
    pub rows: Vec<Row>,
    /// Goodput of untouched devices while others are accelerated, compared with themselves while none is; its
    /// p-value is of a loss alone. None in a switchback.
    #[serde(default)]
    pub neighbours: Option<Row>,
}

impl Report {
    pub(super) fn new(plan: &Plan, data: &Data<'_>) -> Self {
        let (look, level) = data.look;
        let arm = |device: &IpAddr| plan.assignment.arm(*device);
        let (accelerated, untouched): (Vec<_>, Vec<_>) =
            data.devices.iter().partition(|(device, _)| arm(device) == Arm::Accelerated);
        let arms =
            [accelerated, untouched].map(|arm| arm.into_iter().map(|(_, sums)| sums).collect::<Vec<_>>());
        let sizes = arms.each_ref().map(|arm| mean_size(arm));
        let parallel = plan.design == Design::Parallel;
        let both = sizes.iter().all(|size| size.is_finite());
        let mixed = parallel && both && (sizes[0] - sizes[1]).abs() > MIXED_SIZES;
        let (mut rows, found): (Vec<Row>, Vec<Option<Comparison>>) = rows()
            .enumerate()
            .filter(|(_, (class, measure))| !mixed || class.is_some() || *measure == Measure::Unfinished)
            .map(|(n, row)| {
                let mut stream = Stream::new(plan.assignment.seed.into(), &format!("experiment/{look}/{n}"));
                match plan.design {
                    Design::Parallel => of_arms(&arms, row, data, &mut stream),
                    Design::Switchback => of_pairs((n, row), data, &mut stream),
                }
            })
            .unzip();
        decide(&mut rows, level, plan.practical);
        let without = rows.iter().filter(|row| row.finding == Finding::NoDifference).count();
        for (row, found) in rows.iter_mut().zip(&found) {
            // By Holm's method, one of the rows without a difference would have had a finding if its p-value
            // had been at most the level by their number.
            row.state_detectable(found.as_ref(), level / without.max(1) as f64, plan.practical);
        }
        let sum = |of: fn(&DeviceSums) -> u64| arms.each_ref().map(|arm| arm.iter().map(|one| of(one)).sum());
        Self {
            look,
            level,
            devices: arms.each_ref().map(Vec::len),
            transfers: sum(DeviceSums::transfers),
            unfinished: sum(|sums| sums.unfinished.into()),
            pairs: data.pairs.len(),
            sizes: sizes.map(|log| if log.is_finite() { libm::exp(log) } else { 0.0 }),
            mixed,
            rows,
            neighbours: parallel.then(|| neighbours(plan, data)),
        }
    }
    /// The rows for which acceleration has to end.
    pub fn harm(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(&self.neighbours).filter(|row| row.is_harmful())
    }
    /// The row of a measure over all sizes.
    pub fn overall(&self, measure: Measure) -> Option<&Row> {
        self.rows.iter().find(|row| row.size.is_none() && row.measure == measure)
    }
}

/// Mean over devices of the mean logarithm of their transfers' sizes; NaN without transfers.
fn mean_size(arm: &[&DeviceSums]) -> f64 {
    let means = arm.iter().filter_map(|sums| sums.log_size());
    let (sum, count) = means.fold((0.0, 0.0), |(sum, count), mean| (sum + mean, count + 1.0));
    sum / count
}

fn of_arms(
    arms: &[Vec<&DeviceSums>; 2],
    (class, measure): (Option<usize>, Measure),
    data: &Data<'_>,
    stream: &mut Stream,
) -> (Row, Option<Comparison>) {
    let values = arms
        .each_ref()
        .map(|arm| arm.iter().filter_map(|sums| measure.of(sums, class)).collect::<Vec<f64>>());
    let counts = values.each_ref().map(Vec::len);
    let enough = counts.iter().all(|count| *count >= LEAST_DEVICES);
    let compared = || compare(&values[0], &values[1], data.look.1, data.permutations, stream);
    let found = enough.then(compared).flatten();
    (Row::new((class, measure), counts, found.as_ref()), found)
}

fn of_pairs(
    (n, row): (usize, (Option<usize>, Measure)),
    data: &Data<'_>,
    stream: &mut Stream,
) -> (Row, Option<Comparison>) {
    let values: Vec<PairValue> =
        data.pairs.iter().filter_map(|pair| pair.get(n).copied().flatten()).collect();
    let pairs: Vec<(f64, f64)> = values.iter().map(|value| (value.on, value.off)).collect();
    let enough = pairs.len() >= LEAST_PAIRS;
    let found = enough.then(|| compare_pairs(&pairs, data.look.1, data.permutations, stream)).flatten();
    (Row::new(row, [pairs.len(); 2], found.as_ref()), found)
}

/// Compares untouched devices with themselves. The distribution of the statistic is symmetric: a loss has
/// half the p-value.
fn neighbours(plan: &Plan, data: &Data<'_>) -> Row {
    let (look, level) = data.look;
    let mut stream = Stream::new(plan.assignment.seed.into(), &format!("experiment/{look}/neighbours"));
    let row = (None, Measure::Goodput);
    let n = rows().position(|other| other == row).unwrap_or_default();
    let (mut row, found) = of_pairs((n, row), data, &mut stream);
    if let Some(found) = found {
        let chance = if found.difference < 0.0 { found.chance / 2.0 } else { 1.0 };
        row.decide(chance, level, plan.practical);
    }
    row
}

/// Adjusts the p-values for their number, and decides.
fn decide(rows: &mut [Row], level: f64, practical: f64) {
    let mut tested: Vec<&mut Row> =
        rows.iter_mut().filter(|row| row.finding != Finding::TooFewDevices).collect();
    let adjusted = holm(&tested.iter().map(|row| row.chance).collect::<Vec<f64>>());
    for (row, chance) in tested.iter_mut().zip(adjusted) {
        row.decide(chance, level, practical);
    }
}
