//! Notes for the operator: conditions that the counters show and that cost much without being errors. A note
//! is in the status, on the page and in the log while its condition lasts.

use super::requests::Snapshot;
use crate::gateway::config::GatewayConfig;
use crate::gateway::counter::Counter;

/// Refusals between two checks that are worth a note. Chosen: a burst at the start of a transfer is less.
const MIN_REFUSED: u64 = 20;
/// Checks without the condition after which a note is gone. Chosen: with a check every second, longer than
/// the pauses of a transfer.
const QUIET_CHECKS: u32 = 10;

/// The notes in force.
#[derive(Default)]
pub struct Notes {
    refused_before: Option<u64>,
    /// Checks for which the queue's note stays.
    queue_left: u32,
    current: Vec<String>,
}

impl Notes {
    /// The notes in force.
    pub fn current(&self) -> &[String] {
        &self.current
    }
    /// Looks at the counters and gauges, about once a second. Returns the notes that have appeared.
    pub fn check(&mut self, config: &GatewayConfig, snapshot: &Snapshot, halted: bool) -> Vec<String> {
        let refused = snapshot.counters.get(Counter::FramesRefused);
        let more = refused.saturating_sub(self.refused_before.replace(refused).unwrap_or(refused));
        self.queue_left = if more >= MIN_REFUSED { QUIET_CHECKS } else { self.queue_left.saturating_sub(1) };
        let mut found = Vec::new();
        let (server, mobile) = (&config.server, &config.mobile);
        if halted {
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
        if snapshot.shared_devices > 0 {
            // Without their number, which changes: a note appears once.
            found.push(
                "several devices wait or lose packets because of each other: they share a bottleneck behind the \
                 gateway (a backhaul, an access point, a shaper), where acceleration loses packets and takes capacity \
                 from connections that are left alone; the policy \"leave\" or an experiment \
                 (`paceline gateway experiment --design switchback`) is advised"
                    .into(),
            );
        }
        let new = found.iter().filter(|note| !self.current.contains(note)).cloned().collect();
        self.current = found;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> GatewayConfig {
        GatewayConfig::parse("box.toml", "server = \"srv\"\nmobile = \"mob\"\n").unwrap()
    }

    #[test]
    fn a_note_on_refused_frames_appears_once_and_goes_when_there_are_none() {
        let (config, mut notes, mut snapshot) = (config(), Notes::default(), Snapshot::default());
        let mut check = |more: u64| {
            snapshot.counters.extend([(Counter::FramesRefused, more)]);
            let new = notes.check(&config, &snapshot, false).len();
            (new, notes.current().len())
        };
        assert_eq!([check(5), check(MIN_REFUSED - 1), check(MIN_REFUSED)], [(0, 0), (0, 0), (1, 1)]);
        assert_eq!(check(MIN_REFUSED), (0, 1));
        let after: Vec<_> = (0..QUIET_CHECKS).map(|_| check(0)).collect();
        assert_eq!(after.iter().filter(|(_, current)| *current == 1).count() as u32, QUIET_CHECKS - 1);
    }

    #[test]
    fn a_shared_bottleneck_is_said_once_however_many_devices_there_are() {
        let (config, mut notes) = (config(), Notes::default());
        let mut check = |shared_devices| {
            let new = notes.check(&config, &Snapshot { shared_devices, ..Snapshot::default() }, false).len();
            (new, notes.current().len())
        };
        assert_eq!([0, 5, 7, 0, 2].map(|count| check(count)), [(0, 0), (1, 1), (0, 1), (0, 0), (1, 1)]);
    }
}
