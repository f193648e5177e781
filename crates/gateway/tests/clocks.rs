//! The gateway measures time by the monotonic clock alone, so that a step of the real-time clock changes
//! nothing. The files that read the real-time clock are listed here, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

/// Files below `src` that may read the real-time clock.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("control_plane/capture.rs", "time stamps of a capture file"),
    ("experiment/records.rs", "Unix times in a file"),
    ("experiment/tap.rs", "ages of packets, from the kernel's time stamps"),
    ("service/confinement.rs", "the list of allowed system calls"),
];
/// Names of the real-time clock.
const REAL_TIME: [&str; 5] = ["CLOCK_REALTIME", "SystemTime", "gettimeofday", "CLOCK_TAI", "libc::time("];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_gateway_reads_the_real_time_clock_in_the_listed_files_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 40, "{files:?}");
    let reads = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        REAL_TIME.iter().any(|name| text.contains(name))
    };
    let mut found: Vec<String> =
        files.iter().filter(|path| reads(path)).map(|path| relative(&root, path)).collect();
    found.sort();
    assert_eq!(found, EXCEPTIONS.map(|(file, _)| file));
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().display().to_string()
}
