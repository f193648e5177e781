//! `paceline sweep`: simulates every combination of values of some scenario keys, with several seeds each.

use crate::failure::Outcome;
use crate::output;
use crate::scenario_file::{self, ScenarioArgs};
use crate::sweep::{self, Grid};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// A key and its values, for example --over station.count=10,20,30 (repeatable: every combination is
    /// simulated)
    #[arg(long, required = true, value_name = "KEY=A,B,C")]
    over: Vec<String>,
    /// Runs per combination; seeds count up from run.seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Runs at the same time; all cores if left out
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Folder for the results; an interrupted sweep continues there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print sweep.json instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let axes = sweep::axes(&args.over)?;
    let (name, text) = scenario_file::find(&args.scenario.scenario)?;
    let grid = Grid::new(name, &args.scenario.scenario, &text, &args.scenario.set, axes)?;
    let swept = sweep::run(&grid, args.seeds, args.jobs, &args.out)?;
    output::print(if args.json { &swept.json } else { &swept.text })?;
    Ok(ExitCode::SUCCESS)
}
