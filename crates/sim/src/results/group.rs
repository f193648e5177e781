//! Figures of a group of stations over all runs.

use super::limits::{LimitShares, RadioDelays, Side, SideResult, StationSenders, Verdict};
use super::run::RunResult;
use super::run_group::{self, GroupFigures, RunGroup};
use super::statistics::mean_and_half;
use serde::{Deserialize, Serialize};

/// Figures of one group over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupMeans {
    /// Index of the group's `[[station]]` table.
    pub group: usize,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Number of stations.
    pub stations: u64,
    /// Means over runs.
    pub mean: GroupFigures,
    /// Half widths of the 95% confidence intervals of the means; none with one run.
    pub ci95: Option<GroupFigures>,
}

impl GroupMeans {
    /// Its name in tables and pictures.
    pub fn label(&self) -> String {
        run_group::label(&self.name, self.group)
    }
    /// All groups, in the order of their tables.
    pub fn of_runs(runs: &[RunResult]) -> Vec<Self> {
        let groups = runs.first().map_or(&[][..], |run| &run.groups);
        groups.iter().enumerate().map(|(index, of)| Self::of_group(index, of, runs)).collect()
    }
    fn of_group(index: usize, of: &RunGroup, runs: &[RunResult]) -> Self {
        let rows = runs.iter().filter_map(|run| run.groups.get(index)).map(|own| own.figures.values());
        let rows: Vec<Vec<f64>> = rows.collect();
        let column = |figure: usize| rows.iter().map(|row| row[figure]).collect::<Vec<f64>>();
        let figures = (0..GroupFigures::NAMES.len()).map(|figure| mean_and_half(&column(figure)));
        let figures: Vec<(f64, Option<f64>)> = figures.collect();
        let halves: Option<Vec<f64>> = figures.iter().map(|(_, half)| *half).collect();
        Self {
            group: of.group,
            name: of.name.clone(),
            stations: of.stations,
            mean: GroupFigures::from_values(figures.iter().map(|(mean, _)| *mean)),
            ci95: halves.map(GroupFigures::from_values),
        }
    }
}

/// Figures and limits of TCP for one group of stations, over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Index of the group's `[[station]]` table.
    pub group: usize,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Number of stations.
    pub stations: u64,
    /// Number of connections over all runs.
    pub flows: u64,
    /// Means over runs.
    #[serde(flatten)]
    pub mean: GroupFigures,
    /// Half widths of their 95% confidence intervals; none with one run.
    #[serde(default)]
    pub ci95: Option<GroupFigures>,
    /// Shares of the connections' lifetimes, by the limit of the applications' ends.
    pub limits: LimitShares,
    /// Radio delays as shares of the mean round-trip time; behind a proxy, of the radio side's.
    pub round_trip: RadioDelays,
    /// The side of a proxy that limits; none without a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiting_side: Option<Side>,
    /// Both sides of a proxy; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<SideResult>,
    /// The largest limit, in words.
    pub verdict: String,
}

impl GroupResult {
    /// Its name in tables and pictures.
    pub fn label(&self) -> String {
        run_group::label(&self.name, self.group)
    }
    /// The groups with simulated connections in all runs.
    pub(super) fn of_runs(runs: &[RunResult]) -> Vec<Self> {
        GroupMeans::of_runs(runs).iter().filter_map(|means| Self::of_group(means, runs)).collect()
    }
    fn of_group(means: &GroupMeans, runs: &[RunResult]) -> Option<Self> {
        let mut sums = StationSenders::default();
        for run in runs {
            let members = run.stations.iter().filter(|station| station.group == means.group);
            members.filter_map(|own| run.senders.get(own.station)).for_each(|own| sums.add(own));
        }
        if !sums.ends.any() {
            return None;
        }
        let Verdict { text, side, sides } = Verdict::new(&sums);
        Some(Self {
            group: means.group,
            name: means.name.clone(),
            stations: means.stations,
            flows: sums.ends.flows,
            mean: means.mean,
            ci95: means.ci95,
            limits: LimitShares::new(&sums.ends.times),
            round_trip: sums.over_radio().round_trip(),
            limiting_side: side,
            sides,
            verdict: text,
        })
    }
}
