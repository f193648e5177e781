//! Notes for the operator: conditions that the counters show and that cost much without being errors. A note
//! is in the status, on the page and in the log while its condition lasts.

use crate::config::GatewayConfig;
use crate::counter::{Counter, CounterValues};

/// Refusals between two checks that are worth a note. Chosen: a burst at the start of a transfer is less.
const MIN_REFUSED: u64 = 20;
/// Checks without the condition after which a note is gone. Chosen: with a check every second, longer than
/// the pauses of a transfer.
const QUIET_CHECKS: u32 = 10;

/// Conditions that no counter shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conditions {
    /// A port of the bridge does not forward.
    pub halted: bool,
    /// There is no guardian.
    pub unguarded: bool,
    /// Interfaces that were removed.
    pub gone: Option<String>,
    /// Devices were found to share a queue.
    pub sharing: bool,
}

/// The notes in force.
#[derive(Default)]
pub struct Notes {
    refused_before: u64,
    /// Checks for which the queue's note stays.
    queue_left: u32,
    current: Vec<String>,
}

impl Notes {
    /// The notes in force.
    pub fn current(&self) -> &[String] {
        &self.current
    }
    /// Looks at the counters, about once a second. Returns the notes that have appeared.
    pub fn check(
        &mut self,
        config: &GatewayConfig,
        counters: &CounterValues,
        conditions: &Conditions,
    ) -> Vec<String> {
        let refused = counters.get(Counter::FramesRefused);
        let more = refused.saturating_sub(std::mem::replace(&mut self.refused_before, refused));
        self.queue_left = if more >= MIN_REFUSED { QUIET_CHECKS } else { self.queue_left.saturating_sub(1) };
        let mut found = Vec::new();
        let (server, mobile) = (&config.server, &config.mobile);
        if conditions.unguarded {
            found.push("there is no guardian: nothing is acknowledged early meanwhile".to_owned());
        }
        if conditions.halted {
            found.push(format!(
                "{server} or {mobile} does not forward on the bridge (down, or blocked by a spanning tree): \
                 nothing is accelerated meanwhile"
            ));
        }
        if self.queue_left > 0 {
            found.push(format!(
                "the queue of {mobile} or {server} is full and refuses frames, which wait: a shaper (tc) or a slow \
                 link on this machine; devices that share it get no queue of their own, and a shaper belongs \
                 behind the gateway, on another machine or in another namespace"
            ));
        }
        if conditions.sharing {
            found.push(
                "several devices lose packets in a queue that they share behind the gateway (a backhaul, an access \
                 point, a shaper): they yield to each other as connections of CUBIC would, and acceleration gains \
                 little there; `paceline gateway experiment --design switchback` measures it"
                    .to_owned(),
            );
        }
        let is_new = |note: &&String| !self.current.contains(note);
        let new = found.iter().filter(is_new).cloned().collect();
        // The log has this one already.
        found.extend(
            conditions
                .gone
                .as_ref()
                .map(|gone| format!("{gone} is gone: connections wait until it is there again")),
        );
        self.current = found;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_queue_is_said_once() {
        let config = GatewayConfig::parse("box.toml", "server = \"srv\"\nmobile = \"mob\"\n").unwrap();
        let mut notes = Notes::default();
        let mut check = |sharing| {
            let conditions = Conditions { sharing, ..Conditions::default() };
            let new = notes.check(&config, &CounterValues::default(), &conditions).len();
            (new, notes.current().len())
        };
        assert_eq!([false, true, true, false].map(&mut check), [(0, 0), (1, 1), (0, 1), (0, 0)]);
    }

    #[test]
    fn a_note_on_refused_frames_appears_once_and_goes_when_there_are_none() {
        let config = GatewayConfig::parse("box.toml", "server = \"srv\"\nmobile = \"mob\"\n").unwrap();
        let (mut notes, mut counters) = (Notes::default(), CounterValues::default());
        let mut check = |more: u64| {
            counters.extend([(Counter::FramesRefused, more)]);
            let new = notes.check(&config, &counters, &Conditions::default()).len();
            (new, notes.current().len())
        };
        assert_eq!([check(5), check(MIN_REFUSED - 1), check(MIN_REFUSED)], [(0, 0), (0, 0), (1, 1)]);
        assert_eq!(check(MIN_REFUSED), (0, 1));
        let after: Vec<_> = (0..QUIET_CHECKS).map(|_| check(0)).collect();
        assert_eq!(after.iter().filter(|(_, current)| *current == 1).count() as u32, QUIET_CHECKS - 1);
    }
}
