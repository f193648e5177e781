//! The default rate control: what the path delivers is measured, and what is on its way is bounded by it.
//!
//! **Delivery rate**: bytes acknowledged over a stretch of at least a round trip and several TDD periods, and no faster
//! than those bytes were sent, so that a burst of ACKs after an outage is not taken for capacity. The estimate is the
//! highest of the last few stretches. A stretch in which there was too little to send raises it, never lowers it. Loss is
//! not looked at.
//!
//! **Minimum round trip**: over ten seconds. When it is about to expire, or when the delay has stayed above it for long
//! although little is on its way, the window shrinks for a round trip to what the path itself holds, so
//! that a longer path is told from a queue of our own making.
//!
//! **Window**: rate x (minimum round trip + budget). With a queue shorter than half the budget the capacity is not known
//! yet, and the window may double each round trip: a hundredfold jump takes seven. After a drop the
//! estimate follows with the stretches, and nothing is sent until the excess has drained.
//!
//! Left out: loss as a signal (a queue shorter than the budget loses what does not fit), and ECN.

use super::control::AckSample;
use paceline_net::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// Parameters that need no knowledge of the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveParameters {
    /// Queueing delay to keep: what the radio can draw from until the first ACK tells of a higher capacity.
    pub delay_budget: Duration,
}

impl Default for AdaptiveParameters {
    fn default() -> Self {
        Self { delay_budget: Duration::from_millis(40) }
    }
}

/// Shortest stretch of a rate sample: several periods of any TDD frame structure.
const MIN_STRETCH: Duration = Duration::from_millis(40);
/// Parts of a stretch at whose ends a sample is taken.
const PARTS: usize = 4;
/// Samples of which the highest counts.
const MEMORY: usize = 8;
/// Life of a minimum round-trip time.
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
/// What may be on its way before anything is known, and at least (RFC 6928).
const INITIAL_WINDOW: u64 = 14_600;
const MIN_WINDOW: u64 = 4 * 1460;
/// Round trip assumed before one is measured, to pace the first window.
const INITIAL_RTT: Duration = Duration::from_millis(50);

/// The end of a part of a stretch.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    delivered: u64,
    /// When the newest segment delivered by then had been sent.
    sent_at: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    parameters: AdaptiveParameters,
    delivered: u64,
    newest_sent_at: Instant,
    marks: VecDeque<Mark>,
    /// Rate samples in bit/s, the newest last.
    samples: VecDeque<f64>,
    limited_since_mark: bool,
    /// Estimated bandwidth in bit/s; zero before the first sample.
    bandwidth: f64,
    min_rtt: Option<(Duration, Instant)>,
    /// Lowest round trip since the window was last shrunk to look for it.
    latest_rtt: Duration,
    /// The queue is short: the capacity is not known.
    growing: bool,
    window: u64,
}

impl Adaptive {
    pub fn new(parameters: AdaptiveParameters) -> Self {
        let delay_budget = parameters.delay_budget.max(Duration::from_millis(1));
        Self {
            parameters: AdaptiveParameters { delay_budget },
            delivered: 0,
            newest_sent_at: Instant::ZERO,
            marks: VecDeque::new(),
            samples: VecDeque::new(),
            limited_since_mark: false,
            bandwidth: 0.0,
            min_rtt: None,
            latest_rtt: INITIAL_RTT,
            growing: true,
            window: INITIAL_WINDOW,
        }
    }
    fn min_rtt(&self) -> Duration {
        self.min_rtt.map_or(INITIAL_RTT, |(rtt, _)| rtt)
    }

    pub fn on_send(&mut self, now: Instant, _bytes: u64, in_flight_before: u64) {
        if in_flight_before == 0 {
            // Idle time is in no stretch.
            self.marks.clear();
            self.marks.push_back(Mark { at: now, delivered: self.delivered, sent_at: now });
            self.newest_sent_at = now;
        }
    }

    pub fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.delivered += sample.bytes;
        self.limited_since_mark |= sample.app_limited;
        if let Some(sent_at) = sample.sent_at {
            self.newest_sent_at = self.newest_sent_at.max(sent_at);
        }
        if let Some(rtt) = sample.rtt {
            self.latest_rtt = rtt;
            if self.min_rtt.is_none_or(|(min, at)| rtt <= min || now.since(at) > MIN_RTT_LIFE) {
                self.min_rtt = Some((rtt, now));
            }
        }
        let stretch = self.min_rtt().max(MIN_STRETCH);
        let due = self.marks.back().is_none_or(|mark| now.since(mark.at) >= stretch / PARTS as u64);
        if due {
            self.measure(now);
        }
        let queue = self.latest_rtt.saturating_sub(self.min_rtt());
        self.growing = queue < self.parameters.delay_budget / 2;
        self.update_window();
    }

    fn measure(&mut self, now: Instant) {
        if let Some(first) = self.marks.front() {
            let acked = now.since(first.at);
            let sent = self.newest_sent_at.since(first.sent_at);
            let span = acked.max(sent).as_secs_f64();
            let rate = 8.0 * (self.delivered - first.delivered) as f64 / span.max(1e-6);
            if !self.limited_since_mark || rate > self.bandwidth {
                self.samples.push_back(rate);
                if self.samples.len() > MEMORY {
                    self.samples.pop_front();
                }
                self.bandwidth = self.samples.iter().copied().fold(0.0, f64::max);
            }
        }
        self.limited_since_mark = false;
        self.marks.push_back(Mark { at: now, delivered: self.delivered, sent_at: self.newest_sent_at });
        if self.marks.len() > PARTS {
            self.marks.pop_front();
        }
    }

    fn update_window(&mut self) {
        let min_rtt = self.min_rtt();
        let mut span = min_rtt + self.parameters.delay_budget;
        if self.growing {
            span = span.max(min_rtt * 2);
        }
        let wanted = (self.bandwidth / 8.0 * span.as_secs_f64()) as u64;
        self.window = wanted.max(if self.bandwidth > 0.0 { MIN_WINDOW } else { INITIAL_WINDOW });
        if self.growing {
            self.window = self.window.max(INITIAL_WINDOW);
        }
    }

    pub fn rate(&self) -> Rate {
        let rate = if self.growing {
            let known = 3.0 * self.bandwidth;
            let initial = 8.0 * 2.0 * INITIAL_WINDOW as f64
                / self.min_rtt().max(Duration::from_millis(1)).as_secs_f64();
            known.max(initial)
        } else {
            1.25 * self.bandwidth
        };
        Rate((rate as u64).max(64_000))
    }
    pub fn window(&self) -> u64 {
        self.window
    }
}
