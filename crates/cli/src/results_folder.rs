//! The results folder of `run` and `emulate`: `resolved.toml`, `summary.json`, tables as CSV, traces,
//! captures.
//!
//! The folder is filled under a hidden name and renamed when it is complete, so that an interrupted run
//! leaves no partial results. A lock keeps a second run from writing to the same folder.

use crate::failure::{Failure, Outcome};
use anyhow::Context;
use paceline_report::files::files;
use paceline_sim::{Scenario, Summary};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A results folder that is not complete yet.
pub struct ResultsFolder {
    /// The hidden folder that is filled.
    partial: PathBuf,
    target: PathBuf,
    _lock: File,
    finished: bool,
}

impl ResultsFolder {
    /// Starts a results folder. `target` must not exist, or be an empty folder.
    pub fn create(target: &Path) -> Outcome<Self> {
        check_unused(target)?;
        let context = || format!("--out {}: cannot be written", target.display());
        // A symbolic link is resolved, so that its target is renamed and not the link.
        let folder = if target.is_symlink() { fs::canonicalize(target) } else { Ok(target.to_owned()) };
        let folder = folder.with_context(context).map_err(Failure::Input)?;
        let name = folder.file_name().ok_or_else(|| Failure::input("--out: not the name of a folder"))?;
        let partial = folder.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        let lock = create_locked(&partial).with_context(context).map_err(Failure::Input)?;
        Ok(Self { partial, target: folder, _lock: lock, finished: false })
    }
    /// The path of a file while the folder is being filled.
    pub fn path(&self, name: &str) -> PathBuf {
        self.partial.join(name)
    }
    /// Writes scenario, traces, summary and tables, then renames the folder to its final name.
    pub fn finish(mut self, scenario: &Scenario, summary: &Summary) -> anyhow::Result<()> {
        for (name, bytes) in files(scenario, summary) {
            fs::write(self.path(&name), bytes).with_context(|| format!("cannot write {name}"))?;
        }
        let _ = fs::remove_dir(&self.target); // `create` allowed an empty folder
        fs::rename(&self.partial, &self.target)
            .with_context(|| format!("cannot create {}", self.target.display()))?;
        self.finished = true;
        Ok(())
    }
}

/// Refuses a target that is a file, or a folder with files.
pub fn check_unused(target: &Path) -> Outcome<()> {
    if target.is_file() {
        return Err(Failure::input(format!("--out {}: is a file; name a folder", target.display())));
    }
    if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!("--out {}: exists and is not empty; name another folder", target.display());
        return Err(Failure::input(message));
    }
    Ok(())
}

/// Writes a file under a hidden name and renames it when it is complete.
pub fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}

/// Writes `summary.json` of an experiment into a results folder.
pub fn write_summary(folder: &Path, summary: &Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(summary).expect("results are plain data") + "\n";
    write_file(&folder.join("summary.json"), &text).context("cannot write summary.json")
}

/// Creates and locks the hidden folder. Files of an interrupted run are removed; a running one holds the
/// lock.
fn create_locked(partial: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(partial)?;
    let lock = File::open(partial)?;
    lock.try_lock().map_err(|_| anyhow::anyhow!("another run is writing its results there"))?;
    for entry in fs::read_dir(partial)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(lock)
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
