//! The Makefile and the scripts find the program where cargo builds it.

mod common;

use common::run;
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
