//! Folders of traces: files that are none lie beside them, are named on stderr, and are left out.

use super::file::{Form, write};
use crate::failure::{Failure, Outcome};
use crate::imported::imported;
use crate::output;
use anyhow::Context;
use paceline_import::{Options, is_foreign};
use paceline_sim::link::Trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files of a folder by name; folders inside are left out.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let bad = |error: String| Failure::input(format!("{}: {error}", folder.display()));
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder).and_then(Iterator::collect);
    let entries = entries.map_err(|error| bad(error.to_string()))?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    if paths.is_empty() { Err(bad("a folder without files".into())) } else { Ok(paths) }
}

fn skipped(message: &str) {
    output::message(&format!("skipped, no trace: {message}\n"));
}

fn no_trace(folder: &Path, count: usize) -> Failure {
    let files = if count == 1 { "file is" } else { "files are" };
    Failure::input(format!("{}: a folder without traces: {count} {files} none", folder.display()))
}

/// Imports each file of a folder. Files that are no traces are skipped. Traces with an error are listed in
/// the end, and the others written.
pub fn import(input: &Path, out: Option<&Path>, form: Form, options: &Options) -> Outcome {
    let out = out.ok_or_else(|| Failure::input("--out: name a folder for the traces of a folder"))?;
    let paths = files(input)?;
    let (mut failed, mut written) = (Vec::new(), 0);
    for path in &paths {
        match imported(path, options) {
            Ok((trace, text)) => {
                std::fs::create_dir_all(out)
                    .with_context(|| format!("--out {}: cannot be made", out.display()))?;
                // The whole name, so that `a.csv` and `a.json` are two traces.
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                write(Ok(trace), Some(&out.join(format!("{name}.trace"))), form)?;
                output::print(&text)?;
                written += 1;
            }
            Err(message) if std::fs::read(path).is_ok_and(|file| is_foreign(&file)) => skipped(&message),
            Err(message) => failed.push(message),
        }
    }
    if !failed.is_empty() {
        let (count, all) = (failed.len(), paths.len());
        return Err(Failure::input(format!("{count} of {all} files not imported:\n{}", failed.join("\n"))));
    }
    if written == 0 { Err(no_trace(input, paths.len())) } else { Ok(ExitCode::SUCCESS) }
}

/// The traces of a folder, in mahimahi's format or in binary form, each with its uplink if it has one:
/// `NAME.up` of `NAME.down`.
pub fn traces(folder: &Path) -> Outcome<Vec<(PathBuf, Option<PathBuf>)>> {
    let is = |path: &Path, name: &str| path.extension().is_some_and(|extension| extension == name);
    let paths = files(folder)?;
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| !is(path, "up")) {
        let uplink = Some(path.with_extension("up")).filter(|up| is(path, "down") && up.is_file());
        let checked = check(path).and_then(|()| uplink.as_deref().map_or(Ok(()), check));
        match checked {
            Ok(()) => found.push((path.clone(), uplink)),
            Err(message) => skipped(&message),
        }
    }
    if found.is_empty() { Err(no_trace(folder, paths.len())) } else { Ok(found) }
}

/// An error if a file is no trace.
fn check(path: &Path) -> Result<(), String> {
    let bad = |error: String| format!("{}: {error}", path.display());
    let file = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    Trace::read(&file).map(|_| ()).map_err(|error| bad(error.to_string()))
}
