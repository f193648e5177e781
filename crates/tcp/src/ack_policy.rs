//! When a receiver acknowledges: by count and timer (RFC 9293 §3.8.6.3, RFC 5681 §4.2), at once at the start and
//! after pauses, later while it answers what it receives (ping-pong), and duplicate ACKs merged for a moment (SACK
//! compression), all as Linux does it; or by count and a fixed timer alone.

use crate::config::{DelayedAck, EndpointConfig};
use crate::options::SackCompression;
use paceline_net::{Duration, Instant};

/// Largest wait of an adaptive timer, and while the peer pushes or answers are on the way.
const LONGEST: Duration = Duration::from_millis(500);
const LONGEST_PING_PONG: Duration = Duration::from_millis(200);
/// A pause after which the sender may be in slow start again, until the retransmission timeout is known.
const PAUSE: Duration = Duration::from_secs(1);
/// Duplicate ACKs that are never merged: they trigger the repair.
const PROMPT_DUPLICATES: u32 = 3;

/// Whether an acknowledgment is owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owed {
    Nothing,
    By(Instant),
    Now,
}

/// What is known of the connection's times.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Times {
    pub srtt: Option<Duration>,
    /// As the receiver sees it.
    pub rcv_rtt: Option<Duration>,
    pub rto: Option<Duration>,
}

/// The acknowledgments of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    policy: DelayedAck,
    compression: Option<SackCompression>,
    owed: Owed,
    /// Acknowledgments to send at once.
    quick: u32,
    /// Estimate of the distance of segments (`ato`).
    wait: Duration,
    last_data: Option<Instant>,
    ping_pong: bool,
    /// ACKs merged so far, when they leave, and the duplicates sent since the stream advanced to `advanced_to`.
    merged: u32,
    merged_until: Option<Instant>,
    prompt: u32,
    advanced_to: u64,
    merged_in_all: u64,
}

