//! Emulation: real programs communicate through the modelled cell, in real time.
//!
//! Each real station is a network namespace with a TUN device; the host side is a TUN device in the caller's
//! namespace. Their packets pass the same [`Model`] that the simulator runs. The other stations are
//! simulated.

mod ability;
pub mod bulk;
mod connections;
mod names;
mod programs;
mod range;
pub mod realtime;
pub mod router;
mod sock_diag;
mod user;

pub use ability::problem;
pub use programs::names_station;
pub use user::ProgramUser;

use crate::realtime::Realtime;
use crate::realtime::lateness::Lateness;
use anyhow::Context;
use connections::{Connections, End};
use names::Names;
use nix::sys::signal::Signal;
use paceline_linux::clock::Monotonic;
use paceline_linux::files::event_file::EventFile;
use paceline_linux::files::pcapng;
use paceline_linux::network::netns::{self, LinkOptions, Namespace};
use paceline_linux::network::tun::Tun;
use paceline_linux::priority::{prefer_this_thread, stay_awake};
use paceline_net::{Bytes, Instant, Node, Output, Packet, Port};
use paceline_sim::model::{HOST_SIDE, real_station};
use paceline_sim::scenario::Tcp;
use paceline_sim::{Capture, EventTrace, Model, Recorder, RunResult, Scenario};
use programs::Programs;
use range::Range;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use sock_diag::SockDiag;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time between SIGTERM and SIGKILL when the emulation is stopped. Chosen: enough for a program to close its
/// connections.
const TERMINATION_TIMEOUT: paceline_net::Duration = paceline_net::Duration::from_secs(2);
/// After the programs have ended, the emulation carries their last packets until none has passed for this
/// time plus a round trip of the wire. Chosen: longer than Linux's least retransmission timeout of 200 ms.
const QUIET_TIME: paceline_net::Duration = paceline_net::Duration::from_millis(500);
/// Longest time, plus a round trip, for which the last packets are carried. Chosen: bounds the wait for a
/// peer that goes on sending.
const MAX_LINGER: paceline_net::Duration = paceline_net::Duration::from_secs(5);
/// Addresses of emulations inside the stations at most. Chosen: bounds memory against programs that forge
/// addresses; an emulation has at most 1000 stations with two addresses each.
const MAX_INSIDE: usize = 4_000;

/// The parameters of an emulation.
pub struct Emulation<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The stations that are real.
    pub stations: &'a [RealStation],
    /// Program and arguments, run in each real station; if empty, a shell in the first one. In the arguments,
    /// `{station}` stands for the station's index.
    pub command: &'a [String],
    /// The user as whom it runs; the caller's own if absent.
    pub user: Option<&'a ProgramUser>,
    /// Capture file.
    pub pcap: Option<&'a Path>,
    /// Size of the file at which the capture ends.
    pub pcap_limit: Option<Bytes>,
    /// Event trace.
    pub events: Option<&'a EventFile>,
}

/// A station of real programs.
#[derive(Clone, PartialEq, Debug)]
pub struct RealStation {
    /// Index of the station.
    pub index: usize,
    /// Congestion control of the kernel's connections to and from this station; the host's default if absent.
    pub congestion_control: Option<String>,
}

impl RealStation {
    /// Parameters of this station's device and of the connections through it.
    fn link_options(&self, tcp: &Tcp) -> LinkOptions {
        LinkOptions {
            congestion_control: self.congestion_control.clone(),
            // The kernel's segments have timestamps, also if the scenario's have none: full packets have the
            // same length.
            segment_size: tcp.segment_size.0 - if tcp.timestamps { 0 } else { netns::TIMESTAMPS },
        }
    }
}

/// The result of an emulation.
pub struct Report {
    /// Results as from a simulation.
    pub result: RunResult,
    /// Lateness of timers.
    pub lateness: Lateness,
    /// Programs that failed: station and exit status.
    pub failed: Vec<(usize, ExitStatus)>,
    /// Whether a signal ended the emulation.
    pub stopped: bool,
}

/// The model with its readings, as one node.
struct Observed {
    model: Model,
    recorder: Recorder,
    events: Option<EventTrace>,
    /// Indices of the real stations by their ports.
    real: BTreeMap<Port, usize>,
    range: Range,
    /// Stations of the addresses of emulations inside them.
    inside: BTreeMap<IpAddr, usize>,
    /// Two stations have used the same address, and the user knows of it.
    told_of_shared: bool,
    connections: Connections,
}

