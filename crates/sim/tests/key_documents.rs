//! docs/ack-filter.md and docs/accelerator.md describe every key of their table of a scenario, with its
//! default.

use paceline_sim::scenario::reference::{Default, entries};

const ACK_FILTER: &str = include_str!("../../../docs/ack-filter.md");
const ACCELERATOR: &str = include_str!("../../../docs/accelerator.md");

/// The keys of a table with their defaults.
fn defaults(table: &str) -> Vec<(String, String)> {
    let entries = entries().into_iter().filter_map(|entry| {
        let key = entry.path.strip_prefix(table)?.strip_prefix('.')?.to_owned();
        let Default::Value(value) = entry.default else { return None };
        Some((key, value.trim_matches('"').to_owned()))
    });
    entries.collect()
}

#[test]
fn the_ack_filters_keys_are_described_with_their_defaults() {
    let keys = defaults("ack_filter");
    assert!(!keys.is_empty());
    for (key, value) in &keys {
        let row = format!("| `ack_filter.{key}` | `{value}` |");
        assert!(ACK_FILTER.contains(&row), "no row {row}");
    }
    assert_eq!(ACK_FILTER.matches("\n| `ack_filter.").count(), keys.len(), "keys that do not exist");
}

#[test]
fn the_accelerators_keys_are_described_with_their_defaults() {
    let keys = defaults("accelerator");
    let section = ACCELERATOR.split("\n## Keys\n").nth(1).expect("the section of keys");
    let section = section.split("\n## ").next().expect("a part");
    assert!(!keys.is_empty());
    for (key, value) in &keys {
        let row = format!("\n| `{key}` | `{value}` |");
        assert!(section.contains(&row), "no row {row}");
    }
    // Resolved scenarios leave some keys out, such as `memory`, whose default depends on the driver.
    let entries = entries();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let is_known = |row: &str| entries.iter().any(|entry| entry.path == format!("accelerator.{row}"));
    let unknown: Vec<&str> = rows.filter(|row| !is_known(row)).collect();
    assert!(unknown.is_empty(), "keys that do not exist: {unknown:?}");
}
