//! The times at which a receiver acknowledges, as Linux: by count and timer (RFC 9293 §3.8.6.3, RFC 5681
//! §4.2), without delay at the start and after idle times (quick ACKs), together with data in interactive
//! traffic (ping-pong mode), and with duplicate ACKs merged for a moment (SACK compression). Or by count and
//! a fixed timer alone.

use crate::config::{DelayedAck, EndpointConfig};
use crate::options::SackCompression;
use paceline_net::{Duration, Instant};

/// Largest delay before the bound of [`MAX_DELAY`] applies, outside ping-pong mode (Linux
/// `tcp_send_delayed_ack`, HZ / 2).
const MAX_ATO: Duration = Duration::from_millis(500);
/// Largest delay of an ACK (Linux `TCP_DELACK_MAX`).
const MAX_DELAY: Duration = Duration::from_millis(200);
/// Idle time after which the sender may be in slow start again, until the retransmission timeout is known.
/// Equals the initial timeout (RFC 6298 §2.1).
const DEFAULT_IDLE: Duration = Duration::from_secs(1);
/// Duplicate ACKs that are never merged, since they start the repair (Linux `TCP_FASTRETRANS_THRESH`).
const PROMPT_DUPLICATES: u32 = 3;
/// SACK compression delays an ACK by at most this part of the RTT (Linux `__tcp_ack_snd_check`, 5%).
const COMPRESSION_RTT_PART: u64 = 20;

/// Whether an ACK is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pending {
    None,
    By(Instant),
    Now,
}

/// The measured times of the connection.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Times {
    pub srtt: Option<Duration>,
    /// Round-trip time measured by the receiver (Linux `rcv_rtt_est`).
    pub rcv_rtt: Option<Duration>,
    pub rto: Option<Duration>,
}

/// The ACK policy of one receiver.
#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    policy: DelayedAck,
    compression: Option<SackCompression>,
    pending: Pending,
    /// Quick ACKs left: the number of ACKs to send without delay.
    quick: u32,
    /// Delay of the next ACK: an estimate of the interval between segments (Linux `ato`).
    ato: Duration,
    last_data_at: Option<Instant>,
    /// Interactive traffic: this side answers the data that it receives.
    ping_pong: bool,
    /// ACKs merged since the last one left, and the time at which the merged ACK leaves.
    merged: u32,
    merged_until: Option<Instant>,
    /// Duplicate ACKs sent without merging since the stream advanced to `advanced_to`.
    prompt: u32,
    advanced_to: u64,
    merged_total: u64,
}

