//! The live gateway: the accelerator between two network interfaces of this machine.
//!
//! - `interfaces` joins the two interfaces by a kernel bridge or router, which forwards everything that the
//!   gateway does not take, and everything if the gateway ends, hangs or dies.
//! - `datapath`: kernel programs (`bpf/`) take TCP packets out of the bridge or router, and packet sockets
//!   hand them to the workers.
//! - `worker`: a thread with an accelerator for its share of the devices. Its packets leave by the packet
//!   sockets.
//! - `control_plane`: commands and metrics, by a Unix socket, signals and HTTP.
//! - `experiment`: the comparison of accelerated devices with untouched ones.
//! - `crash_recovery`: a journal of connections with exposure (bytes acknowledged to the server and not yet
//!   by the client), and a second process that clears them after a crash.
//!
//! Left out: the bridge's features that inspect packets (`ebtables`), which taken packets bypass.

mod check;
mod config;
mod control_plane;
mod counter;
mod crash_recovery;
mod datapath;
mod experiment;
mod interfaces;
mod policy;
pub mod service;
mod worker;

pub use check::{Report, check};
pub use config::{Filter, GatewayConfig, Limits, Mode, Sides};
pub use control_plane::operations::ControlPlane;
pub use control_plane::requests::Snapshot;
pub use control_plane::socket::client::Client;
pub use control_plane::socket::protocol::{ExperimentRequest, Request, Response, StopReport};
pub use control_plane::status::{DeviceStatus, FlowStatus, PatternStatus, Status};
pub use control_plane::web::metrics::{Health, text as metrics_text};
pub use counter::{Counter, CounterValues};
pub use crash_recovery::guardian::guard;
pub use crash_recovery::rescuer::Rescue;
pub use datapath::ability::problem;
pub use experiment::ExperimentStatus;
pub use interfaces::device::check_interfaces;
pub use interfaces::firewall::{remark as firewall_remark, warning as firewall_warning};
pub use interfaces::mss_clamp::MssClamp;
pub use interfaces::path_mtu::{PathMtu, find as path_mtu};
pub use interfaces::ports::Interface;
pub use interfaces::side_detection::detect_sides;
pub use policy::{Action, Policy};

use crate::service::privileges;
use anyhow::{Context, anyhow};
use control_plane::operations::{Place, Program, WorkerHandle};
use control_plane::requests::WorkerRequest;
use control_plane::socket::server::{Accounts, ControlSocket, Roles};
use control_plane::web::hosts::Hosts;
use control_plane::web::http;
use crash_recovery::guardian::Guardian;
use crash_recovery::journal::{Journal, Writer};
use datapath::socket::PacketSocket;
use datapath::steering::Steering;
use interfaces::mss_clamp::Clamp;
use interfaces::ports::{Indices, Ports, Role};
use interfaces::{bridge, bridge_watch, mtu, router};
use paceline_linux::random::random;
use paceline_pep::accelerator::Side;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use worker::engine::Engine;
use worker::event_loop::Worker;
use worker::uplink::Line;

/// The environment of a gateway.
#[derive(Default)]
pub struct Setup {
    /// A command that calls [`guard`] in a process of its own. Without it nothing is acknowledged early:
    /// connections with exposure would be left to their ends' timeouts if this process died.
    pub guardian: Option<Command>,
    /// Whether to open a control socket.
    pub control: bool,
    /// The file of the configuration, for a reload.
    pub file: Option<PathBuf>,
    /// The program's version and commit.
    pub version: String,
}

/// A running gateway. Dropping it leaves everything to the kernel at once; connections with exposure are
/// reset.
pub struct Gateway {
    control_plane: Arc<ControlPlane>,
    workers: Vec<JoinHandle<anyhow::Result<Snapshot>>>,
    /// The lock on the pair of devices (routed mode).
    _pair_lock: Option<PacketSocket>,
    control: Option<ControlSocket>,
    problem: Option<String>,
}

