//! docs/gateway.md says what is: every key with its default, every metric.

use paceline_live::gateway::{Counter, GatewayConfig, Snapshot, metrics_text};
use std::collections::BTreeMap;

const TEXT: &str = include_str!("../../../docs/gateway.md");

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
fn every_key_stands_there_with_its_default() {
    let least = "server = \"a\"\nmobile = \"b\"\n";
    let full = format!(
        "{least}control = \"/c\"\nmetrics = \"127.0.0.1:1\"\n[[policy]]\nprefix = \"::/0\"\naction = \"leave\"\n\
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

#[test]
fn every_metric_stands_there() {
    let metrics = metrics_text(&Snapshot::default(), "", false);
    let rows = rows();
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(rows.iter().any(|row| row[0] == name && row[1] == kind), "{name} is not described");
    }
    for counter in Counter::PLAIN {
        let name = format!("paceline_{}_total", counter.name().replace('-', "_"));
        assert!(rows.iter().any(|row| row[0] == name && row[1] == "counter"), "{name} is not described");
    }
}
