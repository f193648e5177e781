//! `paceline sweep`: the grid, equal bytes at any number of jobs, resuming after an interruption, refused
//! input.

use crate::common::{PACELINE, TestDir, parse_json};
use serde_json::Value;
use std::process::Command;

const FILES: [&str; 3] = ["sweep.csv", "runs.csv", "sweep.json"];
const OVER: [&str; 4] =
    ["--over", "station.count=1,3", "--over", "ack_filter.scheme=basic,hybrid(6),hybrid-opt"];

fn sweep(dir: &TestDir, out: &str, more: &[&str]) -> String {
    let args = [&["sweep", "good.toml", "--seeds", "2", "--out", out], &OVER[..], more].concat();
    dir.paceline_ok(&args)
}

fn files(dir: &TestDir, out: &str) -> Vec<String> {
    FILES.iter().map(|name| dir.read(&format!("{out}/{name}"))).collect()
}

fn parts(dir: &TestDir, out: &str) -> Vec<std::path::PathBuf> {
    let in_parts = |path: &std::path::PathBuf| path.starts_with(dir.join(out).join("parts"));
    let is_job = |path: &std::path::PathBuf| path.to_string_lossy().contains("/point-");
    dir.paths().into_iter().filter(|path| in_parts(path) && is_job(path)).collect()
}

/// Sweeps with arguments that must be refused, and checks that no file is written.
fn refused(dir: &TestDir, args: &[&str], parts: &[&str]) {
    let before = dir.paths();
    let all = [&["sweep"], args].concat();
    let output = dir.paceline(&all);
    assert!(output.code == 2 && output.stdout.is_empty(), "{all:?}: {output:?}");
    for part in parts {
        assert!(output.stderr.contains(part), "{all:?}: `{part}` is missing in {}", output.stderr);
    }
    assert_eq!(dir.paths(), before, "{all:?} wrote something");
}

#[test]
fn every_combination_has_a_row_per_table() {
    let dir = TestDir::new();
    let table = sweep(&dir, "out", &[]);
    insta::assert_snapshot!(table);
    assert_eq!(dir.read("out/differences.csv").lines().count(), 1 + 4);
    let points = dir.read("out/sweep.csv");
    assert!(
        points.starts_with("station.count,ack_filter.scheme,goodput_mbps,goodput_mbps_ci95,"),
        "{points}"
    );
    let keys: Vec<String> =
        points.lines().skip(1).map(|l| l.split(',').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(keys, ["1 basic", "1 hybrid(6)", "1 hybrid-opt", "3 basic", "3 hybrid(6)", "3 hybrid-opt"]);
    assert_eq!(dir.read("out/runs.csv").lines().count(), 1 + 6 * 2);
    let width = |name: &str| {
        let text = dir.read(name);
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{name}: {text}");
        widths[0]
    };
    assert_eq!(width("out/sweep.csv") - 2, 2 * (width("out/runs.csv") - 3));
    let json: Value = dir.json("out/sweep.json");
    assert_eq!(json["over"][1]["values"][1], "hybrid(6)");
    assert_eq!(
        (&json["points"][3]["stations"], &json["points"][5]["scheme"]),
        (&3.into(), &"hybrid-opt".into())
    );
    assert!(json["points"][0]["ci95"]["goodput_mbps"].is_number());
}

#[test]
fn a_point_has_the_figures_of_run() {
    let dir = TestDir::new();
    sweep(&dir, "out", &[]);
    let run = ["run", "good.toml", "--seeds", "2", "--json", "--set", "station.count=3"];
    let run: Value = parse_json(&dir.paceline(&run).stdout);
    let sweep: Value = dir.json("out/sweep.json");
    assert_eq!(sweep["points"][3]["mean"], run["mean"]);
    assert_eq!(sweep["points"][3]["ci95"], run["ci95"]);
    assert_eq!(sweep["points"][3]["runs"][1]["totals"], run["runs"][1]["totals"]);
}

#[test]
fn groups_of_stations_have_their_figures() {
    let dir = TestDir::new();
    let text = "[run]\nduration = \"600 ms\"\nwarmup = \"100 ms\"\n[[station]]\ncount = 2\n[[station]]\n\
                name = \"second\"\ntcp = { congestion_control = \"bbr\" }\n";
    dir.write("two.toml", text);
    let over = ["--seeds", "2", "--over", "cell.bandwidth=5 MHz,10 MHz"];
    let table = dir.paceline_ok(&[&["sweep", "two.toml", "--out", "out"][..], &over].concat());
    assert!(table.contains("cubic Mb/s") && table.contains("second Mb/s"), "{table}");
    let csv = dir.read("out/sweep.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let value = |row: usize, name: &str| -> f64 {
        let column =
            rows[0].iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name}: {csv}"));
        rows[row][column].parse().unwrap()
    };
    let json: Value = dir.json("out/sweep.json");
    for point in 0..2 {
        let groups = ["cubic.goodput_mbps", "second.goodput_mbps"].map(|name| value(point + 1, name));
        assert!((groups[0] + groups[1] - value(point + 1, "goodput_mbps")).abs() < 1e-5, "{csv}");
        assert!(value(point + 1, "second.rtt_mean_ms_ci95") >= 0.0);
        let group = &json["points"][point]["groups"][0];
        assert_eq!((&group["group"], &group["stations"]), (&0.into(), &2.into()));
        assert_eq!(group["name"], "cubic");
        assert!((group["mean"]["goodput_mbps"].as_f64().unwrap() - groups[0]).abs() < 1e-6);
        assert!(group["ci95"]["jain_index"].is_number());
    }
    // A sweep that continues reads the figures from its parts.
    std::fs::remove_file(dir.join("out/sweep.csv")).unwrap();
    dir.paceline_ok(&[&["sweep", "two.toml", "--out", "out"][..], &over].concat());
    assert_eq!(dir.read("out/sweep.csv"), csv);
    // A name that depends on a swept key is no name of a column.
    let over = ["--over", "station.0.tcp.congestion_control=cubic,reno"];
    dir.paceline_ok(&[&["sweep", "two.toml", "--out", "keys"][..], &over].concat());
    let csv = dir.read("keys/sweep.csv");
    assert!(csv.contains(",station.0.goodput_mbps,") && csv.contains(",second.goodput_mbps,"), "{csv}");
    // A single group has the figures of the totals.
    sweep(&dir, "one", &[]);
    assert!(!dir.read("one/sweep.csv").contains("cubic."));
}

