//! This host: whether it can police, and waiting for the end of a command.

use crate::failure::{Failure, Outcome};
use paceline_linux::stop::StopSignals;

/// Fails where this host cannot police.
pub fn require() -> Outcome<()> {
    match paceline_police::problem() {
        Some(problem) => Err(Failure::Failed(anyhow::anyhow!("police {problem}"))),
        None => Ok(()),
    }
}

/// Waits for a signal to stop, or until a condition, read every half second, no longer holds.
pub fn wait_while(stop: &StopSignals, mut holds: impl FnMut() -> bool) {
    while !stop.stopped() && holds() {
        for _ in 0..25 {
            if !stop.stopped() {
                stop.wait();
            }
        }
    }
}
