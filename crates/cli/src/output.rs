//! Output of a command: data on stdout, messages on stderr, and the version that results carry.

use anyhow::Context;
use paceline_sim::Origin;
use std::io::{self, Write};

/// Version and commit of this program.
pub fn origin() -> Origin {
    Origin { version: env!("CARGO_PKG_VERSION").into(), commit: env!("PACELINE_COMMIT").into() }
}

/// Writes to stdout. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to stdout. A closed pipe is not an error.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes to stderr. An error of stderr itself is ignored: there is nowhere to report it.
pub fn message(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// JSON as text of several lines.
pub fn json(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).expect("results are plain data") + "\n"
}

/// A number and its noun: `1 station`, `2 stations`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
