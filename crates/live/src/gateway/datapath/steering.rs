//! The kernel's part (`bpf/gateway.bpf.c`): what the workers get, and what goes on in the kernel.
//!
//! It is attached by a `bpf_link`, which is gone with the process however that ends. A worker that does not stamp its
//! pulse in time gets nothing, so that a hung process is passed by as well.

use super::socket::PacketSocket;
use crate::gateway::config::{GatewayConfig, MAX_WORKERS};
use crate::gateway::counter::Counter;
use crate::gateway::interfaces::ports::{Bridge, Ports, Role};
use crate::gateway::policy::{Action, Key, mapped, rules};
use anyhow::{Context, anyhow, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use paceline_net::{Duration, FlowKey};
use paceline_pep::ack_filter::{Group, Holdout, Sent};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A worker without a stamp for so long gets no packets: the bypass takes less than 100 ms. Shorter, a busy machine would
/// be taken for a hung process.
pub const STALE: Duration = Duration::from_millis(80);

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gateway.bpf.o"));

/// Where `struct settings` has the bridge's address.
const BRIDGE: std::ops::Range<usize> = 24..30;
/// And the longest frame that goes from port to port in the kernel.
const ACROSS: std::ops::Range<usize> = 32..36;
/// A policy of the kernel's program alone: the workers decide, and may filter.
const MAY_FILTER: u32 = 4;

/// The loaded programs, attached to both interfaces.
pub struct Steering {
    object: Object,
    _attached: Vec<OwnedFd>,
}

/// What a worker tells the kernel's part.
pub struct Pulse {
    pulses: MapHandle,
    left_alone: MapHandle,
    worker: u32,
}

/// Loads the programs and attaches what would take nothing to the loopback device, for a moment.
pub fn trial() -> anyhow::Result<()> {
    let print = libbpf_rs::set_print(None); // the verifier's pages
    let steering = Steering::load();
    libbpf_rs::set_print(print);
    let loopback = nix::net::if_::if_nametoindex("lo").context("there is no loopback device")?;
    attach_ingress(steering?.program("gateway_ingress")?, loopback)
        .context("the kernel has no TCX: Linux 6.6 or newer is needed")?;
    PacketSocket::open().context("cannot open a packet socket").map(|_| ())
}

impl Steering {
    fn load() -> anyhow::Result<Self> {
        let object = ObjectBuilder::default()
            .name("paceline_gateway")
            .and_then(|builder| builder.open_memory(PROGRAMS))
            .and_then(libbpf_rs::OpenObject::load)
            .context("the kernel refuses the gateway's programs (Linux 6.6 or newer is needed)")?;
        Ok(Self { object, _attached: Vec::new() })
    }
    /// Loads and attaches the programs. Nothing is taken before a worker stamps its pulse.
    pub fn attach(config: &GatewayConfig, ports: Ports, seed: u32) -> anyhow::Result<Self> {
        let mut steering = Self::load()?;
        steering.configure(config, ports, seed)?;
        for interface in [ports.server, ports.mobile] {
            let link = attach_ingress(steering.program("gateway_ingress")?, interface)
                .with_context(|| format!("cannot attach to interface {interface}"))?;
            steering._attached.push(link);
        }
        Ok(steering)
    }
    fn configure(&self, config: &GatewayConfig, ports: Ports, seed: u32) -> anyhow::Result<()> {
        // `struct settings`
        let mut settings = Vec::new();
        for word in [ports.server, ports.mobile, config.workers as u32, seed] {
            settings.extend_from_slice(&word.to_ne_bytes());
        }
        settings.extend_from_slice(&STALE.as_nanos().to_ne_bytes());
        let (bridge, routed) = match ports.role {
            Role::Bridge { address } => (address, 0u8),
            Role::Router { .. } => ([0; 6], 1),
        };
        settings.extend_from_slice(&bridge);
        settings.extend_from_slice(&[routed, 0]);
        settings.extend_from_slice(&[0; 8]); // nothing goes across before the bridge has been looked at
        self.map("settings")?.update(&0u32.to_ne_bytes(), &settings, MapFlags::ANY)?;
        self.set_policies(config, |action| action as u32)
    }
    /// Tells what a bridge is like now.
    pub fn set_bridge(&self, bridge: &Bridge) -> anyhow::Result<()> {
        let (map, zero) = (self.map("settings")?, 0u32.to_ne_bytes());
        let old = map.lookup(&zero, MapFlags::ANY)?.context("the program has no settings")?;
        let mut settings = old.clone();
        settings[BRIDGE].copy_from_slice(&bridge.address);
        settings[ACROSS].copy_from_slice(&bridge.longest_frame.unwrap_or(0).to_ne_bytes());
        if settings != old {
            map.update(&zero, &settings, MapFlags::ANY).context("cannot change the bridge's settings")?;
        }
        Ok(())
    }
    /// Replaces the prefixes that are treated differently while there are connections: the workers decide for each,
    /// and leave to the kernel what they need not have.
    pub fn change_policies(&self, config: &GatewayConfig) -> anyhow::Result<()> {
        self.set_policies(config, |action| match action {
            Action::Filter => MAY_FILTER,
            _ => Action::Accelerate as u32,
        })
    }
    fn set_policies(&self, config: &GatewayConfig, number: impl Fn(Action) -> u32) -> anyhow::Result<()> {
        let map = self.map("policies")?;
        let wanted = rules(&config.policy);
        let bytes = |(len, address): &Key| [&len.to_ne_bytes()[..], &address[..]].concat();
        for (key, action) in &wanted {
            map.update(&bytes(key), &number(*action).to_ne_bytes(), MapFlags::ANY)?;
        }
        let kept: BTreeSet<_> = wanted.keys().map(bytes).collect();
        let gone: Vec<_> = map.keys().filter(|key| !kept.contains(key)).collect();
        gone.iter().try_for_each(|key| map.delete(key)).context("cannot change the policies")
    }
    /// Tells a router's own addresses: what is sent to them is not taken.
    pub fn set_local(&self, addresses: &[IpAddr]) -> anyhow::Result<()> {
        let map = self.map("local")?;
        let wanted: Vec<Vec<u8>> = addresses.iter().map(|own| mapped(*own).octets().to_vec()).collect();
        for key in &wanted {
            map.update(key, &[0; 4], MapFlags::ANY)?;
        }
        let gone: Vec<_> = map.keys().filter(|key| !wanted.contains(key)).collect();
        gone.iter().try_for_each(|key| map.delete(key)).context("cannot change the own addresses")
    }
    fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        let map = self.object.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| anyhow!("the program has no map {name}"))?;
        MapHandle::try_from(&map).with_context(|| format!("cannot open the map {name}"))
    }
    fn program(&self, name: &str) -> anyhow::Result<BorrowedFd<'_>> {
        let program = self.object.progs().find(|program| program.name() == name);
        let program = program.ok_or_else(|| anyhow!("there is no program {name}"))?;
        // SAFETY: the object keeps the descriptor open as long as it lives.
        #[allow(unsafe_code)]
        Ok(unsafe { BorrowedFd::borrow_raw(program.as_fd().as_raw_fd()) })
    }
    /// Opens a worker's socket to an interface. Sockets of one interface are opened in the order of the workers, so many in
    /// all: those of another gateway would get what this one's program says.
    pub fn open(&self, socket: &mut PacketSocket, interface: u32, workers: usize) -> anyhow::Result<()> {
        socket.filter(self.program("gateway_filter")?).context("cannot attach the socket filter")?;
        socket.share_memory().context("cannot share memory with a packet socket")?;
        socket.bind(interface).context("cannot bind a packet socket")?;
        // A group is known by number in the network namespace; an interface's is good.
        match socket.share(interface as u16, workers as u32, self.program("gateway_fanout")?) {
            Err(error) if PacketSocket::is_taken(&error) => {
                let name = nix::net::if_::if_indextoname(interface).unwrap_or_default();
                bail!("another gateway works at {}", name.to_string_lossy())
            }
            shared => shared.context("cannot share the interface"),
        }
    }
    /// A worker's way to speak.
    pub fn pulse(&self, worker: usize) -> anyhow::Result<Pulse> {
        assert!(worker < MAX_WORKERS, "the configuration allows no more workers");
        let (pulses, left_alone) = (self.map("pulses")?, self.map("left_alone")?);
        Ok(Pulse { pulses, left_alone, worker: worker as u32 })
    }
    /// Deals the connections of devices whose ACKs are filtered into groups to compare.
    pub fn set_holdout(&self, holdout: Holdout) -> anyhow::Result<()> {
        // `struct holdout`
        let value = [holdout.salt.to_ne_bytes(), holdout.share.to_ne_bytes()].concat();
        self.map("holdouts")?
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .context("cannot change what is compared")
    }
    /// What servers have sent to a group so far.
    pub fn sent_to(&self, group: Group) -> anyhow::Result<Sent> {
        let index = match group {
            Group::HeldOut => 0u32,
            Group::Matched => 1,
        };
        let per_cpu = self.map("compared")?.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?;
        // `struct traffic`
        let word = |bytes: &[u8], at: usize| {
            bytes
                .get(8 * at..8 * (at + 1))
                .and_then(|word| word.try_into().ok())
                .map_or(0, u64::from_ne_bytes)
        };
        let add = |sum: Sent, bytes: Vec<u8>| Sent {
            bytes: sum.bytes + word(&bytes, 0),
            retransmitted: sum.retransmitted + word(&bytes, 1),
            timeouts: sum.timeouts + word(&bytes, 2),
        };
        Ok(per_cpu.into_iter().flatten().fold(Sent::default(), add))
    }
    /// Packets by what was decided.
    pub fn counters(&self) -> Vec<(Counter, u64)> {
        // In the order of `enum counter` in bpf/gateway.bpf.c.
        const DECISIONS: [Counter; 6] = [
            Counter::PacketsTaken,
            Counter::LeftByPolicy,
            Counter::LeftByConnection,
            Counter::LeftWithoutPulse,
            Counter::LeftByOverload,
            Counter::PacketsSentAcross,
        ];
        let Ok(map) = self.map("counters") else { return Vec::new() };
        let sum = |index: u32| -> u64 {
            let per_cpu = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let value = |bytes: Vec<u8>| bytes.try_into().map_or(0, u64::from_ne_bytes);
            per_cpu.into_iter().flatten().map(value).sum()
        };
        let mut counters: Vec<_> =
            (0..).zip(DECISIONS).map(|(index, counter)| (counter, sum(index))).collect();
        let [filtered, held_out] = [Group::Matched, Group::HeldOut].map(|group| self.sent_to(group));
        let (filtered, held_out) = (filtered.unwrap_or_default(), held_out.unwrap_or_default());
        counters.extend([
            (Counter::ComparedBytesFiltered, filtered.bytes),
            (Counter::ComparedBytesHeldOut, held_out.bytes),
            (Counter::ComparedRepeatedFiltered, filtered.retransmitted),
            (Counter::ComparedRepeatedHeldOut, held_out.retransmitted),
            (Counter::ComparedTimeoutsFiltered, filtered.timeouts),
            (Counter::ComparedTimeoutsHeldOut, held_out.timeouts),
        ]);
        counters
    }
}

