//! Network namespaces without names: they live as long as a process or descriptor holds them, so that nothing is
//! left behind, not even after `kill -9`.

use crate::tun::Tun;
use anyhow::{Context, bail};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// MTU of the devices.
const MTU: u32 = 1500;

/// A station's namespace.
pub struct Namespace {
    handle: File,
}

impl Namespace {
    /// Makes a namespace with a TUN device `name`, these addresses and a default route through the device.
    pub fn with_tun(name: &str, v4: Ipv4Addr, v6: Ipv6Addr) -> anyhow::Result<(Self, Tun)> {
        // A namespace belongs to a thread: one is spent on this, and the caller stays where it is.
        let make = || -> anyhow::Result<(Self, Tun)> {
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
            let tun = Tun::create(name).context("cannot make a TUN device")?;
            ip(
                "",
                &format!(
                    "link set lo up\nlink set {name} mtu {MTU} up\naddr add {v4}/32 dev {name}\nroute add default dev {name}\n"
                ),
            )?;
            // A host without IPv6 still emulates IPv4.
            let v6_result =
                ip("-6", &format!("addr add {v6}/128 dev {name} nodad\nroute add default dev {name}\n"));
            if let Err(error) = v6_result {
                eprintln!("paceline: no IPv6 in the emulation: {error:#}");
            }
            let handle = File::open("/proc/thread-self/ns/net").context("cannot open the namespace")?;
            Ok((Self { handle }, tun))
        };
        std::thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|_| bail!("the thread panicked"))
    }
    /// Lets `command` run in this namespace, and end when this process ends.
    pub fn enter(&self, command: &mut Command) -> anyhow::Result<()> {
        let handle = self.handle.try_clone().context("cannot duplicate the namespace's handle")?;
        // SAFETY: between fork and exec only async-signal-safe system calls are made: setns and prctl.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                setns(&handle, CloneFlags::CLONE_NEWNET)?;
                prctl::set_pdeathsig(Signal::SIGTERM)?;
                Ok(())
            });
        }
        Ok(())
    }
}

/// Makes the host side's device: its addresses, and routes to the stations.
pub fn host_side(name: &str, v4: Ipv4Addr, v6: Ipv6Addr, stations: (&str, &str)) -> anyhow::Result<Tun> {
    let tun = Tun::create(name).with_context(|| format!("cannot make the TUN device {name}"))?;
    ip(
        "",
        &format!(
            "link set {name} mtu {MTU} up\naddr add {v4}/32 dev {name}\nroute add {} dev {name}\n",
            stations.0
        ),
    )?;
    let v6_result =
        ip("-6", &format!("addr add {v6}/128 dev {name} nodad\nroute add {} dev {name}\n", stations.1));
    if let Err(error) = v6_result {
        eprintln!("paceline: no IPv6 at the host side: {error:#}");
    }
    Ok(tun)
}

/// Runs a batch of `ip` commands in the calling thread's namespace.
fn ip(family: &str, batch: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command.args(Some(family).filter(|family| !family.is_empty())).args(["-batch", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run `ip` (Debian: apt-get install iproute2)")?;
    child.stdin.take().context("no pipe to `ip`")?.write_all(batch.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("`ip` failed: {}", String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "));
    }
    Ok(())
}
