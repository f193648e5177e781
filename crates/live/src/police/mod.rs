//! The ACK policer in the kernel: loads the programs of `bpf/police.bpf.c`, attaches them to both hooks of an
//! interface, and reads their counters. The decision is that of [`paceline_pep::ack_policer`].
//!
//! [`Police`] is a policer that this process attached. [`find`] gives the policers at an interface, those of
//! other processes too, to show or detach them.

mod layout;
mod report;

pub use report::{FlowReport, Report};

use crate::gateway::link_type;
use crate::tcx::{self, Hook};
use anyhow::{Context, anyhow, bail};
use ipnet::IpNet;
use layout::ONLY;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};
pub use paceline_pep::ack_policer::{
    Frame, FrameKey, FramePolicer, Limit, Link, Mode, PolicerConfig, Policy, Reason, parse,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/police.bpf.o"));
/// Names of the programs, by which they are found.
const POLICE: &str = "police";
const OBSERVE: &str = "observe";

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
}

impl PoliceConfig {
    /// Checks what the types allow and the programs do not.
    pub fn check(&self) -> Result<(), String> {
        PolicerConfig { policy: self.policy, per_flow: self.per_flow }.check()
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
            .context("the kernel refuses the policer's programs (Linux 6.6 or newer is needed)")?;
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
        self.map("policies")?
            .update(&ONLY, &policy.to_bytes(), MapFlags::ANY)
            .context("cannot set the policy")
    }
    fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        let map = self.0.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| anyhow!("the program has no map {name}"))?;
        MapHandle::try_from(&map).with_context(|| format!("cannot open the map {name}"))
    }
    fn attach(&self, name: &str, interface: u32, hook: Hook) -> anyhow::Result<OwnedFd> {
        let program = self.0.progs().find(|program| program.name() == name);
        let program = program.ok_or_else(|| anyhow!("there is no program {name}"))?;
        tcx::attach(program.as_fd(), interface, hook)
            .context("cannot attach to the interface (TCX needs Linux 6.6 or newer)")
    }
}

/// A policer that this process attached; it ends with the process, unless it is pinned.
pub struct Police {
    _loaded: Loaded,
    links: [OwnedFd; 2],
    interface: u32,
    direction: Hook,
}

