//! The message of an interrupted sweep: how to go on.

use crate::output;
use anyhow::Context;
use paceline_linux::stop::StopSignals;
use std::path::Path;
use std::sync::Once;

/// From now on, SIGINT and SIGTERM end the program with exit code 1 and a message on stderr that says where
/// the finished parts are and which command continues. Finished parts stay valid: their files are renamed
/// when they are complete.
pub fn explain(out: &Path) -> anyhow::Result<()> {
    static ONCE: Once = Once::new();
    let message = format!(
        "\npaceline: interrupted; the finished runs are kept in {}. The same command goes on from there:\n    {}\n",
        out.display(),
        command()
    );
    let mut started = Ok(());
    ONCE.call_once(|| {
        let signals = match StopSignals::register() {
            Ok(signals) => signals,
            Err(error) => return started = Err(error),
        };
        let wait = move || {
            while !signals.stopped() {
                signals.wait();
            }
            output::message(&message);
            std::process::exit(1)
        };
        started = std::thread::Builder::new()
            .name("signals".into())
            .spawn(wait)
            .map(drop)
            .context("cannot start threads");
    });
    started
}

/// The command of this process, quoted for a shell.
fn command() -> String {
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    words.join(" ")
}

/// A word in single quotes if a shell gives any of its characters a meaning.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("station.count=1,2"), "station.count=1,2");
        assert_eq!(quoted("ack_filter.scheme=hybrid(6)"), "'ack_filter.scheme=hybrid(6)'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
