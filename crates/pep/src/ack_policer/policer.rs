//! The policer with its table of connections: what a hop of the simulator runs.

use super::flow::Flow;
use super::judge::judge;
use super::limiter::{Limit, Limiter};
use super::reason::Reason;
use super::segment::Segment;
use super::{Mode, Policy};
use crate::flows::FlowTable;
use paceline_net::{Instant, Packet, TcpFlags};

/// Configuration of a policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicerConfig {
    /// Which ACKs are dropped.
    pub policy: Policy,
    /// One limit for each connection instead of one for all together.
    pub per_flow: bool,
}

impl PolicerConfig {
    /// Checks what the types allow and a policer does not.
    pub fn check(&self) -> Result<(), String> {
        self.policy.limit.check()?;
        let alone = self.policy.mode == Mode::Safe && self.per_flow;
        match self.policy.limit {
            Limit::PerRtt(_) if !alone => Err("acks-per-rtt: needs mode safe and one limit per flow".into()),
            _ => Ok(()),
        }
    }
}

/// Counters of a policer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicerStats {
    /// Packets in the policed direction.
    pub packets: u64,
    /// Pure ACKs among them.
    pub acks: u64,
    /// Pure ACKs that were dropped.
    pub dropped: u64,
    kept: [u64; Reason::ALL.len()],
}

impl PolicerStats {
    /// Pure ACKs that were kept for `reason`.
    pub fn kept(&self, reason: Reason) -> u64 {
        self.kept[reason as usize]
    }
    /// The counts since `earlier` counters of the same policer.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, |now, before| now - before)
    }
    /// The counts of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one + other)
    }
    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            packets: of(self.packets, other.packets),
            acks: of(self.acks, other.acks),
            dropped: of(self.dropped, other.dropped),
            kept: std::array::from_fn(|reason| of(self.kept[reason], other.kept[reason])),
        }
    }
}

/// A connection and its own limit.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    flow: Flow,
    limiter: Limiter,
}

/// A policer between two directions of traffic.
#[derive(Clone, Debug)]
pub struct Policer {
    config: PolicerConfig,
    flows: FlowTable<Entry>,
    /// The limit of all connections together.
    aggregate: Limiter,
    stats: PolicerStats,
}

impl Policer {
    /// A policer that has seen nothing.
    pub fn new(config: PolicerConfig) -> Self {
        let stats = PolicerStats::default();
        Self { config, flows: FlowTable::new(), aggregate: Limiter::default(), stats }
    }

    /// Counters.
    pub fn stats(&self) -> &PolicerStats {
        &self.stats
    }

    /// A packet in the data direction: always passes.
    pub fn on_data_direction(&mut self, now: Instant, packet: &Packet) {
        if self.config.policy.mode == Mode::Published {
            return;
        }
        let (Some(key), Some(segment)) = (packet.flow_key(), Segment::of(packet)) else { return };
        let key = key.reversed(); // a connection's key is that of the policed direction
        let id = if segment.has(TcpFlags::SYN) {
            self.flows.find_or_insert(now, key, |_| false)
        } else {
            self.flows.find(now, key)
        };
        if let Some(id) = id {
            self.flows.state(id).flow.on_data_direction(clock(now), &segment);
        }
    }

    /// Whether a packet in the policed direction passes, and why.
    pub fn on_policed_direction(&mut self, now: Instant, packet: &Packet) -> Reason {
        self.stats.packets += 1;
        let (Some(key), Some(segment)) = (packet.flow_key(), Segment::of(packet)) else {
            return Reason::NotAck;
        };
        let policy = &self.config.policy;
        let needs_entry =
            segment.has(TcpFlags::SYN) || (policy.mode == Mode::Published && self.config.per_flow);
        let id = if needs_entry {
            self.flows.find_or_insert(now, key, |_| false)
        } else {
            self.flows.find(now, key)
        };
        let reason = match id {
            Some(id) => {
                let entry = self.flows.state(id);
                let limiter = if self.config.per_flow { &mut entry.limiter } else { &mut self.aggregate };
                judge(&mut entry.flow, limiter, policy, clock(now), &segment)
            }
            None if policy.mode == Mode::Published && !self.config.per_flow => {
                judge(&mut Flow::default(), &mut self.aggregate, policy, clock(now), &segment)
            }
            None if segment.is_pure_ack() => Reason::MidStream,
            None => Reason::NotAck,
        };
        self.count(&segment, reason);
        reason
    }

    fn count(&mut self, segment: &Segment, reason: Reason) {
        if !segment.is_pure_ack() {
            return;
        }
        self.stats.acks += 1;
        match reason {
            Reason::Dropped => self.stats.dropped += 1,
            kept => self.stats.kept[kept as usize] += 1,
        }
    }
}

/// Time in ns of a clock that starts above 0, where 0 means unknown.
fn clock(now: Instant) -> u64 {
    now.as_nanos() + 1
}

#[cfg(test)]
#[path = "policer_tests.rs"]
mod tests;
