//! Network namespaces without names. The kernel removes them with the last process or descriptor that refers
//! to them, also after `kill -9`.

use crate::network::tun::Tun;
use anyhow::{Context, bail};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Parameters of TUN devices and of the connections through them.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkOptions {
    /// Congestion control of the connections; the host's default if absent.
    pub congestion_control: Option<String>,
    /// Payload bytes of a full TCP segment, without the 12 bytes of the timestamps option.
    pub segment_size: u64,
}

/// Smallest MTU of the devices, in bytes. Same as that of Ethernet (IEEE 802.3).
const MTU: u64 = 1500;
/// Bytes of IPv4 and TCP headers without options (RFC 791, RFC 9293).
const HEADERS_V4: u64 = 40;
/// Bytes of the timestamps option with padding (RFC 7323), which are not part of the MSS.
pub const TIMESTAMPS: u64 = 12;
/// Bytes of IPv6 and TCP headers without options (RFC 8200, RFC 9293).
const HEADERS_V6: u64 = 60;

impl LinkOptions {
    fn mtu(&self) -> u64 {
        MTU.max(self.segment_size + HEADERS_V4 + TIMESTAMPS)
    }
    /// Options of `ip route` for IPv4 and IPv6: the MSS announced in SYNs, and the congestion control.
    fn of_routes(&self) -> [String; 2] {
        let control =
            self.congestion_control.as_ref().map_or(String::new(), |name| format!(" congctl {name}"));
        [HEADERS_V4, HEADERS_V6].map(|headers| {
            format!(" advmss {}{control}", (self.segment_size + TIMESTAMPS).min(self.mtu() - headers))
        })
    }
}

/// A station's namespace.
pub struct Namespace {
    handle: File,
}

impl Namespace {
    /// Makes a namespace with a loopback device only.
    pub fn new() -> anyhow::Result<Self> {
        apart(|| Ok(Self { handle: own_handle()? }))
    }
    /// A path by which `ip` finds it, while this process has it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd())
    }
    /// Makes a namespace with a TUN device `name`, these addresses and a default route through the device.
    pub fn with_tun(
        name: &str,
        v4: Ipv4Addr,
        v6: Ipv6Addr,
        options: &LinkOptions,
    ) -> anyhow::Result<(Self, Tun)> {
        // A thread of its own changes its namespace, so that the caller keeps its own.
        let make = || -> anyhow::Result<(Self, Tun)> {
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
            let tun = Tun::create(name).context("cannot make a TUN device")?;
            ip(&["link set lo up".into()])?;
            let [of_v4, of_v6] = options.of_routes();
            let mut commands = device_commands(name, (v4, v6), options.mtu());
            commands.0.push(format!("route add default dev {name}{of_v4}"));
            commands.1.push(format!("-6 route add default dev {name}{of_v6}"));
            configure(&commands)?;
            Ok((Self { handle: own_handle()? }, tun))
        };
        std::thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|_| bail!("the thread panicked"))
    }
    /// A descriptor of it, which keeps it alive.
    pub fn handle(&self) -> anyhow::Result<File> {
        self.handle.try_clone().context("cannot duplicate the namespace's handle")
    }
    /// Runs `work` in a thread in this namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        let inside = || {
            setns(&self.handle, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")?;
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|_| bail!("the thread panicked"))
    }
    /// Makes `command` run in this namespace, and be killed when this process ends. `then` makes only system
    /// calls; it runs in the namespace.
    pub fn enter(
        &self,
        command: &mut Command,
        then: impl Fn() -> nix::Result<()> + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        let handle = self.handle()?;
        // SAFETY: between fork and exec only async-signal-safe system calls are made: setns, prctl, and those
        // by which `then` changes the user.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                setns(&handle, CloneFlags::CLONE_NEWNET)?;
                then()?;
                // A change of the user clears it (prctl(2)).
                prctl::set_pdeathsig(Signal::SIGKILL)?; // interactive shells ignore SIGTERM
                Ok(())
            });
        }
        Ok(())
    }
}

