//! Output of a command: data on stdout, messages on stderr.

use anyhow::Context;

use std::io::{self, Write};

/// Writes to stdout. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to stdout. A closed pipe is not an error.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    write_to_reader(bytes).map(|_| ())
}

/// Writes to stdout, for output without an end. Whether anybody still reads it.
pub fn print_to_reader(text: &str) -> anyhow::Result<bool> {
    write_to_reader(text.as_bytes())
}

fn write_to_reader(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).context("cannot write to standard output"),
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
