//! The time beyond the round trip to its server for which a device's data is stored.
//!
//! A server whose window has opened reacts after a while, and a radio's rate varies: with nothing in reserve
//! the radio would be idle meanwhile. The reserve is found by trial. It grows by half when a server that
//! was waiting for its window left the radio with little to send. Where the data that waited the least in a
//! period waited for some time, half of that time was in reserve for nothing (CoDel's sojourn time over an
//! interval, RFC 8289, section 3.2).

use paceline_net::{Duration, Instant};

/// Reserve of a new device, and the least after the radio lacked data. Chosen: the delay of a server's
/// scheduler and network device, and of batches here; trials change it.
const FIRST: Duration = Duration::from_millis(10);
/// The longest reserve. Chosen: half the longest round trip to a server; the memory is the limit before.
const LONGEST: Duration = Duration::from_millis(400);
/// Time over which the least wait is taken. Chosen: some round trips, and some fades of a radio.
const PERIOD: Duration = Duration::from_secs(2);
/// A radio with less in flight than its window less one part in this lacks data. Chosen: some packets. With a
/// fourth, links whose rate varies lost a percent of their capacity; between a 24th and this, ages and rates
/// are the same within a tenth and a two-hundredth.
const LACK_DIVISOR: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Reserve {
    time: Duration,
    least_wait: Duration,
    period_until: Instant,
    /// When the data for a longer reserve is here, since the radio lacked some.
    settled_at: Instant,
}

impl Default for Reserve {
    fn default() -> Self {
        let (period_until, settled_at) = (Instant::ZERO, Instant::ZERO);
        Self { time: FIRST, least_wait: Duration::ZERO, period_until, settled_at }
    }
}

impl Reserve {
    pub fn time(&self) -> Duration {
        self.time
    }
    /// Data was sent for the first time, after it had waited here.
    pub fn on_sent(&mut self, now: Instant, wait: Duration) {
        if now < self.settled_at {
            return;
        }
        if now < self.period_until {
            self.least_wait = self.least_wait.min(wait);
            return;
        }
        self.time = self.time.saturating_sub(self.least_wait / 2);
        (self.least_wait, self.period_until) = (wait, now + PERIOD);
    }
    /// Data arrived of a server that had been waiting for its window, with nothing left to send, and
    /// `in_flight` bytes of a `window` on the way. The server is `rtt` away.
    pub fn on_empty(&mut self, now: Instant, (in_flight, window): (u64, u64), rtt: Duration) {
        if in_flight > window - window / LACK_DIVISOR || now < self.settled_at {
            return;
        }
        self.time = (self.time * 3 / 2).clamp(FIRST, LONGEST);
        self.settled_at = now + rtt + self.time;
        (self.least_wait, self.period_until) = (Duration::MAX, self.settled_at + PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 1 byte per microsecond whose server answers `late` after the window has opened.
    #[test]
    fn the_reserve_is_as_long_as_the_server_is_late() {
        for late_ms in [0, 3, 30, 200] {
            let (mut reserve, late) = (Reserve::default(), Duration::from_millis(late_ms));
            let rtt = Duration::from_millis(20);
            let mut times = Vec::new();
            for ms in (0..60_000).step_by(5) {
                let now = Instant::from_millis(ms);
                if reserve.time() >= late {
                    reserve.on_sent(now, reserve.time().saturating_sub(late));
                } else {
                    reserve.on_empty(now, (0, 10_000), rtt);
                }
                times.push(reserve.time());
            }
            let late_half = &times[times.len() / 2..];
            let mean =
                late_half.iter().map(|time| time.as_millis_f64()).sum::<f64>() / late_half.len() as f64;
            let most = 2.0 * late_ms as f64 + 10.0;
            assert!((late_ms as f64 * 0.9..most).contains(&mean), "{late_ms} ms late: {mean:.1} ms");
        }
    }
}
