//! `paceline sweep`: the grid, the same bytes at any number of jobs, going on after an interruption, refusals.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // a program is waited for in real time

mod common;

use common::{PACELINE, Place};
use serde_json::Value;
use std::process::Command;

const FILES: [&str; 3] = ["sweep.csv", "runs.csv", "sweep.json"];
const OVER: [&str; 4] =
    ["--over", "station.count=1,3", "--over", "ack_filter.scheme=basic,hybrid(6),hybrid-opt"];

/// Sweeps into `out`, which must work; gives stdout.
fn sweep(place: &Place, out: &str, more: &[&str]) -> String {
    let args = [&["sweep", "good.toml", "--seeds", "2", "--out", out], &OVER[..], more].concat();
    let said = place.paceline(&args);
    assert!(said.code == 0 && said.stderr.is_empty(), "{said:?}");
    said.stdout
}

fn files(place: &Place, out: &str) -> Vec<String> {
    FILES.iter().map(|name| place.read(&format!("{out}/{name}"))).collect()
}

/// The parts of finished jobs.
fn parts(place: &Place, out: &str) -> Vec<std::path::PathBuf> {
    let in_parts = |path: &std::path::PathBuf| path.starts_with(place.join(out).join("parts"));
    let is_job = |path: &std::path::PathBuf| path.to_string_lossy().contains("/point-");
    place.names().into_iter().filter(|path| in_parts(path) && is_job(path)).collect()
}

/// Sweeps with arguments that must be refused, leaving everything as it was.
fn refused(place: &Place, args: &[&str], parts: &[&str]) {
    let before = place.names();
    let all = [&["sweep"], args].concat();
    let said = place.paceline(&all);
    assert!(said.code == 2 && said.stdout.is_empty(), "{all:?}: {said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "{all:?}: `{part}` is missing in {}", said.stderr);
    }
    assert_eq!(place.names(), before, "{all:?} wrote something");
}

