//! The live gateway: the accelerator between two interfaces of this machine.
//!
//! The interfaces are ports of a kernel bridge. What the gateway wants, a kernel program takes out of the bridge's way
//! and hands to a worker by packet sockets ([`steering`], `bpf/gateway.bpf.c`); everything else the kernel forwards.
//! When the process ends, hangs or dies, the kernel forwards everything.
//!
//! A [`worker`] is a thread with an [`engine`] of its own, which has all connections of some of the devices. What
//! is asked from outside it takes up between turns.
//!
//! It is asked and changed through a [`Desk`], by a control socket, signals and HTTP. What a crash would leave hanging
//! is in a [`journal`], which a [`guardian`] looks after.
//!
//! Left out: tunnels, and bridge features that look into packets (`ebtables`, STP states), which what the gateway
//! takes does not pass.

mod bridge;
mod capture;
mod comparison;
mod config;
mod control;
mod counter;
mod desk;
mod device;
mod engine;
mod frame;
mod gathering;
mod guardian;
mod journal;
mod learn;
mod links;
mod metrics;
mod policy;
mod requests;
mod ring;
mod router;
mod socket;
mod status;
mod steering;
mod tally;
mod uplink;
mod worker;

pub use config::{Filter, GatewayConfig, Limits, Mode, Sides};
pub use control::{Client, FOLDER};
pub use counter::{Counter, CounterValues};
pub use desk::Desk;
pub use guardian::{Rescue, guard};
pub use learn::settle;
pub use metrics::text as metrics_text;
pub use policy::{Action, Policy};
pub use requests::{Request, Snapshot};
pub use status::{DeviceStatus, FlowStatus, Status};
pub use steering::trial;

use anyhow::{Context, anyhow};
use control::Control;
use engine::Engine;
use guardian::Guardian;
use journal::{Journal, Writer};
use socket::PacketSocket;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use steering::{Ports, Role, Steering};
use uplink::Line;
use worker::Worker;

/// What a gateway has around it.
#[derive(Default)]
pub struct Setup {
    /// What calls [`guard`] in a process of its own, with two interfaces as arguments; without it, connections that
    /// are exposed when this process dies are left to their ends.
    pub guardian: Option<Command>,
    /// Whether to open a control socket.
    pub control: bool,
    /// The configuration's file, which is read again when that is asked for.
    pub file: Option<PathBuf>,
    /// Version and commit.
    pub version: String,
}

/// A running gateway. Dropping it gives everything to the kernel, without waiting for what is owed.
pub struct Gateway {
    desk: Arc<Desk>,
    workers: Vec<JoinHandle<anyhow::Result<Snapshot>>>,
    /// A worker that has ended keeps its place among the others, which would get its packets otherwise.
    _places: Vec<OwnedFd>,
    /// The pair of devices, if there is one.
    _claim: Option<PacketSocket>,
    control: Option<Control>,
    problem: Option<String>,
}

/// A worker that has not started.
type Prepared = (Sender<Request>, Worker);

