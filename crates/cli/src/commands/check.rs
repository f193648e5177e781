//! `paceline check`: validates a scenario and prints the resolved file.

use crate::failure::Outcome;
use crate::output;
use crate::scenario_file::{self, ScenarioArgs};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

pub fn run(args: &Args) -> Outcome {
    let (_, scenario) = scenario_file::load(&args.scenario)?;
    output::print(&scenario.to_toml())?;
    Ok(ExitCode::SUCCESS)
}