impl AckPolicy {
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            policy: config.delayed_ack,
            compression: config.sack_compression,
            owed: Owed::Nothing,
            quick: 0,
            wait: config.delayed_ack.timeout,
            last_data: None,
            ping_pong: false,
            merged: 0,
            merged_until: None,
            prompt: 0,
            advanced_to: 0,
            merged_in_all: 0,
        }
    }
    /// Duplicate ACKs merged with a later one so far.
    pub fn merged_in_all(&self) -> u64 {
        self.merged_in_all
    }
    /// Unacknowledged bytes beyond which nothing waits, with full segments of `full` bytes.
    pub fn patience(&self, full: u32) -> u64 {
        u64::from(self.policy.segments.max(1) - 1) * u64::from(full)
    }
    /// An acknowledgment should leave at once.
    pub fn now(&mut self) {
        self.owed = Owed::Now;
    }
    /// This many acknowledgments at once: something is wrong with the stream, or the sender's window is small.
    pub fn enter_quick(&mut self, acks: u32) {
        if acks > 0 && self.policy.quick_acks > 0 {
            self.quick = self.quick.max(acks);
        }
        self.ping_pong = false;
        self.wait = self.policy.timeout;
    }
    /// Acknowledgments that the policy sends at once after a loss, at most.
    pub fn most_quick(&self) -> u32 {
        self.policy.quick_acks
    }
    /// A segment with new data arrived; `window` is in full segments.
    pub fn on_data(&mut self, now: Instant, window: u64, times: &Times) {
        let Some(last) = self.last_data.replace(now) else {
            self.refill(window);
            return;
        };
        let (gap, least) = (now.since(last), self.policy.timeout);
        let pause = if self.policy.adaptive { times.rto.unwrap_or(PAUSE) } else { PAUSE };
        if gap > pause {
            self.refill(window);
        } else if !self.policy.adaptive {
        } else if gap <= least / 2 {
            self.wait = self.wait / 2 + least / 2;
        } else if gap < self.wait {
            self.wait = (self.wait / 2 + gap).min(pause);
        }
    }
    /// At the start and after a pause, the peer's slow start should not wait for delayed ACKs.
    fn refill(&mut self, window: u64) {
        self.quick = self.quick.max(self.policy.quick_acks.min((window / 2).max(2) as u32));
    }
    /// Whether the next acknowledgment is to leave at once.
    pub fn is_quick(&self) -> bool {
        self.quick > 0 && !self.ping_pong
    }
    /// Acknowledges within the wait.
    pub fn delay(&mut self, now: Instant, times: &Times) {
        let mut wait = self.wait;
        if self.policy.adaptive && wait > self.policy.timeout {
            let longest = if self.ping_pong { LONGEST_PING_PONG } else { LONGEST };
            let bound = times.srtt.map_or(longest, |srtt| srtt.max(self.policy.timeout).min(longest));
            wait = wait.min(bound).min(LONGEST_PING_PONG);
        }
        self.owed = match self.owed {
            Owed::Nothing => Owed::By(now + wait),
            // The timer is about to expire anyway.
            Owed::By(at) if self.policy.adaptive && at <= now + wait / 4 => Owed::Now,
            Owed::By(at) => Owed::By(at.min(now + wait)),
            Owed::Now => Owed::Now,
        };
    }
    /// Something arrived out of order on a connection with SACK: duplicate ACKs after the first three are merged.
    /// True if this one is.
    pub fn duplicate(&mut self, now: Instant, rcv_nxt: u64, times: &Times) -> bool {
        let Some(compression) = self.compression.filter(|compression| self.merged < compression.count) else {
            self.now();
            return false;
        };
        if self.advanced_to != rcv_nxt {
            (self.advanced_to, self.prompt) = (rcv_nxt, 0);
        }
        if self.owed == Owed::Now || self.is_quick() || self.prompt < PROMPT_DUPLICATES {
            self.prompt += u32::from(self.owed != Owed::Now && !self.is_quick());
            self.now();
            return false;
        }
        self.merged += 1;
        self.merged_in_all += 1;
        let rtt = times.rcv_rtt.into_iter().chain(times.srtt).min().unwrap_or(Duration::ZERO);
        let wait = (rtt / 20).min(compression.delay) + compression.slack;
        self.merged_until.get_or_insert(now + wait);
        true
    }
    /// When an acknowledgment is owed at the latest; `Instant::ZERO` for at once.
    pub fn deadline(&self) -> Option<Instant> {
        match self.owed {
            Owed::Now => Some(Instant::ZERO),
            Owed::By(at) => Some(self.merged_until.map_or(at, |until| until.min(at))),
            Owed::Nothing => self.merged_until,
        }
    }
    /// The delayed ACK's timer expires: segments are farther apart than thought, or no answer came.
    pub fn on_timer(&mut self, now: Instant, times: &Times) {
        if !matches!(self.owed, Owed::By(at) if at <= now) {
            return;
        }
        self.owed = Owed::Now;
        if !self.policy.adaptive {
        } else if self.ping_pong {
            self.ping_pong = false;
            self.wait = self.policy.timeout;
        } else {
            self.wait = (self.wait * 2).min(times.rto.unwrap_or(PAUSE).max(self.policy.timeout));
        }
    }
    /// Data left: an answer, if it follows what was received soon.
    pub fn on_data_sent(&mut self, now: Instant) {
        if self.policy.adaptive && self.last_data.is_some_and(|last| now.since(last) < self.wait) {
            self.ping_pong = true;
        }
    }
    /// A segment with the acknowledgment left.
    pub fn on_ack_sent(&mut self) {
        self.owed = Owed::Nothing;
        self.quick = self.quick.saturating_sub(1);
        (self.merged, self.merged_until) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const SPAN: fn(u64) -> Duration = Duration::from_millis;

    fn policy(quick_acks: u32) -> AckPolicy {
        let address = "198.18.0.1:80".parse().unwrap();
        let mut config = EndpointConfig::new(address, address);
        config.delayed_ack.quick_acks = quick_acks;
        AckPolicy::new(&config)
    }
    fn times(rtt: u64) -> Times {
        Times { srtt: Some(SPAN(rtt)), rcv_rtt: Some(SPAN(rtt)), rto: Some(SPAN(rtt + 200)) }
    }

    #[test]
    fn the_wait_follows_the_distance_of_segments() {
        let mut acks = policy(0);
        acks.on_data(MS(0), 40, &times(300));
        acks.delay(MS(0), &times(300));
        assert_eq!(acks.deadline(), Some(MS(40)));
        acks.on_ack_sent();
        // 30 ms apart: 40/2 + 30 = 50 ms; then 15 ms: 50/2 + 20 = 45 ms.
        acks.on_data(MS(30), 40, &times(300));
        acks.delay(MS(30), &times(300));
        assert_eq!(acks.deadline(), Some(MS(80)));
        acks.on_data(MS(45), 40, &times(300));
        assert_eq!(acks.wait, SPAN(45));
        // A wait longer than the least is bounded by the RTT.
        acks.on_ack_sent();
        acks.delay(MS(50), &times(42));
        assert_eq!(acks.deadline(), Some(MS(92)));
        // When the timer expired, the wait was too short: 90 ms next.
        acks.on_timer(MS(92), &times(300));
        assert_eq!((acks.deadline(), acks.wait), (Some(Instant::ZERO), SPAN(90)));
    }

    #[test]
    fn an_answer_ends_quick_acks_until_the_timer_finds_none() {
        let mut acks = policy(16);
        acks.on_data(MS(0), 40, &times(100));
        assert!(acks.is_quick());
        acks.on_data_sent(MS(10));
        acks.on_ack_sent();
        acks.on_data(MS(20), 40, &times(100));
        assert!(!acks.is_quick(), "ping-pong");
        acks.delay(MS(20), &times(100));
        acks.on_timer(MS(60), &times(100));
        acks.on_ack_sent();
        assert!(acks.is_quick());
        // Data sent long after the last arrival are no answer.
        acks.on_data_sent(MS(200));
        assert!(acks.is_quick());
    }

    #[test]
    fn a_pause_beyond_the_timeout_refills_the_quick_acks() {
        let mut acks = policy(16);
        acks.on_data(MS(0), 6, &times(100));
        assert_eq!(acks.quick, 3); // half the window
        for _ in 0..3 {
            acks.on_ack_sent();
        }
        acks.on_data(MS(300), 40, &times(100));
        assert!(!acks.is_quick());
        acks.on_data(MS(601), 40, &times(100));
        assert_eq!(acks.quick, 16);
    }

    #[test]
    fn duplicates_after_the_third_are_merged_within_a_twentieth_of_the_rtt() {
        let mut acks = policy(0);
        for _ in 0..3 {
            assert!(!acks.duplicate(MS(0), 1000, &times(10)));
            assert_eq!(acks.deadline(), Some(Instant::ZERO));
            acks.on_ack_sent();
        }
        // 5 % of 10 ms, and the timer's grain.
        assert!(acks.duplicate(MS(1), 1000, &times(10)));
        assert_eq!(acks.deadline(), Some(MS(1) + Duration::from_micros(600)));
        assert!(acks.duplicate(MS(1), 1000, &times(10)));
        acks.on_ack_sent();
        assert_eq!(acks.deadline(), None);
        // No more than 1 ms, and 44 of them.
        for _ in 0..44 {
            assert!(acks.duplicate(MS(5), 1000, &times(100)));
        }
        assert_eq!(acks.deadline(), Some(MS(6) + Duration::from_micros(100)));
        assert!(!acks.duplicate(MS(5), 1000, &times(100)));
        acks.on_ack_sent();
        // The stream advanced: three leave at once again.
        assert!(!acks.duplicate(MS(7), 2000, &times(100)));
    }
}