/// A worker that has not started.
type Prepared = (Sender<WorkerRequest>, Worker);

impl Gateway {
    /// Joins the interfaces and starts the workers.
    pub fn start(config: GatewayConfig, setup: Setup) -> anyhow::Result<Self> {
        let (mut control, mut problem) = (None, None);
        let user = config.user.as_deref().map(privileges::user).transpose()?;
        let groups = [
            GatewayConfig::group("control_group", config.control_group.as_ref())?,
            GatewayConfig::group("view_group", config.view_group.as_ref())?,
        ];
        let accounts =
            Accounts { user: user.as_ref(), control: groups[0].as_ref(), view: groups[1].as_ref() };
        let roles = Roles::new(accounts);
        if setup.control {
            match ControlSocket::open(config.control.as_deref(), &config.default_control(), accounts) {
                Ok(opened) => control = Some(opened),
                Err(error) if config.control.is_some() || groups != [None, None] => return Err(error),
                Err(error) => problem = Some(format!("cannot be asked while it runs: {error:#}")),
            }
        }
        let metrics = config.metrics.map(|address| {
            TcpListener::bind(address).map_err(|error| match error.kind() {
                ErrorKind::AddrInUse => anyhow!("metrics = {address}: another program listens there already"),
                _ => anyhow!("metrics = {address}: cannot listen there: {error}"),
            })
        });
        let metrics = metrics.transpose()?;
        let seed = random()?;
        let ports = match config.mode {
            Mode::Bridge => bridge::join(&config)?,
            Mode::Routed => router::join(&config)?,
        };
        let pair_lock = match ports.role {
            Role::Bridge { .. } => None,
            Role::Router { exit, .. } => Some(router::lock_pair(&config, exit)?),
        };
        let clamp = mtu::clamp(&config)?;
        let steering = Steering::attach(&config, ports, seed as u32)?;
        steering.set_clamp(clamp)?;
        let journal = setup.guardian.as_ref().map(|_| Journal::new(config.workers)).transpose()?;
        let (prepared, sockets) = prepare(&config, &steering, (ports, clamp), seed, journal.as_ref())?;
        // The guardian and all threads start with the privileges that are kept.
        privileges::keep(&privileges::OF_GATEWAY, user.as_ref())?;
        let indices = Arc::<Indices>::default();
        indices.set(&ports);
        let halted = match ports.role {
            Role::Bridge { .. } => bridge_watch::start(Arc::clone(&indices), steering.bridge_maps()?)?,
            Role::Router { .. } => Arc::default(),
        };
        let guardian = setup.guardian.zip(journal.as_ref());
        let watched = interfaces::watched(&config, ports);
        let opened = control.as_ref().map(|(opened, _): &(ControlSocket, UnixListener)| opened);
        let rescue = opened.map(|opened| opened.path().with_extension("rescue.json"));
        let (after_crash, report) = (opened.is_some_and(ControlSocket::has_replaced), rescue.as_deref());
        let guardian = guardian
            .map(|(command, journal)| Guardian::start(command, journal, &watched, report))
            .transpose()?;
        let handle = |(requests, mut worker): Prepared| {
            worker.halt_by(Arc::clone(&halted));
            (WorkerHandle { requests, turned_at: worker.turned_at() }, worker)
        };
        let (handles, ready): (Vec<_>, Vec<_>) = prepared.into_iter().map(handle).unzip();
        let program = Program { version: setup.version, file: setup.file, after_crash, rescue };
        let place = Place { indices, sockets };
        let control_plane = Arc::new(ControlPlane::new(program, config, steering, place, handles, guardian));
        let mut workers = Vec::new();
        for (index, worker) in ready.into_iter().enumerate() {
            let thread = thread::Builder::new().name(format!("worker{index}"));
            let shared = Arc::clone(&control_plane);
            let work = move || worker.run().inspect(|last| shared.note_end(index, last));
            workers.push(thread.spawn(work).context("cannot start a worker")?);
        }
        let (control, listener): (Option<ControlSocket>, Option<UnixListener>) = control.unzip();
        if let Some(listener) = listener {
            ControlSocket::serve(listener, Arc::clone(&control_plane), roles)?;
        }
        if let Some(listener) = metrics {
            let hosts = Hosts::new(&control_plane.config().metrics_hosts);
            http::serve(listener, Arc::clone(&control_plane), hosts)?;
        }
        let gateway = Self { control_plane, workers, _pair_lock: pair_lock, control, problem };
        gateway.control_plane.check_interfaces()?;
        if let Some(path) = &gateway.control_plane.config().records {
            gateway.control_plane.note_records(experiment::records::start(path, ports.mobile)?);
        }
        if let Err(error) = gateway.control_plane.resume_experiment() {
            eprintln!("paceline: the experiment of before does not go on: {error:#}");
        }
        Ok(gateway)
    }
    /// The operations on this gateway.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }
    /// The path of its control socket.
    pub fn control(&self) -> Option<&std::path::Path> {
        self.control.as_ref().map(ControlSocket::path)
    }
    /// A problem that does not keep the gateway from running.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
    /// Whether at least one worker has ended.
    pub fn any_worker_finished(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished)
    }
    /// Whether all workers have ended.
    pub fn has_finished(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }
    /// Waits for the end of the workers, and returns the sum of their last snapshots.
    pub fn join(mut self) -> anyhow::Result<Snapshot> {
        let ends = std::mem::take(&mut self.workers).into_iter().map(JoinHandle::join);
        let ends: Vec<_> =
            ends.map(|end| end.unwrap_or_else(|_| Err(anyhow!("a worker panicked")))).collect();
        let end =
            ends.into_iter().collect::<anyhow::Result<Vec<_>>>().map(|parts| self.control_plane.sum(parts));
        // Clients that wait for the end get their answer when another gateway can start.
        let control_plane = Arc::clone(&self.control_plane);
        drop(self);
        control_plane.close(&end);
        end
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.control_plane.abort();
        let config = self.control_plane.config();
        if config.mode == Mode::Routed {
            router::leave(&config);
        }
    }
}

