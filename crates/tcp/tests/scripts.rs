//! Runs every script below `tests/scripts` as a test of its own: `cargo test -p paceline-tcp --test scripts
//! FILTER`. The format is described in `docs/tcp-scripts.md`.

mod script;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of the standard test harness that take a value.
const WITH_VALUE: [&str; 5] = ["--test-threads", "--skip", "--format", "--color", "--logfile"];

fn main() -> ExitCode {
    let (mut filters, mut skipped) = (Vec::new(), Vec::new());
    let (mut list, mut exact, mut ignored) = (false, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => list = true,
            "--exact" => exact = true,
            "--ignored" => ignored = true,
            "--skip" => skipped.extend(arguments.next()),
            option if WITH_VALUE.contains(&option) => drop(arguments.next()),
            option if option.starts_with('-') => {}
            filter => filters.push(filter.to_owned()),
        }
    }
    let matches =
        |name: &str, filter: &String| if exact { name == filter } else { name.contains(filter.as_str()) };
    // Other scripts than the repository's: those that scripts/check/packetdrill.py writes.
    let root = std::env::var_os("PACELINE_SCRIPTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts"), PathBuf::from);
    let all = script::find(&root);
    let total = all.len();
    assert!(total > 0, "no scripts below {}", root.display());
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| matches(name, filter)))
        .filter(|(name, _)| !skipped.iter().any(|filter| matches(name, filter)))
        .collect();
    if ignored {
        return ExitCode::SUCCESS; // there are none
    }
    if list {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} scripts", chosen.len());
    let mut failures = Vec::new();
    for (name, path) in &chosen {
        let result = catch_unwind(|| script::run_file(path));
        let result = result.unwrap_or_else(|_| Err(format!("{}: panicked, see above\n", path.display())));
        println!("test {name} ... {}", if result.is_ok() { "ok" } else { "FAILED" });
        failures.extend(result.err());
    }
    failures.iter().for_each(|report| println!("\n{report}"));
    let (verdict, passed) =
        (if failures.is_empty() { "ok" } else { "FAILED" }, chosen.len() - failures.len());
    println!(
        "\ntest result: {verdict}. {passed} passed; {} failed; 0 ignored; 0 measured; {} filtered out\n",
        failures.len(),
        total - chosen.len()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
