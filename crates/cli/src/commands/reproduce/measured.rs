//! `paceline reproduce measured`: throughputs and latencies that others measured in real networks.

use super::outcome::finish;
use crate::failure::{Failure, Outcome};
use crate::results_folder;
use anyhow::Context;
use paceline_sim::{RunResult, Scenario, simulate};
use paceline_study::Grid;
use paceline_study::reproduce::{self, Runner, measured};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// Two seeds unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Runs of each cell: 5 if left out, 2 with --quick
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Set one value of every scenario (repeatable); the results list it
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder for summary.json and rows.csv; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(options: &Options) -> Outcome {
    if let Some(out) = &options.out {
        results_folder::check_unused(out)?;
    }
    let plan = reproduce::Options { quick: options.quick, seeds: options.seeds, set: options.set.clone() };
    let reproduced = measured::run(&plan, &mut InMemory)?;
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)
            .with_context(|| format!("--out {}: cannot be written", out.display()))?;
    }
    finish(&reproduced, options.out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates single runs, which take a second, and stores none.
struct InMemory;

impl Runner for InMemory {
    type Error = Failure;
    fn sweep(&mut self, part: &str, _: &Grid, _: u64) -> Outcome<Vec<Vec<RunResult>>> {
        unreachable!("{part}: the plan has no sweeps")
    }
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Outcome<RunResult> {
        Ok(simulate(scenario, seed, None, &mut |_| {}))
    }
    fn check(&mut self) -> Outcome<()> {
        Ok(()) // a signal ends the program
    }
}
