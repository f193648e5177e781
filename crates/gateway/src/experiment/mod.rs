//! The experiment of a running gateway (docs/experiment.md): a thread that observes the interface towards the
//! devices, and the file in which the experiment outlives the gateway.
//!
//! The thread hands headers from `tap` to the observer, and the transfers that it finds to the experiment. A
//! look that is due computes for seconds, on a thread of its own, so that no header is lost meanwhile. The
//! control plane shares the experiment, and acts on its end. `records` writes transfers to a file instead.

mod file;
pub mod records;
mod tap;

pub use file::{Saved, load, path};
pub use tap::{Successor, Tap};

use super::policy::{Action, Table};
use crate::service::confinement::{Confined, confine};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use paceline_experiment::{Assignment, Design, Experiment, Observer, Plan, Report, State};
use paceline_linux::clock;
use paceline_net::Duration;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Time between two sweeps over the connections. Chosen: a transfer ends after a pause of a second.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two writes of the file. Chosen: so much is lost if the machine dies.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// The state of an experiment, as its operator sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExperimentStatus {
    /// The plan.
    pub plan: Plan,
    /// The state.
    pub state: State,
    /// Whether acceleration is switched off because of harm.
    pub switched_off: bool,
    /// Time in which transfers were collected.
    pub elapsed: Duration,
    /// Finished transfers so far: of accelerated and of untouched devices.
    pub transfers: [u64; 2],
    /// Transfers of devices that had no place in the table.
    pub left_out: u64,
    /// Headers that the observer lost because it was too slow.
    pub headers_lost: u64,
    /// The last look; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// An experiment, shared by its thread and the control plane.
pub struct Shared {
    saved: Mutex<Saved>,
    file: PathBuf,
    policies: Mutex<Table>,
    lost: Mutex<u64>,
    /// The thread has to end.
    ended: Mutex<bool>,
    /// An error of the file that was already reported.
    problem: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Shares an experiment that is kept in `file`.
    pub fn new(saved: Saved, file: PathBuf, policies: Table) -> Self {
        Self {
            saved: Mutex::new(saved),
            file,
            policies: Mutex::new(policies),
            lost: Mutex::default(),
            ended: Mutex::default(),
            problem: Mutex::default(),
        }
    }
    /// Its state.
    pub fn state(&self) -> State {
        lock(&self.saved).experiment.state()
    }
    /// Whether acceleration has to be off.
    pub fn switches_off(&self) -> bool {
        let saved = lock(&self.saved);
        saved.experiment.state() == State::Harm && !saved.overruled
    }
    /// The operator has acceleration switched on again after harm.
    pub fn overrule(&self) {
        lock(&self.saved).overruled = true;
        self.save();
    }
    /// Lets the next period begin if it is due: `choose` has its devices accelerated.
    pub fn begin_period(&self, choose: &dyn Fn(Assignment) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let next = lock(&self.saved).experiment.next_period();
        if let Some(assignment) = next {
            choose(assignment)?;
            lock(&self.saved).experiment.begin_period(clock::now());
        }
        Ok(())
    }
    /// Ends it on the operator's wish.
    pub fn stop(&self) {
        lock(&self.saved).experiment.stop();
        self.save();
    }
    /// Ends the thread; the file stays.
    pub fn end(&self) {
        *lock(&self.ended) = true;
        self.save();
    }
    /// Takes over new policies: transfers of devices that are left alone do not count.
    pub fn set_policies(&self, policies: Table) {
        *lock(&self.policies) = policies;
    }
    /// State and last look.
    pub fn status(&self) -> ExperimentStatus {
        let switched_off = self.switches_off();
        let saved = lock(&self.saved);
        let experiment = &saved.experiment;
        ExperimentStatus {
            plan: *experiment.plan(),
            state: experiment.state(),
            switched_off,
            elapsed: experiment.elapsed(),
            transfers: experiment.transfers(),
            left_out: experiment.left_out(),
            headers_lost: *lock(&self.lost),
            report: experiment.report().cloned(),
        }
    }
    /// Writes the file. A full disk or a missing folder is reported once, and does not end the experiment.
    pub fn save(&self) {
        let mut known = lock(&self.problem); // one thread at a time replaces the file
        let saved = lock(&self.saved).clone();
        let problem = file::save(&self.file, &saved).err().map(|error| format!("{error:#}"));
        if let Some(problem) = problem.as_ref().filter(|problem| known.as_ref() != Some(problem)) {
            eprintln!("paceline: the experiment goes on in memory alone: {problem}");
        }
        *known = problem;
    }
    /// Adds the transfers that have ended, of devices that take part.
    fn collect(&self, observer: &mut Observer) {
        let (mut saved, policies) = (lock(&self.saved), lock(&self.policies));
        while let Some((_, transfer)) = observer.poll() {
            if matches!(policies.action(transfer.device), Action::Accelerate | Action::Relay) {
                saved.experiment.record(&transfer);
            }
        }
    }
}

