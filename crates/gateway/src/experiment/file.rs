//! The file in which an experiment outlives the gateway: JSON, replaced as a whole.

use crate::config::GatewayConfig;
use anyhow::{Context, bail};
use paceline_experiment::Experiment;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Longest file that is read, in bytes. Chosen: more than the most devices take.
const MAX_BYTES: u64 = 256 << 20;

/// The content of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// The experiment.
    pub experiment: Experiment,
    /// The operator has acceleration switched on again after harm.
    pub overruled: bool,
}

/// The configuration's file, or else one beside the control socket.
pub fn path(config: &GatewayConfig) -> PathBuf {
    let control = config.control.clone().unwrap_or_else(|| config.default_control());
    config.experiment.clone().unwrap_or_else(|| control.with_extension("experiment.json"))
}

/// Reads the file; None if there is none.
pub fn load(path: &Path) -> anyhow::Result<Option<Saved>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if file.metadata().map_or(0, |metadata| metadata.len()) > MAX_BYTES {
        bail!("{}: allowed: up to {MAX_BYTES} bytes", path.display());
    }
    let saved = serde_json::from_reader(std::io::BufReader::new(file));
    saved.map(Some).with_context(|| format!("{} is no experiment of this version", path.display()))
}

/// Replaces the file: it has the old or the new content at any time.
pub fn save(path: &Path, saved: &Saved) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    let context = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    let write = || -> anyhow::Result<()> {
        // A link in the place of the new file could name any other one: it is removed, and not followed.
        let _ = fs::remove_file(&new);
        let mut file = File::create_new(&new)?;
        file.write_all(&serde_json::to_vec(saved)?)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        Ok(())
    };
    write().inspect_err(|_| drop(fs::remove_file(&new))).with_context(context)
}
