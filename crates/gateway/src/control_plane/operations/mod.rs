//! The operations on a running gateway: status, reload, stop, capture, and the checks that are repeated while
//! it runs.
//!
//! [`ControlPlane`] is shared by the threads of the control socket, the HTTP server and the program's main
//! thread. The control plane sends requests to the workers by channels and never touches their connections
//! itself.

mod interfaces;

use super::away::Away;
use super::capture::{self, Captured};
use super::experiments::Experiments;
use super::filter_watch::FilterWatch;
use super::history::{History, Lists};
use super::leaving::{Acks, Leaving};
use super::notes::{Conditions, Notes};
use super::rates::Look;
use super::requests::{Page, Snapshot, WorkerRequest};
use super::socket::protocol::{ExperimentRequest, Response, StopReport};
use super::status::{DeviceStatus, FlowStatus, Overview, Status};
use super::web::metrics::{self, Health};
use super::web::process::Process;
use crate::config::{GatewayConfig, Mode};
use crate::counter::Counter;
use crate::crash_recovery::guardian::Guardian;
use crate::crash_recovery::rescuer::Rescue;
use crate::datapath::socket::has_interface;
use crate::datapath::steering::Steering;
use crate::experiment::{ExperimentStatus, Successor};
use crate::interfaces::mtu;
use crate::interfaces::ports::{Indices, Interface};
use crate::service::log::{self, Level};
use paceline_experiment::Assignment;
use paceline_linux::clock;
use paceline_linux::random::random;
use paceline_net::{Duration, FlowKey, Instant};
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot};
use paceline_pep::ack_filter::Finding;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;
/// Longest wait for a worker's answer. Chosen: a worker looks for requests every 10 ms; one that does not
/// answer for this long hangs.
const ANSWER_TIMEOUT: time::Duration = time::Duration::from_secs(2);
/// Time without a turn after which a worker hangs. Chosen: far longer than a busy machine keeps a thread from
/// running, and shorter than a service manager's watchdog.
const HANG_LIMIT: Duration = Duration::from_secs(2);
/// Devices in the list of those that have acknowledged most. Chosen: a page of a terminal.
pub const TOP_DEVICES: usize = 20;

/// A worker as the control plane knows it.
pub(crate) struct WorkerHandle {
    pub requests: Sender<WorkerRequest>,
    /// Time of the worker's last turn, in nanoseconds of [`clock::now`].
    pub turned_at: Arc<AtomicU64>,
}

/// The interfaces at which a gateway works.
pub(crate) struct Place {
    /// The indices, as the thread that follows the bridge sees them too.
    pub indices: Arc<Indices>,
    /// By side, a second descriptor of each worker's socket: a socket stays open after its worker has ended,
    /// since the others would get its packets otherwise.
    pub sockets: [Vec<OwnedFd>; 2],
}

impl Place {
    /// Whether the workers have sockets of each side whose interface is there.
    fn works(&self) -> [bool; 2] {
        let works = |sockets: &Vec<OwnedFd>| {
            !sockets.is_empty() && sockets.iter().all(|socket| has_interface(socket.as_fd()))
        };
        self.sockets.each_ref().map(works)
    }
}

/// The program of a gateway, and its last end.
#[derive(Default)]
pub(crate) struct Program {
    /// Version and commit.
    pub version: String,
    /// The file of the configuration.
    pub file: Option<PathBuf>,
    /// The gateway before this one did not end in order.
    pub after_crash: bool,
    /// The file with the result of the last guardian's work.
    pub rescue: Option<PathBuf>,
}

/// A running gateway, as its operator sees it.
pub struct ControlPlane {
    program: Program,
    started_at: Instant,
    config: Mutex<Arc<GatewayConfig>>,
    /// None after the gateway has ended.
    steering: Mutex<Option<Steering>>,
    experiments: Mutex<Experiments>,
    /// None if no connections are compared.
    filter_watch: Mutex<Option<FilterWatch>>,
    workers: Vec<WorkerHandle>,
    /// By worker.
    last_snapshots: Mutex<Vec<LastSnapshot>>,
    guardian: Mutex<Option<Guardian>>,
    draining: AtomicBool,
    paused: AtomicBool,
    notes: Mutex<Notes>,
    history: Mutex<History>,
    leaving: Mutex<Leaving>,
    place: Mutex<Place>,
    away: Mutex<Away>,
    /// The next socket of the thread that writes records.
    records: Mutex<Option<Successor>>,
    flow_look: Mutex<Option<Look<FlowKey>>>,
    device_look: Mutex<Option<Look<IpAddr>>>,
    /// The time limit of a stop that was requested and is not yet taken up.
    requested_stop: Mutex<Option<Duration>>,
    /// Clients that wait for the end of the gateway.
    stop_clients: Mutex<Vec<UnixStream>>,
}

