//! Figures of all runs of a scenario.

use super::group::GroupResult;
use super::run::{FlowResult, RunResult};
use super::statistics::mean_and_half;
use super::tables;
use super::totals::Totals;
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Program that made a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Version of Paceline.
    pub version: String,
    /// Commit from which it was built.
    pub commit: String,
}

/// All runs of a scenario: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Program that made it.
    pub paceline: Origin,
    /// Name of the scenario.
    pub scenario: String,
    /// `simulated` or `emulated`.
    pub mode: &'static str,
    /// Scheme of the ACK filter.
    pub scheme: String,
    /// Number of stations.
    pub stations: u64,
    /// Length of the measured interval of a run, seconds.
    pub measured_s: f64,
    /// Means over seeds.
    pub mean: Totals,
    /// Half widths of the 95% confidence intervals of the means; none with one seed.
    pub ci95: Option<Totals>,
    /// The limits of TCP for each group of stations with simulated connections, over all runs.
    pub groups: Vec<GroupResult>,
    /// Connections of all runs that sent a SYN and never opened; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub connections_never_opened: usize,
    /// Keys of the scenario with another effect than they say, in sentences; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenario_warnings: Vec<String>,
    /// Each run.
    pub runs: Vec<RunResult>,
}

impl Summary {
    /// Summarises the runs of one scenario.
    pub fn new(
        paceline: Origin,
        name: &str,
        mode: &'static str,
        scenario: &Scenario,
        runs: Vec<RunResult>,
    ) -> Self {
        let (mean, ci95) = mean_and_ci95(&runs);
        Self {
            paceline,
            scenario: name.to_owned(),
            mode,
            scheme: scenario.access.ack_scheme().to_string(),
            stations: scenario.station_count(),
            measured_s: runs.first().map_or(0.0, |run| run.measured_s),
            mean,
            ci95,
            groups: GroupResult::of_runs(&runs),
            connections_never_opened: never_opened(scenario, &runs),
            runs,
            scenario_warnings: scenario.warnings(),
        }
    }
    /// A warning if the run had connections and none of them opened, or if the radio of some stations gave no
    /// service.
    pub fn warning(&self) -> Option<String> {
        let opened = self.runs.iter().flat_map(|run| &run.flows).any(FlowResult::opened);
        let never = (self.connections_never_opened > 0 && !opened)
            .then(|| String::from("no connection opened: no handshake was completed (see tcp.syn_retries)"));
        let mut causes: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for station in self.runs.iter().flat_map(|run| &run.stations) {
            if let Some(cause) = station.no_service.as_deref() {
                causes.entry(cause).or_default().insert(station.station);
            }
        }
        let without = causes.iter().map(|(cause, stations)| {
            let first = stations.first().copied().unwrap_or_default();
            match stations.len() {
                1 => format!("station {first} has no service: {cause}"),
                n => format!("{n} stations have no service (station {first} is the first): {cause}"),
            }
        });
        let parts: Vec<String> = never.into_iter().chain(without).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
    /// All warnings: of the scenario's keys, and of the runs.
    pub fn warnings(&self) -> Option<String> {
        let parts: Vec<String> = self.scenario_warnings.iter().cloned().chain(self.warning()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
    /// Text of `summary.json`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("results are plain data");
        text.push('\n');
        text
    }
    /// Text of `groups.csv`; none with a single group, which has the totals.
    pub fn groups_csv(&self) -> Option<String> {
        self.runs.iter().any(|run| run.groups.len() > 1).then(|| tables::groups_csv(&self.runs))
    }
    /// Text of `stations.csv`.
    pub fn stations_csv(&self) -> String {
        tables::stations_csv(&self.runs)
    }
    /// Text of `flows.csv`.
    pub fn flows_csv(&self) -> String {
        tables::flows_csv(&self.runs)
    }
    /// Text of `kernel_connections.csv`, of an emulation.
    pub fn kernel_connections_csv(&self) -> String {
        tables::kernel_connections_csv(&self.runs)
    }
    /// Text of `queues.csv`; none without managed queues.
    pub fn queues_csv(&self) -> Option<String> {
        self.runs.iter().any(|run| !run.queues.is_empty()).then(|| tables::queues_csv(&self.runs))
    }
    /// Texts of `paths.csv` and `switches.csv`; none without pairs of stations with direct links.
    pub fn paths_csv(&self) -> Option<[String; 2]> {
        let has = self.runs.iter().any(|run| !run.paths.is_empty());
        has.then(|| [tables::paths_csv(&self.runs), tables::switches_csv(&self.runs)])
    }
    /// Text of `handovers.csv`.
    pub fn handovers_csv(&self) -> String {
        tables::handovers_csv(&self.runs)
    }
    /// Text of `routers.csv`; none without routers.
    pub fn routers_csv(&self) -> Option<String> {
        self.runs.iter().any(|run| !run.routers.is_empty()).then(|| tables::routers_csv(&self.runs))
    }
    /// Text of `policers.csv`; none without ACK policers.
    pub fn policers_csv(&self) -> Option<String> {
        self.runs.iter().any(|run| !run.policers.is_empty()).then(|| tables::policers_csv(&self.runs))
    }
    /// `pings.csv`; none without pings.
    pub fn pings_csv(&self) -> Option<String> {
        self.runs.iter().any(|run| !run.pings.is_empty()).then(|| tables::pings_csv(&self.runs))
    }
    /// Text of `timeseries.csv`.
    pub fn timeseries_csv(&self) -> String {
        tables::timeseries_csv(&self.runs)
    }
}

/// Number of connections that never opened, without those that may begin after the end of the run.
fn never_opened(scenario: &Scenario, runs: &[RunResult]) -> usize {
    let begun = |group: usize| scenario.stations[group].last_start() < scenario.run.duration;
    let failed = |run: &RunResult| {
        let flows = run.flows.iter().filter(|flow| !flow.opened());
        flows.filter(|flow| begun(run.stations[flow.station].group)).count()
    };
    runs.iter().map(failed).sum()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Means over runs and, for two or more, the half widths of their 95% confidence intervals.
pub fn mean_and_ci95(runs: &[RunResult]) -> (Totals, Option<Totals>) {
    let columns: Vec<Vec<f64>> = transpose(runs.iter().map(|run| run.totals.values()));
    let figures: Vec<(f64, Option<f64>)> = columns.iter().map(|column| mean_and_half(column)).collect();
    let means: Vec<f64> = figures.iter().map(|(mean, _)| *mean).collect();
    let halves: Option<Vec<f64>> = figures.iter().map(|(_, half)| *half).collect();
    (
        Totals::from_values(&means),
        halves.filter(|_| runs.len() > 1).map(|halves| Totals::from_values(&halves)),
    )
}

fn transpose(rows: impl Iterator<Item = Vec<f64>>) -> Vec<Vec<f64>> {
    let mut columns = Vec::new();
    for row in rows {
        columns.resize_with(row.len(), Vec::new);
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_intervals_follow_student() {
        let run = |goodput_mbps| RunResult {
            seed: 1,
            measured_s: 1.0,
            totals: Totals { goodput_mbps, ..Totals::default() },
            groups: Vec::new(),
            stations: Vec::new(),
            measured_from_s: None,
            flows: Vec::new(),
            queues: Vec::new(),
            paths: Vec::new(),
            switches: Vec::new(),
            handovers: Vec::new(),
            routers: Vec::new(),
            policers: Vec::new(),
            pings: Vec::new(),
            kernel_connections: Vec::new(),
            senders: Vec::new(),
            samples: Vec::new(),
        };
        let (mean, ci95) = mean_and_ci95(&[run(10.0), run(12.0), run(14.0)]);
        assert_eq!(mean.goodput_mbps, 12.0);
        // t(0.975, 2) = 4.30265, s = 2, n = 3.
        assert!((ci95.unwrap().goodput_mbps - 4.30265 * 2.0 / 3.0f64.sqrt()).abs() < 1e-4);
        assert_eq!(mean_and_ci95(&[run(1.0)]).1, None);
    }
}
