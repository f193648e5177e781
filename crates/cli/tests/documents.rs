//! docs/results.md has a row for every column and every JSON key that the program writes, and no other row.
//! The reference of scenario keys is printed by `paceline check`, and built-in scenarios agree with the JSON
//! schema.

use crate::common::{TestDir, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

const RESULTS: &str = include_str!("../../../docs/results.md");

type Names = BTreeSet<String>;

/// The cells of the rows of a section's table, without the marks of code.
fn rows(section: &str) -> Vec<Vec<String>> {
    let heading = format!("\n## {section}\n");
    let text = RESULTS.split(&heading).nth(1).unwrap_or_else(|| panic!("no section {section}"));
    let text = text.split("\n## ").next().unwrap_or(text);
    let lines = text.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    lines.map(cells).collect()
}

/// JSON key and CSV column of a name; one that does not exist is empty.
fn forms(name: &str) -> [&str; 2] {
    if let Some(key) = name.strip_suffix(" (JSON)") {
        return [key, ""];
    }
    if let Some(column) = name.strip_suffix(" (CSV)") {
        return ["", column];
    }
    name.split_once('=').map_or([name, name], |(key, column)| [key, column])
}

/// Names in the first cells of a section's table: of JSON keys (0) or of CSV columns (1).
fn column(section: &str, index: usize) -> Names {
    let cells: Vec<String> = rows(section).into_iter().map(|row| row[0].clone()).collect();
    let names = cells.iter().flat_map(|cell| cell.split(", ")).map(|name| forms(name)[index]);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Columns of a CSV file of runs, which begins with the seed.
fn csv_columns(section: &str) -> Names {
    column(section, 1).into_iter().chain(["seed".to_owned()]).collect()
}

/// Keys whose inner keys other sections describe.
const OTHER_SECTIONS: [&str; 27] = [
    "columns[].difference.mean",
    "columns[].difference.ci95",
    "columns[].mean",
    "columns[].ci95",
    "mean",
    "ci95",
    "groups[].ci95",
    "groups[].limits",
    "groups[].sides[].limits",
    "groups[].round_trip",
    "runs[].totals",
    "runs[].groups[]",
    "runs[].stations[]",
    "runs[].flows[]",
    "runs[].queues[]",
    "runs[].paths[]",
    "runs[].switches[]",
    "runs[].handovers[]",
    "runs[].routers[]",
    "runs[].policers[]",
    "runs[].pings[]",
    "points[].mean",
    "points[].ci95",
    "points[].groups[].mean",
    "points[].groups[].ci95",
    "points[].runs[].totals",
    "run",
];
/// Keys whose inner keys are names of values.
const BY_NAME: [&str; 2] = ["columns[].differing", "kept"];

/// Dotted paths of all values of a JSON document.
fn keys(value: &Value, path: &str, keys_of_values: &mut Names) {
    if OTHER_SECTIONS.contains(&path) || BY_NAME.contains(&path) && value.is_object() {
        keys_of_values.insert(path.to_owned());
        return;
    }
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            keys(value, &path, keys_of_values);
        }),
        Value::Array(values) => {
            values.iter().for_each(|value| keys(value, &format!("{path}[]"), keys_of_values))
        }
        _ => drop(keys_of_values.insert(path.to_owned())),
    }
}

fn all_keys<'a>(values: impl IntoIterator<Item = &'a Value>) -> Names {
    let mut names = Names::new();
    values.into_iter().for_each(|value| keys(value, "", &mut names));
    names
}

fn read_json(dir: &TestDir, file: &str) -> Value {
    serde_json::from_str(&dir.read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Names of the columns of a CSV file.
fn header(dir: &TestDir, file: &str) -> Vec<String> {
    let text = dir.read(file);
    text.lines().next().expect("a header").split(',').map(str::to_owned).collect()
}

fn names<'a>(object: &'a Value) -> impl Iterator<Item = String> + 'a {
    object.as_object().expect("an object").keys().cloned()
}

