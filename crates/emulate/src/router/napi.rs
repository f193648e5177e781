//! Kernel threads that receive the packets of a device each (threaded NAPI, Linux's
//! Documentation/networking/napi.rst).

use anyhow::Context;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use paceline_linux::priority;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// The kernel threads of all devices on this host.
fn threads() -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one =
        |id: &i32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("napi/"));
    ids.filter(is_one).collect()
}

/// Gives a device of the calling thread's network namespace a kernel thread, which runs before the programs
/// of this host: else they would make batches of packets. Returns the thread; none if other devices got one
/// at the same time. The calling thread gets a mount namespace of its own.
pub fn start(device: &str) -> anyhow::Result<Option<i32>> {
    // /sys shows the network namespace in which it was mounted.
    unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace")?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .context("cannot separate the mounts")?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)
        .context("cannot mount /sys")?;
    let before = threads();
    fs::write(format!("/sys/class/net/{device}/threaded"), "1")
        .with_context(|| format!("{device}: no threaded NAPI (Linux 5.12)"))?;
    let new: Vec<i32> = threads().difference(&before).copied().collect();
    for thread in &new {
        priority::set_fifo(*thread, priority::PACKETS).context("cannot set a real-time priority")?;
    }
    Ok(match new[..] {
        [thread] => Some(thread),
        _ => None,
    })
}

/// CPU time of a thread (Linux's Documentation/scheduler/sched-stats.rst).
pub fn cpu_time(thread: i32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{thread}/schedstat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let first = text.split_whitespace().next().and_then(|first| first.parse().ok());
    Ok(Duration::from_nanos(first.with_context(|| format!("{path}: no time"))?))
}
