//! What a command gives out: text on stdout and stderr, and the results folder: `resolved.toml`, `summary.json`,
//! tables as CSV, captures.
//!
//! The folder is filled under another name and renamed when whole: an interrupted run leaves no half results behind.

use crate::failure::{Failure, Outcome};
use anyhow::Context;
use paceline_sim::{Origin, Scenario, Summary};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Which program this is.
pub fn origin() -> Origin {
    Origin { version: env!("CARGO_PKG_VERSION").into(), commit: env!("PACELINE_COMMIT").into() }
}

/// Writes to stdout. A reader that has gone (`| head`) is no failure.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes to stderr. Where nobody can be told, nothing is said.
pub fn message(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A results folder in the making.
pub struct Folder {
    partial: PathBuf,
    target: PathBuf,
    _lock: File,
    finished: bool,
}

impl Folder {
    /// Starts a folder that must not exist, or be empty.
    pub fn create(target: &Path) -> Outcome<Self> {
        if target.is_file() {
            return Err(Failure::input(format!("--out {}: is a file; name a folder", target.display())));
        }
        if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = format!("--out {}: exists and is not empty; name another folder", target.display());
            return Err(Failure::input(message));
        }
        let context = || format!("--out {}: cannot be written", target.display());
        // A link stands for the folder that it names.
        let folder = if target.is_symlink() { fs::canonicalize(target) } else { Ok(target.to_owned()) };
        let folder = folder.with_context(context).map_err(Failure::Input)?;
        let name = folder.file_name().ok_or_else(|| Failure::input("--out: not the name of a folder"))?;
        let partial = folder.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        let lock = claim(&partial).with_context(context).map_err(Failure::Input)?;
        Ok(Self { partial, target: folder, _lock: lock, finished: false })
    }
    /// Where a file of this name is to be written now.
    pub fn path(&self, name: &str) -> PathBuf {
        self.partial.join(name)
    }
    /// Writes the files of a summary and gives the folder its name.
    pub fn finish(mut self, scenario: &Scenario, summary: &Summary) -> anyhow::Result<()> {
        // The folder has what it needs to give the same figures again.
        let mut scenario = scenario.clone();
        for (key, file) in scenario.link.iter_mut().flat_map(|link| link.traces_mut()) {
            file.name = format!("{}.trace", key.rsplit('.').next().unwrap_or(key));
            let text = file.trace.as_ref().map_or(String::new(), |trace| trace.to_text());
            fs::write(self.path(&file.name), text).with_context(|| format!("cannot write {}", file.name))?;
        }
        let files = [
            ("resolved.toml", scenario.to_toml()),
            ("summary.json", summary.to_json()),
            ("stations.csv", summary.stations_csv()),
            ("flows.csv", summary.flows_csv()),
            ("timeseries.csv", summary.timeseries_csv()),
        ];
        for (name, text) in files {
            fs::write(self.path(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        let _ = fs::remove_dir(&self.target); // an empty one may stand there
        fs::rename(&self.partial, &self.target)
            .with_context(|| format!("cannot make {}", self.target.display()))?;
        self.finished = true;
        Ok(())
    }
}

/// Makes the folder to be filled, or takes over what an interrupted run left, but not that of a running one.
fn claim(partial: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(partial)?;
    let lock = File::open(partial)?;
    lock.try_lock().map_err(|_| anyhow::anyhow!("another run is writing its results there"))?;
    for entry in fs::read_dir(partial)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(lock)
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
