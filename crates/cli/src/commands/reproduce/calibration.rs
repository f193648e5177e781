//! `paceline reproduce calibration`: distributions of geometry and coupling loss in the deployments, beside
//! 3GPP's calibration results (TR 38.901 section 7.8.1).

use super::outcome::finish;
use crate::failure::Outcome;
use crate::results_folder;
use anyhow::Context;
use paceline_study::reproduce::calibration::{self, QUICK_STATIONS, STATIONS};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// Stations dropped in each deployment: 100000 if left out, 10000 with --quick
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    stations: Option<u32>,
    /// Fewer stations unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Seed of the drops
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for summary.json and rows.csv; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(options: &Options) -> Outcome {
    if let Some(out) = &options.out {
        results_folder::check_unused(out)?;
    }
    let stations = options.stations.unwrap_or(if options.quick { QUICK_STATIONS } else { STATIONS });
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)
            .with_context(|| format!("--out {}: cannot be written", out.display()))?;
    }
    let reproduced = calibration::run(stations, options.seed);
    finish(&reproduced, options.out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