/// A worker's last snapshot, which is summed as well after the worker has ended or if it does not answer, so
/// that counters never fall.
#[derive(Clone, Default)]
struct LastSnapshot {
    snapshot: Snapshot,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ControlPlane {
    pub(crate) fn new(
        program: Program,
        config: GatewayConfig,
        steering: Steering,
        place: Place,
        workers: Vec<WorkerHandle>,
        guardian: Option<Guardian>,
    ) -> Self {
        let side = |name: &str, index| Interface { name: name.to_owned(), index };
        let [server, mobile] = place.indices.get();
        let sides = [side(&config.server, server), side(&config.mobile, mobile)];
        Self {
            program,
            started_at: clock::now(),
            filter_watch: Mutex::new(FilterWatch::new(&config.filter)),
            config: Mutex::new(Arc::new(config)),
            steering: Mutex::new(Some(steering)),
            experiments: Mutex::default(),
            last_snapshots: Mutex::new(vec![LastSnapshot::default(); workers.len()]),
            workers,
            guardian: Mutex::new(guardian),
            draining: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            notes: Mutex::default(),
            history: Mutex::default(),
            leaving: Mutex::default(),
            place: Mutex::new(place),
            away: Mutex::new(Away::new(sides)),
            records: Mutex::default(),
            flow_look: Mutex::default(),
            device_look: Mutex::default(),
            requested_stop: Mutex::default(),
            stop_clients: Mutex::default(),
        }
    }
    /// The configuration in force.
    pub fn config(&self) -> Arc<GatewayConfig> {
        Arc::clone(&lock(&self.config))
    }

    fn send_to_all(&self, request: impl Fn() -> WorkerRequest) {
        for worker in &self.workers {
            let _ = worker.requests.send(request()); // the worker may have ended
        }
    }
    /// Each worker's answer; None from a worker that has ended or does not answer in time.
    fn ask_all<T>(&self, request: impl Fn(Sender<T>) -> WorkerRequest) -> Vec<Option<T>> {
        let answers: Vec<Option<Receiver<T>>> = self
            .workers
            .iter()
            .map(|worker| {
                let (answer, answers) = channel();
                worker.requests.send(request(answer)).ok().map(|()| answers)
            })
            .collect();
        answers.into_iter().map(|answers| answers?.recv_timeout(ANSWER_TIMEOUT).ok()).collect()
    }

    /// The sum of the workers' snapshots, with the kernel programs' counters.
    pub fn snapshot(&self) -> Snapshot {
        let answers = self.ask_all(WorkerRequest::Snapshot);
        let mut last = lock(&self.last_snapshots);
        for (last, answer) in last.iter_mut().zip(answers) {
            if let Some(answer) = answer.filter(|_| !last.ended) {
                last.snapshot = answer;
            }
        }
        self.sum(last.iter().map(|last| last.snapshot.clone()).collect())
    }
    /// Whether all workers that have not ended have made a turn lately. A worker without traffic makes one
    /// every 10 ms.
    pub fn workers_turn(&self) -> bool {
        let now = clock::now();
        let turns = |worker: &WorkerHandle| {
            let turned_at = Instant::from_nanos(worker.turned_at.load(Ordering::Relaxed));
            now.since(turned_at) < HANG_LIMIT
        };
        self.workers
            .iter()
            .zip(lock(&self.last_snapshots).iter())
            .all(|(worker, last)| last.ended || turns(worker))
    }
    /// Keeps the snapshot of a worker that has ended.
    pub(crate) fn note_end(&self, worker: usize, snapshot: &Snapshot) {
        if let Some(last) = lock(&self.last_snapshots).get_mut(worker) {
            *last = LastSnapshot { snapshot: snapshot.clone(), ended: true };
        }
    }
    /// Sums snapshots of workers, and adds the kernel programs' counters.
    pub(crate) fn sum(&self, parts: Vec<Snapshot>) -> Snapshot {
        let mut all = Snapshot::default();
        parts.into_iter().for_each(|part| all.add(part));
        all.counters.extend(lock(&self.steering).iter().flat_map(Steering::counters));
        all.filter_stopped = self.filter_stopped().is_some();
        all.experiment = lock(&self.experiments).status();
        all
    }
    /// State and counters of the gateway.
    pub fn status(&self) -> Status {
        self.status_of(self.snapshot())
    }
    fn status_of(&self, snapshot: Snapshot) -> Status {
        let config = self.config();
        Status {
            version: self.program.version.clone(),
            process: std::process::id(),
            server: config.server.clone(),
            mobile: config.mobile.clone(),
            workers: config.workers,
            uptime: clock::now().since(self.started_at).as_secs_f64(),
            draining: self.draining.load(Ordering::Relaxed),
            paused: self.is_paused(),
            guarded: self.is_guarded(),
            filter_stopped: self.filter_stopped().map(|finding| finding.to_string()),
            notes: lock(&self.notes).current().to_vec(),
            switched_off: lock(&self.experiments).is_switched_off(),
            flows: snapshot.flow_count,
            openings: snapshot.openings,
            exposure: snapshot.exposure,
            held: snapshot.held,
            sharing_devices: snapshot.sharing_devices,
            counters: snapshot.counters.by_name(),
        }
    }
    /// The comparison's finding for which the ACK filter was switched off.
    fn filter_stopped(&self) -> Option<Finding> {
        lock(&self.filter_watch).as_ref().and_then(FilterWatch::finding)
    }
    /// Whether the gateway leaves all connections to the kernel because it cannot work between its
    /// interfaces.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }
    fn is_guarded(&self) -> bool {
        lock(&self.guardian).as_ref().is_some_and(Guardian::is_running)
    }
    /// All metrics in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let guardian = lock(&self.guardian);
        let health = Health {
            process: Process::read(),
            guarded: guardian.as_ref().is_some_and(Guardian::is_running),
            guardian_restarts: guardian.as_ref().map_or(0, Guardian::restarts),
            after_crash: self.program.after_crash,
            rescue: self.program.rescue.as_deref().and_then(Rescue::read),
        };
        drop(guardian);
        metrics::text(&self.snapshot(), &self.program.version, &health)
    }
    /// The content of the page.
    pub fn overview(&self) -> Overview {
        let snapshot = self.snapshot();
        let experiment = snapshot.experiment.clone();
        let troubles = lock(&self.history).troubles(&snapshot.counters);
        let devices = self.top_devices(TOP_DEVICES);
        Overview { status: self.status_of(snapshot), troubles, devices, experiment }
    }
    /// The last hour.
    pub fn history(&self) -> Lists {
        lock(&self.history).lists(clock::now())
    }
    /// Passes all accelerated connections to `take`, a page at a time, until it returns false. Their rates
    /// are those since the last call, or else of half a second.
    pub fn flows(&self, mut take: impl FnMut(Vec<FlowStatus>) -> bool) {
        let earlier = Self::earlier(&self.flow_look, |look| {
            self.pages(WorkerRequest::Flows, |page: Vec<FlowSnapshot>| {
                page.iter().for_each(|flow| look.note(flow.key, flow.delivered));
                true
            });
        });
        let mut look = Look::now();
        let mut complete = true;
        self.pages(WorkerRequest::Flows, |page: Vec<FlowSnapshot>| {
            let measured = |flow: FlowSnapshot| {
                let rate = look.rate(&earlier, flow.key, flow.delivered);
                FlowStatus { rate, ..flow.into() }
            };
            complete = take(page.into_iter().map(measured).collect());
            complete
        });
        if complete {
            *lock(&self.flow_look) = Some(look);
        }
    }
    /// The `count` devices that have acknowledged most. Their rates are those since the last call, or else of
    /// half a second.
    pub fn top_devices(&self, count: usize) -> Vec<DeviceStatus> {
        let earlier = Self::earlier(&self.device_look, |look| {
            self.pages(WorkerRequest::Devices, |page: Vec<DeviceSnapshot>| {
                page.iter().for_each(|device| look.note(device.address, device.delivered));
                true
            });
        });
        let mut look = Look::now();
        let mut top: Vec<DeviceStatus> = Vec::new();
        self.pages(WorkerRequest::Devices, |page: Vec<DeviceSnapshot>| {
            top.extend(page.into_iter().map(|device| {
                let rate = look.rate(&earlier, device.address, device.delivered);
                DeviceStatus { rate, ..device.into() }
            }));
            top.sort_by_key(|device| (std::cmp::Reverse(device.delivered), device.address));
            top.truncate(count);
            true
        });
        *lock(&self.device_look) = Some(look);
        top
    }
    /// The last look, or a new one if there is none that is recent; a further look gives rates from now on.
    fn earlier<K: Ord + Copy>(last: &Mutex<Option<Look<K>>>, take: impl FnOnce(&mut Look<K>)) -> Look<K> {
        let recent = lock(last).clone();
        if let Some(look) = recent.filter(Look::wait) {
            return look;
        }
        let mut look = Look::now();
        take(&mut look);
        look.wait();
        look
    }
    fn pages<T>(
        &self,
        request: impl Fn(u32, Sender<Page<T>>) -> WorkerRequest,
        mut take: impl FnMut(Vec<T>) -> bool,
    ) {
        for worker in &self.workers {
            let mut from = Some(0);
            while let Some(start) = from {
                let (answer, answers) = channel();
                if worker.requests.send(request(start, answer)).is_err() {
                    break;
                }
                let Ok((entries, next)) = answers.recv_timeout(ANSWER_TIMEOUT) else { break };
                if !take(entries) {
                    return;
                }
                from = next;
            }
        }
    }
    /// Starts to copy a connection's packets; `key` may have either direction. None if there is no such
    /// connection.
    pub fn capture(&self, key: FlowKey, time: Duration) -> Option<Receiver<Captured>> {
        let known =
            |key: FlowKey| self.ask_all(|answer| WorkerRequest::Knows(key, answer)).contains(&Some(true));
        if !known(key) && !known(key.reversed()) {
            return None;
        }
        let (tap, captured) = capture::open(key, time);
        self.send_to_all(|| WorkerRequest::Capture(tap.clone()));
        Some(captured)
    }

