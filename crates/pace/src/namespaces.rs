//! The network namespaces of this host and their default congestion controls. A namespace keeps a control
//! that is its default, also after the end of the process that registered it.

use anyhow::{Context, anyhow};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The default congestion control of the calling thread's namespace.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Folder of the names that `ip netns` gives.
const NAMES: &str = "/run/netns";
/// Defaults in place of a control that has ended, the first that the kernel has (tcp(7): Reno always is).
const FALLBACKS: [&str; 2] = ["cubic", "reno"];

/// The paths of those with `name` as the default.
pub fn with_default(name: &str) -> anyhow::Result<Vec<String>> {
    visit(|| {
        let default = fs::read_to_string(DEFAULT).unwrap_or_default();
        Ok(default.trim() == name)
    })
}

/// Gives those with `name` as the default that of the caller's namespace, or a fallback.
pub fn take_default(name: &str) -> anyhow::Result<()> {
    let own = fs::read_to_string(DEFAULT).unwrap_or_default();
    let own = Some(own.trim()).filter(|own| *own != name);
    let all: Vec<&str> = own.into_iter().chain(FALLBACKS).collect();
    change_default(name, &all)
}
/// Gives those whose default is an earlier control of this name the one that now has it.
pub fn renew_default(name: &str) -> anyhow::Result<()> {
    change_default(name, &[name])
}

fn change_default(from: &str, to: &[&str]) -> anyhow::Result<()> {
    let change = || {
        let default = fs::read_to_string(DEFAULT).unwrap_or_default();
        let is_other = default.trim() != from;
        if is_other || to.iter().any(|name| fs::write(DEFAULT, name).is_ok()) {
            return Ok(!is_other);
        }
        Err(anyhow!("cannot change {DEFAULT}"))
    };
    visit(change).map(|_| ())
}

/// Calls `look` in each namespace. Returns the paths of those for which it is true.
fn visit(look: impl Fn() -> anyhow::Result<bool> + Sync) -> anyhow::Result<Vec<String>> {
    // A thread of its own changes its namespace, so that the caller keeps its own.
    let inside = || -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for (path, handle) in all() {
            let at = || path.display().to_string();
            match setns(&handle, CloneFlags::CLONE_NEWNET) {
                // The name of a namespace that is being made, or has ended, is an empty file.
                Err(Errno::EINVAL) => continue,
                entered => entered.with_context(at)?,
            }
            if look().with_context(at)? {
                found.push(at());
            }
        }
        Ok(found)
    };
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|_| Err(anyhow!("the thread panicked")))
}

/// Each namespace once, with a name if it has one, else by a process in it.
fn all() -> Vec<(PathBuf, File)> {
    let names = entries(NAMES).into_iter();
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let processes = entries("/proc").into_iter().filter(is_process).map(|path| path.join("ns/net"));
    let mut seen = BTreeSet::new();
    let mut open = |path: &Path| {
        let handle = File::open(path).ok()?; // a process may have ended
        let metadata = handle.metadata().ok()?;
        seen.insert((metadata.dev(), metadata.ino())).then_some(handle)
    };
    names.chain(processes).filter_map(|path| open(&path).map(|handle| (path, handle))).collect()
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}