/// Starts the thread of a running experiment.
pub fn watch(shared: Arc<Shared>, mut tap: Tap) -> std::io::Result<()> {
    thread::Builder::new().name("experiment".into()).spawn(move || {
        // Headers of strangers are parsed without any privilege.
        let done = confine(Confined::Observer).map_err(std::io::Error::other);
        if let Err(error) = done.and_then(|()| run(&shared, &mut tap)) {
            eprintln!("paceline: the experiment is stopped: cannot observe the interface: {error}");
            shared.stop();
        }
    })?;
    Ok(())
}

fn run(shared: &Arc<Shared>, tap: &mut Tap) -> std::io::Result<()> {
    let mut observer = Observer::default();
    let (mut swept_at, mut saved_at) = (clock::now(), clock::now());
    let mut look: Option<JoinHandle<()>> = None;
    while !*lock(&shared.ended) && shared.state() == State::Running {
        let mut fds = [PollFd::new(tap.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(50u8)); // a signal is no matter
        while tap.receive(|at, key, segment| observer.on_segment(at, key, segment))? {}
        let now = clock::now();
        if now.since(swept_at) >= SWEEP_INTERVAL {
            *lock(&shared.lost) += tap.lost();
            observer.sweep(now);
            shared.collect(&mut observer);
            lock(&shared.saved).experiment.advance(now.since(swept_at));
            swept_at = now;
            if look.as_ref().is_none_or(JoinHandle::is_finished) {
                look = take_look(shared)?;
            }
        }
        if now.since(saved_at) >= SAVE_INTERVAL {
            shared.save();
            saved_at = now;
        }
    }
    Ok(())
}

/// Starts the thread of a look if one is due. Its computation holds no lock.
fn take_look(shared: &Arc<Shared>) -> std::io::Result<Option<JoinHandle<()>>> {
    let due = {
        let saved = lock(&shared.saved);
        saved.experiment.is_due().then(|| saved.experiment.clone())
    };
    let start = |experiment: Experiment| {
        let shared = Arc::clone(shared);
        thread::Builder::new().name("look".into()).spawn(move || {
            let analysis = experiment.analyse();
            lock(&shared.saved).experiment.conclude(analysis);
            shared.save();
        })
    };
    due.map(start).transpose()
}

/// The time that a new experiment may last. Chosen: shorter ones have no transfers, longer ones are
/// forgotten.
pub const DURATIONS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(90 * 24 * 3600));

/// The smallest change that may be said not to matter. Chosen: from half on, nothing would be found.
const PRACTICAL: std::ops::RangeInclusive<f64> = 0.0..=0.5;

/// Checks the plan of an operator.
pub fn check(share: f64, duration: Duration, design: Design, practical: Option<f64>) -> Result<(), String> {
    if !(0.05..=0.95).contains(&share) {
        return Err(format!("share = {share}: allowed: 0.05 to 0.95"));
    }
    let least = match design {
        Design::Parallel => DURATIONS.0,
        Design::Switchback => Plan::least_switchback(),
    };
    if !(least..=DURATIONS.1).contains(&duration) {
        return Err(format!("duration = {duration}: allowed: {least} to {}", DURATIONS.1));
    }
    if let Some(practical) = practical.filter(|practical| !PRACTICAL.contains(practical)) {
        return Err(format!("practical = {practical}: allowed: 0 to 0.5"));
    }
    Ok(())
}