#[test]
fn every_combination_has_its_rows() {
    let place = Place::new();
    let table = sweep(&place, "out", &[]);
    assert!(table.starts_with("good, simulated: 6 points, 2 runs each"), "{table}");
    assert_eq!(table.lines().count(), 2 + 6, "{table}");
    let points = place.read("out/sweep.csv");
    assert!(
        points.starts_with("station.count,ack_filter.scheme,goodput_mbps,goodput_mbps_ci95,"),
        "{points}"
    );
    let keys: Vec<String> =
        points.lines().skip(1).map(|l| l.split(',').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(keys, ["1 basic", "1 hybrid(6)", "1 hybrid-opt", "3 basic", "3 hybrid(6)", "3 hybrid-opt"]);
    assert_eq!(place.read("out/runs.csv").lines().count(), 1 + 6 * 2);
    let width = |name: &str| {
        let text = place.read(name);
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{name}: {text}");
        widths[0]
    };
    assert_eq!(width("out/sweep.csv") - 2, 2 * (width("out/runs.csv") - 3));
    let json: Value = serde_json::from_str(&place.read("out/sweep.json")).unwrap();
    assert_eq!(json["over"][1]["values"][1], "hybrid(6)");
    assert_eq!(
        (&json["points"][3]["stations"], &json["points"][5]["scheme"]),
        (&3.into(), &"hybrid-opt".into())
    );
    assert!(json["points"][0]["ci95"]["goodput_mbps"].is_number());
}

#[test]
fn a_point_is_what_run_gives() {
    let place = Place::new();
    sweep(&place, "out", &[]);
    let run = ["run", "good.toml", "--seeds", "2", "--json", "--set", "station.count=3"];
    let run: Value = serde_json::from_str(&place.paceline(&run).stdout).unwrap();
    let sweep: Value = serde_json::from_str(&place.read("out/sweep.json")).unwrap();
    assert_eq!(sweep["points"][3]["mean"], run["mean"]);
    assert_eq!(sweep["points"][3]["ci95"], run["ci95"]);
    assert_eq!(sweep["points"][3]["runs"][1]["totals"], run["runs"][1]["totals"]);
}

#[test]
fn the_same_bytes_at_any_number_of_jobs() {
    let place = Place::new();
    let one = sweep(&place, "one", &["--jobs", "1"]);
    let four = sweep(&place, "four", &["--jobs", "4"]);
    assert_eq!((one, files(&place, "one")), (four, files(&place, "four")));
}

#[test]
fn a_sweep_goes_on_where_parts_are_missing() {
    let place = Place::new();
    sweep(&place, "out", &[]);
    let whole = files(&place, "out");
    let parts = parts(&place, "out");
    assert_eq!(parts.len(), 12);
    let kept = std::fs::metadata(&parts[1]).unwrap().modified().unwrap();
    std::fs::remove_file(&parts[0]).unwrap();
    std::fs::remove_file(&parts[7]).unwrap();
    std::fs::write(&parts[4], "{\"commit").unwrap();
    std::fs::remove_file(place.join("out/sweep.json")).unwrap();
    sweep(&place, "out", &[]);
    assert_eq!(files(&place, "out"), whole);
    assert_eq!(std::fs::metadata(&parts[1]).unwrap().modified().unwrap(), kept, "it was simulated again");
    // Fewer or more seeds of the same grid use what is there.
    let args = [&["sweep", "good.toml", "--seeds", "3", "--out", "out"], &OVER[..]].concat();
    assert_eq!(place.paceline(&args).code, 0);
    assert_eq!(std::fs::metadata(&parts[1]).unwrap().modified().unwrap(), kept, "it was simulated again");
    assert_eq!(place.read("out/runs.csv").lines().count(), 1 + 6 * 3);
}

#[test]
fn a_sweep_goes_on_after_it_was_killed() {
    let place = Place::new();
    let slow = ["--set", "run.duration=4 s", "--jobs", "2"];
    sweep(&place, "whole", &slow);
    let args = [&["sweep", "good.toml", "--seeds", "2", "--out", "out"], &OVER[..], &slow].concat();
    let mut child = Command::new(PACELINE).args(&args).current_dir(place.path()).spawn().unwrap();
    while parts(&place, "out").len() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    sweep(&place, "out", &slow);
    assert_eq!(files(&place, "out"), files(&place, "whole"));
    let left: Vec<_> =
        place.names().into_iter().filter(|p| p.to_string_lossy().ends_with(".partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn results_of_something_else_are_refused() {
    let place = Place::new();
    sweep(&place, "out", &[]);
    let again = [&["good.toml", "--out", "out"], &OVER[..]].concat();
    let changed = [&again[..], &["--set", "run.warmup=60 ms"]].concat();
    refused(&place, &changed, &["--out out", "another scenario", "warmup = \"60 ms\""]);
    refused(
        &place,
        &["good.toml", "--out", "out", "--over", "station.count=1,3"],
        &["another grid", "6 points"],
    );
    let parts = parts(&place, "out");
    std::fs::copy(&parts[2], &parts[6]).unwrap();
    refused(&place, &again, &["another scenario or seed", "point-0003-seed-1.json"]);
    let manifest = place.read("out/parts/manifest.json");
    let commit = manifest.split("\"commit\": \"").nth(1).unwrap().split('"').next().unwrap();
    place.write("out/parts/manifest.json", manifest.replace(commit, "0123456789ab"));
    refused(&place, &again, &["0123456789ab", commit, "name another folder"]);
    place.write("notes.txt", "mine");
    refused(&place, &["good.toml", "--out", ".", "--over", "station.count=1"], &["not empty"]);
    refused(&place, &["good.toml", "--out", "notes.txt", "--over", "station.count=1"], &["is a file"]);
}

#[test]
fn bad_grids() {
    let place = Place::new();
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
        refused(&place, &["good.toml", "--out", "new", "--over", over], parts);
    }
    let twice = ["good.toml", "--out", "new", "--over", "run.seed=1", "--over", "run.seed=2"];
    refused(&place, &twice, &["another --over"]);
    refused(&place, &["good.toml", "--out", "new"], &["--over"]);
    refused(&place, &["good.toml", "--over", "run.seed=1"], &["--out"]);
    refused(&place, &["missing.toml", "--over", "run.seed=1", "--out", "new"], &["missing.toml"]);
}
