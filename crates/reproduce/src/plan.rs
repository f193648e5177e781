//! An experiment: its name and options, its plan with the runner that simulates for it, and the outcome.

use crate::Row;
use crate::host::{Figures, Setting};
use paceline_sim::{RunResult, Scenario};
use paceline_study::grid::axes;
use paceline_study::{Grid, InputError, scenario_file};
use serde_json::Value;

/// Runs of each point, usually and in a quick reproduction. Chosen: the intervals of ten runs are narrow
/// enough to tell the published schemes apart; two is the smallest number that gives an interval.
pub(crate) const SEEDS: (u64, u64) = (10, 2);

/// A published experiment.
pub struct Paper {
    /// Name, as `paceline reproduce` takes it.
    pub name: &'static str,
    /// The experiment in a line of the help.
    pub about: &'static str,
    /// Its options.
    pub inputs: Inputs,
    /// Runs of each point, or stations of [`Inputs::Stations`], that are not set otherwise: usually, and in a
    /// quick reproduction.
    pub counts: (u64, u64),
    /// Whether the page of its results has a table for each part.
    pub part_tables: bool,
    /// Its plan. [`Paper::reproduce`] checks the options before.
    pub(crate) plan: fn(&Options, &mut dyn Runner) -> Result<Reproduced, Failure>,
}

/// The options of an experiment besides [`Options::quick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inputs {
    /// Seeds and settings of sweeps.
    Sweeps,
    /// The same, and the parts to run.
    Parts,
    /// The same as for sweeps, and whether to measure on this host too.
    Measured,
    /// Seeds and settings of single runs, which take a second and are not stored.
    Runs,
    /// Stations that are dropped at random, and the seed of their places.
    Stations,
}

/// Options of a plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and shorter runs unless set otherwise.
    pub quick: bool,
    /// Runs of each point.
    pub seeds: Option<u64>,
    /// Changes of the scenarios, as `--set` takes them.
    pub set: Vec<String>,
    /// Names of parts and groups of parts, for [`Inputs::Parts`].
    pub parts: Vec<String>,
    /// No simulations, for [`Inputs::Measured`].
    pub only_measure: bool,
    /// Stations of each deployment, for [`Inputs::Stations`].
    pub stations: Option<u32>,
    /// Seed of their places; 1 if left out.
    pub seed: Option<u64>,
}

/// A swept key and its values, as `paceline sweep --over` takes them. The last key changes fastest.
pub(crate) type Axis = (&'static str, Vec<String>);

/// A sweep of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Name, also of its results folder.
    pub name: String,
    /// Built-in scenario.
    pub scenario: &'static str,
    /// Changes in all runs, as `--set` takes them.
    pub set: Vec<String>,
    /// Swept keys.
    pub over: Vec<Axis>,
}

/// The end of a plan without rows.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Bad input.
    #[error("{0}")]
    Input(#[from] InputError),
    /// A reason of the runner.
    #[error("{0}")]
    Ended(Box<dyn std::error::Error + Send + Sync>),
}

/// Simulates for a plan: the command line into folders from which an interrupted one continues, Python in
/// memory.
pub trait Runner {
    /// The runs of every point of a grid, with seeds that count up from the point's `run.seed`. `part` is the
    /// name of the sweep, as a relative path; empty for the only one.
    fn sweep(&mut self, part: &str, grid: &Grid, seeds: u64) -> Result<Vec<Vec<RunResult>>, Failure>;
    /// A single run, which is not stored.
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Result<RunResult, Failure>;
    /// Ends the plan with an error if the user wants that.
    fn check(&mut self) -> Result<(), Failure>;
    /// The folder for pictures and tables beside the rows; none where results stay in memory.
    fn folder(&mut self) -> Option<&mut dyn Folder>;
    /// Measures settings with this host's TCP and forwarding; none where the host cannot, or the user does
    /// not want it.
    fn measure(&mut self, settings: &[Setting]) -> Result<Option<Vec<(Setting, Figures)>>, Failure>;
}

/// The folder for the results of an experiment.
pub trait Folder {
    /// Writes a file.
    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure>;
    /// Simulates a scenario, the built-in one of this name with changes, into a results folder inside, unless
    /// it is there already.
    fn run(&mut self, folder: &str, name: &str, scenario: &Scenario) -> Result<(), Failure>;
}

/// Published values beside ours.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// Conditions of the runs in words.
    pub conditions: String,
    /// Keys of `summary.json` beside the rows.
    pub about: Value,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Paper {
    /// Runs of each point.
    pub(crate) fn seeds(&self, options: &Options) -> u64 {
        options.seeds.unwrap_or_else(|| self.count(options.quick))
    }
    /// Runs or stations that are not set otherwise.
    pub(crate) fn count(&self, quick: bool) -> u64 {
        if quick { self.counts.1 } else { self.counts.0 }
    }
}

/// Seeds and settings of simulated runs in words.
pub(crate) fn conditions(seeds: u64, set: &[String]) -> String {
    let runs = if seeds == 1 {
        String::from("1 seed")
    } else {
        format!("{seeds} seeds, mean ± 95% confidence interval")
    };
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    runs + &set
}

/// Settings as a plan passes them on.
pub(crate) fn strings(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|setting| (*setting).to_owned()).collect()
}

/// The built-in scenario of this name with changes.
pub(crate) fn scenario(name: &str, set: &[String]) -> Result<Scenario, InputError> {
    let (_, text) = scenario_file::built_in(name);
    Ok(scenario_file::parse(name, text, set)?)
}

/// The points of the built-in scenario of this name with changes, over swept keys and their values.
pub(crate) fn grid(name: &str, set: &[String], over: &[Axis]) -> Result<Grid, InputError> {
    let (_, text) = scenario_file::built_in(name);
    let over: Vec<String> = over.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect();
    Grid::new(name.to_owned(), name, text, set, axes(&over)?)
}
