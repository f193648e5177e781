//! The guardian: a second process that outlives the gateway, so that no connection hangs after a crash.
//!
//! The guardian has the journal's memory and the reading end of a pipe whose other end only the gateway has.
//! When the pipe is closed, the journal has the connections whose servers got acknowledgments for data that
//! their clients lack; after an orderly end there are none. A [`Rescuer`] clears them, when both interfaces
//! are there.
//!
//! In the gateway, a thread waits for the guardian's end, reports it, and starts the next one at once.

use super::journal::{self, Journal};
use super::presence::{self, Presence};
use super::rescuer::{Rescue, Rescuer};
use crate::interfaces::ports::Interface;
use crate::service::log::{self, Level};
use crate::service::privileges;
use anyhow::Context;
use paceline_linux::clock;
use paceline_net::Duration;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A guardian that lived for less counts as one that cannot work. Chosen: it starts within some milliseconds.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// So many of them in a row are started again at once. Chosen: more than a test or an operator ends.
const QUICK_STARTS: u32 = 20;
/// Pause before a further start then, or after a start that failed. Chosen: a start costs some milliseconds
/// of processor time.
const START_PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for the first guardian to be there. Chosen: far longer than it takes on a busy machine; later
/// connections are acknowledged early as soon as it is.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The guardian as the gateway sees it: a child process, and the pipe that keeps it waiting.
pub struct Guardian {
    watch: Arc<Watch>,
    presence: Presence,
}

/// The state that the gateway shares with the thread that waits for the guardian's end.
#[derive(Default)]
struct Watch {
    /// Closed at the gateway's end.
    pipe: Mutex<Option<ChildStdin>>,
    ending: AtomicBool,
    restarts: AtomicU64,
}

impl Guardian {
    /// Starts a guardian. `command` has to call [`guard`] with its standard input and output, and with the
    /// interfaces that it gets as arguments: towards the servers, towards the devices, and in routed mode the
    /// device by which packets enter the kernel's routing. The option `--report` names a file for the result.
    pub(crate) fn start(
        mut command: Command,
        journal: &Journal,
        interfaces: &[Interface],
        report: Option<&Path>,
    ) -> anyhow::Result<Self> {
        command.args(interfaces.iter().map(Interface::to_string));
        if let Some(report) = report {
            command.arg("--report").arg(report);
        }
        // In a process group of its own, it does not get the terminal's signals.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::from(journal.share()?));
        let watch = Arc::<Watch>::default();
        let first = watch.spawn(&mut command).context("cannot start the guardian")?;
        let (own, presence) = (Arc::clone(&watch), journal.presence());
        let work = move || {
            // The next guardian inherits these.
            let _ = privileges::keep(&privileges::OF_GUARDIAN, None);
            own.supervise(command, first, &presence);
        };
        thread::Builder::new().name("guardian".into()).spawn(work).context("cannot start a thread")?;
        let guardian = Self { watch, presence: journal.presence() };
        let until = clock::now() + FIRST_WAIT;
        while !guardian.is_running() && clock::now() < until {
            clock::pause(Duration::from_millis(1));
        }
        Ok(guardian)
    }
    /// Whether a guardian is there.
    pub fn is_running(&self) -> bool {
        self.presence.is_there()
    }
    /// Guardians that died and were replaced.
    pub fn restarts(&self) -> u64 {
        self.watch.restarts.load(Ordering::Relaxed)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // The gateway does not wait for the guardian, which may work for a minute.
        self.watch.ending.store(true, Ordering::Relaxed);
        self.watch.set_pipe(None);
    }
}

impl Watch {
    fn set_pipe(&self, pipe: Option<ChildStdin>) {
        *self.pipe.lock().unwrap_or_else(PoisonError::into_inner) = pipe;
    }
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }
    fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut process = command.spawn()?;
        self.set_pipe(process.stdin.take());
        Ok(process)
    }
    /// Waits for the end of each guardian, and starts the next one, until the gateway ends.
    fn supervise(&self, mut command: Command, mut process: Child, presence: &Presence) {
        let mut short_lives = 0;
        loop {
            let began = clock::now();
            let end = process.wait();
            presence.clear();
            if self.is_ending() {
                return;
            }
            let end = end.map_or_else(|error| error.to_string(), |status| status.to_string());
            let text = format!(
                "the guardian has died ({end}); another one is started, and nothing is acknowledged early \
                 meanwhile"
            );
            log::message(Level::Warning, &text, &[("PACELINE_EVENT", "guardian-died")]);
            let is_short = clock::now().since(began) < SHORT_LIFE;
            short_lives = if is_short { short_lives + 1 } else { 0 };
            if short_lives > QUICK_STARTS {
                clock::pause(START_PAUSE);
            }
            let Some(next) = self.start_next(&mut command) else { return };
            self.restarts.fetch_add(1, Ordering::Relaxed);
            process = next;
        }
    }
    /// Starts the next guardian, however often it fails; None if the gateway ends.
    fn start_next(&self, command: &mut Command) -> Option<Child> {
        let mut reported = false;
        while !self.is_ending() {
            match self.spawn(command) {
                Ok(process) => return Some(process),
                Err(error) if !reported => {
                    reported = true;
                    let text = format!("cannot start a guardian: {error}; nothing is acknowledged early");
                    log::message(Level::Error, &text, &[("PACELINE_EVENT", "guardian-missing")]);
                }
                Err(_) => {}
            }
            clock::pause(START_PAUSE);
        }
        None
    }
}

/// The guardian's main function: waits until the pipe is closed, and clears the connections of the journal.
/// The third interface, in routed mode only, is the device by which packets enter the kernel's routing.
/// `report` is a file for the result.
pub fn guard(
    pipe: OwnedFd,
    journal: OwnedFd,
    interfaces: Vec<Interface>,
    report: Option<&Path>,
) -> anyhow::Result<Rescue> {
    for number in [SIGINT, SIGTERM, SIGHUP] {
        // These signals end the gateway; the guardian has to run on.
        signal_hook::flag::register(number, Arc::default()).context("cannot catch signals")?;
    }
    privileges::keep(&privileges::OF_GUARDIAN, None)?;
    let memory = journal::open(&File::from(journal))?;
    presence::announce(Arc::clone(&memory));
    let mut pipe = File::from(pipe);
    loop {
        match pipe.read(&mut [0; 64]) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read from the gateway"),
        }
    }
    let entries = journal::read(&memory)?;
    if entries.is_empty() {
        return Ok(Rescue::default());
    }
    let rescue = Rescuer::open(interfaces, entries)?.run()?;
    report.into_iter().for_each(|file| rescue.write(file));
    Ok(rescue)
}
