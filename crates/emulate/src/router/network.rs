//! Server, router, bridge and client: four network namespaces in a row.

use super::napi;
use anyhow::{Context, bail};
use paceline_linux::ability::has_program;
use paceline_linux::network::netns::{Namespace, ip, run};
use paceline_reproduce::host::Setting;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Burst of the shaper, bytes. Chosen: ten packets, since timers of a virtual machine may be 1 ms late.
const SHAPER_BURST: u32 = 15_200;
/// Preamble, checksum and gap of an Ethernet frame, bytes (IEEE 802.3), which a shaper does not see.
const FRAME_OVERHEAD: u32 = 24;
/// Largest packet that GRO makes, bytes: too small for two segments, so that nothing is merged.
const NO_GRO: u32 = 1000;

/// Address of the server. Chosen: private networks (RFC 1918), seen in these namespaces alone.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 20, 0, 2);
/// Addresses of the client, of which the second one may be exempt. Chosen: as [`SERVER`].
pub const CLIENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 21, 0, 2), Ipv4Addr::new(10, 21, 0, 3)];
/// The bridge's device towards the client.
pub const SOUTH: &str = "south";

/// A device of the router.
pub struct RouterDevice {
    name: &'static str,
    /// Its place in [`Network::received`].
    pub index: usize,
}

/// Towards the server. Chosen: any name.
pub const WIRED: RouterDevice = RouterDevice { name: "wired", index: 0 };
/// Towards the clients. Chosen: any name.
pub const ACCESS: RouterDevice = RouterDevice { name: "access", index: 1 };

/// The reason why this host cannot measure, if there is one.
pub fn problem() -> Option<String> {
    crate::problem().or_else(paceline_police::problem).or_else(|| {
        let missing = [("tc", "-V"), ("ethtool", "--version")]
            .into_iter()
            .find(|(program, version)| !has_program(program, version));
        missing.map(|(program, _)| {
            let package = if program == "tc" { "iproute2" } else { program };
            format!("needs the command `{program}` (Debian: apt-get install {package})")
        })
    })
}

/// The namespaces of one setting; the kernel removes them when it is dropped.
pub struct Network {
    pub server: Namespace,
    router: Namespace,
    pub bridge: Namespace,
    pub client: Namespace,
    /// Kernel threads that receive the packets of the router's devices.
    threads: Vec<i32>,
}

impl Network {
    /// Builds it for a setting.
    pub fn build(setting: &Setting) -> anyhow::Result<Self> {
        let [server, router, bridge, client] =
            [Namespace::new()?, Namespace::new()?, Namespace::new()?, Namespace::new()?];
        let mut network = Self { server, router, bridge, client, threads: Vec::new() };
        network.link((&network.server, "eth0"), (&network.router, WIRED.name))?;
        network.link((&network.router, ACCESS.name), (&network.bridge, "north"))?;
        network.link((&network.bridge, SOUTH), (&network.client, "eth0"))?;
        network.address(setting)?;
        network.start_threads()?;
        Ok(network)
    }

    /// Connects two namespaces. GRO gives a device its own NAPI context; it must not merge packets.
    fn link(
        &self,
        (one, device): (&Namespace, &str),
        (other, peer): (&Namespace, &str),
    ) -> anyhow::Result<()> {
        let (there, own) = (other.path(), device);
        one.inside(|| ip(&[format!("link add name {own} type veth peer name {peer} netns {there}")]))?;
        for (namespace, end) in [(one, device), (other, peer)] {
            namespace.inside(|| {
                run("ethtool", &format!("-K {end} tso off gso off gro on"))?;
                ip(&[format!("link set dev {end} gro_max_size {NO_GRO}"), format!("link set {end} up")])
            })?;
        }
        Ok(())
    }

    fn address(&self, setting: &Setting) -> anyhow::Result<()> {
        let Setting { rate_mbps, queue_bytes, .. } = setting;
        self.server.inside(|| {
            ip(&[format!("addr add {SERVER}/24 dev eth0"), "route add default via 10.20.0.1".into()])?;
            run(
                "tc",
                &format!(
                    "qdisc add dev eth0 root tbf rate {rate_mbps}mbit burst {SHAPER_BURST} limit \
                     {queue_bytes} overhead {FRAME_OVERHEAD}"
                ),
            )
            .map(|_| ())
        })?;
        self.router.inside(|| {
            ip(&[
                format!("addr add 10.20.0.1/24 dev {}", WIRED.name),
                format!("addr add 10.21.0.1/24 dev {}", ACCESS.name),
            ])?;
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot make the router forward")
        })?;
        self.bridge.inside(|| {
            ip(&["link add name br0 type bridge".into(), "link set br0 up".into()])?;
            ip(&["north", SOUTH].map(|port| format!("link set {port} master br0")))
        })?;
        self.client.inside(|| {
            ip(&CLIENTS.map(|address| format!("addr add {address}/24 dev eth0")))?;
            ip(&["route add default via 10.21.0.1".into()])
        })
    }

    fn start_threads(&mut self) -> anyhow::Result<()> {
        for (namespace, device) in
            [(&self.server, "eth0"), (&self.bridge, "north"), (&self.bridge, SOUTH), (&self.client, "eth0")]
        {
            namespace.inside(|| napi::start(device))?;
        }
        for device in [WIRED.name, ACCESS.name] {
            let Some(thread) = self.router.inside(|| napi::start(device))? else {
                bail!(
                    "the kernel thread of the router's device {device} is not known: does another measurement run?"
                );
            };
            self.threads.push(thread);
        }
        Ok(())
    }

    /// CPU time of the router's threads.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        self.threads.iter().map(|thread| napi::cpu_time(*thread)).sum()
    }

    /// Packets that the router's devices have received: [`WIRED`], [`ACCESS`].
    pub fn received(&self) -> anyhow::Result<[u64; 2]> {
        let table = self.router.inside(|| {
            std::fs::read_to_string("/proc/thread-self/net/dev").context("cannot read the devices' counters")
        })?;
        let packets = |device: &RouterDevice| {
            let line =
                table.lines().find_map(|line| line.trim().strip_prefix(device.name)?.strip_prefix(':'));
            let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            packets.with_context(|| format!("no counters of {}", device.name))
        };
        Ok([packets(&WIRED)?, packets(&ACCESS)?])
    }
}
