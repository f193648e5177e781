//! The ACK filter: a buffer in front of a link that is short of capacity, which discards acknowledgments that
//! later ones in the same buffer have made superfluous.
//!
//! Two families share one queue (`queue`): the schemes of the published experiment (`published`), which act as
//! printed so that their figures can be compared, and the safe scheme (`safe`), which obeys the rules for
//! live traffic. RFC 3449 (section 5.2) describes the idea and its hazards.
//!
//! Common to both: only pure ACKs are ever discarded, the newest ACK of a connection always gets through, nothing is
//! delayed, edited, merged or reordered, discards are counted apart from drops, connections are compared by
//! their full addresses and ports, and their number is bounded: a connection without a place in the table is not filtered.
//!
//! Left out: time-driven release (the filter never holds a packet), the opposite direction (only the ACKs' own
//! direction is seen), and tunnels or VLANs, for each of which a caller keeps a filter of its own.

mod comparison;
mod flows;
mod holdout;
mod published;
mod queue;
mod rules;
mod safe;
mod scheme;
mod stats;

pub use comparison::{Comparison, Finding, Harm, Sent};
pub use holdout::{Group, Holdout};
pub use scheme::{ParseSchemeError, Scheme};
pub use stats::{AckFilterStats, KeepReason};

use paceline_net::{Bytes, DropReason, Duration, Instant, Packet, QueueCounters, SduQueue, Waited};
use published::{BlockMean, Published, Threshold};
use queue::AckQueue;
use safe::Safe;

/// What a filter is built from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckFilterConfig {
    /// What to discard, and when.
    pub scheme: Scheme,
    /// Bytes that the buffer holds at most; an arrival beyond them is dropped.
    pub limit: Bytes,
    /// Payload bytes of the data segments that are acknowledged.
    pub segment: Bytes,
    /// Bytes of headers that each of them carries over the link: 58 in the published experiment.
    pub header: Bytes,
}

/// A buffer of packets with an ACK filter.
#[derive(Clone, Debug)]
pub struct AckFilter {
    queue: AckQueue,
    engine: Engine,
    waited: Waited,
}

#[derive(Clone, Debug)]
enum Engine {
    /// Also the basic scheme: no threshold, no discard at grants.
    Published(Published),
    Safe(Safe),
}

impl AckFilter {
    /// An empty buffer. A ratio outside 0 to 1 or a threshold of 0 counts as the nearest one that is allowed.
    pub fn new(config: AckFilterConfig) -> Self {
        let published = |threshold, ratio| Engine::Published(Published::new(threshold, ratio));
        let engine = match config.scheme {
            Scheme::Basic => published(Threshold::None, 0.0),
            Scheme::Passive { ratio } => published(Threshold::None, ratio),
            Scheme::Active { threshold } => published(Threshold::Fixed(threshold), 0.0),
            Scheme::Hybrid { threshold } => published(Threshold::Fixed(threshold), 1.0),
            Scheme::HybridOpt => {
                published(Threshold::Measured(BlockMean::new(config.segment, config.header)), 1.0)
            }
            Scheme::Safe => Engine::Safe(Safe::new(config.segment)),
        };
        Self { queue: AckQueue::new(config.limit), engine, waited: Waited::default() }
    }

    /// ACKs of a connection that stay at an arrival, as of now; `None` if arrivals discard by no threshold.
    pub fn threshold(&self) -> Option<u32> {
        match &self.engine {
            Engine::Published(published) => published.threshold(),
            Engine::Safe(_) => None,
        }
    }

    /// From now on nothing of these connections is discarded. The published schemes know no exceptions.
    pub fn set_holdout(&mut self, holdout: Holdout) {
        if let Engine::Safe(safe) = &mut self.engine {
            safe.holdout = holdout;
        }
    }

    /// Counters of packets and of the reasons for which ACKs were kept.
    pub fn stats(&self) -> &AckFilterStats {
        &self.queue.stats
    }
}

impl SduQueue for AckFilter {
    fn push(&mut self, now: Instant, packet: Packet) {
        self.queue.stats.queue.count_in(&packet);
        match &mut self.engine {
            Engine::Published(published) => published.push(&mut self.queue, now, packet),
            Engine::Safe(safe) => safe.push(&mut self.queue, now, packet),
        }
    }

    fn on_grant(&mut self, _now: Instant, room: Bytes, overhead: Bytes) {
        if let Engine::Published(published) = &mut self.engine {
            published.on_grant(&mut self.queue, room, overhead);
        }
    }

    fn on_peer_block(&mut self, size: Bytes) {
        if let Engine::Published(published) = &mut self.engine {
            published.on_peer_block(size);
        }
    }

    /// Packets leave in the order of their arrival, so that the oldest is at the head. A safe scheme measures the
    /// gap ahead of the next ACK from the last one that was sent, which an expired one was not.
    fn expire(&mut self, now: Instant, lifetime: Duration) {
        while self.queue.head().is_some_and(|head| self.queue.arrived(head) + lifetime <= now) {
            self.queue.expire_head();
        }
    }

    fn pop(&mut self, now: Instant) -> Option<Packet> {
        let popped = self.queue.pop()?;
        self.waited.add(now, popped.arrived);
        if let Engine::Safe(safe) = &mut self.engine {
            safe.on_pop(&self.queue, now, &popped);
        }
        Some(popped.packet)
    }

    fn head_len(&self) -> Option<Bytes> {
        self.queue.head().map(|id| self.queue.len_of(id))
    }
    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
    fn packets(&self) -> usize {
        self.queue.packets()
    }
    fn waited(&self) -> Waited {
        self.waited
    }
    fn pop_dropped(&mut self) -> Option<(Packet, DropReason)> {
        self.queue.pop_dropped()
    }
    fn counters(&self) -> QueueCounters {
        self.queue.stats.queue
    }
}
