//! Simulates the parts of an experiment, each in a folder of its own, where an interrupted one continues.

use super::args::Args;
use super::measure;
use crate::failure;
use crate::results_folder::{ResultsFolder, write_file};
use crate::sweep;
use anyhow::Context;
use paceline_reproduce::host::{Figures, Setting};
use paceline_reproduce::{Failure, Folder, Runner};
use paceline_sim::{RunResult, Scenario, Summary, simulate};
use paceline_study::Grid;
use std::path::Path;

/// Runs in the folder for the results, or without one in memory.
pub struct Folders<'a>(pub &'a Args);

impl Folders<'_> {
    /// The folder for the results.
    fn out(&self) -> &Path {
        self.0.out.as_deref().expect("experiments with sweeps require --out")
    }
}

impl Runner for Folders<'_> {
    fn sweep(&mut self, part: &str, grid: &Grid, seeds: u64) -> Result<Vec<Vec<RunResult>>, Failure> {
        let out = if part.is_empty() { self.out().to_owned() } else { self.out().join(part) };
        Ok(sweep::run(grid, seeds, self.0.jobs, &out)?.runs)
    }
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Result<RunResult, Failure> {
        Ok(simulate(scenario, seed, None, &mut |_| {}))
    }
    fn check(&mut self) -> Result<(), Failure> {
        Ok(()) // a signal ends the program
    }
    fn folder(&mut self) -> Option<&mut dyn Folder> {
        self.0.out.is_some().then_some(self)
    }
    fn measure(&mut self, settings: &[Setting]) -> Result<Option<Vec<(Setting, Figures)>>, Failure> {
        Ok(measure::measure(settings, self.0.measure, self.out())?)
    }
}

impl Folder for Folders<'_> {
    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let written =
            write_file(&self.out().join(name), text).with_context(|| format!("cannot write {name}"));
        Ok(written.map_err(failure::Failure::from)?)
    }
    fn run(&mut self, folder: &str, name: &str, scenario: &Scenario) -> Result<(), Failure> {
        let folder = self.out().join(folder);
        if folder.join("summary.json").exists() {
            return Ok(()); // finished before an interruption
        }
        let folder = ResultsFolder::create(&folder)?;
        let result = simulate(scenario, scenario.run.seed, None, &mut |_| {});
        let summary = Summary::new(paceline_study::origin(), name, "simulated", scenario, vec![result]);
        Ok(folder.finish(scenario, &summary).map_err(failure::Failure::from)?)
    }
}
