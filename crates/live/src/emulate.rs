//! Emulation: real programs communicate through the modelled cell, in real time.
//!
//! Each real station is a network namespace with a TUN device; the host side is a TUN device in the caller's
//! namespace. Their packets pass the same [`Model`] that the simulator runs. The other stations are
//! simulated.

use crate::clock::Monotonic;
use crate::lateness::Lateness;
use crate::netns::{self, LinkOptions, Namespace};
use crate::pcapng;
use crate::realtime::Realtime;
use crate::tun::Tun;
use anyhow::Context;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use paceline_net::{Instant, Node, Output, Packet, Port};
use paceline_sim::address;
use paceline_sim::model::{HOST_SIDE, real_station};
use paceline_sim::{Model, Recorder, RunResult, Scenario};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// IPv4 and IPv6 networks of the stations, which the host side routes into its device. Derived from
/// `address::station`: parts of the ranges for benchmarks (RFC 2544, RFC 5180).
const STATION_NETWORKS: (&str, &str) = ("198.18.128.0/17", "2001:2:0:2::/64");
/// Time between SIGTERM and SIGKILL when the emulation is stopped. Chosen: enough for a program to close its
/// connections.
const TERMINATION_TIMEOUT: paceline_net::Duration = paceline_net::Duration::from_secs(2);
/// After the programs have ended, the emulation carries their last packets until none has passed for this
/// time plus a round trip of the wire. Chosen: longer than Linux's least retransmission timeout of 200 ms.
const QUIET_TIME: paceline_net::Duration = paceline_net::Duration::from_millis(500);
/// Longest time, plus a round trip, for which the last packets are carried. Chosen: bounds the wait for a
/// peer that goes on sending.
const MAX_LINGER: paceline_net::Duration = paceline_net::Duration::from_secs(5);

/// The parameters of an emulation.
pub struct Emulation<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The stations that are real.
    pub stations: &'a [usize],
    /// Program and arguments, run in each real station; if empty, a shell in the first one.
    pub command: &'a [String],
    /// Congestion control of the kernel's connections through the cell; the host's default if absent.
    pub congestion_control: Option<&'a str>,
    /// Capture file.
    pub pcap: Option<&'a Path>,
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
}

impl Observed {
    fn end_at(&mut self, now: Instant) {
        self.model.engine.run_until(now);
        self.recorder.record_end(&mut self.model);
    }
}

impl Node for Observed {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.model.engine.handle_packet(now, from, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.model.engine.run_until(now);
        if self.recorder.next_at() <= now {
            self.recorder.record(&mut self.model);
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        self.model.engine.poll_output(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let stop = self.recorder.next_at();
        Some(self.model.engine.poll_timeout().map_or(stop, |at| at.min(stop)))
    }
}

/// Runs an emulation until its programs have ended or a signal comes.
pub fn run(emulation: &Emulation<'_>) -> anyhow::Result<Report> {
    let scenario = emulation.scenario;
    let mut model = Model::new(scenario, scenario.run.seed, emulation.stations);
    let mut capture_file = None;
    if let Some(path) = emulation.pcap {
        let (file, capture) = pcapng::create(path, model.stations())?;
        model.capture(capture);
        capture_file = Some(file);
    }
    let options = LinkOptions {
        congestion_control: emulation.congestion_control.map(str::to_owned),
        // The kernel's segments have timestamps, also if the scenario's have none: full packets have the same
        // length.
        segment_size: scenario.tcp.segment_size.0
            - if scenario.tcp.timestamps { 0 } else { netns::TIMESTAMPS },
    };
    let mut devices = vec![(HOST_SIDE, netns::host_side(address::HOST, STATION_NETWORKS, &options)?)];
    let mut namespaces = Vec::new();
    for station in emulation.stations {
        let (v4, v6) = address::station(*station);
        let (namespace, tun) = Namespace::with_tun("ue0", v4, v6, &options)
            .with_context(|| format!("cannot make the namespace of station {station}"))?;
        devices.push((real_station(*station), tun));
        namespaces.push((*station, namespace));
    }
    let signals = Signals::register()?;
    let recorder = Recorder::new(scenario, scenario.run.seed);
    let mut programs = Programs::start(namespaces, emulation.command)?;
    prefer_this_thread();
    let _awake = stay_awake();
    let mut realtime = Realtime::new(Observed { model, recorder }, Monotonic::start(), devices);
    drive(&mut realtime, &signals, &mut programs)?;
    linger(&mut realtime, &signals, scenario)?;

    let lateness = realtime.lateness().clone();
    let Observed { mut model, recorder } = realtime.into_node();
    let result = recorder.finish(&mut model);
    if let Some(file) = capture_file {
        drop(model);
        file.finish()?;
    }
    Ok(Report { result, lateness, failed: std::mem::take(&mut programs.failed), stopped: signals.stopped() })
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
    let wire = wire + scenario.link.as_ref().and_then(|link| link.delay).unwrap_or_default() * 2;
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

/// The programs in the stations' namespaces.
struct Programs {
    namespaces: Vec<(usize, Namespace)>,
    running: Vec<(usize, Child)>,
    failed: Vec<(usize, ExitStatus)>,
}

impl Programs {
    fn start(namespaces: Vec<(usize, Namespace)>, argv: &[String]) -> anyhow::Result<Self> {
        let mut programs = Self { namespaces, running: Vec::new(), failed: Vec::new() };
        let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into());
        // Only one interactive shell can use the terminal.
        let count = if argv.is_empty() { 1 } else { programs.namespaces.len() };
        for (station, namespace) in &programs.namespaces[..count] {
            let name = argv.first().unwrap_or(&shell);
            let mut command = Command::new(name);
            command.args(argv.iter().skip(1));
            command.env("PACELINE_STATION", station.to_string());
            command.env("PACELINE_HOST", address::HOST.0.to_string());
            command.env("PACELINE_HOST6", address::HOST.1.to_string());
            namespace.enter(&mut command)?;
            let child = command.spawn().with_context(|| format!("cannot run `{name}`"))?;
            programs.running.push((*station, child));
        }
        Ok(programs)
    }
    fn reap(&mut self) -> anyhow::Result<()> {
        let mut index = 0;
        while index < self.running.len() {
            let (station, child) = &mut self.running[index];
            let Some(status) = child.try_wait().context("cannot wait for a program")? else {
                index += 1;
                continue;
            };
            if !status.success() {
                self.failed.push((*station, status));
            }
            self.running.remove(index);
        }
        Ok(())
    }
    /// Sends a signal to all processes in the namespaces.
    fn signal(&self, signal: Signal) {
        for pid in self.namespaces.iter().flat_map(|(_, namespace)| namespace.processes()) {
            let _ = kill(pid, signal);
        }
    }
}

impl Drop for Programs {
    /// Kills the remaining processes in the namespaces, which have no network any more.
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.running.iter_mut().for_each(|(_, child)| drop(child.wait()));
    }
}

/// Keeps idle processors from sleeping while the file is open (PM QoS, `/dev/cpu_dma_latency`): the host
/// takes up to a millisecond to wake a virtual processor that sleeps. Without the permission, timers run
/// later.
fn stay_awake() -> Option<File> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// Requests exact timers and, if permitted, real-time priority for this thread. Child processes do not
/// inherit the priority.
pub(crate) fn prefer_this_thread() {
    let _ = prctl::set_timerslack(1);
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the call reads one struct that lives here; thread 0 is the calling one.
    #[allow(unsafe_code)]
    let _ = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
}
