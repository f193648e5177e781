//! Links of policers in the BPF file system, which keep them when their process ends.
//!
//! A pin has the number of its link as its name: names of devices change, come back for other devices, and
//! are the same in several network namespaces. The pin of a link without a device is removed.

use anyhow::Context;
use paceline_linux::bpf::tcx;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The folder of the pins. Chosen: in the file system's usual place (systemd mounts it there).
const FOLDER: &str = "/sys/fs/bpf/paceline-police";

/// Pins links, each with the name of its program.
pub fn add<'a>(links: impl Iterator<Item = (&'a OwnedFd, &'a str)>) -> anyhow::Result<()> {
    fs::create_dir_all(FOLDER).with_context(|| format!("{FOLDER}: is a BPF file system mounted there?"))?;
    for (link, program) in links {
        let id = tcx::id(link).context("cannot read a link")?;
        let path = Path::new(FOLDER).join(format!("{id}-{program}"));
        tcx::pin(link, &path).with_context(|| format!("cannot pin {}", path.display()))?;
    }
    Ok(())
}

/// Removes the pins of links that are at no device: it is gone, or they were detached.
pub fn remove_stale() {
    remove_stale_in(Path::new(FOLDER));
}

fn remove_stale_in(folder: &Path) {
    // Without the folder there are no pins; one that may not be read is another user's.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<PathBuf>>() {
        if path.is_dir() {
            remove_stale_in(&path); // earlier versions had a folder for each device
        } else if tcx::open_pin(&path).is_ok_and(|link| matches!(tcx::interface(&link), Ok(None))) {
            let _ = fs::remove_file(&path);
        }
    }
    let _ = fs::remove_dir(folder); // fails while pins are in it
}
