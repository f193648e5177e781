//! The deadlines of connections and devices, one each. A deadline that moves later costs nothing: its earlier
//! entry stays in the heap, and the owner's deadline is examined again when it comes.

use paceline_net::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The owner of a deadline, by slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::accelerator) enum Owner {
    Flow(u32),
    Device(u32),
}

/// An owner's valid entry in the heap.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Alarm {
    /// Time of the valid entry; later entries of the same owner are stale. [`Instant::MAX`] for none.
    entry_at: Instant,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { entry_at: Instant::MAX }
    }
}

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Owner)>>,
}

impl Timers {
    /// Requires an entry of the owner at `at` or earlier.
    pub fn set(&mut self, alarm: &mut Alarm, owner: Owner, at: Instant) {
        if at < alarm.entry_at {
            alarm.entry_at = at;
            self.heap.push(Reverse((at, owner)));
        }
    }
    /// An entry was popped. Whether it is the valid one.
    pub fn on_entry(alarm: &mut Alarm, at: Instant) -> bool {
        let valid = alarm.entry_at == at;
        if valid {
            alarm.entry_at = Instant::MAX;
        }
        valid
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
