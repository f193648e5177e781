//! docs/gateway.md describes every key with its default, and docs/metrics.txt has every metric with its type
//! and help text.

use paceline_gateway::{Counter, CounterValues, GatewayConfig, Health, Snapshot, metrics_text};
use std::collections::{BTreeMap, BTreeSet};

const TEXT: &str = include_str!("../../../docs/gateway.md");
const METRICS: &str = include_str!("../../../docs/metrics.txt");

/// Rows of the document's tables, cell by cell, without the marks of code.
fn rows() -> Vec<Vec<String>> {
    let rows = TEXT.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

/// Keys and values of a configuration, those of tables with the table's name.
fn keys(config: &GatewayConfig) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (key, value) in toml::Table::try_from(config).unwrap() {
        match value {
            toml::Value::Table(table) => {
                keys.extend(table.into_iter().map(|(own, value)| (format!("{key}.{own}"), text(&value))));
            }
            value => drop(keys.insert(key, text(&value))),
        }
    }
    keys
}
fn text(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn every_key_is_described_with_its_default() {
    let least = "server = \"a\"\nmobile = \"b\"\n";
    let full = format!(
        "{least}mss_clamp = \"auto\"\ncontrol = \"/c\"\nmetrics = \"127.0.0.1:1\"\n[[policy]]\nprefix = \"::/0\"\naction = \"leave\"\n\
         [filter]\nrate = \"1 Mb/s\"\n"
    );
    let parse = |text: &str| keys(&GatewayConfig::parse("documents.toml", text).unwrap());
    let (defaults, all) = (parse(least), parse(&full));
    let rows = rows();
    for key in all.keys().filter(|key| !key.starts_with("accelerator.") && *key != "policy") {
        let named = |row: &&Vec<String>| row.len() == 4 && row[0].split(", ").any(|name| name == key);
        let row = rows.iter().find(named).unwrap_or_else(|| panic!("{key} is not described"));
        if !["server", "mobile"].contains(&key.as_str()) {
            assert_eq!(row[1], defaults.get(key).cloned().unwrap_or_default(), "{key}");
        }
    }
    assert!(
        ["policy.prefix", "policy.action", "accelerator.*"]
            .iter()
            .all(|key| rows.iter().any(|row| row[0] == *key))
    );
}

/// docs/metrics.txt has the comments of a scrape, and docs/gateway.md no metric beside them.
#[test]
fn every_metric_is_described_by_its_help_text() {
    let mut counters = CounterValues::default();
    counters.extend(Counter::PLAIN.iter().chain(Counter::LABELLED).map(|counter| (*counter, 0)));
    let metrics = metrics_text(&Snapshot { counters, ..Snapshot::default() }, "", &Health::default());
    let comments: BTreeSet<&str> = metrics.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(METRICS.lines().collect::<BTreeSet<_>>(), comments);
    let rows = rows();
    let named = rows.iter().flat_map(|row| row[0].split(", "));
    for name in named.filter(|name| name.starts_with("paceline_")) {
        assert!(METRICS.contains(&format!("# TYPE {name} ")), "there is no metric {name}");
    }
}
