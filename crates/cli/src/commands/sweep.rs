//! `paceline sweep`: simulates every combination of values of some scenario keys, with several seeds each.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::scenario_args::{self, RunArgs, ScenarioArgs, Source};
use crate::sweep;
use anyhow::anyhow;
use paceline_study::{Grid, grid};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: RunArgs,
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
    /// Print sweep.json instead of a table; with --dask the means of every point
    #[arg(long)]
    json: bool,
    /// Simulate on the workers of this Dask scheduler, for example tcp://HOST:8786, into Parquet files; needs
    /// the Python package
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    dask: Option<String>,
}

/// The interpreter of the Python package, found on the PATH.
const PYTHON: &str = "python3";
/// The packages of a sweep on Dask, as Python imports them.
const PACKAGES: &str = "import paceline, distributed, pyarrow";

pub fn run(args: &Args) -> Outcome {
    let scenario = args.scenario.scenario();
    if let Some(address) = &args.dask {
        return Err(on_dask(args, &scenario, address));
    }
    let axes = grid::axes(&args.over)?;
    let source = Source::find(&scenario.scenario)?;
    let of_point = |changes: &[String]| source.parse(&[&scenario.set[..], changes].concat());
    let grid = Grid::of(source.name.clone(), axes, &of_point)?;
    // The points differ in the swept keys alone: the warnings of one are those of all.
    grid.points.iter().take(1).for_each(|point| scenario_args::warn(&point.scenario));
    let swept = sweep::run(&grid, args.seeds, args.jobs, &args.out)?;
    output::print(if args.json { &swept.json } else { &swept.text })?;
    Ok(ExitCode::SUCCESS)
}

/// Continues as the Python package's sweep, with the same options. Returns only if that is impossible.
fn on_dask(args: &Args, scenario: &ScenarioArgs, address: &str) -> Failure {
    let probe = Command::new(PYTHON).args(["-P", "-c", PACKAGES]).stdin(Stdio::null()).output();
    let problem = match probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Some(text.lines().last().unwrap_or("no message").to_owned())
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        return Failure::Failed(anyhow!(
            "--dask: {PYTHON} lacks the Python package paceline with its sweeps: {problem}; \
             install it (docs/python.md): make wheel, then pip install \"$(ls target/wheels/*.whl)[sweep]\""
        ));
    }
    let mut command = Command::new(PYTHON);
    command.args(["-P", "-m", "paceline", "sweep", &scenario.scenario]);
    for (option, values) in [("--set", &scenario.set), ("--over", &args.over)] {
        command.args(values.iter().map(|value| format!("{option}={value}")));
    }
    command.arg(format!("--seeds={}", args.seeds)).arg("--out").arg(&args.out);
    command.arg(format!("--dask={address}")).args(args.json.then_some("--json"));
    Failure::Failed(anyhow!("--dask: {PYTHON}: {}", command.exec()))
}
