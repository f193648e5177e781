//! The finished jobs of a sweep, each a small file of its own: an interrupted sweep continues where it was.
//!
//! `parts/manifest.json` says which program and which scenarios they belong to. Parts of another program or of other
//! scenarios are refused, never mixed. A part is written under another name and renamed when whole.

use super::grid::Grid;
use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use paceline_sim::{Origin, RunResult};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// What the parts of a folder belong to.
#[derive(Serialize, Deserialize)]
struct Manifest {
    paceline: Origin,
    points: Vec<Resolved>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Resolved {
    point: String,
    scenario: String,
}

#[derive(Serialize, Deserialize)]
struct Part {
    commit: String,
    scenario_fnv1a: String,
    run: RunResult,
}

/// The folder of a sweep.
pub struct Parts {
    folder: PathBuf,
    commit: String,
    /// Per point, the hash of its scenario.
    hashes: Vec<String>,
    /// Keeps another sweep out of the folder while this one works.
    _lock: File,
}

impl Parts {
    /// Opens `out`: a folder that does not exist, is empty, or holds parts of this very grid.
    pub fn open(out: &Path, grid: &Grid) -> Outcome<Self> {
        let context = || format!("--out {}: cannot be written", out.display());
        if out.is_file() {
            return Err(Failure::input(format!("--out {}: is a file; name a folder", out.display())));
        }
        let points = grid.points.iter().enumerate();
        let points = points.map(|(i, p)| Resolved { point: grid.label(i), scenario: p.scenario.to_toml() });
        let manifest = Manifest { paceline: output::origin(), points: points.collect() };
        let folder = out.join("parts");
        let file = folder.join(MANIFEST);
        if file.exists() {
            check(&file, &manifest)
                .map_err(|why| Failure::input(format!("--out {}: {why}", out.display())))?;
        } else if fs::read_dir(out).is_ok_and(|mut entries| entries.any(|e| !is_parts(e.ok().as_ref()))) {
            let why = "exists, is not empty and holds no sweep to continue; name another folder";
            return Err(Failure::input(format!("--out {}: {why}", out.display())));
        }
        fs::create_dir_all(&folder).with_context(context).map_err(Failure::Input)?;
        if !file.exists() {
            let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
            write(&file, &text).with_context(context).map_err(Failure::Input)?;
        }
        let lock = File::open(&file).with_context(context).map_err(Failure::Input)?;
        if lock.try_lock().is_err() {
            let why = "another sweep is writing into this folder; wait for it";
            return Err(Failure::input(format!("--out {}: {why}", out.display())));
        }
        let hashes = manifest.points.iter().map(|p| format!("{:016x}", fnv1a(p.scenario.as_bytes())));
        Ok(Self { folder, commit: manifest.paceline.commit, hashes: hashes.collect(), _lock: lock })
    }
    /// The result of a job that was finished before. A part that cannot be read is as good as none.
    pub fn load(&self, point: usize, seed: u64) -> Outcome<Option<RunResult>> {
        let path = self.path(point, seed);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let Ok(part) = serde_json::from_str::<Part>(&text) else { return Ok(None) };
        let what = if part.commit != self.commit {
            format!("is of commit {}, this program of {}", part.commit, self.commit)
        } else if part.scenario_fnv1a != self.hashes[point] || part.run.seed != seed {
            String::from("is of another scenario or seed")
        } else {
            return Ok(Some(part.run));
        };
        Err(Failure::input(format!("{}: {what}; name another --out folder", path.display())))
    }
    /// Keeps the result of a job.
    pub fn store(&self, point: usize, run: &RunResult) -> anyhow::Result<()> {
        let (commit, scenario_fnv1a) = (self.commit.clone(), self.hashes[point].clone());
        let path = self.path(point, run.seed);
        let part = Part { commit, scenario_fnv1a, run: run.clone() };
        let text = serde_json::to_string(&part).expect("results are plain data");
        write(&path, &text).with_context(|| format!("cannot write {}", path.display()))
    }
    fn path(&self, point: usize, seed: u64) -> PathBuf {
        self.folder.join(format!("point-{point:04}-seed-{seed}.json"))
    }
}

/// Writes a file under another name and gives it its name when it is whole.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}

/// A folder of parts without a manifest is what a sweep leaves that was stopped in its first moment.
fn is_parts(entry: Option<&fs::DirEntry>) -> bool {
    let Some(entry) = entry.filter(|entry| entry.file_name() == "parts") else { return false };
    let hidden = |e: std::io::Result<fs::DirEntry>| {
        e.is_ok_and(|e| e.file_name().to_string_lossy() == format!(".{MANIFEST}.partial"))
    };
    fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.all(hidden))
}

fn check(file: &Path, now: &Manifest) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{MANIFEST}: {error}"))?;
    let then: Manifest = serde_json::from_str(&text).map_err(|error| format!("{MANIFEST}: {error}"))?;
    const ANOTHER: &str = "name another folder";
    if then.paceline != now.paceline {
        let (then, now) = (then.paceline, &now.paceline);
        return Err(format!(
            "holds results of paceline {} ({}), this is {} ({}); {ANOTHER}",
            then.version, then.commit, now.version, now.commit
        ));
    }
    let labels = |m: &Manifest| m.points.iter().map(|p| p.point.clone()).collect::<Vec<_>>();
    if labels(&then) != labels(now) {
        let (was, is) = (then.points.len(), now.points.len());
        return Err(format!("holds results of another grid, of {was} points (now {is}); {ANOTHER}"));
    }
    let Some((was, is)) = then.points.iter().zip(&now.points).find(|(was, is)| was != is) else {
        return Ok(());
    };
    let lines = was.scenario.lines().zip(is.scenario.lines()).find(|(was, is)| was != is);
    let difference = lines.map_or(String::new(), |(was, is)| format!(": `{was}`, now `{is}`"));
    Err(format!("holds results of another scenario{difference}; {ANOTHER}"))
}

/// The 64-bit FNV-1a hash.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
