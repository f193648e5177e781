//! The spacing of segments (RFC 9293 has none): the control's own rate, one from outside, or that of Linux.

use crate::options::Pacing;
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Segments at the start that Linux does not pace.
const FREE_SEGMENTS: u32 = 10;
/// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`, in per cent.
const SLOW_START: u128 = 200;
const AVOIDANCE: u128 = 120;

/// When the next segment may leave.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    mode: Pacing,
    until: Instant,
    /// Segments sent, as far as it matters.
    sent: u32,
}

/// What the rate of Linux follows from, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub outstanding: u64,
    pub srtt: Option<Duration>,
}

impl Pacer {
    pub fn new(mode: Pacing) -> Self {
        Self { mode, until: Instant::ZERO, sent: 0 }
    }
    /// The rate in force, if there is one; the control's own goes first.
    pub fn rate(&self, own: Option<Rate>, flow: impl FnOnce() -> Flow) -> Option<Rate> {
        own.or_else(|| match self.mode {
            Pacing::None => None,
            Pacing::External(rate) => Some(rate),
            Pacing::Linux if self.sent < FREE_SEGMENTS => None,
            Pacing::Linux => linux_rate(&flow()),
        })
    }
    /// Until when a rate, if there is one, holds segments back.
    pub fn until(&self) -> Instant {
        self.until
    }
    /// A segment left.
    pub fn on_sent(&mut self, now: Instant, len: u64, rate: Option<Rate>) {
        self.sent = (self.sent + 1).min(FREE_SEGMENTS);
        let Some(rate) = rate else { return };
        let mut wait = rate.time_to_send(Bytes(len));
        if self.mode == Pacing::Linux {
            // Time lost since the segment could have left is made up for, half a segment's time at a time.
            wait = wait - now.since(self.until).min(wait / 2);
        }
        self.until = self.until.max(now) + wait;
    }
    /// Nothing is held back from `now` on.
    pub fn release(&mut self, now: Instant) {
        self.until = self.until.min(now);
    }
}

/// Twice the window per round trip while doubling it, 1.2 times later (`tcp_update_pacing_rate`).
fn linux_rate(flow: &Flow) -> Option<Rate> {
    let srtt = flow.srtt.filter(|srtt| !srtt.is_zero())?;
    let ratio = if flow.cwnd < flow.ssthresh / 2 { SLOW_START } else { AVOIDANCE };
    let bits = u128::from(flow.cwnd.max(flow.outstanding)) * 8 * ratio / 100;
    let rate = bits * 1_000_000_000 / u128::from(srtt.as_nanos());
    Some(Rate(u64::try_from(rate).unwrap_or(u64::MAX).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow =
        Flow { cwnd: 10_000, ssthresh: u64::MAX, outstanding: 0, srtt: Some(Duration::from_millis(100)) };

    #[test]
    fn linux_paces_at_twice_the_window_then_at_a_fifth_more() {
        let mut pacer = Pacer::new(Pacing::Linux);
        assert_eq!(pacer.rate(None, || FLOW), None); // the initial window leaves at once
        for _ in 0..10 {
            pacer.on_sent(Instant::ZERO, 1000, None);
        }
        // 10 kB in 100 ms are 800 kb/s.
        assert_eq!(pacer.rate(None, || FLOW), Some(Rate(1_600_000)));
        assert_eq!(pacer.rate(None, || Flow { ssthresh: 20_000, ..FLOW }), Some(Rate(960_000)));
        assert_eq!(pacer.rate(None, || Flow { ssthresh: 20_002, ..FLOW }), Some(Rate(1_600_000)));
        assert_eq!(
            pacer.rate(None, || Flow { ssthresh: 0, outstanding: 20_000, ..FLOW }),
            Some(Rate(1_920_000))
        );
        assert_eq!(pacer.rate(Some(Rate(7)), || FLOW), Some(Rate(7)));
    }

    #[test]
    fn segments_are_spaced_by_their_time_and_half_of_a_delay_is_made_up() {
        let mut pacer = Pacer::new(Pacing::External(Rate(8_000_000)));
        assert_eq!(pacer.rate(None, || FLOW), Some(Rate(8_000_000)));
        let ms = Instant::from_millis;
        pacer.on_sent(ms(10), 1000, Some(Rate(8_000_000)));
        assert_eq!(pacer.until(), ms(11));
        let mut pacer = Pacer::new(Pacing::Linux);
        pacer.on_sent(ms(0), 1000, Some(Rate(8_000_000)));
        pacer.on_sent(ms(5), 1000, Some(Rate(8_000_000)));
        assert_eq!(pacer.until(), Instant::from_nanos(5_500_000));
    }
}