impl Police {
    /// Attaches a policer to a device. Fails if one is there.
    pub fn attach(device: &str, config: &PoliceConfig) -> anyhow::Result<Self> {
        let interface = interface(device)?;
        if !find(interface)?.is_empty() {
            bail!("{device}: a policer is attached already; detach it first, or see `paceline police show`");
        }
        let loaded = Loaded::new(config, is_ip_link(device)?, false)?;
        // First the reader of data, so that no ACK is judged without it.
        let reader = loaded.attach(OBSERVE, interface, config.direction.opposite())?;
        let judge = loaded.attach(POLICE, interface, config.direction)?;
        Ok(Self { _loaded: loaded, links: [reader, judge], interface, direction: config.direction })
    }
    /// Whether nobody has detached it.
    pub fn is_attached(&self) -> bool {
        find(self.interface).is_ok_and(|found| found.iter().any(|one| one.direction == self.direction))
    }
    /// Keeps the programs at their hooks when this process ends.
    pub fn pin(&self, device: &str) -> anyhow::Result<()> {
        let folder = pin_folder(device);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{}: is a BPF file system mounted there?", folder.display()))?;
        for (link, name) in self.links.iter().zip([OBSERVE, POLICE]) {
            let path = folder.join(name);
            tcx::pin(link, &path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        Ok(())
    }
}

/// Programs of the policer at a device: tries to load them, and to attach them to the loopback device for a
/// moment.
pub fn trial() -> anyhow::Result<()> {
    let print = libbpf_rs::set_print(None); // the verifier's log is pages long
    let policy = Policy { mode: Mode::Safe, limit: Limit::Share(0), max_segments: Policy::MAX_SEGMENTS };
    let (per_flow, direction, gtp, exempt, dry_run) = (true, Hook::Ingress, false, Vec::new(), false);
    let config = PoliceConfig { policy, per_flow, direction, gtp, exempt, dry_run };
    let loaded = Loaded::new(&config, false, false);
    libbpf_rs::set_print(print);
    loaded?.attach(POLICE, interface("lo")?, Hook::Ingress).map(|_| ())
}

/// A policer at an interface, of this or of another process.
pub struct Found {
    /// Where it drops ACKs.
    pub direction: Hook,
    links: Vec<u32>,
    maps: Vec<u32>,
}

/// The policers at an interface: none or one, two if both directions are policed.
pub fn find(interface: u32) -> anyhow::Result<Vec<Found>> {
    let at = |hook| tcx::attached(interface, hook).context("cannot list the programs of the interface");
    let hooks = [(Hook::Ingress, at(Hook::Ingress)?), (Hook::Egress, at(Hook::Egress)?)];
    let ours: Vec<_> = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
        .filter(|program| [POLICE, OBSERVE].iter().any(|name| program.name == *name))
        .collect();
    let mut found = Vec::new();
    for (hook, programs) in &hooks {
        for attached in programs {
            let Some(program) = ours.iter().find(|one| one.id == attached.program) else { continue };
            if program.name == POLICE {
                found.push(Found {
                    direction: *hook,
                    links: vec![attached.link],
                    maps: program.map_ids.clone(),
                });
            }
        }
    }
    for one in &mut found {
        let opposite = hooks.iter().find(|(hook, _)| *hook != one.direction).map(|(_, programs)| programs);
        for attached in opposite.into_iter().flatten() {
            let is_reader = |program: &&_| reads_for(program, attached.program, &one.maps);
            if ours.iter().any(|program| is_reader(&program)) {
                one.links.push(attached.link);
            }
        }
    }
    Ok(found)
}

/// Whether a program is the reader of data that shares its maps with a policer.
fn reads_for(program: &libbpf_rs::query::ProgramInfo, id: u32, maps: &[u32]) -> bool {
    program.id == id && program.name == OBSERVE && program.map_ids.iter().any(|map| maps.contains(map))
}

impl Found {
    /// Takes both programs from their hooks, and removes what was pinned.
    pub fn detach(&self, device: &str) -> anyhow::Result<()> {
        for link in &self.links {
            tcx::detach(*link).context("cannot detach")?;
        }
        let folder = pin_folder(device);
        for name in [OBSERVE, POLICE] {
            let _ = std::fs::remove_file(folder.join(name)); // it may not be pinned
        }
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }
    /// Its configuration and counters, with the connections it remembers, busiest first.
    pub fn report(&self) -> anyhow::Result<Report> {
        report::read(self.direction, |name| self.map(name))
    }
    fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        for id in &self.maps {
            let map = MapHandle::from_map_id(*id).context("cannot open a map")?;
            if map.name() == name {
                return Ok(map);
            }
        }
        bail!("the policer has no map {name}")
    }
}

/// The programs on frames of a test instead of an interface's (`BPF_PROG_TEST_RUN`).
pub struct Bench(Loaded);

impl Bench {
    /// Loads the programs; times come with the frames.
    pub fn new(config: &PoliceConfig) -> anyhow::Result<Self> {
        Loaded::new(config, false, true).map(Self)
    }
    /// The program's decision on a frame in the policed direction, as a number of
    /// [`paceline_pep::ack_policer::Reason`]; `None` for a frame without a segment.
    pub fn police(&self, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<Option<u8>> {
        let value = self.run(POLICE, frame, now, super_segment)?;
        Ok(value.checked_sub(layout::TEST_REASON).and_then(|reason| u8::try_from(reason).ok()))
    }
    /// Shows the program a frame in the data direction.
    pub fn observe(&self, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<()> {
        self.run(OBSERVE, frame, now, super_segment).map(|_| ())
    }
    /// Connections in the program's table.
    pub fn flows(&self) -> anyhow::Result<usize> {
        Ok(self.0.map("flows")?.keys().count())
    }
    fn run(&self, name: &str, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<u32> {
        let program = self.0.0.progs_mut().find(|program| program.name() == name);
        let mut context = [0; layout::SK_BUFF_SIZE as usize];
        let mut put = |at: u32, bytes: &[u8]| context[at as usize..][..bytes.len()].copy_from_slice(bytes);
        put(layout::SK_BUFF_TSTAMP, &now.to_ne_bytes());
        put(layout::SK_BUFF_GSO_SIZE, &super_segment.to_ne_bytes());
        let input =
            ProgramInput { data_in: Some(frame), context_in: Some(&mut context), ..Default::default() };
        let output = program.ok_or_else(|| anyhow!("there is no program {name}"))?.test_run(input)?;
        Ok(output.return_value)
    }
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

fn prefix(network: &IpNet) -> layout::Prefix {
    let (address, len) = match network.trunc() {
        IpNet::V4(v4) => (v4.addr().to_ipv6_mapped(), u32::from(v4.prefix_len()) + 96),
        IpNet::V6(v6) => (v6.addr(), v6.prefix_len().into()),
    };
    layout::Prefix { len, address: address.octets() }
}

/// The index of a device.
pub fn interface(device: &str) -> anyhow::Result<u32> {
    nix::net::if_::if_nametoindex(device).with_context(|| format!("{device}: no such network device"))
}

/// Whether frames of a device begin with an IP header.
fn is_ip_link(device: &str) -> anyhow::Result<bool> {
    match link_type(device).with_context(|| format!("{device}: link type"))? {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(false),
        kind if link_type::is_bare(kind) => Ok(true),
        kind => bail!("{device}: link type {kind} is neither Ethernet nor plain IP"),
    }
}

/// The link type of a device (ARPHRD numbers of linux/if_arp.h).
fn link_type(device: &str) -> io::Result<u16> {
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    // SAFETY: all-zero bytes are a valid request.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = device.as_bytes().iter().take(request.ifr_name.len() - 1);
    request.ifr_name.iter_mut().zip(name).for_each(|(to, from)| *to = *from as libc::c_char);
    // SAFETY: the request has the type that this call reads and writes; it answers with a hardware address.
    #[allow(unsafe_code)]
    unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(request.ifr_ifru.ifru_hwaddr.sa_family)
    }
}

fn pin_folder(device: &str) -> PathBuf {
    Path::new("/sys/fs/bpf/paceline-police").join(device)
}
