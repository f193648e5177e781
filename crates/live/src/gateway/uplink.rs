//! The line towards the servers, for devices whose ACKs are filtered: a queue that is served at the line's rate, and in
//! it the ACK filter with the rules for live traffic. Without a queue nothing is discarded.

use super::config::Filter;
use paceline_net::{Bytes, Duration, Instant, Packet, Rate, SduQueue};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};

/// Payload bytes of the segments that are acknowledged.
const SEGMENT: Bytes = Bytes(1448);
/// So much may leave at once after a pause: what a tick holds back.
const BURST: Duration = Duration::from_millis(1);

/// The queue of one worker.
pub struct Uplink {
    queue: AckFilter,
    rate: Rate,
    free_at: Instant,
}

impl Uplink {
    /// A queue, if the configuration says how fast the line is.
    pub fn new(filter: &Filter) -> Option<Self> {
        let config =
            AckFilterConfig { scheme: Scheme::Safe, limit: filter.queue, segment: SEGMENT, header: Bytes(0) };
        let rate = filter.rate?;
        Some(Self { queue: AckFilter::new(config), rate, free_at: Instant::ZERO })
    }
    /// A packet arrives.
    pub fn push(&mut self, now: Instant, packet: Packet) {
        self.queue.push(now, packet);
        while self.queue.pop_dropped().is_some() {}
    }
    /// The next packet, if the line is free.
    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.free_at > now {
            return None;
        }
        let packet = self.queue.pop(now)?;
        let idle_since = Instant::from_nanos(now.as_nanos().saturating_sub(BURST.as_nanos()));
        self.free_at = self.free_at.max(idle_since) + self.rate.time_to_send(Bytes(packet.len.into()));
        Some(packet)
    }
    /// When the next one can leave.
    pub fn next_at(&self) -> Option<Instant> {
        (self.queue.packets() > 0).then_some(self.free_at)
    }
    /// What went through.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        const NAMES: [(&str, &str); 3] = [
            ("acks-in", "filter-acks-in"),
            ("acks-discarded", "filter-acks-discarded"),
            ("queue-drops", "filter-queue-drops"),
        ];
        let own = self.queue.counters();
        let value = |name: &str| own.iter().find(|(own, _)| *own == name).map_or(0, |(_, value)| *value);
        NAMES.iter().map(|(name, ours)| (*ours, value(name))).collect()
    }
}
