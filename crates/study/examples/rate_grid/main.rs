//! `make rate-grid`: the accelerator's rate control beside direct CUBIC and BBR on every kind of link, and
//! the rows in which it misses its aims.
//!
//! `rate_grid [--quick] [--traces FOLDER] [--csv FILE] [WORD...]`: `--quick` takes one row in four, a word
//! the families whose name contains it, and a folder adds recorded traces (`NAME.down` with `NAME.up`,
//! mahimahi's format). Progress on stderr, tables on stdout. A minute on two cores.

mod arms;
mod families;
mod links;
mod table;

use arms::{ARMS, Figures};
use families::Row;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Args {
    quick: bool,
    traces: Option<String>,
    csv: Option<String>,
    words: Vec<String>,
}

fn args() -> Result<Args, String> {
    let mut own = Args { quick: false, traces: None, csv: None, words: Vec::new() };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word}: give a file or folder behind it"));
        match word.as_str() {
            "--quick" => own.quick = true,
            "--traces" => own.traces = Some(value()?),
            "--csv" => own.csv = Some(value()?),
            option if option.starts_with('-') => {
                return Err(format!("{option}: allowed: --quick, --traces FOLDER, --csv FILE, words"));
            }
            _ => own.words.push(word),
        }
    }
    Ok(own)
}

/// Simulates every row in every arm, on as many threads as there are cores.
fn measure(rows: &[Row]) -> Vec<[Figures; ARMS.len()]> {
    let (next, results) =
        (AtomicUsize::new(0), Mutex::new(vec![[Figures::default(); ARMS.len()]; rows.len()]));
    let runs = rows.len() * ARMS.len();
    let work = || {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return;
            }
            let (row, arm) = (run / ARMS.len(), run % ARMS.len());
            let figures = arms::figures(&rows[row], ARMS[arm]);
            results.lock().expect("no thread has panicked")[row][arm] = figures;
            if arm == 0 && row % 20 == 19 {
                eprintln!("{} of {} rows", row + 1, rows.len());
            }
        }
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, usize::from))
            .for_each(|_| drop(scope.spawn(work)));
    });
    results.into_inner().expect("no thread has panicked")
}

fn run() -> Result<(), String> {
    let args = args()?;
    let mut rows = families::all();
    if let Some(folder) = &args.traces {
        rows.extend(links::recorded(folder)?);
        rows.sort_by_key(|row| row.family);
    }
    rows.retain(|row| args.words.is_empty() || args.words.iter().any(|word| row.family.contains(word)));
    if args.quick {
        rows = rows.into_iter().step_by(4).collect();
    }
    if rows.is_empty() {
        return Err(format!("{}: no such family: {}", args.words.join(" "), families::names().join(", ")));
    }
    let results = measure(&rows);
    print!("{}", table::text(&rows, &results));
    match &args.csv {
        Some(file) => {
            std::fs::write(file, table::csv(&rows, &results)).map_err(|error| format!("{file}: {error}"))
        }
        None => Ok(()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
