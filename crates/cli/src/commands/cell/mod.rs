//! `paceline cell`: what follows from a cell's configuration without a run.

mod text;

use crate::failure::{Failure, Outcome};
use crate::results_folder::write_file;
use crate::scenario_args::{self, ScenarioArgs};
use crate::{output, report};
use anyhow::Context;
use paceline_sim::cell_facts::CellFacts;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print slots, overheads, peak rates and idle one-way latencies of a scenario's cell
    Show {
        #[command(flatten)]
        scenario: ScenarioArgs,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
        /// Also write a picture of the slots
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

pub fn run(args: &Args) -> Outcome {
    let Command::Show { scenario, json, svg } = &args.command;
    let (name, scenario) = scenario_args::load(scenario)?;
    let Some(cell) = scenario.cell() else {
        let access = scenario.access.table();
        return Err(Failure::input(format!(
            "{name}: has a [{access}] and no cell; name a scenario with a cell"
        )));
    };
    let facts = CellFacts::of(cell).with_path(&scenario);
    if let Some(file) = svg {
        write(file, &report::slot_map(&name, &facts))?;
    }
    let text = if *json {
        serde_json::to_string_pretty(&facts).expect("facts are plain data") + "\n"
    } else {
        text::describe(&name, &facts)
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, picture: &str) -> Outcome<()> {
    if file.file_name().is_none() || file.is_dir() {
        return Err(Failure::input(format!("--svg {}: is a folder; name a file", file.display())));
    }
    write_file(file, picture).with_context(|| format!("--svg {}: cannot be written", file.display()))?;
    Ok(())
}
