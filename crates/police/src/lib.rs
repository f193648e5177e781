//! The ACK policer in the kernel: loads the programs of `bpf/police.bpf.c`, attaches them to both hooks of an
//! interface, and reads their counters. The decision is that of [`paceline_pep::ack_policer`].
//!
//! [`Police`] is a policer that this process attached. [`find`] gives the policers at an interface, those of
//! other processes too, to show or detach them.

mod ability;
mod attached;
mod bench;
mod clsact;
mod device;
mod found;
mod layout;
mod owner;
mod pins;
mod report;

pub use ability::{problem, remarks};
pub use attached::{Police, State};
pub use bench::{Bench, run_times};
pub use device::interface;
pub use found::{Found, find};
pub use report::{FlowReport, Report};

use anyhow::{Context, anyhow};
use ipnet::IpNet;
use layout::ONLY;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, Program};
use paceline_linux::bpf::tcx::{self, Hook};
pub use paceline_pep::ack_policer::{
    FirstHeader, Frame, FrameKey, FramePolicer, Limit, Mode, PolicerConfig, Policy, Reason, parse,
};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/police.bpf.o"));
/// Names of the programs. Programs are found by them and by the name of a map.
const POLICE: &str = "police";
const OBSERVE: &str = "observe";
/// The map of the policy; its name marks the programs as those of a policer.
const POLICY_MAP: &str = "paceline_police";

/// How the programs are attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Via {
    /// By TCX where the kernel has it, else by clsact.
    #[default]
    Auto,
    /// By links at the TCX hooks (Linux 6.6): the kernel removes them with the process.
    Tcx,
    /// By filters of the clsact qdisc: they outlive a killed process.
    Clsact,
}

/// The configuration of a policer.
#[derive(Clone, PartialEq, Debug)]
pub struct PoliceConfig {
    /// Which ACKs are dropped.
    pub policy: Policy,
    /// One limit for each connection instead of one for all together.
    pub per_flow: bool,
    /// The hook at which ACKs are dropped; data is read at the other one.
    pub direction: Hook,
    /// Whether to look into GTP-U.
    pub gtp: bool,
    /// Networks whose packets pass.
    pub exempt: Vec<IpNet>,
    /// Whether to decide and count only: every packet passes.
    pub dry_run: bool,
    /// How the programs are attached.
    pub via: Via,
}

impl PoliceConfig {
    /// Checks what the types allow and the programs do not.
    pub fn check(&self) -> Result<(), String> {
        let (count, most) = (self.exempt.len(), layout::MAX_PREFIXES as usize);
        if count > most {
            return Err(format!("exempt: {count} networks; allowed: at most {most}"));
        }
        PolicerConfig { policy: self.policy, per_flow: self.per_flow }.check()
    }
    /// Whether packets of a connection pass because of their addresses, as the kernel program decides.
    pub fn exempts(&self, key: &FrameKey) -> bool {
        let contains = |network: &IpNet, end: [u8; 16]| match (network, key.version) {
            (IpNet::V4(_), 4) => network.contains(&layout::address(end)),
            (IpNet::V6(v6), 6) => v6.contains(&Ipv6Addr::from(end)),
            _ => false,
        };
        self.exempt.iter().any(|network| contains(network, key.src) || contains(network, key.dst))
    }
}

/// The programs, loaded.
struct Loaded(Object);

