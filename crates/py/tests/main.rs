//! The extension module as Python loads it. The package's own tests are in `python/tests`.

use std::process::Command;

/// The module of this build, beside this test program, under the name that Python looks for.
#[test]
fn python_imports_the_module() {
    let program = std::env::current_exe().expect("this program has a path");
    let module = program.with_file_name("lib_paceline.so");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(&module, folder.path().join("_paceline.abi3.so")).expect("a link");
    let version =
        Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status();
    if !version.is_ok_and(|status| status.success()) {
        println!("skipped: no python3 of version 3.11 or newer");
        return;
    }
    let mut python = Command::new("python3");
    python.args(["-c", "import _paceline"]).env("PYTHONPATH", folder.path());
    let output = python.output().expect("python3 runs");
    assert!(output.status.success(), "{}: {}", module.display(), String::from_utf8_lossy(&output.stderr));
}