impl AckPolicy {
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            policy: config.delayed_ack,
            compression: config.sack_compression,
            pending: Pending::None,
            quick: 0,
            ato: config.delayed_ack.timeout,
            last_data_at: None,
            ping_pong: false,
            merged: 0,
            merged_until: None,
            prompt: 0,
            advanced_to: 0,
            merged_total: 0,
        }
    }
    /// Duplicate ACKs merged with a later one since the start.
    pub fn merged_total(&self) -> u64 {
        self.merged_total
    }
    /// Largest number of unacknowledged bytes with which an ACK may be delayed.
    pub fn delayable_bytes(&self, segment_size: u32) -> u64 {
        u64::from(self.policy.segments.max(1) - 1) * u64::from(segment_size)
    }
    /// Makes an ACK leave at once.
    pub fn acknowledge_now(&mut self) {
        self.pending = Pending::Now;
    }
    /// Sends at least `acks` ACKs without delay, since data was lost or duplicated, or the sender's window is
    /// small (Linux `tcp_enter_quickack_mode`).
    pub fn enter_quick_mode(&mut self, acks: u32) {
        if acks > 0 && self.policy.quick_acks > 0 {
            self.quick = self.quick.max(acks);
        }
        self.ping_pong = false;
        self.ato = self.policy.timeout;
    }
    /// Largest number of quick ACKs.
    pub fn max_quick(&self) -> u32 {
        self.policy.quick_acks
    }
    /// A segment with new data arrived; `window` is in full segments.
    pub fn on_data(&mut self, now: Instant, window: u64, times: &Times) {
        let Some(last) = self.last_data_at.replace(now) else {
            self.refill(window);
            return;
        };
        let (gap, least) = (now.since(last), self.policy.timeout);
        let idle = if self.policy.adaptive { times.rto.unwrap_or(DEFAULT_IDLE) } else { DEFAULT_IDLE };
        if gap > idle {
            self.refill(window);
        } else if !self.policy.adaptive {
        } else if gap <= least / 2 {
            self.ato = self.ato / 2 + least / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(idle);
        }
    }
    /// Refills the quick ACKs at the start and after an idle time, so that delayed ACKs do not slow the
    /// peer's slow start.
    fn refill(&mut self, window: u64) {
        self.quick = self.quick.max(self.policy.quick_acks.min((window / 2).max(2) as u32));
    }
    /// Whether the next ACK leaves without delay.
    pub fn is_quick(&self) -> bool {
        self.quick > 0 && !self.ping_pong
    }
    /// Makes an ACK leave after the delay.
    pub fn delay(&mut self, now: Instant, times: &Times) {
        let mut wait = self.ato;
        if self.policy.adaptive && wait > self.policy.timeout {
            let longest = if self.ping_pong { MAX_DELAY } else { MAX_ATO };
            let bound = times.srtt.map_or(longest, |srtt| srtt.max(self.policy.timeout).min(longest));
            wait = wait.min(bound).min(MAX_DELAY);
        }
        self.pending = match self.pending {
            Pending::None => Pending::By(now + wait),
            // The timer is about to expire (Linux `tcp_send_delayed_ack`).
            Pending::By(at) if self.policy.adaptive && at <= now + wait / 4 => Pending::Now,
            Pending::By(at) => Pending::By(at.min(now + wait)),
            Pending::Now => Pending::Now,
        };
    }
    /// A segment arrived out of order. On a connection with SACK, duplicate ACKs after the first three are
    /// merged; returns whether this one is.
    pub fn on_out_of_order(&mut self, now: Instant, rcv_nxt: u64, times: &Times) -> bool {
        let Some(compression) = self.compression.filter(|compression| self.merged < compression.count) else {
            self.acknowledge_now();
            return false;
        };
        if self.advanced_to != rcv_nxt {
            (self.advanced_to, self.prompt) = (rcv_nxt, 0);
        }
        if self.pending == Pending::Now || self.is_quick() || self.prompt < PROMPT_DUPLICATES {
            self.prompt += u32::from(self.pending != Pending::Now && !self.is_quick());
            self.acknowledge_now();
            return false;
        }
        self.merged += 1;
        self.merged_total += 1;
        let rtt = times.rcv_rtt.into_iter().chain(times.srtt).min().unwrap_or(Duration::ZERO);
        let wait = (rtt / COMPRESSION_RTT_PART).min(compression.delay) + compression.slack;
        self.merged_until.get_or_insert(now + wait);
        true
    }
    /// The time at which an ACK leaves at the latest; `Instant::ZERO` for at once.
    pub fn deadline(&self) -> Option<Instant> {
        match self.pending {
            Pending::Now => Some(Instant::ZERO),
            Pending::By(at) => Some(self.merged_until.map_or(at, |until| until.min(at))),
            Pending::None => self.merged_until,
        }
    }
    /// The timer of a delayed ACK has expired: the interval between segments is longer than estimated, or the
    /// answer in ping-pong mode did not come.
    pub fn on_timer(&mut self, now: Instant, times: &Times) {
        if !matches!(self.pending, Pending::By(at) if at <= now) {
            return;
        }
        self.pending = Pending::Now;
        if !self.policy.adaptive {
        } else if self.ping_pong {
            self.ping_pong = false;
            self.ato = self.policy.timeout;
        } else {
            self.ato = (self.ato * 2).min(times.rto.unwrap_or(DEFAULT_IDLE).max(self.policy.timeout));
        }
    }
    /// Data left. If data was received shortly before, this is an answer: ping-pong mode begins.
    pub fn on_data_sent(&mut self, now: Instant) {
        if self.policy.adaptive && self.last_data_at.is_some_and(|last| now.since(last) < self.ato) {
            self.ping_pong = true;
        }
    }
    /// A segment with the current acknowledgment number left.
    pub fn on_ack_sent(&mut self) {
        self.pending = Pending::None;
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
    fn the_delay_follows_the_interval_between_segments() {
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
        assert_eq!(acks.ato, SPAN(45));
        // A delay longer than the shortest one is bounded by the RTT.
        acks.on_ack_sent();
        acks.delay(MS(50), &times(42));
        assert_eq!(acks.deadline(), Some(MS(92)));
        // When the timer expired, the delay was too short: 90 ms next.
        acks.on_timer(MS(92), &times(300));
        assert_eq!((acks.deadline(), acks.ato), (Some(Instant::ZERO), SPAN(90)));
    }

    #[test]
    fn an_answer_suspends_quick_acks_until_the_timer_expires() {
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
        // Data sent long after the last arrival is no answer.
        acks.on_data_sent(MS(200));
        assert!(acks.is_quick());
    }

    #[test]
    fn an_idle_time_beyond_the_timeout_refills_the_quick_acks() {
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
            assert!(!acks.on_out_of_order(MS(0), 1000, &times(10)));
            assert_eq!(acks.deadline(), Some(Instant::ZERO));
            acks.on_ack_sent();
        }
        // 5% of 10 ms, and the timer's slack.
        assert!(acks.on_out_of_order(MS(1), 1000, &times(10)));
        assert_eq!(acks.deadline(), Some(MS(1) + Duration::from_micros(600)));
        assert!(acks.on_out_of_order(MS(1), 1000, &times(10)));
        acks.on_ack_sent();
        assert_eq!(acks.deadline(), None);
        // No more than 1 ms, and 44 of them.
        for _ in 0..44 {
            assert!(acks.on_out_of_order(MS(5), 1000, &times(100)));
        }
        assert_eq!(acks.deadline(), Some(MS(6) + Duration::from_micros(100)));
        assert!(!acks.on_out_of_order(MS(5), 1000, &times(100)));
        acks.on_ack_sent();
        // The stream advanced: three leave at once again.
        assert!(!acks.on_out_of_order(MS(7), 2000, &times(100)));
    }
}