    /// Reads the configuration file again, and reports it in the log. On an error, such as a changed key that
    /// is fixed at run time, the old configuration stays in force; the error names the keys.
    pub fn reload(&self) -> Result<(), String> {
        let done = self.try_reload();
        let (level, event, text) = match &done {
            Ok(()) => (Level::Notice, "reloaded", "the configuration was read again".to_owned()),
            Err(problem) => {
                (Level::Error, "reload-refused", format!("the configuration stays as it was: {problem}"))
            }
        };
        log::message(level, &text, &[("PACELINE_EVENT", event)]);
        done
    }
    fn try_reload(&self) -> Result<(), String> {
        let path = self.program.file.as_ref().ok_or("the gateway was started without a file")?;
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
        let mut new = GatewayConfig::parse(&file, &text)?;
        for note in &new.notes {
            log::message(Level::Warning, note, &[("PACELINE_EVENT", "note")]);
        }
        let mut current = lock(&self.config);
        current.apply_start_to(&mut new);
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
        // A filter that was switched off is on again, and so is a gateway whose acknowledgments did not
        // leave.
        *lock(&self.leaving) = Leaving::default();
        *lock(&self.filter_watch) = FilterWatch::new(&new.filter);
        *current = Arc::new(new);
        let config = Arc::clone(&current);
        drop(current);
        lock(&self.experiments).on_reload(&config, &|assignment| self.choose_devices(assignment));
        self.send_to_all(|| WorkerRequest::Configure(Arc::clone(&config)));
        self.update_clamp(&config).map_err(|error| format!("{error:#}"))
    }
    /// Passes on the highest segment size of SYNs, which may follow from the interfaces' MTUs.
    fn update_clamp(&self, config: &GatewayConfig) -> anyhow::Result<()> {
        let clamp = mtu::clamp(config)?;
        let changed = lock(&self.steering).as_ref().map(|steering| steering.set_clamp(clamp)).transpose()?;
        if changed == Some(true) {
            self.send_to_all(|| WorkerRequest::Clamp(clamp));
        }
        Ok(())
    }

