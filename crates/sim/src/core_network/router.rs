//! The router of a hop: one processor that forwards the packets of both directions, each in the same time.
//! The load is linear in packets per second and independent of their lengths (Pavilanskas and Statkus 2010).
//!
//! Left out: batches and caches, by which a router at high load needs less time per packet.

use paceline_net::{Duration, Instant, Packet, Queued};
use std::collections::VecDeque;

/// A router: packets wait for it, first in, first out.
#[derive(Debug)]
pub(super) struct Router {
    /// Index of the hop in its part of the core network.
    pub index: usize,
    service_time: Duration,
    limit: usize,
    /// Packets, each with the step of its path that it is at.
    waiting: VecDeque<(usize, Queued)>,
    serving: Option<(Instant, usize, Queued)>,
    figures: Figures,
    /// Time spent forwarding since the start of the run.
    busy: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Packets forwarded, and packets that found the queue full; downlink, uplink.
    forwarded: [u64; 2],
    drops: [u64; 2],
    most_waiting: usize,
}

/// Figures of one or several like routers since the last restart.
#[derive(Clone, Debug)]
pub(crate) struct RouterReading {
    /// Place in the model.
    pub name: String,
    /// Routers with this place: one, or one per cell.
    pub routers: u64,
    pub service_time: Duration,
    /// Packets forwarded, and packets that found the queue full; downlink, uplink.
    pub forwarded: [u64; 2],
    pub drops: [u64; 2],
    /// Most packets that have waited for a router.
    pub most_waiting: u64,
}

impl Router {
    pub fn new(index: usize, service_time: Duration, limit: u64) -> Self {
        let (waiting, serving, figures, busy) = Default::default();
        Self { index, service_time, limit: limit as usize, waiting, serving, figures, busy }
    }
    /// End of the present service.
    pub fn due(&self) -> Option<Instant> {
        self.serving.as_ref().map(|(ends, ..)| *ends)
    }
    /// A packet arrives at a step of its path. Returns it if the queue is full.
    pub fn push(&mut self, now: Instant, step: usize, direction: usize, queued: Queued) -> Option<Packet> {
        if self.serving.is_none() {
            self.serving = Some((now + self.service_time, step, queued));
            return None;
        }
        if self.waiting.len() == self.limit {
            self.figures.drops[direction] += 1;
            return Some(queued.packet);
        }
        self.waiting.push_back((step, queued));
        self.figures.most_waiting = self.figures.most_waiting.max(self.waiting.len());
        None
    }
    /// The packet whose service has ended, with its step, once.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, usize, Queued)> {
        let (ends, ..) = self.serving.as_ref().filter(|(ends, ..)| *ends <= now)?;
        let next = self.waiting.pop_front().map(|(step, queued)| (*ends + self.service_time, step, queued));
        std::mem::replace(&mut self.serving, next)
    }
    /// Counts a packet that the router has forwarded.
    pub fn count(&mut self, direction: usize) {
        self.figures.forwarded[direction] += 1;
        self.busy += self.service_time;
    }
    /// Time spent forwarding since the start of the run.
    pub fn busy(&self) -> Duration {
        self.busy
    }
    pub fn restart(&mut self) {
        self.figures = Figures { most_waiting: self.waiting.len(), ..Figures::default() };
    }
    /// Figures of like routers together; none without routers.
    pub fn read<'a>(name: String, routers: impl IntoIterator<Item = &'a Self>) -> Option<RouterReading> {
        let mut routers = routers.into_iter();
        let first = routers.next()?;
        let Figures { forwarded, drops, most_waiting } = first.figures;
        let (service_time, most_waiting) = (first.service_time, most_waiting as u64);
        let one = RouterReading { name, routers: 1, service_time, forwarded, drops, most_waiting };
        Some(routers.fold(one, |mut all, router| {
            all.routers += 1;
            for direction in 0..2 {
                all.forwarded[direction] += router.figures.forwarded[direction];
                all.drops[direction] += router.figures.drops[direction];
            }
            all.most_waiting = all.most_waiting.max(router.figures.most_waiting as u64);
            all
        }))
    }
}
