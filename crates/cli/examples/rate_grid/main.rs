//! `make rate-grid`: the accelerator's rate control beside direct CUBIC and BBR on every kind of link, and
//! the rows in which it misses its aims. Progress on stderr, tables on stdout. A minute on two cores.

mod arms;
mod families;
mod links;
mod row;
mod table;

use arms::{ARMS, Figures};
use clap::Parser;
use rayon::prelude::*;
use row::Row;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The accelerator's rate control beside direct CUBIC and BBR
#[derive(Parser)]
struct Args {
    /// One row in four
    #[arg(long)]
    quick: bool,
    /// Recorded traces too: NAME.down with NAME.up, in mahimahi's format
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Write the figures of all rows to a file as well
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Only the families whose name contains one of these words
    words: Vec<String>,
}

/// Simulates every row in every arm.
fn measure(rows: &[Row]) -> Vec<[Figures; ARMS.len()]> {
    let done = AtomicUsize::new(0);
    let of_row = |row: &Row| {
        let figures = ARMS.map(|arm| arms::figures(row, arm));
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(20) {
            eprintln!("{done} of {} rows", rows.len());
        }
        figures
    };
    rows.par_iter().map(of_row).collect()
}

fn run(args: &Args) -> Result<(), String> {
    let mut rows = families::all();
    if let Some(folder) = &args.traces {
        rows.extend(links::recorded(folder)?);
    }
    let names = families::names(&rows).join(", ");
    rows.retain(|row| args.words.is_empty() || args.words.iter().any(|word| row.family.contains(word)));
    if args.quick {
        rows = rows.into_iter().step_by(4).collect();
    }
    if rows.is_empty() {
        return Err(format!("{}: no such family: {names}", args.words.join(" ")));
    }
    let results = measure(&rows);
    print!("{}", table::text(&rows, &results));
    match &args.csv {
        Some(file) => std::fs::write(file, table::csv(&rows, &results))
            .map_err(|error| format!("{}: {error}", file.display())),
        None => Ok(()),
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
