//! The Makefile and the scripts find the program where cargo builds it, and a user's first ten minutes work.

mod common;

use common::namespace::skip;
use common::{HANG_GUARD, PACELINE, TestDir, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_folder_of_builds_is_asked_of_cargo() {
    let folder = |set: &[(&str, &str)]| {
        let mut command = Command::new(root().join("scripts/target_dir.sh"));
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
    command.arg(HANG_GUARD.as_secs().to_string()).arg(root().join("scripts/ten_minutes.sh"));
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
fn no_script_assumes_the_folder_of_builds() {
    let mut files = vec![root().join("Makefile")];
    for folder in ["scripts", "scripts/gateway"] {
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
