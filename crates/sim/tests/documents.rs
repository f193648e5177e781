//! docs/tcp.md says what is: every key, every default, every profile.

use paceline_sim::scenario;

const TEXT: &str = include_str!("../../../docs/tcp.md");

/// Rows of the document's tables, cell by cell, without the marks of code.
fn rows() -> Vec<Vec<String>> {
    let rows = TEXT.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}
/// Key and value of each line of the table `[tcp]` of a resolved scenario.
fn tcp(profile: &str) -> Vec<(String, String)> {
    let text = format!("[tcp]\nprofile = \"{profile}\"\n[[station]]\n");
    let resolved = scenario::load("documents.toml", &text, &[]).unwrap().to_toml();
    let table = resolved.split("[tcp]\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let pair = |line: &str| {
        let (key, value) = line.split_once(" = ").unwrap();
        (key.to_owned(), value.trim_matches('"').to_owned())
    };
    table.lines().map(pair).filter(|(key, _)| key != "profile").collect()
}

#[test]
fn every_key_stands_there_with_its_default() {
    let rows = rows();
    let first = |key: &str| rows.iter().find(|row| row[0] == key && row.len() == 4);
    for (key, value) in tcp("linux") {
        let row = first(&key).unwrap_or_else(|| panic!("{key} is not described"));
        assert_eq!(row[1], value, "{key}");
    }
    assert!(first("read_rate").is_some());
}

#[test]
fn profiles_differ_as_it_says() {
    const PROFILES: [&str; 5] = ["linux", "ns3-default", "inet-default", "windows-xp", "rfc793+reno"];
    let values = PROFILES.map(tcp);
    for (at, (key, value)) in values[0].iter().enumerate() {
        let all: Vec<&String> = values.iter().map(|profile| &profile[at].1).collect();
        let row = rows().into_iter().find(|row| row[0] == *key && row.len() == 6);
        match row {
            Some(row) => assert_eq!(row[1..].iter().collect::<Vec<_>>(), all, "{key}"),
            None => assert!(all.iter().all(|other| *other == value), "{key} differs: {all:?}"),
        }
    }
}

#[test]
fn what_linux_lacked_stands_there() {
    let (now, then) = (tcp("linux"), tcp("linux-2.6"));
    let differ = now.iter().zip(&then).filter(|(now, then)| now != then);
    let said: Vec<_> = rows().into_iter().filter(|row| row.len() == 3).collect();
    let differ: Vec<_> =
        differ.map(|(now, then)| vec![now.0.clone(), now.1.clone(), then.1.clone()]).collect();
    let sorted = |mut rows: Vec<Vec<String>>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(said), sorted(differ));
}
