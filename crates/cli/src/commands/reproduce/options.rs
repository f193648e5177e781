//! Options of the experiments that simulate scenarios.

use crate::failure::{Failure, Outcome};
use crate::sweep;
use paceline_sim::{RunResult, Scenario, simulate};
use paceline_study::Grid;
use paceline_study::reproduce::{self, Runner};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Options {
    /// Two seeds and shorter runs unless set otherwise
    #[arg(long)]
    pub quick: bool,
    /// Runs of each point: 10 if left out, 2 with --quick
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Runs at the same time; all cores if left out
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Set one value of the scenario (repeatable); the results list it
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for the results; an interrupted run continues there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl Options {
    /// The options of the plan.
    pub fn plan(&self) -> reproduce::Options {
        reproduce::Options { quick: self.quick, seeds: self.seeds, set: self.set.clone() }
    }
    /// Sweeps into the folder for the results.
    pub fn folders(&self) -> Folders<'_> {
        Folders { out: &self.out, jobs: self.jobs }
    }
}

/// Simulates the parts of an experiment, each in a folder of its own, where an interrupted one continues.
pub struct Folders<'a> {
    out: &'a Path,
    jobs: Option<u16>,
}

impl Runner for Folders<'_> {
    type Error = Failure;
    fn sweep(&mut self, part: &str, grid: &Grid, seeds: u64) -> Outcome<Vec<Vec<RunResult>>> {
        let out = if part.is_empty() { self.out.to_owned() } else { self.out.join(part) };
        Ok(sweep::run(grid, seeds, self.jobs, &out)?.runs)
    }
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Outcome<RunResult> {
        Ok(simulate(scenario, seed, None, &mut |_| {}))
    }
    fn check(&mut self) -> Outcome<()> {
        Ok(()) // a signal ends the program
    }
}