impl Namespace {
    /// The processes in this namespace.
    pub fn processes(&self) -> Vec<Pid> {
        let Ok(own) = self.handle.metadata().map(|handle| (handle.dev(), handle.ino())) else {
            return Vec::new();
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let inside = |pid: &i32| {
            let namespace = std::fs::metadata(format!("/proc/{pid}/ns/net"));
            namespace.is_ok_and(|namespace| (namespace.dev(), namespace.ino()) == own)
        };
        pids.filter(inside).map(Pid::from_raw).collect()
    }
}

/// The calling thread's namespace.
fn own_handle() -> anyhow::Result<File> {
    File::open("/proc/thread-self/ns/net").context("cannot open the namespace")
}

/// Runs `work` in a thread with a network namespace of its own, which has a loopback device only. Threads and
/// processes that `work` starts inherit the namespace.
pub fn apart<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
        ip(&["link set lo up".into()])?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|_| bail!("the thread panicked"))
}

/// Makes the host side's device: its addresses, and a route to each real station with its options. The other
/// addresses of these networks lead there too.
pub fn host_side(
    addresses: (Ipv4Addr, Ipv6Addr),
    networks: &(Vec<String>, Vec<String>),
    stations: &[((Ipv4Addr, Ipv6Addr), &LinkOptions)],
) -> anyhow::Result<Tun> {
    // The kernel replaces %d by the first free number.
    let tun = Tun::create("paceline%d").context("cannot make the host side's TUN device")?;
    let hint = "does another emulation run here? Each needs a namespace of its own on the host side, \
                such as `unshare --net paceline emulate ...`";
    let name = tun.name()?;
    let mtu = stations.iter().map(|(_, options)| options.mtu()).fold(MTU, u64::max);
    let mut commands = device_commands(&name, addresses, mtu);
    commands.0.extend(networks.0.iter().map(|network| format!("route add {network} dev {name}")));
    commands.1.extend(networks.1.iter().map(|network| format!("-6 route add {network} dev {name}")));
    for ((v4, v6), options) in stations {
        let [of_v4, of_v6] = options.of_routes();
        commands.0.push(format!("route add {v4}/32 dev {name}{of_v4}"));
        commands.1.push(format!("-6 route add {v6}/128 dev {name}{of_v6}"));
    }
    configure(&commands).map_err(|error| {
        let taken = error.to_string().contains("File exists");
        if taken { error.context(hint) } else { error }
    })?;
    Ok(tun)
}

/// Commands of `ip` for IPv4 and for IPv6.
type Commands = (Vec<String>, Vec<String>);

/// Commands that start a device and give it its addresses.
fn device_commands(name: &str, (v4, v6): (Ipv4Addr, Ipv6Addr), mtu: u64) -> Commands {
    let of_v4 = vec![format!("link set {name} mtu {mtu} up"), format!("addr add {v4}/32 dev {name}")];
    (of_v4, vec![format!("-6 addr add {v6}/128 dev {name} nodad")])
}

fn configure((of_v4, of_v6): &Commands) -> anyhow::Result<()> {
    ip(of_v4)?;
    // A host without IPv6 still emulates IPv4.
    if let Err(error) = ip(of_v6) {
        eprintln!("paceline: no IPv6 in this emulation: {error:#}");
    }
    Ok(())
}

/// Makes the calling thread's namespace forward packets, as far as `/proc` can be written.
pub fn forward() {
    for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let _ = std::fs::write(format!("/proc/sys/net/{key}"), "1");
    }
}

/// Runs `ip` commands in the calling thread's namespace.
pub fn ip(commands: &[String]) -> anyhow::Result<()> {
    commands.iter().try_for_each(|line| ip_output(line).map(|_| ()))
}

/// Runs an `ip` command and returns its output.
pub fn ip_output(line: &str) -> anyhow::Result<String> {
    run("ip", line)
}

/// Runs a program that configures the network, in the calling thread's namespace, and returns its output.
pub fn run(program: &str, line: &str) -> anyhow::Result<String> {
    let package = if program == "ethtool" { "ethtool" } else { "iproute2" };
    let output = Command::new(program)
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{program}` (Debian: apt-get install {package})"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {line}` failed: {}", message.trim().replace('\n', "; "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
