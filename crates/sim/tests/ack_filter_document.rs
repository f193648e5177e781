//! docs/ack-filter.md describes every key of the table `[ack_filter]` with its default.

use paceline_sim::scenario;

const TEXT: &str = include_str!("../../../docs/ack-filter.md");

#[test]
fn every_key_of_the_table_is_described_with_its_default() {
    let resolved = scenario::load("documents.toml", "[[station]]\n", &[]).unwrap().to_toml();
    let table: toml::Table = resolved.parse().unwrap();
    let keys = table["ack_filter"].as_table().unwrap();
    assert!(!keys.is_empty());
    for (key, value) in keys {
        let row = format!("| `ack_filter.{key}` | `{}` |", value.as_str().unwrap());
        assert!(TEXT.contains(&row), "no row {row}");
    }
    let described = TEXT.matches("\n| `ack_filter.").count();
    assert_eq!(described, keys.len(), "keys that do not exist");
}
