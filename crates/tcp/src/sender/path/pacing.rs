//! The spacing of segments: the congestion control's own rate, one that the configuration names, or that of
//! Linux (`tcp_update_pacing_rate`). RFC 9293 has none.

use crate::options::Pacing;
use paceline_net::pacing::{self, CatchUp, window_rate};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Segments at the start that are not paced (Linux `tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u32 = 10;
/// Pacing rate in percent of window per round trip, in slow start (Linux `tcp_pacing_ss_ratio`).
const SLOW_START_PERCENT: u32 = 200;
/// The same in congestion avoidance (Linux `tcp_pacing_ca_ratio`).
const AVOIDANCE_PERCENT: u32 = 120;

/// Decides when the next segment may leave.
#[derive(Clone, Debug)]
pub(in crate::sender) struct Pacer {
    mode: Pacing,
    spacing: pacing::Pacer,
    /// Segments sent, up to [`UNPACED_SEGMENTS`].
    sent: u32,
}

/// The quantities from which Linux computes the rate; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct PacedFlow {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub outstanding: u64,
    pub srtt: Option<Duration>,
}

impl Pacer {
    pub fn new(mode: Pacing) -> Self {
        let catch_up = if mode == Pacing::Linux { CatchUp::HalfPacket } else { CatchUp::Never };
        Self { mode, spacing: pacing::Pacer::new(catch_up), sent: 0 }
    }
    /// The rate in force; `None` without pacing. `own` is the control's rate, which has priority.
    pub fn rate(&self, own: Option<Rate>, flow: impl FnOnce() -> PacedFlow) -> Option<Rate> {
        own.or_else(|| match self.mode {
            Pacing::None => None,
            Pacing::External(rate) => Some(rate),
            Pacing::Linux if self.sent < UNPACED_SEGMENTS => None,
            Pacing::Linux => linux_rate(&flow()),
        })
    }
    /// The time until which segments wait, if a rate is in force.
    pub fn until(&self) -> Instant {
        self.spacing.until()
    }
    /// A segment of `len` bytes left.
    pub fn on_sent(&mut self, now: Instant, len: u64, rate: Option<Rate>) {
        self.sent = (self.sent + 1).min(UNPACED_SEGMENTS);
        if let Some(rate) = rate {
            self.spacing.on_sent(now, Bytes(len), rate);
        }
    }
    /// Lets the next segment leave from `now` on.
    pub fn release(&mut self, now: Instant) {
        self.spacing.release(now);
    }
}

/// The rate of Linux: 200% of a window per round trip while the window is below half of ssthresh, 120% above.
fn linux_rate(flow: &PacedFlow) -> Option<Rate> {
    let gain = if flow.cwnd < flow.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
    window_rate(Bytes(flow.cwnd.max(flow.outstanding)), flow.srtt?, gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: PacedFlow = PacedFlow {
        cwnd: 10_000,
        ssthresh: u64::MAX,
        outstanding: 0,
        srtt: Some(Duration::from_millis(100)),
    };

    #[test]
    fn linux_paces_at_200_percent_in_slow_start_and_120_percent_above() {
        let mut pacer = Pacer::new(Pacing::Linux);
        assert_eq!(pacer.rate(None, || FLOW), None); // the initial window leaves at once
        for _ in 0..10 {
            pacer.on_sent(Instant::ZERO, 1000, None);
        }
        // 10 kB in 100 ms are 800 kb/s.
        assert_eq!(pacer.rate(None, || FLOW), Some(Rate(1_600_000)));
        assert_eq!(pacer.rate(None, || PacedFlow { ssthresh: 20_000, ..FLOW }), Some(Rate(960_000)));
        assert_eq!(pacer.rate(None, || PacedFlow { ssthresh: 20_002, ..FLOW }), Some(Rate(1_600_000)));
        assert_eq!(
            pacer.rate(None, || PacedFlow { ssthresh: 0, outstanding: 20_000, ..FLOW }),
            Some(Rate(1_920_000))
        );
        assert_eq!(pacer.rate(Some(Rate(7)), || FLOW), Some(Rate(7)));
    }

    #[test]
    fn segments_are_spaced_by_their_time_and_half_a_segments_delay_is_compensated() {
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
