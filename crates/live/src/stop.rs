//! Being asked to end, by signal, and what else an operator says so.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time until a signal is seen.
const LOOK: paceline_net::Duration = paceline_net::Duration::from_millis(20);

/// SIGINT and SIGTERM, as a wish to end.
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
    /// Whether one has come.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    /// Waits for one, for a moment.
    pub fn wait(&self) {
        wait();
    }
}

fn wait() {
    crate::clock::pause(LOOK);
}

/// What an operator wants of a program that runs on and on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperatorSignal {
    /// SIGINT or SIGTERM.
    Stop,
    /// SIGHUP.
    Reload,
}

/// SIGINT, SIGTERM and SIGHUP, each time anew.
pub struct OperatorSignals(Signals);

impl OperatorSignals {
    /// From here on the signals no longer end the process by themselves.
    pub fn register() -> anyhow::Result<Self> {
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map(Self).context("cannot catch signals")
    }
    /// Waits for a moment; what has come.
    pub fn wait(&mut self) -> Vec<OperatorSignal> {
        wait();
        let signal = |number| if number == SIGHUP { OperatorSignal::Reload } else { OperatorSignal::Stop };
        self.0.pending().map(signal).collect()
    }
}
