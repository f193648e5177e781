//! Which connections are exposed: their servers were told more than their clients have. A crash must not lose these.
//!
//! The list is kept as connections change, so that a journal costs what is exposed and not what is open. What goes out
//! is told at once, because the journal has to hold a number before the server gets it; that a connection is no longer
//! exposed is told at leisure, because most are so again a moment later.

use crate::accelerator::FlowRecord;
use crate::accelerator::flow::Flow;
use crate::accelerator::machine::index::Table;

/// Not in the list.
pub(in crate::accelerator) const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Exposed {
    /// Bytes in all.
    pub total: u64,
    /// Somebody keeps a journal.
    pub journaled: bool,
    /// Slots of connections that the journal has.
    list: Vec<u32>,
    /// Slots whose numbers have to be written before anything leaves.
    changed: Vec<u32>,
    /// Slots of connections that are no more.
    gone: Vec<u32>,
    hand: usize,
}

impl Exposed {
    /// Brings the books up to date with a connection.
    pub fn note(&mut self, slot: u32, flow: &mut Flow) {
        let exposure = flow.exposure();
        self.total = self.total + exposure - flow.charged_exposure;
        flow.charged_exposure = exposure;
        if self.journaled && exposure > 0 && flow.acked != flow.journaled_acked {
            flow.journaled_acked = flow.acked;
            if flow.listed_at == NOWHERE {
                flow.listed_at = self.list.len() as u32;
                self.list.push(slot);
            }
            if !flow.in_changed {
                flow.in_changed = true;
                self.changed.push(slot);
            }
        }
    }
    /// A connection was taken out of `flows`.
    pub fn forget(&mut self, slot: u32, flow: &Flow, flows: &mut Table<Flow>) {
        self.total -= flow.charged_exposure;
        if flow.listed_at != NOWHERE {
            self.gone.push(slot);
            self.unlist(flow.listed_at, flows);
        }
    }
    fn unlist(&mut self, at: u32, flows: &mut Table<Flow>) {
        self.list.swap_remove(at as usize);
        if let Some(moved) = self.list.get(at as usize).and_then(|slot| flows.get_mut(*slot)) {
            moved.listed_at = at;
        }
    }
    /// What has to be written before anything leaves; `None` for a slot that is empty now.
    pub fn changes(&mut self, flows: &mut Table<Flow>, mut write: impl FnMut(u32, Option<FlowRecord>)) {
        // A slot may have got another connection since.
        self.gone.drain(..).for_each(|slot| write(slot, None));
        for slot in self.changed.drain(..) {
            let Some(flow) = flows.get_mut(slot).filter(|flow| flow.in_changed) else { continue };
            flow.in_changed = false;
            if flow.listed_at != NOWHERE {
                write(slot, Some(flow.record()));
            }
        }
    }
    /// Looks at up to `count` connections, the next in turn: refreshes their numbers, and takes out those that are no
    /// longer exposed.
    pub fn sweep(
        &mut self,
        count: usize,
        flows: &mut Table<Flow>,
        mut write: impl FnMut(u32, Option<FlowRecord>),
    ) {
        if count >= self.list.len() {
            self.hand = 0; // each of them once
        }
        for _ in 0..count.min(self.list.len()) {
            if self.hand >= self.list.len() {
                self.hand = 0;
            }
            let Some(&slot) = self.list.get(self.hand) else { return };
            let Some(flow) = flows.get_mut(slot) else { return };
            if flow.exposure() > 0 {
                write(slot, Some(flow.record()));
                self.hand += 1;
            } else {
                flow.listed_at = NOWHERE;
                flow.journaled_acked = 0;
                write(slot, None);
                self.unlist(self.hand as u32, flows);
            }
        }
    }
}
