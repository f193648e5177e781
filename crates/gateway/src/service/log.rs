//! Messages to the operator: lines on stderr, or entries of systemd's journal.
//!
//! If stderr is connected to the journal (`$JOURNAL_STREAM`, systemd.exec(5)), a message is sent by the
//! journal's own protocol, with a priority and with fields by which `journalctl` selects.

use log::{Record, kv};
use std::io::Write;
use std::sync::LazyLock;
use systemd_journal_logger::{JournalLog, connected_to_journal};

/// The urgency of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The program does not do its work: priority 3 of the journal.
    Error,
    /// The program works in part, or not as it was configured: priority 4.
    Warning,
    /// A normal event: priority 5.
    Notice,
}

/// The connection to the journal; None where stderr is not the journal's.
static JOURNAL: LazyLock<Option<JournalLog>> = LazyLock::new(|| {
    let journal = connected_to_journal().then(JournalLog::empty)?.ok()?;
    Some(journal.with_syslog_identifier("paceline".into()))
});

/// Writes one message. `fields` are names, such as `PACELINE_EVENT`, with their values; stderr shows the
/// message alone. Errors are ignored: there is nowhere to report them.
pub fn message(level: Level, text: &str, fields: &[(&str, &str)]) {
    let sent = JOURNAL.as_ref().map(|journal| {
        let level = match level {
            Level::Error => log::Level::Error,
            Level::Warning => log::Level::Warn,
            Level::Notice => log::Level::Info,
        };
        let fields: Vec<(&str, kv::Value<'_>)> =
            fields.iter().map(|(name, value)| (*name, kv::Value::from(*value))).collect();
        let mut record = Record::builder();
        let record = record.level(level).target("paceline").key_values(&fields);
        journal.journal_send(&record.args(format_args!("{text}")).build())
    });
    if !matches!(sent, Some(Ok(()))) {
        let _ = std::io::stderr().write_all(format!("paceline: {text}\n").as_bytes());
    }
}
