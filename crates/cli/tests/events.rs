//! Event traces: every event is described in docs/results.md with all of its fields, the page's program reads
//! them, and results with and without a trace are the same.

use crate::common::{TestDir, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const RESULTS: &str = include_str!("../../../docs/results.md");
/// Only an emulation writes it.
const EMULATED: &str = "kernel:metrics_updated";

/// Scenarios whose runs together have every event of a simulation.
const RUNS: [(&str, &str); 6] = [
    // A small buffer, fading, random access, requests for grants, the ACK filter.
    (
        "cell",
        "[cell]\ninitial_access = true\nuplink_bandwidth = \"3 MHz\"\ndownlink_buffer = \"30 kB\"\n[ack_filter]\n\
         scheme = \"hybrid-opt\"\n[[station]]\ncount = 20\ndownlink_sinr = \"15 dB\"\nfading = \"2 dB\"\n\
         file = \"300 kB\"\n",
    ),
    (
        "handover",
        "[cell]\nrlc = \"am\"\n[deployment]\nserved_sites = 7\nfading = \"none\"\n[handover]\n\
         trigger = \"scripted\"\ntimes = [\"900 ms\"]\n[[station]]\n",
    ),
    ("accelerator", "[core]\nproxy = \"accelerator\"\n[[station]]\n[[station]]\nfile = \"300 kB\"\n"),
    ("sidelink", "[sidelink]\nselection = \"scripted\"\nswitch_at = [\"700 ms\"]\n[[station]]\n"),
    (
        "police",
        "[[core.hops]]\nrate = \"100 Mb/s\"\ndelay = \"5 ms\"\npolice = { drop_share = 0.8 }\n[link]\n\
         [link.fixed]\ndownlink_rate = \"1 Gb/s\"\nuplink_rate = \"1 Gb/s\"\n[[station]]\n",
    ),
    // No answer: the connection is given up.
    ("lost", "[link]\nloss_percent = 100.0\n[link.fixed]\n[[station]]\n"),
];

/// Fields of each event in the table of the page.
fn described() -> BTreeMap<String, BTreeSet<String>> {
    let section = RESULTS.split("\n## Events\n").nth(1).expect("a section").split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let fields = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let fields = names(cells[1]);
        names(cells[0]).into_iter().map(move |name| (name, fields.clone())).collect::<Vec<_>>()
    };
    rows.flat_map(fields).collect()
}

fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

fn lines(dir: &TestDir, file: &str) -> Vec<Value> {
    dir.read(file).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_event_is_described_and_results_stay_the_same() {
    let dir = TestDir::new();
    let described = described();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (name, text) in RUNS {
        let file = format!("{name}.toml");
        let seconds = if name == "lost" { 200 } else { 2 };
        dir.write(&file, format!("[run]\nduration = \"{seconds} s\"\nwarmup = \"500 ms\"\n{text}"));
        let traced = format!("{name}-traced");
        for options in [&["--out", name][..], &["--out", &traced, "--events"]] {
            let output = dir.paceline(&[&["run", &file], options].concat());
            let warned = output.stderr.contains("no connection opened");
            assert!(output.code == 0 && warned == (name == "lost"), "{output:?}");
        }
        for table in ["summary.json", "timeseries.csv", "flows.csv"] {
            assert!(dir.read(&format!("{name}/{table}")) == dir.read(&format!("{traced}/{table}")), "{name}");
        }
        let all = lines(&dir, &format!("{traced}/seed-1.events.jsonl"));
        assert_eq!(names(&all[0]), described["header"], "{}", all[0]);
        assert!(all[0]["format"] == "paceline-events" && all[0]["scenario"] == name, "{}", all[0]);
        let mut last = 0.0;
        for event in &all[1..] {
            assert!(names(event).is_subset(&described["event"]), "{event}");
            let at = event["time_ms"].as_f64().expect("a time");
            assert!((last..=1e3 * f64::from(seconds)).contains(&at), "{name}, after {last} ms: {event}");
            last = at;
            let kind = event["name"].as_str().expect("a name");
            let fields = described.get(kind).unwrap_or_else(|| panic!("{kind} is not described"));
            assert_eq!(&names(&event["data"]), fields, "{event}");
            *seen.entry(kind.to_owned()).or_default() += 1;
        }
    }
    println!("{seen:?}");
    let unseen: Vec<_> =
        described.keys().filter(|kind| kind.contains(':') && !seen.contains_key(*kind)).collect();
    assert_eq!(unseen, [EMULATED]);
}

#[test]
fn the_program_of_the_page_reads_a_trace() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--out", "out", "--events"]);
    let section = RESULTS.split("\n## Events\n").nth(1).expect("a section");
    let code = section.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let code = code.expect("the page has a program");
    let output =
        run(Command::new("python3").args(["-c", code, "out/seed-1.events.jsonl"]).current_dir(dir.path()));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(output.stdout.lines().count() > 10 && output.stdout.contains("198.18."), "{}", output.stdout);
}

#[test]
fn a_limit_ends_the_file_at_a_whole_event() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--out", "out", "--events", "--events-limit", "2 kB"]);
    let text = dir.read("out/seed-1.events.jsonl");
    assert!((1000..=2000).contains(&text.len()) && text.ends_with("}\n"), "{} bytes", text.len());
    assert!(lines(&dir, "out/seed-1.events.jsonl").len() > 3);
    for args in [&["--events"][..], &["--out", "x", "--events-limit", "1 kB"]] {
        let output = dir.paceline(&[&["run", "good.toml"][..], args].concat());
        assert!(output.code == 2 && output.stderr.contains("--"), "{output:?}");
    }
}
