//! Where a running gateway is asked: what every way in ([`super::control`], [`super::metrics`], signals) goes
//! through.

use super::bridge;
use super::capture::{self, Captured};
use super::comparison::Watch;
use super::config::{GatewayConfig, Mode};
use super::counter::Counter;
use super::guardian::Guardian;
use super::metrics;
use super::random;
use super::requests::{Page, Request, Snapshot};
use super::router;
use super::status::{DeviceStatus, FlowStatus, Status};
use super::steering::Steering;
use crate::clock;
use anyhow::Context;
use paceline_net::{Duration, FlowKey, Instant};
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot};
use paceline_pep::ack_filter::Finding;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

/// Longest wait for a worker's answer.
const ANSWER: time::Duration = time::Duration::from_secs(2);

/// A running gateway, as others see it.
pub struct Desk {
    /// Version and commit.
    pub version: String,
    file: Option<PathBuf>,
    started_at: Instant,
    config: Mutex<Arc<GatewayConfig>>,
    /// None when the gateway has ended.
    steering: Mutex<Option<Steering>>,
    /// None where nothing is compared.
    watch: Mutex<Option<Watch>>,
    workers: Vec<Sender<Request>>,
    /// By worker.
    told: Mutex<Vec<Told>>,
    pub(super) guardian: Mutex<Option<Guardian>>,
    draining: AtomicBool,
    aside: AtomicBool,
    stop: Mutex<Option<Duration>>,
    /// Who waits for the end.
    waiting: Mutex<Vec<UnixStream>>,
}

/// What a worker has told last. It still counts when the worker has ended, or does not answer: counters never fall.
#[derive(Clone, Default)]
struct Told {
    snapshot: Snapshot,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(super) fn new(
        (version, file): (String, Option<PathBuf>),
        config: GatewayConfig,
        steering: Steering,
        workers: Vec<Sender<Request>>,
        guardian: Option<Guardian>,
    ) -> Self {
        Self {
            version,
            file,
            started_at: clock::now(),
            watch: Mutex::new(Watch::new(&config.filter)),
            config: Mutex::new(Arc::new(config)),
            steering: Mutex::new(Some(steering)),
            told: Mutex::new(vec![Told::default(); workers.len()]),
            workers,
            guardian: Mutex::new(guardian),
            draining: AtomicBool::new(false),
            aside: AtomicBool::new(false),
            stop: Mutex::default(),
            waiting: Mutex::default(),
        }
    }
    /// The configuration that counts.
    pub fn config(&self) -> Arc<GatewayConfig> {
        Arc::clone(&lock(&self.config))
    }

    fn tell(&self, request: impl Fn() -> Request) {
        for worker in &self.workers {
            let _ = worker.send(request()); // one that has ended needs nothing
        }
    }
    /// What each worker answers, if it does.
    fn ask<T>(&self, request: impl Fn(Sender<T>) -> Request) -> Vec<Option<T>> {
        let answers: Vec<Option<Receiver<T>>> = self
            .workers
            .iter()
            .map(|worker| {
                let (answer, answers) = channel();
                worker.send(request(answer)).ok().map(|()| answers)
            })
            .collect();
        answers.into_iter().map(|answers| answers?.recv_timeout(ANSWER).ok()).collect()
    }

