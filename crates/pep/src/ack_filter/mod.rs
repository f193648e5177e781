//! The ACK filter: a buffer ahead of a slow link that discards TCP acknowledgments which later ones in the
//! same buffer supersede (RFC 3449 5.2.1). Acknowledgments are cumulative, so the sender learns the same from
//! fewer of them, and the slow link carries less. docs/ack-filter.md explains schemes, safety rules and
//! limits.
//!
//! Two families share one queue (`queue`). The schemes of Y. Ohta et al., "Controlling TCP ACK Transmission:
//! Suitable Value of Discard Ratio in LTE-Advanced Pro" (IEEE CSCN 2018), act as published, so that their
//! figures can be compared (`published`). The safe scheme obeys the rules for live traffic (`safe`).
//!
//! Left out: the opposite direction, which the filter does not see; tunnels and VLANs, which are no part of a
//! connection's key: a caller with several networks needs a filter for each.

mod comparison;
mod connection;
mod holdout;
mod published;
mod queue;
mod rules;
mod safe;
mod scheme;
mod standing_queue;
mod stats;

pub use comparison::{Comparison, Finding, Harm, Sent};
pub use holdout::{Group, Holdout};
pub use scheme::{ParseSchemeError, Scheme};
pub use stats::{AckFilterStats, KeepReason};

use paceline_net::{Bytes, DropReason, Duration, Instant, Packet, QueueCounters, SduQueue, Waited};
use published::{BlockMean, Published, Threshold};
use queue::AckQueue;
use safe::Safe;

/// Configuration of an ACK filter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckFilterConfig {
    /// Which ACKs are discarded, and when.
    pub scheme: Scheme,
    /// Bytes that the buffer holds at most; a packet that does not fit is dropped.
    pub limit: Bytes,
    /// Payload bytes of the acknowledged data segments.
    pub segment: Bytes,
    /// Bytes of headers of each data segment on the link: 58 in Ohta et al.
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
    /// Also the basic scheme, which has no threshold and discards nothing at grants.
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

    /// Number of ACKs of a connection that stay at an arrival now; `None` for schemes without a threshold.
    pub fn threshold(&self) -> Option<u32> {
        match &self.engine {
            Engine::Published(published) => published.threshold(),
            Engine::Safe(_) => None,
        }
    }

    /// From now on no ACK of these connections is discarded by the safe scheme. The published schemes have no
    /// exceptions.
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

    /// The safe scheme is not told: it measures the gap between kept ACKs from the last one sent, and an
    /// expired ACK was not sent.
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
    fn head_arrived_at(&self) -> Option<Instant> {
        self.queue.head().map(|id| self.queue.arrived(id))
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