#[test]
fn the_tables_are_equal_at_any_number_of_jobs() {
    let dir = TestDir::new();
    let one = sweep(&dir, "one", &["--jobs", "1"]);
    let four = sweep(&dir, "four", &["--jobs", "4"]);
    assert_eq!((one, files(&dir, "one")), (four, files(&dir, "four")));
}

#[test]
fn a_sweep_simulates_missing_parts_only() {
    let dir = TestDir::new();
    sweep(&dir, "out", &[]);
    let complete = files(&dir, "out");
    let parts = parts(&dir, "out");
    assert_eq!(parts.len(), 12);
    let kept = std::fs::metadata(&parts[1]).unwrap().modified().unwrap();
    std::fs::remove_file(&parts[0]).unwrap();
    std::fs::remove_file(&parts[7]).unwrap();
    std::fs::write(&parts[4], "{\"commit").unwrap();
    std::fs::remove_file(dir.join("out/sweep.json")).unwrap();
    sweep(&dir, "out", &[]);
    assert_eq!(files(&dir, "out"), complete);
    assert_eq!(std::fs::metadata(&parts[1]).unwrap().modified().unwrap(), kept, "it was simulated again");
    // A sweep with more seeds uses the parts that exist.
    let args = [&["sweep", "good.toml", "--seeds", "3", "--out", "out"], &OVER[..]].concat();
    assert_eq!(dir.paceline(&args).code, 0);
    assert_eq!(std::fs::metadata(&parts[1]).unwrap().modified().unwrap(), kept, "it was simulated again");
    assert_eq!(dir.read("out/runs.csv").lines().count(), 1 + 6 * 3);
}

#[test]
fn a_killed_sweep_is_resumed() {
    let dir = TestDir::new();
    let longer = ["--set", "run.duration=4 s", "--jobs", "2"];
    sweep(&dir, "complete", &longer);
    let args = [&["sweep", "good.toml", "--seeds", "2", "--out", "out"], &OVER[..], &longer].concat();
    let mut child = Command::new(PACELINE).args(&args).current_dir(dir.path()).spawn().unwrap();
    while parts(&dir, "out").len() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    sweep(&dir, "out", &longer);
    assert_eq!(files(&dir, "out"), files(&dir, "complete"));
    let partial: Vec<_> =
        dir.paths().into_iter().filter(|p| p.to_string_lossy().ends_with(".partial")).collect();
    assert!(partial.is_empty(), "{partial:?}");
}

