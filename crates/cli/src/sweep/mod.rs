//! Simulates a grid of scenarios with several seeds each.
//!
//! [`Grid`] has the points, `pool` runs their jobs on all cores, `parts` stores finished jobs, `tables`
//! writes the results.

mod interrupt;
mod parts;
mod pool;
mod tables;

use crate::failure::{Failure, Outcome};
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_sim::RunResult;
use paceline_study::Grid;
use std::path::Path;
use tables::Swept;

/// The results of a finished sweep.
pub struct Finished {
    /// The runs of every point.
    pub runs: Vec<Vec<RunResult>>,
    /// A table as text.
    pub text: String,
    /// The content of `sweep.json`.
    pub json: String,
}

/// Simulates a grid into the folder `out`; jobs of an interrupted sweep that are finished there are not
/// repeated.
pub fn run(grid: &Grid, seeds: u64, jobs: Option<u16>, out: &Path) -> Outcome<Finished> {
    for point in &grid.points {
        let last = point.scenario.run.seed.checked_add(seeds - 1);
        last.ok_or_else(|| Failure::input("run.seed plus --seeds is beyond the largest seed"))?;
    }
    let parts = parts::Parts::open(out, grid)?;
    interrupt::explain(out)?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let runs = pool::run(grid, seeds, jobs.map_or_else(cores, usize::from), &parts)?;
    let swept = Swept::new(grid, &runs);
    let (text, json) = (swept.text(), swept.json());
    let files = [("sweep.csv", &swept.sweep_csv()), ("runs.csv", &swept.runs_csv()), ("sweep.json", &json)];
    let differences = swept.differences_csv();
    let files = files.into_iter().chain(differences.as_ref().map(|text| ("differences.csv", text)));
    for (name, text) in files {
        write_file(&out.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(Finished { runs, text, json })
}
