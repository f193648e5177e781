//! The window towards a device whose bottleneck other devices share: that of CUBIC (RFC 9438), so that the
//! device takes as much of the queue as a connection without the accelerator would, and losses lower it
//! (RFC 2914). It bounds the window that the estimates give; all connections of the device share it.
//!
//! Left out: HyStart and slow start, since the window begins as that of the estimates; CE marks of the mobile
//! segment.

use paceline_net::{Duration, Instant, Rate};

/// Factor of the window at a loss (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// Growth of the cubic function in segments/s^3 (RFC 9438, section 5).
const C: f64 = 0.4;
/// Growth in segments per window of the estimate of Reno's window (RFC 9438, section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Bytes of a segment: of an MTU of 1500. Results depend on it as on the unit of C: by its cube root.
const SEGMENT: f64 = 1460.0;
/// Smallest window in segments (RFC 9438, section 4.6, has 2). Four let a client with delayed ACKs
/// acknowledge at once.
const LEAST: f64 = 4.0;
/// Pacing rate as a factor of the window in a round trip, as in Linux (tcp_pacing_ca_ratio).
const PACING_GAIN: f64 = 1.2;

/// CUBIC's state, in segments.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Yielding {
    window: f64,
    /// The window at the last loss, and the one that Reno would have.
    largest: f64,
    reno: f64,
    /// When the present growth began, and seconds from then until `largest` is reached again.
    since: Instant,
    until_largest: f64,
    /// Losses until then belong to the flight that was answered already.
    answered_until: Instant,
    rtt: Duration,
}

impl Yielding {
    /// A device with `window` bytes is found to share its bottleneck: answered as a loss.
    pub fn new(now: Instant, window: u64, rtt: Duration) -> Self {
        let mut yielding = Self {
            window: window as f64 / SEGMENT,
            largest: 0.0,
            reno: 0.0,
            since: now,
            until_largest: 0.0,
            answered_until: Instant::ZERO,
            rtt,
        };
        yielding.reduce(now);
        yielding
    }
    /// An acknowledgment delivered and revealed as lost these bytes. `limited`: the sender had too little data
    /// for the window.
    pub fn on_ack(&mut self, now: Instant, delivered: u64, lost: u64, rtt: Option<Duration>, limited: bool) {
        self.rtt = rtt.unwrap_or(self.rtt);
        if lost > 0 && now >= self.answered_until {
            self.reduce(now);
        } else if limited {
            // The growth waits with the data (RFC 9438, section 4.2).
            self.since = self.since.max(now - self.rtt);
        } else if now >= self.answered_until {
            self.grow(now, delivered as f64 / SEGMENT);
        }
    }
    fn reduce(&mut self, now: Instant) {
        // Fast convergence (section 4.7): a window that did not reach the last one leaves room for others.
        let converging = self.window < self.largest;
        self.largest = if converging { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(LEAST);
        self.reno = self.window;
        self.since = now;
        self.until_largest = libm::cbrt((self.largest - self.window).max(0.0) / C);
        self.answered_until = now + self.rtt;
    }
    fn grow(&mut self, now: Instant, delivered: f64) {
        let ahead = now.since(self.since).as_secs_f64() + self.rtt.as_secs_f64() - self.until_largest;
        let target = (C * ahead * ahead * ahead + self.largest).clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) * (delivered / self.window).min(1.0);
        let alpha = if self.reno < self.largest { ALPHA } else { 1.0 };
        self.reno += alpha * delivered / self.window;
        self.window = self.window.max(self.reno);
    }
    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        (self.window * SEGMENT) as u64
    }
    /// Pacing rate.
    pub fn rate(&self) -> Rate {
        let seconds = self.rtt.as_secs_f64().max(1e-3);
        Rate((8.0 * PACING_GAIN * self.window * SEGMENT / seconds) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_loss_lowers_the_window_once_a_round_trip_and_it_returns_along_the_cubic() {
        let mut yielding = Yielding::new(at(1000), 200 * 1460, RTT);
        assert_eq!(yielding.window(), 140 * 1460);
        yielding.on_ack(at(1010), 1460, 1460, Some(RTT), false);
        assert_eq!(yielding.window(), 140 * 1460, "the same flight");
        // cbrt(60 / 0.4) = 5.3 s until the old window.
        let mut ms = 1040;
        while yielding.window() < 199 * 1460 {
            yielding.on_ack(at(ms), yielding.window() / 4, 0, Some(RTT), false);
            ms += 10;
        }
        assert!((3500..6500).contains(&(ms - 1000)), "{ms}");
        yielding.on_ack(at(ms), 1460, 1460, Some(RTT), false);
        assert!((139 * 1460..=141 * 1460).contains(&yielding.window()), "{}", yielding.window());
    }

    #[test]
    fn a_sender_without_data_does_not_widen_its_window() {
        let mut yielding = Yielding::new(at(1000), 100 * 1460, RTT);
        let before = yielding.window();
        (0..1000).for_each(|n| yielding.on_ack(at(1040 + 40 * n), 14600, 0, Some(RTT), true));
        assert_eq!(yielding.window(), before);
    }
}