impl Gateway {
    /// Joins the interfaces and starts the workers.
    pub fn start(config: GatewayConfig, setup: Setup) -> anyhow::Result<Self> {
        let (mut control, mut problem) = (None, None);
        if setup.control {
            match Control::open(config.control.as_deref(), (&config.server, &config.mobile)) {
                Ok(opened) => control = Some(opened),
                Err(error) if config.control.is_some() => return Err(error),
                Err(error) => problem = Some(format!("cannot be asked while it runs: {error:#}")),
            }
        }
        let metrics = config.metrics.map(|address| {
            TcpListener::bind(address).with_context(|| format!("metrics = {address}: cannot listen there"))
        });
        let metrics = metrics.transpose()?;
        let seed = random()?;
        let ports = match config.mode {
            Mode::Bridge => bridge::join(&config)?,
            Mode::Routed => router::join(&config)?,
        };
        let claim = match ports.role {
            Role::Bridge { .. } => None,
            Role::Router { exit, .. } => Some(router::claim(&config, exit)?),
        };
        let steering = Steering::attach(&config, ports, seed as u32)?;
        let journal = setup.guardian.as_ref().map(|_| Journal::new(config.workers)).transpose()?;
        let (prepared, places) = prepare(&config, &steering, ports, seed, journal.as_ref())?;
        let guardian = setup.guardian.zip(journal.as_ref());
        let guardian =
            guardian.map(|(command, journal)| Guardian::start(command, journal, ports)).transpose()?;
        let (senders, ready): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
        let desk = Arc::new(Desk::new((setup.version, setup.file), config, steering, senders, guardian));
        let mut workers = Vec::new();
        for (index, worker) in ready.into_iter().enumerate() {
            let thread = thread::Builder::new().name(format!("worker{index}"));
            let own = Arc::clone(&desk);
            let work = move || worker.run().inspect(|last| own.note_end(index, last));
            workers.push(thread.spawn(work).context("cannot start a worker")?);
        }
        let (control, listener): (Option<Control>, Option<UnixListener>) = control.unzip();
        if let Some(listener) = listener {
            Control::serve(listener, Arc::clone(&desk))?;
        }
        if let Some(listener) = metrics {
            metrics::serve(listener, Arc::clone(&desk))?;
        }
        let gateway = Self { desk, workers, _places: places, _claim: claim, control, problem };
        gateway.desk.tend()?;
        Ok(gateway)
    }
    /// What others ask it by.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }
    /// Where its control socket is.
    pub fn control(&self) -> Option<&std::path::Path> {
        self.control.as_ref().map(Control::path)
    }
    /// What is missing, though it runs.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
    /// Whether any worker has ended.
    pub fn has_ended(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished)
    }
    /// Whether all workers have.
    pub fn is_over(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }
    /// Waits for the workers, which were asked to end, and tells what they did.
    pub fn join(mut self) -> anyhow::Result<Snapshot> {
        let ends = std::mem::take(&mut self.workers).into_iter().map(JoinHandle::join);
        let ends: Vec<_> =
            ends.map(|end| end.unwrap_or_else(|_| Err(anyhow!("a worker panicked")))).collect();
        let end = ends.into_iter().collect::<anyhow::Result<Vec<_>>>().map(|parts| self.desk.sum(parts));
        // Who waits is told when nothing is left that would be in another gateway's way.
        let desk = Arc::clone(&self.desk);
        drop(self);
        desk.close(&end);
        end
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.desk.abort();
        let config = self.desk.config();
        if config.mode == Mode::Routed {
            router::leave(&config);
        }
    }
}

/// Opens the workers' sockets and gives them their machines.
fn prepare(
    config: &GatewayConfig,
    steering: &Steering,
    ports: Ports,
    seed: u64,
    journal: Option<&Journal>,
) -> anyhow::Result<(Vec<Prepared>, Vec<OwnedFd>)> {
    let (mut prepared, mut places) = (Vec::new(), Vec::new());
    let line = Arc::<Line>::default();
    for index in 0..config.workers {
        let mut open = |interface: u32| -> anyhow::Result<PacketSocket> {
            let mut socket = PacketSocket::open().context("cannot open a packet socket")?;
            steering.open(&mut socket, interface, config.workers)?;
            places.push(socket.keep()?);
            Ok(socket)
        };
        let sockets = [open(ports.server)?, open(ports.mobile)?];
        let exit = match ports.role {
            Role::Bridge { .. } => None,
            Role::Router { exit, .. } => Some(exit),
        };
        let exits = || exit.map(PacketSocket::open_to).transpose().context("cannot open a packet socket");
        let exits = [exits()?, exits()?];
        let engine = Engine::new(config, ports.role, Arc::clone(&line), seed.wrapping_add(index as u64));
        let (sender, requests) = channel();
        let writer: Option<Writer> = journal.map(|journal| journal.writer(index));
        let worker =
            Worker::new(engine, (sockets, exits), steering.pulse(index)?, config.tick, (requests, writer));
        prepared.push((sender, worker));
    }
    Ok((prepared, places))
}

/// A key that an outsider does not know.
fn random() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let mut file = std::fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    std::io::Read::read_exact(&mut file, &mut bytes).context("cannot read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}
