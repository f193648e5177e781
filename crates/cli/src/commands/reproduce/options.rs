//! Options of the experiments that simulate scenarios.

use std::path::PathBuf;

/// Runs of each point. Chosen: the intervals of ten runs are narrow enough to tell the published schemes
/// apart.
const SEEDS: u64 = 10;
/// Runs of each point with `--quick`. Chosen: the smallest number that gives an interval.
const QUICK_SEEDS: u64 = 2;

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
    /// Runs of each point.
    pub fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.quick { QUICK_SEEDS } else { SEEDS })
    }
}