/// Scenarios whose results together have every key: a cell with one and two seeds, a deployment, a link with
/// a trace, pings, a proxy with two groups of which one has no service, a pair with a direct link that
/// changes its path.
const RUNS: [(&str, &str, &[&str]); 7] = [
    // With more stations than PUCCH holds.
    (
        "cell",
        "[cell]\npucch_prb = 1\n[[station]]\ncount = 50\nfile = \"20 kB\"\n",
        &["--seeds", "2", "--pcap"],
    ),
    ("deployment", "[deployment]\nfading = \"epa\"\n[[station]]\ncount = 4\n", &[]),
    (
        "trace",
        "[link]\nqueue_discipline = \"codel\"\n[link.trace]\ndownlink = \"generated:driving\"\n[[station]]\ntraffic = \"udp\"\n",
        &[],
    ),
    ("ping", "[[station]]\ntraffic = \"ping\"\nping_interval = \"20 ms\"\n", &[]),
    ("sidelink", "[sidelink]\nselection = \"scripted\"\nswitch_at = [\"300 ms\"]\n[[station]]\n", &[]),
    (
        "router",
        "[[core.hops]]\nrate = \"1 Gb/s\"\ndelay = \"5 ms\"\nservice_time = \"10 us\"\npolice = { drop_share = 0.5 }\n[link]\n[link.fixed]\n[[station]]\n",
        &[],
    ),
    ("proxy", "[core]\npath = \"accelerator\"\n[[station]]\n[[station]]\nuplink_sinr = \"-30 dB\"\n", &[]),
];

/// Runs the scenarios into folders of their names.
fn runs() -> TestDir {
    let dir = TestDir::new();
    for (name, text, options) in RUNS {
        let file = format!("{name}.toml");
        dir.write(&file, format!("[run]\nduration = \"600 ms\"\nwarmup = \"50 ms\"\n{text}"));
        let output = dir.paceline(&[&["run", &file, "--out", name], options].concat());
        let warned = output.stderr.contains("station 1 has no service: no uplink grant");
        assert!(output.code == 0 && warned == (*name == *"proxy"), "{output:?}");
    }
    dir
}

#[test]
fn every_key_and_column_of_a_run_is_described() {
    let dir = runs();
    let summaries = RUNS.map(|(name, ..)| read_json(&dir, &format!("{name}/summary.json")));
    assert_eq!(all_keys(&summaries), column("Summary", 0));
    let inner = |name: &str| -> Names {
        let runs = summaries.iter().flat_map(|summary| summary["runs"].as_array().unwrap());
        all_keys(runs.filter_map(|run| run[name].as_array()).flatten())
    };
    assert_eq!(inner("stations"), column("Stations", 0));
    assert_eq!(inner("flows"), column("Connections", 0));
    assert_eq!(inner("queues"), column("Queues", 0));
    let columns: Names = header(&dir, "trace/queues.csv").into_iter().collect();
    assert_eq!(columns, csv_columns("Queues"));
    for (name, section) in [("paths", "Paths"), ("switches", "Switches")] {
        assert_eq!(inner(name), column(section, 0));
        let columns: Names = header(&dir, &format!("sidelink/{name}.csv")).into_iter().collect();
        assert_eq!(columns, csv_columns(section));
    }
    assert_eq!(inner("routers"), column("Routers", 0));
    assert_eq!(header(&dir, "router/routers.csv").into_iter().collect::<Names>(), csv_columns("Routers"));
    assert_eq!(inner("policers"), column("Policers", 0));
    assert_eq!(header(&dir, "router/policers.csv").into_iter().collect::<Names>(), csv_columns("Policers"));
    assert_eq!(inner("pings"), column("Pings", 0));
    assert_eq!(header(&dir, "ping/pings.csv").into_iter().collect::<Names>(), csv_columns("Pings"));
    let shares = |group: &str| -> Names {
        let keys = column("Connections", 0);
        keys.iter().filter_map(|key| key.strip_prefix(&format!("{group}."))).map(str::to_owned).collect()
    };
    let group = &summaries[0]["groups"][0];
    assert_eq!(names(&group["limits"]).collect::<Names>(), shares("limits"));
    assert_eq!(names(&group["round_trip"]).collect::<Names>(), shares("round_trip"));
    let figures = column("Groups", 0);
    assert_eq!(names(&group["ci95"]).collect::<Names>(), figures);
    let own = ["group", "name", "stations"].map(str::to_owned);
    let of_run: Names = figures.iter().cloned().chain(own).collect();
    assert_eq!(names(&summaries[0]["runs"][0]["groups"][0]).collect::<Names>(), of_run);
    for totals in [&summaries[0]["mean"], &summaries[0]["ci95"], &summaries[0]["runs"][0]["totals"]] {
        assert_eq!(names(totals).collect::<Names>(), column("Totals", 0));
    }
    for (file, section) in
        [("stations.csv", "Stations"), ("flows.csv", "Connections"), ("timeseries.csv", "Time series")]
    {
        let header = header(&dir, &format!("cell/{file}"));
        assert_eq!(header.into_iter().collect::<Names>(), csv_columns(section), "{file}");
    }
}

