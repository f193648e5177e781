//! `paceline reproduce`: the rows of each experiment, equal at any number of jobs, resumed after an
//! interruption, measured where privileged, and a page.

use crate::common::namespace::skip;
use crate::common::{PACELINE, TestDir, has_program};
use serde_json::Value;

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
        assert!(row["holds"].is_boolean() && row["holds_in_ci95"].is_boolean(), "{row}");
        let values = row["values"].as_array().unwrap();
        assert!(!values.is_empty(), "{row}");
        for value in values {
            assert!(value["name"].is_string() && value["unit"].is_string(), "{value}");
            for number in ["published", "ours", "ci95", "difference", "difference_percent"] {
                assert!(value[number].is_number() || value[number].is_null(), "{number}: {value}");
            }
            let both = value["published"].is_number() && value["ours"].is_number();
            assert_eq!(value["difference"].is_number(), both, "{value}");
        }
        assert!(table.contains(&format!("{}  published: ", row["id"].as_str().unwrap())), "{table}");
    }
    let values: usize = rows.iter().map(|row| row["values"].as_array().unwrap().len()).sum();
    let csv = dir.read("out/rows.csv");
    assert!(csv.lines().count() == 1 + values && csv.starts_with("row,quantity,value,unit,published,ours,"));
    assert_eq!(dir.read("out/runs.csv").lines().count(), 1 + 24 * 2);
    assert_eq!(dir.read("out/sweep.csv").lines().count(), 1 + 24);
    dir.paceline_ok(&["report", "out"]);
    let help = dir.paceline_ok(&["reproduce", "ack-filter", "--help"]);
    assert!(help.contains("Two seeds and shorter runs") && help.contains("10 if left out, 2 with --quick"));
    let page = dir.read("out/report.html");
    assert!(page.contains("Published beside ours") && page.contains("<svg") && !page.contains("NaN"));
}

/// Headings of the table that every experiment prints.
const HEADINGS: [&str; 7] =
    ["published", "ours", "unit", "difference", "difference, %", "within the published spread", "holds"];

#[test]
fn every_experiment_prints_the_same_columns() {
    let dir = TestDir::new();
    let short = ["--quick", "--seeds", "1", "--set", "run.duration=3 s", "--set", "run.warmup=1 s"];
    let accelerator = [&["reproduce", "accelerator", "--out", "accelerator"][..], &short].concat();
    let calibration = ["reproduce", "calibration", "--stations", "100", "--out", "calibration"];
    for table in
        [reproduce(&dir, "filter", &[]), dir.paceline_ok(&accelerator), dir.paceline_ok(&calibration)]
    {
        for heading in HEADINGS {
            assert!(table.contains(heading), "no {heading}: {table}");
        }
        assert!(table.contains("no spread given"), "{table}");
    }
    // A range that the paper gives, and shares with their own unit.
    let rows = dir.json("accelerator/summary.json");
    let row = |id: &str| rows["rows"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
    let plateau = &row("2b")["values"][0];
    assert_eq!((&plateau["spread_low"], &plateau["spread_high"]), (&1.45.into(), &1.65.into()));
    assert!(plateau["within_spread"].is_boolean(), "{plateau}");
    for value in row("2f")["values"].as_array().unwrap() {
        let share = value["name"].as_str().unwrap().ends_with("share of UDP");
        assert_eq!(value["unit"], if share { "%" } else { "Mb/s" });
    }
}

#[test]
fn results_are_equal_at_any_number_of_jobs_and_after_an_interruption() {
    let dir = TestDir::new();
    let one = reproduce(&dir, "one", &["--jobs", "1"]);
    let three = reproduce(&dir, "three", &["--jobs", "3"]);
    assert_eq!(one, three);
    let files = |out: &str| {
        ["summary.json", "rows.csv", "sweep.csv", "runs.csv"].map(|n| dir.read(&format!("{out}/{n}")))
    };
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

#[test]
fn rows_of_the_router_compare_policed_with_unpoliced_runs() {
    let dir = TestDir::new();
    let short = ["--quick", "--seeds", "1", "--set", "run.duration=600 ms", "--set", "run.warmup=200 ms"];
    let table =
        dir.paceline_ok(&[&["reproduce", "router", "--measure", "no", "--out", "out"][..], &short].concat());
    assert!(table.starts_with("router, published beside ours: 1 seed"), "{table}");
    let json = dir.json("out/summary.json");
    let rows = json["rows"].as_array().unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let expected = "5a-rate 5a-retransmissions 5a-growth 5b 5b-safe 5c 5c-rates 5d 5e 5e-cause";
    assert_eq!(ids.join(" "), expected);
    for value in rows.iter().flat_map(|row| row["values"].as_array().unwrap()) {
        assert!(value["ours"].is_number(), "{value}");
    }
    dir.paceline_ok(&["report", "out"]);
    let page = dir.read("out/report.html");
    assert!(page.contains("ACKs dropped, %") && page.contains("<svg") && !page.contains("NaN"));
}

#[test]
fn rows_of_the_router_are_measured_where_the_host_can() {
    let dir = TestDir::new();
    let only = ["reproduce", "router", "--measure", "only", "--quick", "--out", "out"];
    let problem = "measure: needs CAP_NET_ADMIN";
    if has_program("setpriv") {
        let line = format!("setpriv --bounding-set=-all --inh-caps=-all {PACELINE} {}", only.join(" "));
        let output = dir.shell(&line);
        if output.code != 127 && !output.stderr.contains("setpriv:") {
            assert!(output.code == 1 && output.stderr.contains(problem), "{output:?}");
            assert!(!dir.join("out").exists());
        }
    }
    let output = dir.paceline(&only);
    if output.code == 1 && output.stderr.contains("measure: ") {
        return skip(&output.stderr);
    }
    assert_eq!(output.code, 0, "{output:?}");
    let rows = dir.json("out/summary.json")["rows"].as_array().unwrap().clone();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    for id in ["5a-rate", "5a-retransmissions", "5a-growth", "5b", "5b-safe", "5c", "5c-rates", "5d", "5e"] {
        assert!(ids.contains(&format!("{id}-measured").as_str()), "{id}: {ids:?}");
    }
    for value in rows.iter().flat_map(|row| row["values"].as_array().unwrap()) {
        assert!(value["ours"].is_number(), "{value}");
    }
    let settings = dir.json("out/measured.json")["settings"].as_array().unwrap().clone();
    let dropped = |setting: &Value| setting["figures"]["acks_dropped"].as_u64().unwrap();
    let blind = |setting: &&Value| {
        setting["setting"]["drop_percent"] == 80 && setting["setting"]["mode"] == "published"
    };
    assert!(settings.iter().filter(blind).all(|setting| dropped(setting) > 0), "{settings:?}");
    for name in ["measured-rates.svg", "measured-sessions-64kB.svg", "measured-sessions-1514kB.svg"] {
        assert!(dir.read(&format!("out/{name}")).contains("<svg"), "{name}");
    }
    // Settings that are measured are not measured again.
    assert_eq!(dir.paceline_ok(&only), output.stdout);
    dir.paceline_ok(&["report", "out"]);
    assert!(dir.read("out/report.html").contains("5c-rates-measured"));
    // Figures of another kernel are neither mixed with these nor overwritten.
    let other = dir.read("out/measured.json").replacen("\"kernel\":\"", "\"kernel\":\"0.", 1);
    dir.write("out/measured.json", &other);
    let output = dir.paceline(&only);
    assert!(output.code == 2 && output.stderr.contains("measured with Linux 0."), "{output:?}");
    assert_eq!(dir.read("out/measured.json"), other);
}
