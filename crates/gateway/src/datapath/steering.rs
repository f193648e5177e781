//! Loads the kernel programs (`bpf/gateway.bpf.c`), attaches them to both interfaces, and exchanges their
//! maps.
//!
//! The programs decide for each packet whether a worker gets it. They are attached by `bpf_link`s, which the
//! kernel removes with the process, however that ends. A worker without a recent [`Heartbeat`] gets no
//! packets, so that a process that hangs is bypassed too.

use super::layout;
use super::socket::PacketSocket;
use crate::config::{GatewayConfig, MAX_WORKERS};
use crate::counter::Counter;
use crate::interfaces::mss_clamp::Clamp;
use crate::interfaces::ports::{Bridge, Ports, Role};
use crate::policy::{Action, mapped, rules};
use anyhow::{Context, anyhow, bail};
use ipnet::Ipv6Net;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use paceline_experiment::Assignment;
use paceline_linux::bpf::tcx::{self, Hook};
use paceline_net::{Duration, FlowKey};
use paceline_pep::ack_filter::{Group, Holdout, Sent};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A worker whose heartbeat is older gets no packets. Chosen: the bypass of a hung process takes less than
/// 100 ms, and a busy machine is not taken for one.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(80);

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gateway.bpf.o"));

/// Key of the maps with one entry, by definition of an array map.
const ONLY: [u8; 4] = 0u32.to_ne_bytes();

/// The loaded programs, attached to both interfaces.
pub struct Steering {
    object: Object,
    /// The links of the programs, by interface: they are detached when the descriptors are closed.
    links: Vec<(u32, OwnedFd)>,
}