#[test]
fn every_file_of_a_run_is_described() {
    let dir = runs();
    let described = column("Files", 0);
    for (name, ..) in RUNS {
        for entry in std::fs::read_dir(dir.join(name)).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let file = file.replace("seed-1", "seed-N").replace("seed-2", "seed-N");
            assert!(described.contains(&file), "{file} is not described");
        }
    }
}

#[test]
fn every_key_and_column_of_a_sweep_is_described() {
    let dir = TestDir::new();
    let over = ["--over", "station.count=1,2", "--over", "tcp.congestion_control=cubic,bbr"];
    dir.paceline_ok(&[&["sweep", "good.toml", "--seeds", "2", "--out", "out"][..], &over].concat());
    assert_eq!(all_keys([&read_json(&dir, "out/sweep.json")]), column("Sweep", 0));
    let totals = column("Totals", 0);
    let json = read_json(&dir, "out/sweep.json");
    for of in
        [&json["points"][0]["mean"], &json["points"][0]["ci95"], &json["points"][0]["runs"][0]["totals"]]
    {
        assert_eq!(names(of).collect::<Names>(), totals);
    }
    let swept = ["station.count", "tcp.congestion_control"].map(str::to_owned);
    let ci95 = totals.iter().map(|name| format!("{name}_ci95"));
    let expected: Names = swept.iter().cloned().chain(totals.clone()).chain(ci95).collect();
    assert_eq!(header(&dir, "out/sweep.csv").into_iter().collect::<Names>(), expected);
    let expected: Names = swept.iter().cloned().chain(["seed".to_owned()]).chain(totals).collect();
    assert_eq!(header(&dir, "out/runs.csv").into_iter().collect::<Names>(), expected);
    let parts =
        ["out/parts/manifest.json", "out/parts/point-0000-seed-1.json"].map(|file| read_json(&dir, file));
    assert_eq!(all_keys(&parts), column("Parts", 0));
    dir.paceline_ok(&["report", "out"]);
    let files = column("Files", 0);
    for file in
        ["sweep.csv", "runs.csv", "differences.csv", "sweep.json", "parts/manifest.json", "report.html"]
    {
        assert!(files.contains(file) && dir.join(&format!("out/{file}")).exists(), "{file}");
    }
}

#[test]
fn every_key_of_a_reproduction_is_described() {
    let dir = TestDir::new();
    let short = ["--quick", "--set", "run.duration=300 ms", "--set", "run.warmup=100 ms", "--seeds", "1"];
    dir.paceline_ok(&[&["reproduce", "ack-filter", "--out", "out"][..], &short].concat());
    let mut described = column("Reproduce", 0);
    // Only `reproduce accelerator` writes these two; its runs take minutes.
    assert!(described.remove("parts[]") && described.remove("over_time[]"));
    dir.paceline_ok(&["reproduce", "calibration", "--stations", "100", "--out", "calibration"]);
    let summaries = ["out", "calibration"].map(|out| read_json(&dir, &format!("{out}/summary.json")));
    assert_eq!(all_keys(&summaries), described);
    let columns: Names = header(&dir, "calibration/rows.csv").into_iter().collect();
    assert_eq!(columns, column("Reproduce", 1));
}

#[test]
fn every_key_of_compare_and_doctor_is_described() {
    let dir = TestDir::new();
    for (out, seed) in [("a", "run.seed=1"), ("b", "run.seed=2")] {
        dir.paceline_ok(&["run", "good.toml", "--seeds", "2", "--set", seed, "--out", out]);
    }
    let printed = |args: &[&str]| serde_json::from_str::<Value>(&dir.paceline_ok(args)).expect("JSON");
    let compared = printed(&["compare", "a", "b", "--json"]);
    assert_eq!(all_keys([&compared]), column("Compare", 0));
    assert_eq!(all_keys([&printed(&["doctor", "--json"])]), column("Doctor", 0));
}

#[test]
fn every_row_of_the_results_has_a_meaning() {
    for line in RESULTS.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---")) {
        let meaning = line.trim_matches('|').rsplit('|').next().unwrap_or_default();
        assert!(!meaning.trim().is_empty(), "{line}");
    }
}

