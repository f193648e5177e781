//! The abilities of this host: privileges, kernel, devices and programs.

use crate::kernel::{Kernel, Need};
use std::fs;
use std::process::{Command, Stdio};

/// Capability number of Linux (linux/capability.h): network administration.
pub const CAP_NET_ADMIN: u32 = 12;
/// Capability number of Linux (linux/capability.h): packet sockets.
pub const CAP_NET_RAW: u32 = 13;
/// Capability number of Linux (linux/capability.h): namespaces.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Capability number of Linux (linux/capability.h): real-time priority.
pub const CAP_SYS_NICE: u32 = 23;
/// Capability number of Linux (linux/capability.h): kernel programs that read packets.
pub const CAP_PERFMON: u32 = 38;
/// Capability number of Linux (linux/capability.h): kernel programs.
pub const CAP_BPF: u32 = 39;

/// Whether this process has a capability.
pub fn has_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = set.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    bits & (1 << number) != 0
}

/// The text with the first capability that this process does not have.
pub fn first_missing<'a>(needed: &[(u32, &'a str)]) -> Option<&'a str> {
    needed.iter().find(|(number, _)| !has_capability(*number)).map(|(_, text)| *text)
}

/// The reason why programs that set up devices cannot work here, if there is one.
pub fn missing_ip() -> Option<String> {
    (!has_program("ip", "-V")).then(|| "needs the command `ip` (Debian: apt-get install iproute2)".into())
}

/// Whether a program runs here; `version` is its option that prints its version.
pub fn has_program(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// The reason why this kernel is too old, which matters most: the others can be removed. A distribution may
/// have added the function to an older kernel, so `works` tries it.
pub fn too_old(need: &Need, works: impl Fn() -> anyhow::Result<()>) -> Option<String> {
    let problem = Kernel::running()?.problem(need)?;
    works().is_err().then_some(problem)
}

/// The available congestion controls of the kernel.
pub fn congestion_controls() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