#[test]
fn results_of_another_grid_scenario_or_commit_are_refused() {
    let dir = TestDir::new();
    sweep(&dir, "out", &[]);
    let again = [&["good.toml", "--out", "out"], &OVER[..]].concat();
    let changed = [&again[..], &["--set", "run.warmup=60 ms"]].concat();
    refused(&dir, &changed, &["--out out", "another scenario", "warmup = \"60 ms\""]);
    refused(
        &dir,
        &["good.toml", "--out", "out", "--over", "station.count=1,3"],
        &["another grid", "6 points"],
    );
    let parts = parts(&dir, "out");
    std::fs::copy(&parts[2], &parts[6]).unwrap();
    refused(&dir, &again, &["another scenario or seed", "point-0003-seed-1.json"]);
    let manifest = dir.read("out/parts/manifest.json");
    let commit = manifest.split("\"commit\": \"").nth(1).unwrap().split('"').next().unwrap();
    dir.write("out/parts/manifest.json", manifest.replace(commit, "0123456789ab"));
    refused(&dir, &again, &["0123456789ab", commit, "name another folder"]);
    dir.write("notes.txt", "mine");
    refused(&dir, &["good.toml", "--out", ".", "--over", "station.count=1"], &["not empty"]);
    refused(&dir, &["good.toml", "--out", "notes.txt", "--over", "station.count=1"], &["is a file"]);
}

#[test]
fn bad_grids_are_refused() {
    let dir = TestDir::new();
    for (over, parts) in [
        ("station.count=1,0", &["point station.count=0", "station.0.count = 0", "1 to 1000"][..]),
        ("station.cuont=1", &["point station.cuont=1", "unknown field"]),
        ("ack_filter.scheme=basic,hybrid(0)", &["point ack_filter.scheme=hybrid(0)", "T from 1"]),
        ("station.7.count=1", &["there is no station.7"]),
        ("station.count", &["--over station.count", "key=a,b,c"]),
        ("station.count=", &["a value is empty"]),
        ("station.count=1,,2", &["a value is empty"]),
        ("=1", &["the key is empty"]),
        ("station.count=1,2,1", &["1 again"]),
        ("run.seed=18446744073709551615", &["run.seed"]),
    ] {
        refused(&dir, &["good.toml", "--out", "new", "--over", over], parts);
    }
    let twice = ["good.toml", "--out", "new", "--over", "run.seed=1", "--over", "run.seed=2"];
    refused(&dir, &twice, &["another --over"]);
    refused(&dir, &["good.toml", "--out", "new"], &["--over"]);
    refused(&dir, &["good.toml", "--over", "run.seed=1"], &["--out"]);
    refused(&dir, &["missing.toml", "--over", "run.seed=1", "--out", "new"], &["missing.toml"]);
}

#[test]
fn an_interrupted_sweep_names_the_command_that_continues() {
    let dir = TestDir::new();
    let output = dir.shell(
        "$PACELINE sweep good.toml --over 'ack_filter.scheme=basic,hybrid(6)' --set 'run.duration=20 s' --seeds 500 --jobs 1 --out out &\n\
         until ls out/parts/point-* >/dev/null 2>&1; do sleep 0.05; done\n\
         kill -TERM $!; wait $!; echo $?",
    );
    assert_eq!(output.stdout, "1\n", "{output:?}");
    assert!(output.stderr.contains("interrupted; the finished runs are kept in out."), "{output:?}");
    assert!(
        output.stderr.contains(" sweep good.toml --over 'ack_filter.scheme=basic,hybrid(6)' --set "),
        "{output:?}"
    );
}

#[test]
fn json_of_a_sweep_is_its_file() {
    let dir = TestDir::new();
    let json = sweep(&dir, "out", &["--json"]);
    assert_eq!(json, dir.read("out/sweep.json"));
}

#[test]
fn a_sweep_on_dask_without_the_python_package_says_what_is_missing() {
    let dir = TestDir::new();
    dir.write("python3", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'paceline'\" >&2\nexit 1\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("python3"), mode).expect("the file is ours");
    let args = ["sweep", "good.toml", "--over", "station.count=1", "--out", "out", "--dask", "tcp://h:1"];
    let output = Command::new(PACELINE)
        .args(args)
        .current_dir(dir.path())
        .env("PATH", dir.path())
        .output()
        .expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in
        ["--dask", "lacks the Python package paceline", "No module named 'paceline'", "docs/python.md"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!dir.join("out").exists());
    // With the package, the same words go to it.
    dir.write("python3", "#!/bin/sh\n[ \"$2\" = -c ] || printf '%s\\n' \"$@\"\n");
    let output = Command::new(PACELINE)
        .args(args)
        .args(["--set", "run.seed=3", "--seeds", "2"])
        .current_dir(dir.path())
        .env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()))
        .output()
        .expect("the program starts");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "-P\n-m\npaceline\nsweep\ngood.toml\n--set=run.seed=3\n--over=station.count=1\n--seeds=2\n--out\nout\n--dask=tcp://h:1\n";
    assert_eq!(words, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
