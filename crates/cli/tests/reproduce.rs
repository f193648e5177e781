//! `paceline reproduce ack-filter`: nine rows, the same at any number of jobs, resumable, with a page.

mod common;

use common::Place;
use serde_json::Value;

const TINY: [&str; 7] =
    ["reproduce", "ack-filter", "--quick", "--set", "run.duration=600 ms", "--set", "run.warmup=200 ms"];

fn reproduce(place: &Place, out: &str, more: &[&str]) -> String {
    let said = place.paceline(&[&TINY[..], &["--out", out], more].concat());
    assert!(said.code == 0 && said.stderr.is_empty(), "{said:?}");
    said.stdout
}

#[test]
fn nine_rows_published_beside_ours() {
    let place = Place::new();
    let table = reproduce(&place, "out", &[]);
    assert!(table.starts_with("ack-filter, published beside ours: 2 seeds"), "{table}");
    assert!(!table.contains("NaN") && !table.contains("inf "), "{table}");
    let text = place.read("out/summary.json");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["reproduces"], &json["seeds"]), (&"ack-filter".into(), &2.into()));
    assert_eq!(json["set"].as_array().map(Vec::len), Some(4));
    let rows = json["rows"].as_array().unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["1a", "1b", "1c", "1d", "1e", "1f", "1g", "1h", "1i"]);
    for row in rows {
        for text in ["quantity", "published", "why"] {
            assert!(row[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {row}");
        }
        assert!(
            row["unit"].is_string() && row["holds"].is_boolean() && row["holds_in_ci95"].is_boolean(),
            "{row}"
        );
        let names = |field: &str| row[field].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(!names("ours").is_empty(), "{row}");
        assert_eq!((names("ours"), names("ours")), (names("ci95"), names("published_values")), "{row}");
        assert!(row["ours"].as_object().unwrap().values().all(|v| v.is_number() || v.is_null()), "{row}");
        assert!(table.contains(&format!("{}  published: ", row["id"].as_str().unwrap())), "{table}");
    }
    assert_eq!(place.read("out/runs.csv").lines().count(), 1 + 24 * 2);
    assert_eq!(place.read("out/sweep.csv").lines().count(), 1 + 24);
    let said = place.paceline(&["report", "out"]);
    assert_eq!(said.code, 0, "{said:?}");
    let page = place.read("out/report.html");
    assert!(page.contains("Published beside ours") && page.contains("<svg") && !page.contains("NaN"));
}

#[test]
fn the_same_bytes_at_any_number_of_jobs_and_after_an_interruption() {
    let place = Place::new();
    let one = reproduce(&place, "one", &["--jobs", "1"]);
    let three = reproduce(&place, "three", &["--jobs", "3"]);
    assert_eq!(one, three);
    let files =
        |out: &str| ["summary.json", "sweep.csv", "runs.csv"].map(|n| place.read(&format!("{out}/{n}")));
    assert_eq!(files("one"), files("three"));
    std::fs::remove_file(place.join("one/summary.json")).unwrap();
    std::fs::remove_file(place.join("one/parts/point-0011-seed-2.json")).unwrap();
    assert_eq!(reproduce(&place, "one", &[]), one);
    assert_eq!(files("one"), files("three"));
}

#[test]
fn bad_arguments() {
    let place = Place::new();
    for (args, part) in [
        (&["reproduce", "ack-filter"][..], "--out"),
        (&["reproduce", "nothing", "--out", "new"], "nothing"),
        (&["reproduce"], "ack-filter"),
        (&["reproduce", "ack-filter", "--out", "new", "--seeds", "0"], "--seeds"),
        (&["reproduce", "ack-filter", "--out", "new", "--set", "run.sed=1"], "run.sed"),
        (&["reproduce", "ack-filter", "--out", "good.toml"], "is a file"),
    ] {
        let before = place.names();
        let said = place.paceline(args);
        assert!(said.code == 2 && said.stdout.is_empty() && said.stderr.contains(part), "{args:?}: {said:?}");
        assert_eq!(place.names(), before, "{args:?} wrote something");
    }
}