    /// What the workers tell, summed up.
    pub fn snapshot(&self) -> Snapshot {
        let answers = self.ask(Request::Snapshot);
        let mut told = lock(&self.told);
        for (told, answer) in told.iter_mut().zip(answers) {
            if let Some(answer) = answer.filter(|_| !told.ended) {
                told.snapshot = answer;
            }
        }
        self.sum(told.iter().map(|told| told.snapshot.clone()).collect())
    }
    /// A worker has ended, with these last words.
    pub(super) fn note_end(&self, worker: usize, last: &Snapshot) {
        if let Some(told) = lock(&self.told).get_mut(worker) {
            *told = Told { snapshot: last.clone(), ended: true };
        }
    }
    /// Sums up what workers tell, and adds what the kernel's part counts.
    pub(super) fn sum(&self, parts: Vec<Snapshot>) -> Snapshot {
        let mut all = Snapshot::default();
        parts.into_iter().for_each(|part| all.add(part));
        all.counters.extend(lock(&self.steering).iter().flat_map(Steering::counters));
        all.filter_stopped = self.filter_stopped().is_some();
        all
    }
    /// The gateway as a whole.
    pub fn status(&self) -> Status {
        let (config, snapshot) = (self.config(), self.snapshot());
        Status {
            version: self.version.clone(),
            process: std::process::id(),
            server: config.server.clone(),
            mobile: config.mobile.clone(),
            workers: config.workers,
            uptime: clock::now().since(self.started_at).as_secs_f64(),
            draining: self.draining.load(Ordering::Relaxed),
            aside: self.is_aside(),
            guarded: self.is_guarded(),
            filter_stopped: self.filter_stopped().map(|finding| finding.to_string()),
            flows: snapshot.flow_count,
            openings: snapshot.openings,
            exposure: snapshot.exposure,
            held: snapshot.held,
            counters: snapshot.counters.by_name(),
        }
    }
    /// What the ACK filter was taken out of use for.
    fn filter_stopped(&self) -> Option<Finding> {
        lock(&self.watch).as_ref().and_then(Watch::found)
    }
    /// Whether the gateway has stepped aside.
    pub fn is_aside(&self) -> bool {
        self.aside.load(Ordering::Relaxed)
    }
    fn is_guarded(&self) -> bool {
        lock(&self.guardian).as_mut().is_some_and(Guardian::is_well)
    }
    /// Prometheus' text.
    pub fn metrics(&self) -> String {
        metrics::text(&self.snapshot(), &self.version, self.is_guarded())
    }
    /// Gives all connections, some at a time, until `take` wants no more.
    pub fn flows(&self, mut take: impl FnMut(Vec<FlowStatus>) -> bool) {
        self.pages(Request::Flows, |page: Vec<FlowSnapshot>| {
            take(page.into_iter().map(Into::into).collect())
        });
    }
    /// The devices that have acknowledged most, as JSON.
    pub fn top_devices(&self, count: usize) -> String {
        let mut top: Vec<DeviceStatus> = Vec::new();
        self.pages(Request::Devices, |page: Vec<DeviceSnapshot>| {
            top.extend(page.into_iter().map(DeviceStatus::from));
            top.sort_by_key(|device| (std::cmp::Reverse(device.delivered), device.address));
            top.truncate(count);
            true
        });
        serde_json::json!({ "devices": top }).to_string()
    }
    fn pages<T>(
        &self,
        request: impl Fn(u32, Sender<Page<T>>) -> Request,
        mut take: impl FnMut(Vec<T>) -> bool,
    ) {
        for worker in &self.workers {
            let mut from = Some(0);
            while let Some(place) = from {
                let (answer, answers) = channel();
                if worker.send(request(place, answer)).is_err() {
                    break;
                }
                let Ok((entries, next)) = answers.recv_timeout(ANSWER) else { break };
                if !take(entries) {
                    return;
                }
                from = next;
            }
        }
    }
    /// Begins to copy a connection's packets, whichever direction `key` has. None if there is no such connection.
    pub fn capture(&self, key: FlowKey, time: Duration) -> Option<Receiver<Captured>> {
        let known = |key: FlowKey| self.ask(|answer| Request::Knows(key, answer)).contains(&Some(true));
        if !known(key) && !known(key.reversed()) {
            return None;
        }
        let (tap, captured) = capture::open(key, time);
        self.tell(|| Request::Capture(tap.clone()));
        Some(captured)
    }

