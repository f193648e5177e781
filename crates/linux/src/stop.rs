//! Signals by which an operator stops a program or reloads its configuration.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time between two checks for signals. Chosen: not noticed by an operator.
const CHECK_INTERVAL: paceline_net::Duration = paceline_net::Duration::from_millis(20);

/// SIGINT and SIGTERM, as a flag.
pub struct StopSignals {
    stop: Arc<AtomicBool>,
}

impl StopSignals {
    /// From here on the signals no longer end the process by themselves.
    pub fn register() -> anyhow::Result<Self> {
        let stop = Arc::default();
        for number in [SIGINT, SIGTERM] {
            signal_hook::flag::register(number, Arc::clone(&stop)).context("cannot catch signals")?;
        }
        Ok(Self { stop })
    }
    /// Whether a signal has arrived.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    /// Sleeps until the next check for signals.
    pub fn wait(&self) {
        wait();
    }
}

fn wait() {
    crate::clock::pause(CHECK_INTERVAL);
}

/// The request of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperatorSignal {
    /// SIGINT or SIGTERM.
    Stop,
    /// SIGHUP.
    Reload,
}

/// SIGINT, SIGTERM and SIGHUP, each occurrence of them.
pub struct OperatorSignals(Signals);

impl OperatorSignals {
    /// From here on the signals no longer end the process by themselves.
    pub fn register() -> anyhow::Result<Self> {
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map(Self).context("cannot catch signals")
    }
    /// Sleeps until the next check, and returns the signals that have arrived.
    pub fn wait(&mut self) -> Vec<OperatorSignal> {
        wait();
        let signal = |number| if number == SIGHUP { OperatorSignal::Reload } else { OperatorSignal::Stop };
        self.0.pending().map(signal).collect()
    }
}
