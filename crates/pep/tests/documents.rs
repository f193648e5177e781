//! docs/ack-filter.md agrees with the code: its table names functions and tests that exist, for every safety
//! rule and for every reason to keep an ACK.

use paceline_pep::KeepReason;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TEXT: &str = include_str!("../../../docs/ack-filter.md");
const GATEWAY: &str = include_str!("../../../docs/gateway.md");
const RULES: usize = 22;

/// Rows of all tables of a document, cell by cell.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    rows.map(|row| row.split('|').map(str::trim).collect())
}
/// Number, functions, and tests of each safety rule.
fn rules() -> Vec<(usize, Vec<String>, Vec<String>)> {
    let rules = rows(TEXT).filter(|row| row.len() == 5);
    let number = |row: &Vec<&str>| row[0].parse().ok();
    rules.filter_map(|row| Some((number(&row)?, quoted(row[2]), quoted(row[3])))).collect()
}
/// The texts in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
/// All Rust files below the folder `crates`, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                sources.push((path, text));
            }
        }
    }
    sources
}
/// Whether the text defines a function of this name.
fn defines(text: &str, name: &str) -> bool {
    let starts = |end: &str| end.starts_with('(') || end.starts_with('<');
    text.split(&format!("fn {name}")).skip(1).any(starts)
}

#[test]
fn the_table_has_every_safety_rule_with_functions_and_tests() {
    let rules = rules();
    let numbers: Vec<usize> = rules.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=RULES).collect::<Vec<_>>());
    for (number, functions, tests) in &rules {
        assert!(!functions.is_empty() && !tests.is_empty(), "rule {number}");
    }
}

#[test]
fn the_functions_that_keep_the_rules_exist() {
    let sources = sources();
    for (number, functions, _) in rules() {
        for function in functions {
            let (file, name) =
                function.split_once(": ").unwrap_or_else(|| panic!("rule {number}: {function}"));
            let in_file = |(path, text): &(PathBuf, String)| path.ends_with(file) && defines(text, name);
            assert!(sources.iter().any(in_file), "rule {number}: no function {name} in a file {file}");
        }
    }
}

#[test]
fn the_tests_that_show_the_rules_exist() {
    let sources = sources();
    let mut named = BTreeSet::new();
    for (number, _, tests) in rules() {
        for test in tests {
            let is_test = |(_, text): &(PathBuf, String)| text.contains("#[test]") && defines(text, &test);
            assert!(sources.iter().any(is_test), "rule {number}: no test {test}");
            named.insert(test);
        }
    }
    let of_rules = |(path, text): &(PathBuf, String)| {
        let file = path.file_name()?.to_str()?;
        ["safe_pairs.rs", "safe_limits.rs"].contains(&file).then(|| text.clone())
    };
    for text in sources.iter().filter_map(of_rules) {
        for name in text.split("fn rule_").skip(1).filter_map(|rest| rest.split('(').next()) {
            assert!(named.contains(&format!("rule_{name}")), "the table lacks the test rule_{name}");
        }
    }
}

/// The doc comment of each reason names its rules.
#[test]
fn every_reason_to_keep_an_ack_belongs_to_a_rule() {
    let source = include_str!("../src/ack_filter/stats.rs");
    for reason in KeepReason::ALL {
        let text = reason.name().trim_start_matches("kept-");
        let before = source.split(&format!("=> \"{text}\"")).next().expect("a part");
        let comment = before.rsplit("///").next().expect("a part");
        assert!(comment.contains("(rule"), "{text}: {comment}");
    }
}

/// docs/gateway.md is compared with the gateway's code by a test of the crate `live`.
#[test]
fn the_gateways_keys_have_the_same_defaults_as_in_its_own_document() {
    let keys = |text: &'static str| -> Vec<(&str, &str)> {
        let keys = rows(text).filter(|row| row[0].starts_with("`filter."));
        keys.map(|row| (row[0], row[1].trim_matches('`'))).collect()
    };
    assert_eq!(keys(TEXT), keys(GATEWAY));
    assert_eq!(keys(TEXT).len(), 4);
}
