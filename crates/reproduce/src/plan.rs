//! The parts that all plans have: options, the runner, and the outcome.

use crate::error::InputError;
use crate::grid::Grid;
use paceline_sim::reproduce::Row;
use paceline_sim::{RunResult, Scenario};
use serde_json::Value;

/// Runs of each point. Chosen: the intervals of ten runs are narrow enough to tell the published schemes
/// apart.
const SEEDS: u64 = 10;
/// Runs of each point in a quick reproduction. Chosen: the smallest number that gives an interval.
const QUICK_SEEDS: u64 = 2;

/// Options of the experiments that simulate scenarios.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Two seeds and shorter runs unless set otherwise.
    pub quick: bool,
    /// Runs of each point: 10 if left out, 2 if quick.
    pub seeds: Option<u64>,
    /// Changes of the scenarios, as `--set` takes them.
    pub set: Vec<String>,
}

impl Options {
    /// Runs of each point.
    pub fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.quick { QUICK_SEEDS } else { SEEDS })
    }
}

/// Simulates for a plan: the command line into folders from which an interrupted one continues, Python in
/// memory.
pub trait Runner {
    /// Bad input, or a reason for which the simulations ended.
    type Error: From<InputError>;
    /// The runs of every point of a grid, with seeds that count up from the point's `run.seed`. `part` is the
    /// name of the sweep, as a relative path; empty for the only one.
    fn sweep(&mut self, part: &str, grid: &Grid, seeds: u64) -> Result<Vec<Vec<RunResult>>, Self::Error>;
    /// A single run, which is not stored.
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Result<RunResult, Self::Error>;
    /// Ends the plan with an error if the user wants that.
    fn check(&mut self) -> Result<(), Self::Error>;
}

/// Published values beside ours.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// Name of the experiment, as `paceline reproduce` takes it.
    pub name: &'static str,
    /// Conditions of the runs in words.
    pub conditions: String,
    /// Keys of `summary.json` beside the rows.
    pub about: Value,
    /// The rows.
    pub rows: Vec<Row>,
}

/// Seeds and settings of simulated runs in words.
pub(super) fn conditions(seeds: u64, set: &[String]) -> String {
    let runs = if seeds == 1 {
        String::from("1 seed")
    } else {
        format!("{seeds} seeds, mean ± 95% confidence interval")
    };
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    runs + &set
}

/// Keys and values as options `--over`.
pub(super) fn over(axes: &[(&str, Vec<String>)]) -> Vec<String> {
    axes.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect()
}
