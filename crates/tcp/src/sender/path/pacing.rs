//! The spacing of segments: the congestion control's own rate, one that the configuration names, or that of
//! Linux (`tcp_update_pacing_rate`), also for the period of a TDD cell. RFC 9293 has none.

use crate::options::Pacing;
use paceline_net::pacing::{self, CatchUp, CleanDelay, Hint, Learner, window_rate};
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
    tdd: Option<Box<TddCell>>,
}

/// Knowledge of the TDD cell on the path.
#[derive(Clone, Debug, Default)]
struct TddCell {
    learner: Learner,
    period: Option<Duration>,
    clean: Option<CleanDelay>,
    /// The first ACK of the last bunch.
    bunch_at: Instant,
}

/// The quantities from which Linux computes the rate; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct PacedFlow {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub outstanding: u64,
    pub in_flight: u64,
    pub srtt: Option<Duration>,
}

impl Pacer {
    pub fn new(mode: Pacing) -> Self {
        let linux = matches!(mode, Pacing::Linux | Pacing::Tdd | Pacing::TddPublished);
        let catch_up = if linux { CatchUp::HalfPacket } else { CatchUp::Never };
        let tdd = matches!(mode, Pacing::Tdd | Pacing::TddPublished).then(Box::default);
        Self { mode, spacing: pacing::Pacer::new(catch_up), sent: 0, tdd }
    }
    /// The rate in force; `None` without pacing. `own` is the control's rate, which has priority.
    pub fn rate(&self, now: Instant, own: Option<Rate>, flow: impl FnOnce() -> PacedFlow) -> Option<Rate> {
        own.or_else(|| match self.mode {
            Pacing::None => None,
            Pacing::External(rate) => Some(rate),
            _ if self.sent < UNPACED_SEGMENTS => None,
            Pacing::Linux | Pacing::Tdd => linux_rate(&flow()),
            Pacing::TddPublished => {
                let flow = flow();
                self.spread_rate(now, &flow).or_else(|| linux_rate(&flow))
            }
        })
    }
    /// The time until which segments wait, if a rate is in force.
    pub fn until(&self) -> Instant {
        self.spacing.until()
    }
    /// An ACK arrived; `rtt` is that of the newest segment that it delivers. Returns the round-trip time for
    /// controls that watch delay.
    pub fn on_ack(&mut self, now: Instant, rtt: Option<Duration>) -> Option<Duration> {
        let Some(tdd) = self.tdd.as_deref_mut() else { return rtt };
        tdd.learner.on_ack(now, rtt);
        let period = tdd.learner.learned().map(|learned| learned.period);
        if period != tdd.period {
            tdd.period = period;
            tdd.clean = period.map(CleanDelay::new);
            self.spacing.set_hint(now, period.map_or(Hint::None, Hint::Period));
        }
        if period.is_some_and(|period| now.since(tdd.bunch_at) > period / 2) {
            tdd.bunch_at = now;
        }
        match &mut tdd.clean {
            Some(clean) if self.mode == Pacing::Tdd => rtt.map(|rtt| clean.on_sample(now, rtt)),
            _ => rtt,
        }
    }
    /// The rate that spreads the open window over the time to the next bunch of ACKs.
    fn spread_rate(&self, now: Instant, flow: &PacedFlow) -> Option<Rate> {
        let tdd = self.tdd.as_deref()?;
        let left = (tdd.bunch_at + tdd.period?).since(now);
        window_rate(Bytes(flow.cwnd.saturating_sub(flow.in_flight)), left, 100)
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
        in_flight: 0,
        srtt: Some(Duration::from_millis(100)),
    };

    #[test]
    fn linux_paces_at_200_percent_in_slow_start_and_120_percent_above() {
        let mut pacer = Pacer::new(Pacing::Linux);
        assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), None); // the initial window leaves at once
        for _ in 0..10 {
            pacer.on_sent(Instant::ZERO, 1000, None);
        }
        // 10 kB in 100 ms are 800 kb/s.
        assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), Some(Rate(1_600_000)));
        assert_eq!(
            pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 20_000, ..FLOW }),
            Some(Rate(960_000))
        );
        assert_eq!(
            pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 20_002, ..FLOW }),
            Some(Rate(1_600_000))
        );
        assert_eq!(
            pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 0, outstanding: 20_000, ..FLOW }),
            Some(Rate(1_920_000))
        );
        assert_eq!(pacer.rate(Instant::ZERO, Some(Rate(7)), || FLOW), Some(Rate(7)));
    }

    #[test]
    fn segments_are_spaced_by_their_time_and_half_a_segments_delay_is_compensated() {
        let mut pacer = Pacer::new(Pacing::External(Rate(8_000_000)));
        assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), Some(Rate(8_000_000)));
        let ms = Instant::from_millis;
        pacer.on_sent(ms(10), 1000, Some(Rate(8_000_000)));
        assert_eq!(pacer.until(), ms(11));
        let mut pacer = Pacer::new(Pacing::Linux);
        pacer.on_sent(ms(0), 1000, Some(Rate(8_000_000)));
        pacer.on_sent(ms(5), 1000, Some(Rate(8_000_000)));
        assert_eq!(pacer.until(), Instant::from_nanos(5_500_000));
    }

    /// ACKs of segments that are sent every 0.5 ms and wait for the end of a period of 5 ms.
    fn learn(pacer: &mut Pacer) -> (Instant, Option<Duration>) {
        let (mut now, mut shown) = (Instant::ZERO, None);
        for sent in (0..3995_u64).map(|index| index * 500_000) {
            now = Instant::from_nanos((sent / 5_000_000 + 2) * 5_000_000);
            shown = pacer.on_ack(now, Some(Duration::from_nanos(now.as_nanos() - sent)));
        }
        (now, shown)
    }

    #[test]
    fn a_learned_period_cleans_the_delay_and_limits_the_wait() {
        let mut pacer = Pacer::new(Pacing::Tdd);
        let (now, shown) = learn(&mut pacer);
        // Round trips are 5.5 to 10 ms.
        assert_eq!(shown, Some(Duration::from_nanos(5_500_000)));
        pacer.on_sent(now, 1000, Some(Rate(1000)));
        assert_eq!(pacer.until(), now + Duration::from_millis(5));
        let mut linux = Pacer::new(Pacing::Linux);
        assert_eq!(learn(&mut linux).1, Some(Duration::from_millis(8)));
    }

    #[test]
    fn the_published_pacing_spreads_the_open_window_over_a_period() {
        let mut pacer = Pacer::new(Pacing::TddPublished);
        for _ in 0..10 {
            pacer.on_sent(Instant::ZERO, 1000, None);
        }
        let flow = PacedFlow { cwnd: 20_000, in_flight: 10_000, ..FLOW };
        assert_eq!(pacer.rate(Instant::ZERO, None, || flow), linux_rate(&flow));
        let (now, shown) = learn(&mut pacer);
        assert!(shown >= Some(Duration::from_nanos(5_500_000)));
        // 10 kB in 5 ms are 16 Mb/s.
        assert_eq!(pacer.rate(now, None, || flow), Some(Rate(16_000_000)));
        let later = now + Duration::from_micros(2500);
        let rest = PacedFlow { in_flight: 15_000, ..flow };
        assert_eq!(pacer.rate(later, None, || rest), Some(Rate(16_000_000)));
    }
}