/// Loads the programs, and attaches the ingress program to the loopback device for a moment: without settings
/// it takes no packets. Fails where the gateway cannot work.
pub fn trial() -> anyhow::Result<()> {
    let print = libbpf_rs::set_print(None); // the verifier's log is pages long
    let steering = Steering::load();
    libbpf_rs::set_print(print);
    let loopback = nix::net::if_::if_nametoindex("lo").context("there is no loopback device")?;
    tcx::attach(steering?.program("gateway_ingress")?, loopback, Hook::Ingress)
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
        Ok(Self { object, links: Vec::new() })
    }
    /// Loads and attaches the programs. They take no packets before a worker's first heartbeat.
    pub fn attach(config: &GatewayConfig, ports: Ports, seed: u32) -> anyhow::Result<Self> {
        let mut steering = Self::load()?;
        steering.configure(config, ports, seed)?;
        steering.attach_to(ports)?;
        Ok(steering)
    }
    /// Attaches the programs to interfaces that have come back; the links with the `gone` ones are void.
    pub fn attach_again(&mut self, ports: Ports, gone: &[u32]) -> anyhow::Result<()> {
        let (server_ifindex, mobile_ifindex) = (ports.server, ports.mobile);
        self.links.retain(|(interface, _)| !gone.contains(interface));
        self.change_settings(|old| layout::Settings { server_ifindex, mobile_ifindex, ..old })?;
        self.attach_to(ports)
    }
    /// Attaches the programs to the interfaces at which they are not.
    fn attach_to(&mut self, ports: Ports) -> anyhow::Result<()> {
        let here = |interface| self.links.iter().any(|(own, _)| *own == interface);
        let missing = [ports.server, ports.mobile].into_iter().filter(|interface| !here(*interface));
        let mut links = Vec::new();
        for interface in missing {
            let mut attach = |program: &str, hook| {
                let link = tcx::attach(self.program(program)?, interface, hook)
                    .with_context(|| format!("cannot attach to interface {interface}"))?;
                links.push((interface, link));
                anyhow::Ok(())
            };
            attach("gateway_ingress", Hook::Ingress)?;
            if interface == ports.server && matches!(ports.role, Role::Router { .. }) {
                attach("gateway_egress", Hook::Egress)?;
            }
        }
        self.links.append(&mut links);
        Ok(())
    }
    fn configure(&self, config: &GatewayConfig, ports: Ports, seed: u32) -> anyhow::Result<()> {
        let (bridge, routed, entry_ifindex) = match ports.role {
            Role::Bridge { address } => (address, 0, 0),
            Role::Router { entry, .. } => ([0; 6], 1, entry),
        };
        let settings = layout::Settings {
            server_ifindex: ports.server,
            mobile_ifindex: ports.mobile,
            workers: config.workers as u32,
            seed,
            heartbeat_timeout_ns: HEARTBEAT_TIMEOUT.as_nanos(),
            bridge,
            routed,
            entry_ifindex,
            // Nothing is redirected before the bridge has been inspected.
            redirect_limit: 0,
            ..layout::Settings::default()
        };
        self.map("settings")?.update(&ONLY, &settings.to_bytes(), MapFlags::ANY)?;
        self.set_experiment(Assignment::ALL)?;
        self.set_policies(config, policy_number)
    }
    /// Passes on the properties of the bridge that change at run time.
    pub fn set_bridge(&self, bridge: &Bridge) -> anyhow::Result<()> {
        let (bridge, redirect_limit) = (bridge.address, bridge.longest_frame.unwrap_or(0));
        self.change_settings(|old| layout::Settings { bridge, redirect_limit, ..old }).map(|_| ())
    }
    /// Sets the highest segment size that SYNs may announce; whether it is another one than before.
    pub fn set_clamp(&self, clamp: Clamp) -> anyhow::Result<bool> {
        let (clamp_mss, clamp_mtu) = (clamp.mss, clamp.mtu);
        self.change_settings(|old| layout::Settings { clamp_mss, clamp_mtu, ..old })
    }
    fn change_settings(
        &self,
        change: impl FnOnce(layout::Settings) -> layout::Settings,
    ) -> anyhow::Result<bool> {
        let map = self.map("settings")?;
        let settings = || -> Option<layout::Settings> {
            layout::Settings::from_bytes(map.lookup(&ONLY, MapFlags::ANY).ok()??.as_slice())
        };
        let old = settings().context("the program has no settings")?;
        let new = change(old);
        if new != old {
            map.update(&ONLY, &new.to_bytes(), MapFlags::ANY)
                .context("cannot change the program's settings")?;
        }
        Ok(new != old)
    }
    /// Replaces the policies while there are connections. The workers decide for each connection, since they
    /// know which ones are theirs, and leave the others to the kernel.
    pub fn change_policies(&self, config: &GatewayConfig) -> anyhow::Result<()> {
        self.set_policies(config, |action| match action {
            Action::Filter => layout::POLICY_MAY_FILTER,
            _ => layout::POLICY_ACCELERATE,
        })
    }
    fn set_policies(&self, config: &GatewayConfig, number: impl Fn(Action) -> u32) -> anyhow::Result<()> {
        let map = self.map("policies")?;
        let wanted = rules(&config.policy);
        for (network, action) in &wanted {
            map.update(&policy_key(network), &number(*action).to_ne_bytes(), MapFlags::ANY)?;
        }
        let kept: BTreeSet<_> = wanted.keys().map(policy_key).map(Vec::from).collect();
        let stale: Vec<_> = map.keys().filter(|key| !kept.contains(key)).collect();
        stale.iter().try_for_each(|key| map.delete(key)).context("cannot change the policies")
    }
    /// Replaces this machine's own addresses, in routed mode: packets to them are not taken.
    pub fn set_local(&self, addresses: &[IpAddr]) -> anyhow::Result<()> {
        let map = self.map("local")?;
        let wanted: Vec<Vec<u8>> =
            addresses.iter().map(|own| address(mapped(*own)).to_bytes().to_vec()).collect();
        for key in &wanted {
            map.update(key, &[0; 4], MapFlags::ANY)?;
        }
        let stale: Vec<_> = map.keys().filter(|key| !wanted.contains(key)).collect();
        stale.iter().try_for_each(|key| map.delete(key)).context("cannot change the own addresses")
    }
    /// The maps that follow the state of the bridge.
    pub fn bridge_maps(&self) -> anyhow::Result<BridgeMaps> {
        Ok(BridgeMaps { stations: self.map("stations")?, halted: self.map("halted")? })
    }
    /// Whether a port of the bridge does not forward.
    pub fn is_halted(&self) -> bool {
        let value = || self.map("halted").ok()?.lookup(&ONLY, MapFlags::ANY).ok()?;
        value().is_some_and(|value| value.iter().any(|byte| *byte != 0))
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
    /// Opens a worker's socket to an interface. The sockets of one interface have to be opened in the order
    /// of the workers. Fails if the group has other members: another gateway's sockets would be chosen by
    /// this one's program.
    pub fn open(&self, socket: &mut PacketSocket, interface: u32, workers: usize) -> anyhow::Result<()> {
        socket.filter(self.program("gateway_filter")?).context("cannot attach the socket filter")?;
        socket.share_memory().context("cannot share memory with a packet socket")?;
        socket.bind(interface).context("cannot bind a packet socket")?;
        // The number of a fanout group is unique in the network namespace: the interface's index is.
        match socket.share(interface as u16, workers as u32, self.program("gateway_fanout")?) {
            Err(error) if PacketSocket::is_taken(&error) => {
                let name = nix::net::if_::if_indextoname(interface).unwrap_or_default();
                bail!("another gateway works at {}", name.to_string_lossy())
            }
            shared => shared.context("cannot share the interface"),
        }
    }
    /// The maps that a worker writes to.
    pub fn heartbeat(&self, worker: usize) -> anyhow::Result<Heartbeat> {
        assert!(worker < MAX_WORKERS, "the configuration allows no more workers");
        let (heartbeats, kernel_flows) = (self.map("heartbeats")?, self.map("kernel_flows")?);
        Ok(Heartbeat { heartbeats, kernel_flows, worker: worker as u32 })
    }
    /// Draws new groups of connections whose ACKs are filtered or not, to compare them.
    pub fn set_holdout(&self, holdout: Holdout) -> anyhow::Result<()> {
        let value = layout::Holdout { salt: holdout.salt, share: holdout.share };
        self.map("holdouts")?
            .update(&ONLY, &value.to_bytes(), MapFlags::ANY)
            .context("cannot change the compared groups")
    }
    /// Chooses the devices whose new connections are accelerated.
    pub fn set_experiment(&self, assignment: Assignment) -> anyhow::Result<()> {
        let value = layout::Experiment { seed: assignment.seed, share: assignment.share };
        self.map("experiments")?
            .update(&ONLY, &value.to_bytes(), MapFlags::ANY)
            .context("cannot change the accelerated devices")
    }
    /// Data that servers have sent to a group so far.
    pub fn sent_to(&self, group: Group) -> anyhow::Result<Sent> {
        let index = match group {
            Group::HeldOut => layout::HELD_OUT,
            Group::Matched => layout::MATCHED,
        };
        let per_cpu = self.map("compared")?.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?;
        let values = per_cpu.into_iter().flatten();
        let traffic = values.filter_map(|bytes| layout::Traffic::from_bytes(&bytes));
        Ok(traffic.fold(Sent::default(), |sum, cpu| Sent {
            bytes: sum.bytes + cpu.bytes,
            retransmitted: sum.retransmitted + cpu.retransmitted,
            timeouts: sum.timeouts + cpu.timeouts,
        }))
    }
    /// Packets by decision, and the data of compared connections.
    pub fn counters(&self) -> Vec<(Counter, u64)> {
        const DECISIONS: [(u32, Counter); layout::COUNTERS as usize] = [
            (layout::TAKEN, Counter::PacketsTaken),
            (layout::LEFT_BY_POLICY, Counter::LeftByPolicy),
            (layout::LEFT_BY_CONNECTION, Counter::LeftByConnection),
            (layout::LEFT_WITHOUT_HEARTBEAT, Counter::LeftWithoutPulse),
            (layout::LEFT_BY_OVERLOAD, Counter::LeftByOverload),
            (layout::LEFT_BY_EXPERIMENT, Counter::LeftByExperiment),
            (layout::REDIRECTED, Counter::PacketsSentAcross),
            (layout::ACKS_LEFT, Counter::AcksLeft),
        ];
        let Ok(map) = self.map("counters") else { return Vec::new() };
        let sum = |index: u32| -> u64 {
            let per_cpu = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let value = |bytes: Vec<u8>| bytes.try_into().map_or(0, u64::from_ne_bytes);
            per_cpu.into_iter().flatten().map(value).sum()
        };
        let mut counters: Vec<_> = DECISIONS.map(|(index, counter)| (counter, sum(index))).into();
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

/// The maps that follow the state of the bridge. An error is ignored: everything is written again.
pub struct BridgeMaps {
    stations: MapHandle,
    halted: MapHandle,
}

impl BridgeMaps {
    /// Frames to this address leave by a port, or are for this machine (None).
    pub fn set_station(&self, address: &[u8; 6], port: Option<u32>) {
        let value = port.unwrap_or(layout::THIS_MACHINE).to_ne_bytes();
        let _ = self.stations.update(&station(address), &value, MapFlags::ANY);
    }
    /// Nothing is known about this address.
    pub fn remove_station(&self, address: &[u8; 6]) {
        let _ = self.stations.delete(&station(address));
    }
    /// A port does not forward: nothing is taken.
    pub fn set_halted(&self, halted: bool) {
        let _ = self.halted.update(&ONLY, &u32::from(halted).to_ne_bytes(), MapFlags::ANY);
    }
}

fn station(address: &[u8; 6]) -> Vec<u8> {
    layout::Station { address: *address, unused: [0; 2] }.to_bytes().to_vec()
}

/// The maps that a worker writes: its heartbeat, and the connections that it leaves to the kernel.
pub struct Heartbeat {
    heartbeats: MapHandle,
    kernel_flows: MapHandle,
    worker: u32,
}

impl Heartbeat {
    /// Writes the worker's heartbeat: the time `at_ns` on the kernel's clock (0: it takes no packets), and
    /// whether new connections are to stay in the kernel.
    pub fn beat(&self, at_ns: u64, overloaded: bool) -> anyhow::Result<()> {
        let value = layout::Heartbeat { at_ns, overloaded: overloaded.into(), unused: 0 };
        self.heartbeats
            .update(&self.worker.to_ne_bytes(), &value.to_bytes(), MapFlags::ANY)
            .context("cannot write the heartbeat")
    }
    /// Leaves a connection (key from server to mobile) to the kernel, until its next SYN. The map forgets the
    /// least recently used connections, whose packets come to the worker again.
    pub fn leave_to_kernel(&self, key: &FlowKey, part: KernelPart) {
        let state = match part {
            KernelPart::Whole => layout::WHOLE,
            KernelPart::Upload => layout::UPLOAD,
        };
        let value = layout::KernelFlow { state, handshake_ack: 0 };
        // If the map is full, the connection goes on passing through the worker.
        let _ = self.kernel_flows.update(&connection(key).to_bytes(), &value.to_bytes(), MapFlags::ANY);
    }
    /// Takes a connection back from the kernel.
    pub fn take_back(&self, key: &FlowKey) {
        let _ = self.kernel_flows.delete(&connection(key).to_bytes()); // the map may have forgotten it
    }
}

/// The part of a connection that the kernel forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelPart {
    /// All of it.
    Whole,
    /// The client's data and the server's acknowledgments of them.
    Upload,
}

fn policy_number(action: Action) -> u32 {
    match action {
        Action::Accelerate => layout::POLICY_ACCELERATE,
        Action::Filter => layout::POLICY_FILTER,
        Action::Relay => layout::POLICY_RELAY,
        Action::Leave => layout::POLICY_LEAVE,
    }
}

fn policy_key(network: &Ipv6Net) -> [u8; 20] {
    let prefix = layout::Prefix { len: network.prefix_len().into(), address: address(network.addr()) };
    prefix.to_bytes()
}

fn address(v6: Ipv6Addr) -> layout::Address {
    layout::Address { words: v6.octets() }
}

fn connection(key: &FlowKey) -> layout::Connection {
    layout::Connection {
        server: address(mapped(key.src)),
        mobile: address(mapped(key.dst)),
        server_port: key.src_port.to_be_bytes(),
        mobile_port: key.dst_port.to_be_bytes(),
    }
}