    /// Reads the configuration again. What cannot change at run time must not; the error says what stands in the way,
    /// and then everything stays.
    pub fn reload(&self) -> Result<(), String> {
        let path = self.file.as_ref().ok_or("the gateway was started without a file")?;
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
        let mut new = GatewayConfig::parse(&file, &text)?;
        let mut current = lock(&self.config);
        current.orient(&mut new);
        let fixed = current.fixed_changes(&new);
        if !fixed.is_empty() {
            let keys = fixed.join(", ");
            return Err(format!(
                "{file}: cannot change while the gateway runs: {keys}; stop it and start it again"
            ));
        }
        if let Some(steering) = lock(&self.steering).as_ref()
            && current.policy != new.policy
        {
            steering.change_policies(&new).map_err(|error| format!("{error:#}"))?;
        }
        *lock(&self.watch) = Watch::new(&new.filter); // a filter that was stopped gets another chance
        *current = Arc::new(new);
        let config = Arc::clone(&current);
        self.tell(|| Request::Configure(Arc::clone(&config)));
        Ok(())
    }

    /// To be called every second or so: tells the kernel's part what has changed about this machine. Where something
    /// stands in the gateway's way, which is the error then, the kernel has everything until it is gone.
    pub fn tend(&self) -> anyhow::Result<()> {
        let config = self.config();
        let fit = match config.mode {
            Mode::Bridge => {
                let (bridge, fit) = bridge::look(&config)?;
                let set = |steering: &Steering| bridge.iter().try_for_each(|now| steering.set_bridge(now));
                lock(&self.steering).iter().try_for_each(set)?;
                fit
            }
            Mode::Routed => {
                let interfaces =
                    nix::ifaddrs::getifaddrs().context("cannot read this machine's addresses")?;
                let addresses: Vec<IpAddr> =
                    interfaces.filter_map(|interface| own_address(&interface)).collect();
                lock(&self.steering).iter().try_for_each(|steering| steering.set_local(&addresses))?;
                router::look(&config)?
            }
        };
        if self.aside.swap(fit.is_err(), Ordering::Relaxed) != fit.is_err() {
            self.tell(|| Request::Aside(fit.is_err().then_some(config.drain)));
        }
        fit
    }
    /// To be called several times a second: looks whether the ACK filter does harm, which is told once. It is out of use then.
    pub fn compare(&self) -> anyhow::Result<Option<Finding>> {
        let (steering, mut watch) = (lock(&self.steering), lock(&self.watch));
        let (Some(steering), Some(watch)) = (steering.as_ref(), watch.as_mut()) else { return Ok(None) };
        let now = clock::now();
        if !watch.is_due(now) {
            return Ok(None);
        }
        let holdout = watch.next(now, steering, random()? as u32)?;
        self.tell(|| Request::HoldOut(holdout));
        Ok(watch.found())
    }
    /// Asks the workers to end without harm.
    pub fn drain(&self, limit: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.tell(|| Request::Drain(limit));
    }
    /// Asks the workers to end now.
    pub fn abort(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.tell(|| Request::Abort);
    }
    /// Somebody asks for the end, and wants to be told of it.
    pub(super) fn ask_to_stop(&self, limit: Option<Duration>, stream: UnixStream) {
        lock(&self.waiting).push(stream);
        *lock(&self.stop) = Some(limit.unwrap_or(self.config().drain));
    }
    /// Whether somebody has asked for the end since the last call, and how long it may take.
    pub fn stop_wanted(&self) -> Option<Duration> {
        lock(&self.stop).take()
    }
    /// Tells who waits how it ended, and gives everything to the kernel.
    pub(super) fn close(&self, end: &anyhow::Result<Snapshot>) {
        let line = match end {
            Ok(end) => {
                let detached = end.counters.get(Counter::FlowsDetachedAtEnd);
                let reset = end.counters.get(Counter::FlowsResetAtEnd);
                serde_json::json!({ "ended": { "detached": detached, "reset": reset } })
            }
            Err(error) => serde_json::json!({ "error": format!("{error:#}") }),
        };
        *lock(&self.steering) = None;
        for mut stream in lock(&self.waiting).drain(..) {
            let _ = writeln!(stream, "{line}").context("nobody waits any more");
        }
    }
}

fn own_address(interface: &nix::ifaddrs::InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}
