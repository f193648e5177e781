//! The Makefile and the scripts find the program where cargo builds it, and a user's first ten minutes work.

use crate::common::namespace::{Program, have_programs, is_running, signal, skip, wait_for};
use crate::common::{HANG_GUARD, PACELINE, TestDir, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_folder_of_builds_is_asked_of_cargo() {
    let folder = |set: &[(&str, &str)]| {
        let mut command = Command::new(root().join("scripts/package/target_dir.sh"));
        command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET_DIR").envs(set.iter().copied());
        let output = run(&mut command);
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    assert_eq!(folder(&[("CARGO_TARGET_DIR", "/tmp/builds of mine")]), "/tmp/builds of mine\n");
    assert_eq!(folder(&[("CARGO_BUILD_TARGET_DIR", "/tmp/builds")]), "/tmp/builds\n");
    assert!(folder(&[]).ends_with("target\n"));
}

/// The part with real programs runs where the host allows it, and says so where not.
#[test]
fn a_users_first_ten_minutes_work() {
    let dir = TestDir::new();
    let mut command = Command::new("timeout");
    command.arg(HANG_GUARD.as_secs().to_string()).arg(root().join("scripts/check/ten_minutes.sh"));
    let output = run(command.args([PACELINE, "first"]).current_dir(dir.path()));
    assert_eq!(output.code, 0, "{output:?}");
    for folder in ["plain", "filtered", "grid"] {
        assert!(dir.join(&format!("first/{folder}")).is_dir(), "{folder}");
    }
    if !dir.join("first/real/report.html").exists() {
        let why = output.stdout.lines().find_map(|line| line.strip_prefix("skipped: "));
        skip(why.unwrap_or_else(|| panic!("the part with real programs did not run: {output:?}")));
    }
    println!("{}", output.stdout);
}

#[test]
fn the_pictures_of_the_places_are_up_to_date() {
    if have_programs(&["python3"]) {
        let output = run(Command::new(root().join("scripts/draw/draw_places.py")).arg("--check"));
        assert_eq!(output.code, 0, "{output:?}");
    }
}

#[test]
fn no_script_assumes_the_folder_of_builds() {
    let mut files = vec![root().join("Makefile")];
    for folder in ["scripts", "scripts/check", "scripts/draw", "scripts/gateway", "scripts/measure"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // The comments of digest.sh name a program for an example.
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            for folder in ["target/release", "target/debug"] {
                assert!(!line.contains(folder), "{}: {line}", file.display());
            }
        }
    }
}

/// The benchmark of the gateway, measuring kernel routing and a program that is no gateway.
fn bench(gigabytes: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg(HANG_GUARD.as_secs().to_string()).arg(root().join("scripts/gateway/bench.py"));
    command.args(["--rounds", "1", "--gigabytes", gigabytes, "--only", "kernel routing,gateway"]);
    command.args(["--paceline", "/bin/false", "--pepsal", ""]);
    command
}

/// Whether the benchmark can run; skips if not.
fn can_bench() -> bool {
    if !have_programs(&["ip", "ethtool", "iperf3", "ss", "python3"]) {
        return false;
    }
    let root = run(Command::new("id").arg("-u")).stdout.trim() == "0";
    let problem = if root { paceline_emulate::problem() } else { Some("not root".into()) };
    problem.as_deref().map(skip).is_none()
}

#[test]
fn the_gateways_benchmark_reports_a_candidate_that_fails_and_measures_the_others() {
    if !can_bench() {
        return;
    }
    let output = run(&mut bench("0.02"));
    assert_eq!(output.code, 1, "{output:?}");
    let line = |start: &str| {
        let found = output.stdout.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line {start:?}: {output:?}")).to_owned()
    };
    for start in ["processor ", "kernel  "] {
        assert!(line(start).split_whitespace().count() > 1, "{output:?}");
    }
    assert!(line("offloads ").contains("TSO"), "{output:?}");
    assert_eq!(line("kernel routing").split_whitespace().count(), 9, "{output:?}");
    assert!(line("gateway ").contains("failed in 1 round: /bin/false gateway: ended with"), "{output:?}");
}

#[test]
fn the_gateways_benchmark_removes_programs_and_namespaces_when_it_is_stopped() {
    if !can_bench() {
        return;
    }
    let dir = TestDir::new();
    let mut program = Program::spawn(&dir, "bench", &mut bench("1000"));
    let children = format!("/proc/{0}/task/{0}/children", program.id());
    let script = wait_for("the script", || {
        std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse::<u32>().ok()
    });
    // The first network shows the conditions, and the second one is measured.
    let server = format!("pl{}-1s", script % 100_000);
    let pids = wait_for("programs at the server", || {
        let list = run(Command::new("ip").args(["netns", "pids", &server])).stdout;
        let pids: Vec<u32> = list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        (!pids.is_empty()).then_some(pids)
    });
    signal(script, "TERM");
    assert_eq!(program.finish().code, 143, "the exit code after SIGTERM");
    let left = run(Command::new("ip").args(["netns", "list"])).stdout;
    let own = format!("pl{}-", script % 100_000);
    assert!(!left.lines().any(|line| line.starts_with(&own)), "{left}");
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
}

#[test]
fn the_measurement_of_a_long_path_carries_a_connection_over_the_delay_line_and_the_gateway() {
    if !can_bench() || !have_programs(&["ping"]) {
        return;
    }
    let mut command = Command::new("timeout");
    command.arg(HANG_GUARD.as_secs().to_string()).arg(root().join("scripts/gateway/flows.py"));
    let options = ["--rounds", "1", "--seconds", "1", "--rate", "100M", "--paceline", PACELINE, "one"];
    let output = run(command.args(options));
    assert_eq!(output.code, 0, "{output:?}");
    let rows: Vec<&str> = output.stdout.lines().filter(|line| line.contains(" Gb/s, programs ")).collect();
    assert_eq!(rows.len(), 2, "{output:?}");
    assert!(rows[0].contains("delay line alone") && rows[1].contains("gateway "), "{output:?}");
    for row in rows {
        let ms = row.split(" s/GB and ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("");
        assert!(ms.parse::<f64>().is_ok_and(|ms| ms >= 20.0), "the least round trip in ms: {row}");
    }
}