/// Makes the workers with their sockets and engines. Also returns a second descriptor of each socket, by
/// side.
fn prepare(
    config: &GatewayConfig,
    steering: &Steering,
    (ports, clamp): (Ports, Clamp),
    seed: u64,
    journal: Option<&Journal>,
) -> anyhow::Result<(Vec<Prepared>, [Vec<OwnedFd>; 2])> {
    let (mut prepared, mut descriptors) = (Vec::new(), [const { Vec::new() }; 2]);
    let line = Arc::<Line>::default();
    for index in 0..config.workers {
        let mut open = |side: Side, interface: u32| -> anyhow::Result<PacketSocket> {
            let mut socket = PacketSocket::open().context("cannot open a packet socket")?;
            steering.open(&mut socket, interface, config.workers)?;
            descriptors[side as usize].push(socket.duplicate()?);
            Ok(socket)
        };
        let sockets = [open(Side::Server, ports.server)?, open(Side::Mobile, ports.mobile)?];
        let exit = match ports.role {
            Role::Bridge { .. } => None,
            Role::Router { exit, .. } => Some(exit),
        };
        let exits = || exit.map(PacketSocket::open_to).transpose().context("cannot open a packet socket");
        let exits = [exits()?, exits()?];
        let mut engine = Engine::new(config, ports.role, Arc::clone(&line), seed.wrapping_add(index as u64));
        engine.set_clamp(clamp);
        let (sender, requests) = channel();
        let writer: Option<Writer> = journal.map(|journal| journal.writer(index));
        let worker = Worker::new(
            engine,
            (sockets, exits),
            steering.heartbeat(index)?,
            config.tick,
            (requests, writer),
        );
        prepared.push((sender, worker));
    }
    Ok((prepared, descriptors))
}
