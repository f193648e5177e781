//! `paceline reproduce calibration`: distributions of geometry and coupling loss in the deployments, beside
//! 3GPP's calibration results (TR 38.901 section 7.8.1).

use crate::failure::Outcome;
use crate::output;
use crate::results_folder;
use crate::table::align;
use anyhow::Context;
use paceline_sim::reproduce::calibration::{Percentile, percentiles};
use serde_json::json;
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
    /// Folder for summary.json; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(options: &Options) -> Outcome {
    if let Some(out) = &options.out {
        results_folder::check_unused(out)?;
    }
    let stations = options.stations.unwrap_or(if options.quick { 10_000 } else { 100_000 });
    let rows = percentiles(stations as usize, options.seed);
    if let Some(out) = &options.out {
        let summary = json!({
            "paceline": output::origin(),
            "reproduces": "calibration",
            "stations": stations,
            "seed": options.seed,
            "rows": rows,
        });
        std::fs::create_dir_all(out)
            .with_context(|| format!("--out {}: cannot be written", out.display()))?;
        results_folder::write_summary(out, &summary)?;
    }
    output::print(&describe(&rows, stations))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(rows: &[Percentile], stations: u32) -> String {
    let head = ["deployment", "quantity", "share below", "published, dB", "ours, dB", "difference, dB"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        lines.push(vec![
            row.scenario.to_owned(),
            row.quantity.to_owned(),
            format!("{:.0}%", 100.0 * row.share),
            row.published.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}")),
            format!("{:.2}", row.ours),
            row.difference().map_or_else(String::new, |value| format!("{value:+.2}")),
        ]);
    }
    let largest = rows.iter().filter_map(Percentile::difference).map(f64::abs).fold(0.0, f64::max);
    format!(
        "{stations} stations dropped in each deployment\n{}largest difference from 3GPP's median: {largest:.2} dB\n",
        align(&lines, 2)
    )
}
