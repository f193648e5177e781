//! The copies of a sender's segments that are neither acknowledged nor sent again: which were lost, and which
//! were beyond the window that a middlebox sees that does not know its scale.

use super::policer::Losses;
use crate::space::Hole;
use paceline_net::Instant;
use std::collections::VecDeque;

/// Copies that wait for an ACK or a repair; beyond this the oldest counts as arrived. Chosen: 100 Mb/s have
/// fewer segments in flight in 400 ms.
const MAX_WAITING: usize = 4096;

/// A copy of a segment that passed the capture point.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
    /// Bytes of all copies before it.
    before: u64,
    /// Whether it ends beyond the window of which the scale is left out.
    is_beyond: bool,
    /// Round trip when it was sent again, ns.
    lost: Option<u64>,
}

/// Lost and arrived copies by their place relative to the window of which the scale is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beyond {
    pub lost: u64,
    pub lost_within: u64,
    pub arrived: u64,
}

/// The copies.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    waiting: VecDeque<Sent>,
    /// Bytes of all copies, and of the lost ones among those that wait no longer.
    sent: u64,
    lost: u64,
    pub beyond: Beyond,
    pub losses: Losses,
}

impl Copies {
    /// A copy was sent; `edge` is the end of the window of which the scale is left out.
    pub fn on_sent(&mut self, (start, end): (u64, u64), at: Instant, edge: u64) {
        let is_beyond = end > edge;
        self.waiting.push_back(Sent { start, end, at, before: self.sent, is_beyond, lost: None });
        self.sent += end - start;
        if self.waiting.len() > MAX_WAITING {
            self.settle_first();
        }
    }
    /// A segment was sent again: the copy before was lost, or did not reach the capture point and left a
    /// hole.
    pub fn on_lost(&mut self, start: u64, hole: Option<&Hole>, rtt_ns: u64) {
        if let Some(hole) = hole {
            let behind = self.waiting.iter().rev().find(|copy| copy.start == hole.end);
            if let Some(passed) = behind.map(|copy| copy.before.saturating_sub(self.lost)) {
                self.losses.add(hole.since, passed, Some(rtt_ns));
            }
        } else if let Some(copy) = self.waiting.iter_mut().rev().find(|copy| copy.start == start) {
            copy.lost = Some(rtt_ns);
        }
    }
    /// Everything before `ack` arrived.
    pub fn on_ack(&mut self, ack: u64) {
        while self.waiting.front().is_some_and(|copy| copy.end <= ack || copy.lost.is_some()) {
            self.settle_first();
        }
    }
    fn settle_first(&mut self) {
        let Some(copy) = self.waiting.pop_front() else { return };
        self.losses.add(copy.at, copy.before.saturating_sub(self.lost), copy.lost);
        if copy.lost.is_some() {
            self.lost += copy.end - copy.start;
        }
        *(match (copy.lost, copy.is_beyond) {
            (Some(_), true) => &mut self.beyond.lost,
            (Some(_), false) => &mut self.beyond.lost_within,
            (None, true) => &mut self.beyond.arrived,
            (None, false) => return,
        }) += 1;
    }
    /// Frees memory that a closed connection does not need.
    pub fn close(&mut self) {
        while !self.waiting.is_empty() {
            self.settle_first();
        }
        self.waiting = VecDeque::new();
    }
}