impl Pulse {
    /// The worker is well at `at_ns` of the kernel's clock (0: takes nothing more), and has room for new connections
    /// or not.
    pub fn stamp(&self, at_ns: u64, overloaded: bool) -> anyhow::Result<()> {
        let value = [at_ns.to_ne_bytes(), u64::from(overloaded).to_ne_bytes()].concat();
        self.pulses
            .update(&self.worker.to_ne_bytes(), &value, MapFlags::ANY)
            .context("cannot stamp the pulse")
    }
    /// Leaves a connection (key from server to mobile) to the kernel, until its next SYN. The oldest are forgotten,
    /// and come here again.
    pub fn leave_alone(&self, key: &FlowKey, left: Left) {
        // `struct left`
        let value = [(left as u32).to_ne_bytes(), [0; 4]].concat();
        // Without a place it goes on passing through here.
        let _ = self.left_alone.update(&bytes_of(key), &value, MapFlags::ANY);
    }
    /// Takes one back.
    pub fn take_back(&self, key: &FlowKey) {
        let _ = self.left_alone.delete(&bytes_of(key)); // it may have been forgotten
    }
}

/// What of a connection is left to the kernel: `enum what`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// All of it.
    Whole = 1,
    /// The client's data and the server's acknowledgments of them.
    Upload = 2,
}

/// `struct connection`
fn bytes_of(key: &FlowKey) -> [u8; 36] {
    let mut bytes = [0; 36];
    bytes[..16].copy_from_slice(&mapped(key.src).octets());
    bytes[16..32].copy_from_slice(&mapped(key.dst).octets());
    bytes[32..34].copy_from_slice(&key.src_port.to_be_bytes());
    bytes[34..].copy_from_slice(&key.dst_port.to_be_bytes());
    bytes
}

/// Puts a program in front of what arrives on an interface, as long as the descriptor is open.
fn attach_ingress(program: BorrowedFd<'_>, interface: u32) -> anyhow::Result<OwnedFd> {
    let kind = libbpf_sys::BPF_TCX_INGRESS;
    // SAFETY: no options are given; the call takes no other pointers.
    #[allow(unsafe_code)]
    let fd =
        unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), interface as i32, kind, std::ptr::null()) };
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd).into());
    }
    // SAFETY: the descriptor is new and nobody else's.
    #[allow(unsafe_code)]
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
