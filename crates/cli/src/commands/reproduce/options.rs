//! Options of the experiments that simulate scenarios.

use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Options {
    /// Two seeds and shorter runs unless set otherwise
    #[arg(long)]
    pub quick: bool,
    /// Runs per scheme and number of stations: 10 if left out
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
