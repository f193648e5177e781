//! The abilities of this host: privileges, devices and programs (`paceline doctor`).

use crate::linux::kernel::{Kernel, LOOPS, Need, PACED_CONTROLS, TCX};
use std::fs::{self, OpenOptions};
use std::process::{Command, Stdio};

/// One ability.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The name of the ability.
    pub name: &'static str,
    /// The reason why it is missing, and the remedy; None if the host has it.
    pub problem: Option<String>,
    /// Further information.
    pub detail: Option<String>,
    /// The oldest kernel on which it works, if it depends on the kernel's version.
    pub least_kernel: Option<String>,
}

/// Capability number of Linux (linux/capability.h): network administration.
const CAP_NET_ADMIN: u32 = 12;
/// Capability number of Linux (linux/capability.h): packet sockets.
const CAP_NET_RAW: u32 = 13;
/// Capability number of Linux (linux/capability.h): namespaces.
const CAP_SYS_ADMIN: u32 = 21;
/// A remark on `paceline police` without CAP_SYS_ADMIN.
const POLICE_WITHOUT_ADMIN: &str = "attach, apply and estimate, at devices without other programs; show and \
    detach need CAP_SYS_ADMIN too";
/// A remark on `paceline police` before Linux 6.6.
const POLICE_WITHOUT_TCX: &str =
    "by clsact, whose filters stay after kill -9 until the next attach or detach";
/// Capability number of Linux (linux/capability.h): real-time priority.
const CAP_SYS_NICE: u32 = 23;
/// Capability number of Linux (linux/capability.h): kernel programs that read packets.
const CAP_PERFMON: u32 = 38;
/// Capability number of Linux (linux/capability.h): kernel programs.
const CAP_BPF: u32 = 39;

fn has_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = set.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    bits & (1 << number) != 0
}

/// The reason why `paceline emulate` cannot work here, if there is one.
pub fn emulation() -> Option<String> {
    if !has_capability(CAP_NET_ADMIN) {
        return Some("needs CAP_NET_ADMIN for its TUN devices: run as root".into());
    }
    if !has_capability(CAP_SYS_ADMIN) {
        return Some("needs CAP_SYS_ADMIN to make a network namespace: run as root".into());
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Some(format!(
            "/dev/net/tun: {error}; load the kernel module `tun`, or give the container the device"
        ));
    }
    missing_ip()
}

fn missing_ip() -> Option<String> {
    (!has_program("ip", "-V")).then(|| "needs the command `ip` (Debian: apt-get install iproute2)".into())
}

/// Whether a program runs here; `version` is its option that prints its version.
pub(crate) fn has_program(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// The reason why this kernel is too old, which matters most: the others can be removed.
fn too_old(need: &Need, works: impl Fn() -> anyhow::Result<()>) -> Option<String> {
    let problem = Kernel::running()?.problem(need)?;
    // A distribution may have added the function to an older kernel.
    works().is_err().then_some(problem)
}

/// The reason why `paceline gateway` cannot work here, if there is one.
pub fn gateway() -> Option<String> {
    if let Some(problem) = too_old(&TCX, crate::gateway::trial) {
        return Some(problem);
    }
    let needed = [
        (CAP_NET_ADMIN, "CAP_NET_ADMIN to make a bridge and attach to interfaces"),
        (CAP_NET_RAW, "CAP_NET_RAW for its packet sockets"),
        (CAP_BPF, "CAP_BPF to load its kernel programs"),
        (CAP_PERFMON, "CAP_PERFMON to have them read packets"),
    ];
    if let Some((_, why)) = needed.iter().find(|(number, _)| !has_capability(*number)) {
        return Some(format!(
            "needs {why}: run as root, or give it CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON"
        ));
    }
    missing_ip().or_else(|| crate::gateway::trial().err().map(|error| format!("{error:#}")))
}

/// The reason why `paceline police` cannot work here, if there is one.
pub fn police() -> Option<String> {
    if let Some(problem) = too_old(&LOOPS, || crate::police::trial().map(|_| ())) {
        return Some(problem);
    }
    let needed = [
        (CAP_NET_ADMIN, "CAP_NET_ADMIN to attach to interfaces"),
        (CAP_BPF, "CAP_BPF to load its kernel programs"),
        (CAP_PERFMON, "CAP_PERFMON to have them read packets"),
    ];
    if let Some((_, why)) = needed.iter().find(|(number, _)| !has_capability(*number)) {
        return Some(format!(
            "needs {why}: run as root, or give it CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON, and CAP_SYS_ADMIN for \
             show and detach"
        ));
    }
    crate::police::trial().err().map(|error| format!("{error:#}"))
}

/// Remarks on `paceline police` on this host.
fn police_remarks() -> Option<String> {
    let without_tcx = crate::police::trial().is_ok_and(|has_tcx| !has_tcx);
    let without_admin = !has_capability(CAP_SYS_ADMIN);
    let remarks = [(without_tcx, POLICE_WITHOUT_TCX), (without_admin, POLICE_WITHOUT_ADMIN)];
    let remarks = remarks.into_iter().filter(|(is, _)| *is).map(|(_, remark)| remark.to_owned());
    // Without a pin, a policer ends with its process.
    let unpinned = crate::linux::bpf_fs::trial().err();
    let unpinned = unpinned.map(|error| format!("without --pin, which does not work: {error:#}"));
    let remarks: Vec<String> = remarks.chain(unpinned).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// The reason why `paceline pace` cannot work here, if there is one.
pub fn pace() -> Option<String> {
    if let Some(problem) = too_old(&PACED_CONTROLS, crate::pace::trial) {
        return Some(problem);
    }
    let needed = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON"), (CAP_NET_ADMIN, "CAP_NET_ADMIN")];
    if let Some((_, name)) = needed.iter().find(|(number, _)| !has_capability(*number)) {
        return Some(format!(
            "needs {name} to register a congestion control: run as root, or give it CAP_BPF, CAP_PERFMON, \
             CAP_NET_ADMIN"
        ));
    }
    crate::pace::trial().err().map(|error| format!("{error:#}"))
}

/// The reason why the registered controls of `paceline pace` cannot be found here, if there is one. Unlike
/// [`pace`] it registers nothing.
pub fn pace_show() -> Option<String> {
    (!has_capability(CAP_SYS_ADMIN))
        .then(|| "needs CAP_SYS_ADMIN to find the controls of other processes: run as root".into())
}

/// The available congestion controls of the kernel.
pub fn congestion_controls() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// All abilities, in the order in which they are printed.
pub fn all() -> Vec<Check> {
    let check = |name, problem, detail| {
        let need = match name {
            "gateway" => Some(TCX),
            "police" => Some(LOOPS),
            "pace" => Some(PACED_CONTROLS),
            _ => None,
        };
        Check { name, problem, detail, least_kernel: need.map(|need| need.least.to_string()) }
    };
    let current = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let priority = (!has_capability(CAP_SYS_NICE)).then(|| {
        "needs CAP_SYS_NICE: run as root; emulation works without it, but runs later on a busy machine"
            .to_owned()
    });
    let ipv6 =
        (!fs::exists("/proc/net/if_inet6").unwrap_or(false)).then(|| "the kernel has no IPv6".to_owned());
    vec![
        check("emulate", emulation(), None),
        check("gateway", gateway(), crate::gateway::firewall_remark()),
        check("police", police(), police_remarks()),
        check("pace", pace(), None),
        check("real-time priority", priority, None),
        check("IPv6", ipv6, None),
        check(
            "kernel TCP",
            None,
            Some(format!("{} by default; available: {}", current.trim(), congestion_controls().join(", "))),
        ),
    ]
}