#[test]
fn check_explains_keys_and_tables() {
    let dir = TestDir::new();
    let of = |key: &str| dir.paceline_ok(&["check", "--explain", key]);
    let keys = ["cell.uplink_bandwidth", "cell.scheduler", "station.1.tcp.congestion_control", "link"];
    insta::assert_snapshot!(keys.map(of).join("\n"));
    assert_eq!(
        dir.paceline_ok(&["check", "--explain", "core.hops.0.rate"]),
        dir.paceline_ok(&["check", "--explain", "core.hops.rate"])
    );
    let table = dir.paceline_ok(&["check", "--explain", "[[station]]"]);
    assert!(table.contains("station.downlink_sinr") && table.contains("\"20 dB\""), "{table}");
    assert!(dir.paceline_ok(&["check", "--explain", "station.tcp"]).contains("station.tcp.min_rto"));
    for (asked, similar) in [
        ("cell.uplink_bandwith", "cell.uplink_bandwidth"),
        ("uplink_bandwidth", "cell.uplink_bandwidth"),
        ("tcp.congestion-control", "tcp.congestion_control"),
        ("station.tcp.congestion-control", "station.tcp.congestion_control"),
        ("stations", "station"),
    ] {
        let output = dir.paceline(&["check", "--explain", asked]);
        assert!(output.code == 2 && output.stdout.is_empty(), "{output:?}");
        let part = format!("--explain {asked}: no key of a scenario; did you mean ");
        assert!(output.stderr.contains(&part) && output.stderr.contains(similar), "{output:?}");
    }
    let output = dir.paceline(&["check", "--explain", "zzzz"]);
    assert!(output.code == 2 && !output.stderr.contains("did you mean"), "{output:?}");
    let output = dir.paceline(&["check", "good.toml", "--schema"]);
    assert!(output.code == 2 && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn check_prints_the_committed_reference_and_schema() {
    let dir = TestDir::new();
    assert!(
        dir.paceline_ok(&["check", "--reference"]) == include_str!("../../../docs/scenario.md"),
        "`make docs`"
    );
    let schema = include_str!("../../../docs/scenario.schema.json");
    assert!(dir.paceline_ok(&["check", "--schema"]) == schema, "`make docs`");
}

/// Validates TOML files against the schema on stdin, by Python's `jsonschema`; exit code 77 if there is none.
const VALIDATE: &str = r#"
import json, pathlib, sys, tomllib
try:
    import jsonschema
except ImportError:
    sys.exit(77)
schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in map(pathlib.Path, sys.argv[2:]):
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(tomllib.loads(path.read_text()))]
    print(path.stem, "bad" if errors else "good", *errors[:3])
"#;

#[test]
fn built_in_scenarios_agree_with_the_schema() {
    let dir = TestDir::new();
    dir.write("schema.json", dir.paceline_ok(&["check", "--schema"]));
    let mut files = vec!["schema.json".to_owned()];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let name = name.into_string().unwrap();
        // As written, and with every key.
        files.push(path.to_str().unwrap().to_owned());
        let resolved = format!("resolved-{name}");
        dir.write(&resolved, dir.paceline_ok(&["check", path.to_str().unwrap()]));
        files.push(resolved);
    }
    let bad = [
        "[cell]\nbandwith = \"20 MHz\"\n",
        "[cell]\nbandwidth = \"20 MB\"\n",
        "[cell]\nmax_harq_tx = 9\n",
        "[tcp]\npacing = \"fast\"\n",
        "[link.fixed]\n[link.hspa]\n",
        "[ack_filter]\nscheme = \"hybird\"\n",
        "[core]\nhops = [{ rate = \"1 Gb/s\" }]\n",
        "[[station]]\ndownlink_sinr = [\"5 dB\"]\n",
    ];
    for (index, text) in bad.iter().enumerate() {
        dir.write(&format!("bad-{index}.toml"), text);
        files.push(format!("bad-{index}.toml"));
    }
    let output = run(Command::new("python3").args(["-c", VALIDATE]).args(&files).current_dir(dir.path()));
    if output.code == 77 {
        println!("skipped: python3 has no module jsonschema");
        return;
    }
    assert_eq!(output.code, 0, "{output:?}");
    for line in output.stdout.lines() {
        assert_eq!(line.contains(" bad"), line.starts_with("bad-"), "{line}");
    }
    assert_eq!(output.stdout.lines().count(), files.len() - 1);
}