impl Loaded {
    fn new(config: &PoliceConfig, is_ip_link: bool, test_clock: bool) -> anyhow::Result<Self> {
        let object = ObjectBuilder::default()
            .name("paceline_police")
            .and_then(|builder| builder.open_memory(PROGRAMS))
            .and_then(libbpf_rs::OpenObject::load)
            .context("the kernel refuses the policer's programs")?;
        let loaded = Self(object);
        loaded.configure(config, is_ip_link, test_clock)?;
        Ok(loaded)
    }
    fn configure(&self, config: &PoliceConfig, is_ip_link: bool, test_clock: bool) -> anyhow::Result<()> {
        let exempt = self.map("exempt")?;
        for network in &config.exempt {
            exempt.update(&prefix(network).to_bytes(), &[1], MapFlags::ANY).context("exempt")?;
        }
        let policy = policy(config, is_ip_link, test_clock);
        self.map(POLICY_MAP)?
            .update(&ONLY, &policy.to_bytes(), MapFlags::ANY)
            .context("cannot set the policy")
    }
    fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        let map = self.0.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| anyhow!("the program has no map {name}"))?;
        MapHandle::try_from(&map).with_context(|| format!("cannot open the map {name}"))
    }
    fn id(&self, name: &str) -> anyhow::Result<u32> {
        let program = self.0.progs().find(|program| program.name() == name);
        let program = program.ok_or_else(|| anyhow!("there is no program {name}"))?;
        Program::id_from_fd(program.as_fd()).context("cannot read the program")
    }
    fn program(&self, name: &str) -> anyhow::Result<BorrowedFd<'_>> {
        let program = self.0.progs().find(|program| program.name() == name);
        let program = program.ok_or_else(|| anyhow!("there is no program {name}"))?;
        // SAFETY: the descriptor is open as long as this value.
        #[allow(unsafe_code)]
        Ok(unsafe { BorrowedFd::borrow_raw(program.as_fd().as_raw_fd()) })
    }
}

/// Tries to load the programs, and to attach one to the loopback device for a moment. Whether the kernel has
/// TCX.
pub fn trial() -> anyhow::Result<bool> {
    let print = libbpf_rs::set_print(None); // the verifier's log is pages long
    let policy = Policy { mode: Mode::Safe, limit: Limit::Share(0), max_segments: Policy::MAX_SEGMENTS };
    let (per_flow, direction, gtp, exempt, dry_run) = (true, Hook::Ingress, false, Vec::new(), false);
    let config = PoliceConfig { policy, per_flow, direction, gtp, exempt, dry_run, via: Via::Auto };
    let loaded = Loaded::new(&config, false, false);
    libbpf_rs::set_print(print);
    match tcx::attach(loaded?.program(POLICE)?, interface("lo")?, Hook::Ingress) {
        Err(error) if is_without_tcx(&error) => Ok(false),
        result => result.map(|_| true).context("cannot attach to an interface"),
    }
}

/// Whether an attachment failed because the kernel has no TCX: it does not know the kind.
fn is_without_tcx(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

fn policy(config: &PoliceConfig, is_ip_link: bool, test_clock: bool) -> layout::Policy {
    let mut policy = layout::Policy {
        max_segments: config.policy.max_segments,
        exempt: config.exempt.len() as u32,
        mode: match config.policy.mode {
            Mode::Safe => layout::MODE_SAFE as u8,
            Mode::Published => layout::MODE_PUBLISHED as u8,
        },
        per_flow: config.per_flow.into(),
        gtp: config.gtp.into(),
        dry_run: config.dry_run.into(),
        ip_link: is_ip_link.into(),
        test_clock: test_clock.into(),
        ..layout::Policy::default()
    };
    match config.policy.limit {
        Limit::Rate { bytes_per_s, burst } => {
            (policy.limit, policy.bytes_per_s, policy.burst) = (layout::LIMIT_RATE as u8, bytes_per_s, burst);
        }
        Limit::Share(share) => (policy.limit, policy.share) = (layout::LIMIT_SHARE as u8, share),
        Limit::PerRtt(count) => (policy.limit, policy.per_rtt) = (layout::LIMIT_PER_RTT as u8, count),
    }
    policy
}

/// The key of a network; the 32 bits of the version come before the address.
fn prefix(network: &IpNet) -> layout::Prefix {
    let (version, address, len) = match network.trunc() {
        IpNet::V4(v4) => (4, v4.addr().to_ipv6_mapped(), u32::from(v4.prefix_len()) + 96),
        IpNet::V6(v6) => (6, v6.addr(), v6.prefix_len().into()),
    };
    layout::Prefix { len: 32 + len, version, address: address.octets() }
}
