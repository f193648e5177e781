//! `paceline reproduce`: a published experiment, with what was published beside ours.

use super::calibration;
use crate::failure::Outcome;
use crate::output;
use crate::scenario_file;
use crate::sweep::{self, Grid};
use crate::table::align;
use anyhow::Context;
use clap::Subcommand;
use paceline_sim::reproduce::Row;
use paceline_sim::reproduce::ack_filter::{Experiment, Network, SCHEMES, STATIONS};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The built-in scenario.
const SCENARIO: &str = "ack-filter-paper";
/// What a quick run changes.
const QUICK: [&str; 2] = ["run.duration=10 s", "run.warmup=4 s"];

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    experiment: Published,
}

#[derive(Subcommand)]
enum Published {
    /// ACK filtering in the uplink buffer (IEEE CSCN 2018): four schemes, 10 to 60 stations
    AckFilter(Options),
    /// The mobile accelerator (2011): probes of two mobile channels, and TCP on them with and without it
    Accelerator(Options),
    /// Downlink geometry and coupling loss of 3GPP's deployments, beside 3GPP's own
    Calibration(calibration::Options),
}

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
    /// Set one value of the scenario (repeatable); the results say so
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for the results; an interrupted run continues there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

pub fn run(args: &Args) -> Outcome {
    match &args.experiment {
        Published::AckFilter(options) => ack_filter(options),
        Published::Accelerator(options) => super::reproduce_accelerator::run(options),
        Published::Calibration(options) => calibration::run(options),
    }
}

fn ack_filter(options: &Options) -> Outcome {
    let (name, text) = scenario_file::built_in(SCENARIO);
    let quick: &[&str] = if options.quick { &QUICK } else { &[] };
    let set: Vec<String> = quick.iter().map(|set| (*set).to_owned()).chain(options.set.clone()).collect();
    let stations: Vec<String> = STATIONS.iter().map(u64::to_string).collect();
    let over =
        [format!("ack_filter.scheme={}", SCHEMES.join(",")), format!("station.count={}", stations.join(","))];
    let grid = Grid::new(name.clone(), &name, text, &set, sweep::axes(&over)?)?;
    let seeds = options.seeds.unwrap_or(if options.quick { 2 } else { 10 });
    let (runs, _) = sweep::run(&grid, seeds, options.jobs, &options.out)?;
    let rows = Experiment::new(Network::of(&grid.points[0].scenario), &runs).rows();
    let summary = json!({
        "paceline": output::origin(),
        "reproduces": "ack-filter",
        "scenario": name,
        "seeds": seeds,
        "set": set,
        "rows": rows.iter().map(Row::to_json).collect::<Value>(),
    });
    let text = serde_json::to_string_pretty(&summary).expect("results are plain data") + "\n";
    sweep::write(&options.out.join("summary.json"), &text).context("cannot write summary.json")?;
    output::print(&describe("ack-filter", &rows, seeds, &set))?;
    Ok(ExitCode::SUCCESS)
}

/// Published beside ours, and below it why.
pub fn describe(name: &str, rows: &[Row], seeds: u64, set: &[String]) -> String {
    let runs = if seeds == 1 {
        String::from("1 seed")
    } else {
        format!("{seeds} seeds, mean ± 95% confidence interval")
    };
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    let head = ["", "quantity", "", "published", "ours", "", "holds"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        for (index, value) in row.values.iter().enumerate() {
            let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let published = value.published.map_or_else(|| first("in words"), |number| number.to_string());
            lines.push(vec![
                first(row.id),
                first(&row.quantity),
                value.name.clone(),
                published,
                ours(row, value.ours.mean, value.ours.half),
                row.unit.to_owned(),
                first(match (row.holds, row.surely) {
                    (true, true) => "yes",
                    (true, false) => "yes, unsure",
                    (false, _) => "no",
                }),
            ]);
        }
    }
    let mut text = format!(
        "{name}, published beside ours: {runs}{set}\n{}unsure: not in the whole of the confidence interval\n\n",
        align(&lines, 3)
    );
    for row in rows {
        let _ = writeln!(text, "{}  published: {}. Ours: {}.", row.id, row.published, row.why);
    }
    text
}

fn ours(row: &Row, mean: Option<f64>, half: Option<f64>) -> String {
    let decimals = match row.unit {
        "" => 4,
        "Mb/s" => 2,
        _ => 1,
    };
    let mean = mean.map_or(String::from("not measured"), |mean| format!("{mean:.decimals$}"));
    half.map_or(mean.clone(), |half| format!("{mean} ± {half:.decimals$}"))
}