    /// Whether acknowledgments are found not to leave this machine, since the last call. To be called several
    /// times a second; [`Self::check_interfaces`] then pauses the gateway.
    pub fn check_leaving(&self) -> bool {
        if self.config().mode == Mode::Bridge || lock(&self.leaving).is_found() {
            return false;
        }
        let counters = self.snapshot().counters;
        let [sent, early, left] =
            [Counter::AcksOut, Counter::EarlyAcks, Counter::AcksLeft].map(|counter| counters.get(counter));
        lock(&self.leaving).check(Acks { sent, early, left })
    }
    /// Looks for conditions that the operator should know, and notes the history. To be called about once a
    /// second. Returns the notes that have appeared.
    pub fn check_notes(&self) -> Vec<String> {
        let (config, snapshot) = (self.config(), self.snapshot());
        lock(&self.history).note(clock::now(), &snapshot);
        let conditions = Conditions {
            halted: lock(&self.steering).as_ref().is_some_and(Steering::is_halted),
            unguarded: !self.is_guarded(),
            gone: lock(&self.away).gone().map(str::to_owned),
            sharing: snapshot.sharing_devices > 0,
        };
        lock(&self.notes).check(&config, &snapshot.counters, &conditions)
    }
    fn choose_devices(&self, assignment: Assignment) -> anyhow::Result<()> {
        lock(&self.steering).iter().try_for_each(|steering| steering.set_experiment(assignment))
    }
    /// Handles a request about the experiment; its state afterwards, if there was one.
    pub(crate) fn experiment(&self, request: &ExperimentRequest) -> Result<Option<ExperimentStatus>, String> {
        let config = self.config();
        let mut experiments = lock(&self.experiments);
        experiments.handle(request, &config, &|assignment| self.choose_devices(assignment))?;
        Ok(experiments.status())
    }
    /// Goes on with the experiment of a gateway that ran before.
    pub(crate) fn resume_experiment(&self) -> anyhow::Result<()> {
        let config = self.config();
        lock(&self.experiments).resume(&config, &|assignment| self.choose_devices(assignment))
    }
    /// Acts on the end of an experiment. To be called several times a second. Returns, once, a message for
    /// the operator, and whether acceleration is off.
    pub fn check_experiment(&self) -> Option<(bool, String)> {
        lock(&self.experiments).check(&|assignment| self.choose_devices(assignment))
    }
    /// Ends a period of the ACK filter's comparison if it is over, and starts the next one. To be called
    /// several times a second. Returns, once, the finding for which the filter is switched off.
    pub fn compare_filter(&self) -> anyhow::Result<Option<Finding>> {
        let (steering, mut watch) = (lock(&self.steering), lock(&self.filter_watch));
        let (Some(steering), Some(watch)) = (steering.as_ref(), watch.as_mut()) else { return Ok(None) };
        let now = clock::now();
        if !watch.is_due(now) {
            return Ok(None);
        }
        let holdout = watch.next_period(now, steering, random()? as u32)?;
        self.send_to_all(|| WorkerRequest::HoldOut(holdout));
        Ok(watch.finding())
    }
    /// Lets the workers end when their connections have been delivered everything that was acknowledged for
    /// them, or after `limit`.
    pub fn drain(&self, limit: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.send_to_all(|| WorkerRequest::Drain(limit));
    }
    /// Lets the workers end at once.
    pub fn abort(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.send_to_all(|| WorkerRequest::Abort);
    }
    /// Requests a stop for a client, which gets a [`StopReport`] on `stream` when the gateway has ended.
    pub(crate) fn request_stop(&self, limit: Option<Duration>, stream: UnixStream) {
        lock(&self.stop_clients).push(stream);
        *lock(&self.requested_stop) = Some(limit.unwrap_or(self.config().drain));
    }
    /// The time limit of a stop that was requested since the last call.
    pub fn take_requested_stop(&self) -> Option<Duration> {
        lock(&self.requested_stop).take()
    }
    /// Detaches the kernel programs, and reports the end to the clients that wait for it.
    pub(crate) fn close(&self, end: &anyhow::Result<Snapshot>) {
        let response = match end {
            Ok(end) => {
                let detached = end.counters.get(Counter::FlowsDetachedAtEnd);
                let reset = end.counters.get(Counter::FlowsResetAtEnd);
                Response::Ended(StopReport { detached, reset })
            }
            Err(error) => Response::Error(format!("{error:#}")),
        };
        lock(&self.experiments).leave();
        *lock(&self.steering) = None;
        for mut stream in lock(&self.stop_clients).drain(..) {
            let _ = response.write_line(&mut stream); // the client may have disconnected
        }
    }
}
