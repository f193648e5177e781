//! Output of a command: data on stdout, messages on stderr.

use anyhow::Context;

use std::io::{self, Write};

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
