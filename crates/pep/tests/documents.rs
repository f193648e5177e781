//! docs/ack-filter.md and docs/accelerator.md agree with the code: their tables name functions and tests that
//! exist, for every safety rule, every reason to keep an ACK, every hazard and every invariant.

use paceline_pep::KeepReason;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ACK_FILTER: &str = include_str!("../../../docs/ack-filter.md");
const ACCELERATOR: &str = include_str!("../../../docs/accelerator.md");
const GATEWAY: &str = include_str!("../../../docs/gateway.md");
const RULES: usize = 22;
const INVARIANTS: [&str; 7] = [
    "the client's stream is a prefix of the server's",
    "early ACKs cover contiguous verified data",
    "the store begins at or below the client's true ACK",
    "the right edge towards the server never retreats",
    "TSval sent is at most the highest TSval seen",
    "exposure is at most the cap",
    "a bypass at exposure 0 is invisible",
];

/// A row of a table of rules, hazards or invariants.
struct Requirement {
    name: String,
    /// As `file.rs: function`.
    functions: Vec<String>,
    tests: Vec<String>,
}

/// Rows of all tables of a document, cell by cell.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    rows.map(|row| row.split('|').map(str::trim).collect())
}
/// The rows below a heading, up to the next one.
fn requirements(text: &str, heading: &str) -> Vec<Requirement> {
    let section = text.split(&format!("# {heading}\n")).nth(1).expect("the heading exists");
    let section = section.split("\n#").next().expect("a part");
    let rows = rows(section).filter(|row| row.len() == 5).skip(2);
    let requirement = |row: Vec<&str>| Requirement {
        name: row[0].to_owned(),
        functions: quoted(row[2]),
        tests: quoted(row[3]),
    };
    rows.map(requirement).collect()
}
fn rules() -> Vec<Requirement> {
    requirements(ACK_FILTER, "Safety rules")
}
fn hazards() -> Vec<Requirement> {
    requirements(ACCELERATOR, "Hazards of live traffic")
}
fn invariants() -> Vec<Requirement> {
    requirements(ACCELERATOR, "Invariants")
}
/// The requirements of both documents.
fn all() -> Vec<Requirement> {
    [rules(), hazards(), invariants()].into_iter().flatten().collect()
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
fn the_tables_have_every_requirement_with_functions_and_tests() {
    let names = |all: Vec<Requirement>| all.into_iter().map(|row| row.name).collect::<Vec<_>>();
    assert_eq!(names(rules()), (1..=RULES).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(names(invariants()), INVARIANTS);
    for row in all() {
        assert!(!row.functions.is_empty() && !row.tests.is_empty(), "{}", row.name);
    }
}

#[test]
fn the_functions_that_keep_the_requirements_exist() {
    let sources = sources();
    for Requirement { name: row, functions, .. } in all() {
        for function in functions {
            let (file, name) = function.split_once(": ").unwrap_or_else(|| panic!("{row}: {function}"));
            let in_file = |(path, text): &(PathBuf, String)| path.ends_with(file) && defines(text, name);
            assert!(sources.iter().any(in_file), "{row}: no function {name} in a file {file}");
        }
    }
}

#[test]
fn the_tests_that_show_the_requirements_exist() {
    let sources = sources();
    for Requirement { name: row, tests, .. } in all() {
        for test in tests {
            let is_test = |(_, text): &(PathBuf, String)| text.contains("#[test]") && defines(text, &test);
            assert!(sources.iter().any(is_test), "{row}: no test {test}");
        }
    }
}

#[test]
fn the_table_of_rules_names_every_test_of_a_rule() {
    let named: BTreeSet<String> = rules().into_iter().flat_map(|row| row.tests).collect();
    let of_rules = |(path, text): (PathBuf, String)| {
        let file = path.file_name()?.to_str()?;
        ["safe_pairs.rs", "safe_limits.rs"].contains(&file).then_some(text)
    };
    for text in sources().into_iter().filter_map(of_rules) {
        for name in text.split("fn rule_").skip(1).filter_map(|rest| rest.split('(').next()) {
            assert!(named.contains(&format!("rule_{name}")), "the table lacks the test rule_{name}");
        }
    }
}

/// A test's doc comment begins with the name of its row in quotes.
#[test]
fn the_table_of_hazards_names_every_test_of_a_hazard() {
    let (hazards, sources) = (hazards(), sources());
    let mut shown = BTreeSet::new();
    let in_safety = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("accelerator/safety"));
    for (_, text) in sources.iter().filter(|(path, _)| in_safety(path)) {
        for rest in text.split("/// Row \"").skip(1) {
            let row = rest.split('"').next().expect("a part");
            let test = rest.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a test");
            let hazard = hazards.iter().find(|hazard| hazard.name == row);
            let hazard = hazard.unwrap_or_else(|| panic!("{test}: the table lacks the hazard {row}"));
            assert!(hazard.tests.iter().any(|named| named == test), "{row}: the table lacks the test {test}");
            shown.insert(row);
        }
    }
    for Requirement { name, .. } in &hazards {
        assert!(shown.contains(name.as_str()), "no test in accelerator/safety names the hazard {name}");
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
    assert_eq!(keys(ACK_FILTER), keys(GATEWAY));
    assert_eq!(keys(ACK_FILTER).len(), 4);
}