impl Observed {
    /// Packets to an address of an emulation inside a station take the way by which its packets came.
    fn learn(&mut self, station: usize, address: IpAddr) {
        if self.range.has_inside(address)
            && self.inside.get(&address) != Some(&station)
            && self.inside.len() < MAX_INSIDE
        {
            let before = self.inside.insert(address, station);
            self.model.add_route(address, station);
            if let Some(before) = before.filter(|_| !std::mem::replace(&mut self.told_of_shared, true)) {
                eprintln!(
                    "paceline: emulations inside stations {before} and {station} have the same addresses, such as \
                     {address}: replies go to the one that sent last; station numbers that differ by less than \
                     {} have addresses of their own",
                    self.range.siblings()
                );
            }
        }
    }
    fn end_at(&mut self, now: Instant) {
        self.model.engine.run_until(now);
        self.recorder.record_end(&mut self.model);
    }
}

impl Node for Observed {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        if let Some(station) = self.real.get(&from) {
            let station = *station;
            self.connections.observe(now, station, End::Station, &packet);
            self.learn(station, packet.ip.src);
        }
        self.model.engine.handle_packet(now, from, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.model.engine.run_until(now);
        if self.recorder.next_at() <= now {
            if let Some(states) = self.connections.states() {
                self.model.set_kernel_states(states);
            }
            self.recorder.record(&mut self.model);
        }
        if let Some(events) = self.events.as_mut().filter(|events| events.next_at() <= now) {
            events.read(&mut self.model);
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        let output = self.model.engine.poll_output(now);
        if let Some(Output::Transmit(port, packet)) = &output
            && let Some(station) = self.real.get(port)
        {
            self.connections.observe(now, *station, End::Server, packet);
        }
        output
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.recorder.next_at();
        let stop = self.events.as_ref().map_or(next, |events| next.min(events.next_at()));
        Some(self.model.engine.poll_timeout().map_or(stop, |at| at.min(stop)))
    }
}

/// Runs an emulation until its programs have ended or a signal comes.
pub fn run(emulation: &Emulation<'_>) -> anyhow::Result<Report> {
    let scenario = emulation.scenario;
    let indices: Vec<usize> = emulation.stations.iter().map(|station| station.index).collect();
    let mut model = Model::new(scenario, scenario.run.seed, &indices);
    let mut capture_file = None;
    if let Some(path) = emulation.pcap {
        let content =
            pcapng::Content { stations: model.stations(), radio: false, limit: emulation.pcap_limit };
        let file = pcapng::Writer::create(path, &content)?;
        model.capture(Capture { packets: Box::new(file.packets()), blocks: None });
        capture_file = Some(file);
    }
    let range = Range::here()?;
    for station in emulation.stations {
        let (v4, v6) = range.station(station.index);
        [v4.into(), v6.into()].into_iter().for_each(|address| model.add_route(address, station.index));
    }
    let (devices, namespaces) = network(emulation, range)?;
    if range.is_inside() {
        netns::forward();
    }
    let signals = Signals::register()?;
    let recorder = Recorder::new(scenario, scenario.run.seed);
    let events = emulation.events.map(|file| EventTrace::start(scenario, &mut model, Box::new(file.sink())));
    let connections = connections(&namespaces)?;
    let names = Names::start(range, &namespaces);
    if let Err(error) = &names {
        eprintln!("paceline: names of hosts do not work in this emulation: {error:#}");
    }
    let mut programs = Programs::start(namespaces, (emulation.command, emulation.user), range.host())?;
    prefer_this_thread();
    let _awake = stay_awake();
    let real = indices.iter().map(|station| (real_station(*station), *station)).collect();
    let inside = BTreeMap::new();
    let node = Observed { model, recorder, events, real, range, inside, told_of_shared: false, connections };
    let mut realtime = Realtime::new(node, Monotonic::start(), devices);
    drive(&mut realtime, &signals, &mut programs)?;
    linger(&mut realtime, &signals, scenario)?;

    let lateness = realtime.lateness().clone();
    let Observed { mut model, recorder, connections, .. } = realtime.into_node();
    let mut result = recorder.finish(&mut model);
    result.kernel_connections = connections.finish();
    if let Some(file) = capture_file {
        drop(model);
        file.finish()?;
    }
    Ok(Report { result, lateness, failed: std::mem::take(&mut programs.failed), stopped: signals.stopped() })
}

/// The devices at the model's ports, and the namespaces of the real stations by their indices.
type Devices = (Vec<(Port, Tun)>, Vec<(usize, Namespace)>);

/// Makes the host side's device and the namespaces of the real stations.
fn network(emulation: &Emulation<'_>, range: Range) -> anyhow::Result<Devices> {
    let scenario = emulation.scenario;
    let groups = scenario.group_of_stations();
    let stations: Vec<_> = emulation
        .stations
        .iter()
        .map(|real| {
            let tcp = scenario.tcp_of(&scenario.stations[groups[real.index]]);
            (real.index, range.station(real.index), real.link_options(&tcp))
        })
        .collect();
    let routes: Vec<_> = stations.iter().map(|(_, addresses, options)| (*addresses, options)).collect();
    let mut devices = vec![(HOST_SIDE, netns::host_side(range.host(), &range.networks(), &routes)?)];
    let mut namespaces = Vec::new();
    for (station, (v4, v6), options) in stations {
        let (namespace, tun) = Namespace::with_tun("ue0", v4, v6, &options)
            .with_context(|| format!("cannot make the namespace of station {station}"))?;
        devices.push((real_station(station), tun));
        namespaces.push((station, namespace));
    }
    Ok((devices, namespaces))
}

/// The record of the real stations' connections, which reads the kernel in each namespace.
fn connections(namespaces: &[(usize, Namespace)]) -> anyhow::Result<Connections> {
    let stations: anyhow::Result<BTreeMap<usize, SockDiag>> = namespaces
        .iter()
        .map(|(station, namespace)| Ok((*station, namespace.inside(SockDiag::open)?)))
        .collect();
    Ok(Connections::new(SockDiag::open()?, stations?))
}

fn drive(
    realtime: &mut Realtime<Observed, Monotonic, Tun>,
    signals: &Signals,
    programs: &mut Programs,
) -> anyhow::Result<()> {
    let mut deadline = None;
    loop {
        realtime.turn().context("a device failed")?;
        if signals.child.swap(false, Ordering::Relaxed) || deadline.is_some() {
            programs.reap()?;
        }
        if programs.running.is_empty() {
            return Ok(());
        }
        // After a signal, the programs get SIGTERM, and later SIGKILL.
        if signals.stopped() && deadline.is_none() {
            programs.signal(Signal::SIGTERM);
            deadline = Some(realtime.now() + TERMINATION_TIMEOUT);
        }
        if deadline.is_some_and(|at| realtime.now() >= at) {
            programs.signal(Signal::SIGKILL);
        }
    }
}

/// Carries the packets that the programs have left in the kernel's buffers, such as the end of connections.
/// Results end with the programs.
fn linger(
    realtime: &mut Realtime<Observed, Monotonic, Tun>,
    signals: &Signals,
    scenario: &Scenario,
) -> anyhow::Result<()> {
    let wire = scenario.core.hops.iter().fold(paceline_net::Duration::ZERO, |sum, hop| sum + hop.delay * 2);
    let wire = wire + scenario.link().and_then(|link| link.delay).unwrap_or_default() * 2;
    let ended = realtime.now();
    realtime.node.end_at(ended);
    loop {
        let now = realtime.now();
        if signals.stopped()
            || now >= (realtime.last_packet() + QUIET_TIME + wire).min(ended + MAX_LINGER + wire)
        {
            return Ok(());
        }
        realtime.turn().context("a device failed")?;
    }
}

/// Flags set by signal handlers.
struct Signals {
    stop: Arc<AtomicBool>,
    child: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> anyhow::Result<Self> {
        let signals = Self { stop: Arc::default(), child: Arc::default() };
        for (number, flag) in [(SIGINT, &signals.stop), (SIGTERM, &signals.stop), (SIGCHLD, &signals.child)] {
            signal_hook::flag::register(number, Arc::clone(flag)).context("cannot catch signals")?;
        }
        Ok(signals)
    }
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
