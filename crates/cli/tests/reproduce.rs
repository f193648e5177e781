//! `paceline reproduce ack-filter`: nine rows, equal at any number of jobs, resumed after an interruption,
//! and a page.

mod common;

use common::TestDir;

const TINY: [&str; 7] =
    ["reproduce", "ack-filter", "--quick", "--set", "run.duration=600 ms", "--set", "run.warmup=200 ms"];

fn reproduce(dir: &TestDir, out: &str, more: &[&str]) -> String {
    dir.paceline_ok(&[&TINY[..], &["--out", out], more].concat())
}

#[test]
fn nine_rows_compare_published_values_with_ours() {
    let dir = TestDir::new();
    let table = reproduce(&dir, "out", &[]);
    assert!(table.starts_with("ack-filter, published beside ours: 2 seeds"), "{table}");
    assert!(!table.contains("NaN") && !table.contains("inf "), "{table}");
    let json = dir.json("out/summary.json");
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
    assert_eq!(dir.read("out/runs.csv").lines().count(), 1 + 24 * 2);
    assert_eq!(dir.read("out/sweep.csv").lines().count(), 1 + 24);
    dir.paceline_ok(&["report", "out"]);
    let page = dir.read("out/report.html");
    assert!(page.contains("Published beside ours") && page.contains("<svg") && !page.contains("NaN"));
}

#[test]
fn results_are_equal_at_any_number_of_jobs_and_after_an_interruption() {
    let dir = TestDir::new();
    let one = reproduce(&dir, "one", &["--jobs", "1"]);
    let three = reproduce(&dir, "three", &["--jobs", "3"]);
    assert_eq!(one, three);
    let files =
        |out: &str| ["summary.json", "sweep.csv", "runs.csv"].map(|n| dir.read(&format!("{out}/{n}")));
    assert_eq!(files("one"), files("three"));
    std::fs::remove_file(dir.join("one/summary.json")).unwrap();
    std::fs::remove_file(dir.join("one/parts/point-0011-seed-2.json")).unwrap();
    assert_eq!(reproduce(&dir, "one", &[]), one);
    assert_eq!(files("one"), files("three"));
}

#[test]
fn bad_arguments_are_refused() {
    let dir = TestDir::new();
    for (args, part) in [
        (&["reproduce", "ack-filter"][..], "--out"),
        (&["reproduce", "nothing", "--out", "new"], "nothing"),
        (&["reproduce"], "ack-filter"),
        (&["reproduce", "ack-filter", "--out", "new", "--seeds", "0"], "--seeds"),
        (&["reproduce", "ack-filter", "--out", "new", "--set", "run.sed=1"], "run.sed"),
        (&["reproduce", "ack-filter", "--out", "good.toml"], "is a file"),
    ] {
        let before = dir.paths();
        let output = dir.paceline(args);
        assert!(
            output.code == 2 && output.stdout.is_empty() && output.stderr.contains(part),
            "{args:?}: {output:?}"
        );
        assert_eq!(dir.paths(), before, "{args:?} wrote something");
    }
}
