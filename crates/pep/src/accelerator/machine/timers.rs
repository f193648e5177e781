//! When the machine wants to be called. Each connection and each device has one deadline; a deadline that moves away
//! costs nothing: its early entry stays and looks again when it comes.

use paceline_net::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Whose deadline it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::accelerator) enum Owner {
    Flow(u32),
    Device(u32),
}

/// One owner's place in the heap.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Alarm {
    /// Time of the entry that counts; later ones of the same owner are stale.
    entry_at: Instant,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { entry_at: Instant::MAX }
    }
}

/// All deadlines.
#[derive(Debug, Default)]
pub(in crate::accelerator) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Owner)>>,
}

impl Timers {
    /// The owner wants to be called at `at` or earlier.
    pub fn set(&mut self, alarm: &mut Alarm, owner: Owner, at: Instant) {
        if at < alarm.entry_at {
            alarm.entry_at = at;
            self.heap.push(Reverse((at, owner)));
        }
    }
    /// An entry was popped: whether it is the one that counts.
    pub fn on_entry(alarm: &mut Alarm, at: Instant) -> bool {
        let counts = alarm.entry_at == at;
        if counts {
            alarm.entry_at = Instant::MAX;
        }
        counts
    }
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Owner)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}
