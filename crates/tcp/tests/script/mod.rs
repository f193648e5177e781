//! Behaviour scripts, after the idea of packetdrill: a text lists the segments that arrive at one endpoint
//! and those that must leave, in virtual time. The format is described in `docs/tcp-scripts.md`.
//!
//! A script fails if a segment leaves that no line expects, or at another time. Left out: loops and
//! variables; repetitions are written out, so that a script is read from top to bottom.
#![allow(dead_code)] // each test file uses its part

mod check;
mod parser;
mod report;
mod runner;
mod segment;
mod setup;

use std::fs;
use std::path::{Path, PathBuf};

/// Runs one script; the error is the report.
pub fn run_file(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    run_text(&path.display().to_string(), &text)
}

/// Runs the text of a script under a name for its reports.
pub fn run_text(name: &str, text: &str) -> Result<(), String> {
    let script = parser::parse(name, text)?;
    runner::run(&script)
}

/// Every script below a folder with its name, `behaviour/name`, in order.
pub fn find(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = read.map(|entry| entry.expect("a readable folder").path()).collect();
        paths.sort();
        paths
    };
    let mut found = Vec::new();
    for folder in entries(root) {
        assert!(folder.is_dir(), "{}: scripts stand in a folder named by their behaviour", folder.display());
        for path in entries(&folder) {
            let is_script = path.extension().is_some_and(|extension| extension == "script");
            assert!(is_script, "{}: not a .script", path.display());
            let name = path.strip_prefix(root).expect("below the root").with_extension("");
            found.push((name.display().to_string(), path));
        }
    }
    found
}
