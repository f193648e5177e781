//! The parts of a sweep: one file for each finished job, so that an interrupted sweep is resumed.
//!
//! `parts/manifest.json` has the program's commit and the scenario of every point. A folder with another
//! commit or other scenarios is refused. Files are written under a hidden name and renamed when they are
//! complete.

use crate::failure::{Failure, Outcome};
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_sim::{Origin, RunResult};
use paceline_study::Grid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// File name of the manifest among the parts.
const MANIFEST: &str = "manifest.json";

/// The program and the points that the parts belong to.
#[derive(Serialize, Deserialize)]
struct Manifest {
    paceline: Origin,
    points: Vec<ManifestPoint>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct ManifestPoint {
    /// Label of the point.
    point: String,
    /// The resolved scenario as TOML.
    scenario: String,
}

/// The file of a finished job.
#[derive(Serialize, Deserialize)]
struct Part {
    commit: String,
    scenario_fnv1a: String,
    run: RunResult,
}

pub struct Parts {
    folder: PathBuf,
    commit: String,
    /// Hash of the scenario of every point.
    hashes: Vec<String>,
    /// Keeps another sweep from writing to the folder.
    _lock: File,
}

impl Parts {
    /// Opens the folder `out`, which must not exist, be empty, or have parts of the same grid.
    pub fn open(out: &Path, grid: &Grid) -> Outcome<Self> {
        let context = || format!("--out {}: cannot be written", out.display());
        if out.is_file() {
            return Err(Failure::input(format!("--out {}: is a file; name a folder", out.display())));
        }
        let points = grid.points.iter().enumerate();
        let points =
            points.map(|(i, p)| ManifestPoint { point: grid.label(i), scenario: p.scenario.to_toml() });
        let manifest = Manifest { paceline: paceline_study::origin(), points: points.collect() };
        let folder = out.join("parts");
        let file = folder.join(MANIFEST);
        if file.exists() {
            compare(&file, &manifest)
                .map_err(|problem| Failure::input(format!("--out {}: {problem}", out.display())))?;
        } else if fs::read_dir(out).is_ok_and(|mut entries| entries.any(|e| !is_unused(e.ok().as_ref()))) {
            let problem = "exists, is not empty and holds no sweep to continue; name another folder";
            return Err(Failure::input(format!("--out {}: {problem}", out.display())));
        }
        fs::create_dir_all(&folder).with_context(context).map_err(Failure::Input)?;
        if !file.exists() {
            let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
            write_file(&file, &text).with_context(context).map_err(Failure::Input)?;
        }
        let lock = File::open(&file).with_context(context).map_err(Failure::Input)?;
        if lock.try_lock().is_err() {
            let problem = "another sweep is writing into this folder; wait for it";
            return Err(Failure::input(format!("--out {}: {problem}", out.display())));
        }
        let hashes = manifest.points.iter().map(|p| format!("{:016x}", fnv1a(p.scenario.as_bytes())));
        Ok(Self { folder, commit: manifest.paceline.commit, hashes: hashes.collect(), _lock: lock })
    }
    /// The result of a job that is finished; none if it has no part, or a damaged one. A part of another
    /// commit, scenario or seed is an error.
    pub fn load(&self, point: usize, seed: u64) -> Outcome<Option<RunResult>> {
        let path = self.path(point, seed);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let Ok(part) = serde_json::from_str::<Part>(&text) else { return Ok(None) };
        let problem = if part.commit != self.commit {
            format!("is of commit {}, this program of {}", part.commit, self.commit)
        } else if part.scenario_fnv1a != self.hashes[point] || part.run.seed != seed {
            String::from("is of another scenario or seed")
        } else {
            return Ok(Some(part.run));
        };
        Err(Failure::input(format!("{}: {problem}; name another --out folder", path.display())))
    }
    pub fn store(&self, point: usize, run: &RunResult) -> anyhow::Result<()> {
        let (commit, scenario_fnv1a) = (self.commit.clone(), self.hashes[point].clone());
        let path = self.path(point, run.seed);
        let part = Part { commit, scenario_fnv1a, run: run.clone() };
        let text = serde_json::to_string(&part).expect("results are plain data");
        write_file(&path, &text).with_context(|| format!("cannot write {}", path.display()))
    }
    fn path(&self, point: usize, seed: u64) -> PathBuf {
        self.folder.join(format!("point-{point:04}-seed-{seed}.json"))
    }
}

/// Whether a folder is `parts` without a manifest, from a sweep that was interrupted before its first job.
fn is_unused(entry: Option<&fs::DirEntry>) -> bool {
    let Some(entry) = entry.filter(|entry| entry.file_name() == "parts") else { return false };
    let hidden = |e: std::io::Result<fs::DirEntry>| {
        e.is_ok_and(|e| e.file_name().to_string_lossy() == format!(".{MANIFEST}.partial"))
    };
    fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.all(hidden))
}

/// Compares the manifest in a folder with that of this sweep; the error describes the first difference.
fn compare(file: &Path, current: &Manifest) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{MANIFEST}: {error}"))?;
    let stored: Manifest = serde_json::from_str(&text).map_err(|error| format!("{MANIFEST}: {error}"))?;
    const ANOTHER: &str = "name another folder";
    if stored.paceline != current.paceline {
        let (stored, current) = (stored.paceline, &current.paceline);
        return Err(format!(
            "holds results of paceline {} ({}), this is {} ({}); {ANOTHER}",
            stored.version, stored.commit, current.version, current.commit
        ));
    }
    let labels = |m: &Manifest| m.points.iter().map(|p| p.point.clone()).collect::<Vec<_>>();
    if labels(&stored) != labels(current) {
        let (before, now) = (stored.points.len(), current.points.len());
        return Err(format!("holds results of another grid, of {before} points (now {now}); {ANOTHER}"));
    }
    let mut points = stored.points.iter().zip(&current.points);
    let Some((before, now)) = points.find(|(before, now)| before != now) else { return Ok(()) };
    let lines = before.scenario.lines().zip(now.scenario.lines()).find(|(before, now)| before != now);
    let difference = lines.map_or(String::new(), |(before, now)| format!(": `{before}`, now `{now}`"));
    Err(format!("holds results of another scenario{difference}; {ANOTHER}"))
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
