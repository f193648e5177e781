//! A control without an algorithm: its window and pacing rate are set from outside, by a learning agent for
//! example, and it measures the interval between two settings.
//!
//! Losses and timeouts are repaired as with any control, and change neither window nor rate. Left out: ECN,
//! whose echoes change nothing either.

use super::control::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// The window of a setting without one. Chosen: beyond every send buffer, and small enough that the sum over
/// all connections of a station is exact.
const UNLIMITED: Bytes = Bytes(1 << 40);

/// Window and pacing rate of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Setting {
    /// The congestion window; without one, buffers and the receiver limit the bytes in flight.
    pub window: Option<Bytes>,
    /// The pacing rate of payload; without one, segments leave as the configured pacing says.
    pub rate: Option<Rate>,
}

/// Measurements of a sender over an interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Interval {
    /// Payload bytes sent, retransmissions included.
    pub sent: Bytes,
    /// Bytes newly delivered: acknowledged cumulatively or selectively for the first time.
    pub acked: Bytes,
    /// Bytes marked as lost.
    pub lost: Bytes,
    /// Round-trip times.
    pub rtt: RttInterval,
}

/// Round-trip times of an interval: number, mean, least, and trend.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct RttInterval {
    /// Number of samples.
    pub count: u64,
    /// The least sample; none without samples.
    pub least: Option<Duration>,
    /// Send time and round-trip time of the first sample.
    first: Option<(Instant, Duration)>,
    /// Sums over the samples of send time and round-trip time in seconds from those of the first one, of the
    /// square of the time, and of the product.
    sums: [f64; 4],
}

/// The time from `earlier` to `later` in seconds, negative if they are in the other order.
fn seconds(later: Instant, earlier: Instant) -> f64 {
    later.since(earlier).as_secs_f64() - earlier.since(later).as_secs_f64()
}

impl RttInterval {
    fn add(&mut self, now: Instant, rtt: Duration) {
        let sent_at = Instant::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
        let (at, first) = *self.first.get_or_insert((sent_at, rtt));
        let (time, above) = (seconds(sent_at, at), rtt.as_secs_f64() - first.as_secs_f64());
        self.count += 1;
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        for (sum, term) in self.sums.iter_mut().zip([time, above, time * time, time * above]) {
            *sum += term;
        }
    }
    /// The mean in seconds; none without samples.
    pub fn mean_s(&self) -> Option<f64> {
        let (_, first) = self.first?;
        Some(first.as_secs_f64() + self.sums[1] / self.count as f64)
    }
    /// The slope of the line of least squares through the samples over their send times: seconds of
    /// round-trip time per second, as in PCC Vivace. Zero for fewer than two times. Times of arrival are not
    /// used, since ACKs of one uplink block arrive together.
    pub fn gradient(&self) -> f64 {
        let (count, [time, above, squares, products]) = (self.count as f64, self.sums);
        let spread = count * squares - time * time;
        if spread > 0.0 { (count * products - time * above) / spread } else { 0.0 }
    }
    /// Adds the samples of another connection over the same interval. The trends of several connections
    /// become one line.
    pub fn merge(&mut self, other: &Self) {
        let (Some((at, first)), Some((other_at, other_first))) = (self.first, other.first) else {
            if self.first.is_none() {
                *self = *other;
            }
            return;
        };
        // The other's sums, with this one's first sample as the origin.
        let (dt, dr) = (seconds(other_at, at), other_first.as_secs_f64() - first.as_secs_f64());
        let (count, [time, above, squares, products]) = (other.count as f64, other.sums);
        let moved = [
            time + count * dt,
            above + count * dr,
            squares + 2.0 * dt * time + count * dt * dt,
            products + dr * time + dt * above + count * dt * dr,
        ];
        self.sums.iter_mut().zip(moved).for_each(|(sum, term)| *sum += term);
        self.count += other.count;
        self.least = [self.least, other.least].into_iter().flatten().min();
    }
}

/// The control; see the module.
#[derive(Clone, Debug)]
pub struct External {
    window: Bytes,
    rate: Option<Rate>,
    interval: Interval,
    /// Bytes marked as lost up to the start of the interval.
    lost_before: Bytes,
}

impl External {
    /// Until it is set: a window of `initial` segments of `mss` bytes, without a pacing rate.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Bytes(u64::from(mss) * u64::from(initial)),
            rate: None,
            interval: Interval::default(),
            lost_before: Bytes::ZERO,
        }
    }
    /// Sets window and pacing rate.
    pub fn set(&mut self, setting: Setting) {
        self.window = setting.window.unwrap_or(UNLIMITED);
        self.rate = setting.rate;
    }
    /// The measurements since the last call; `lost` is the number of bytes marked as lost since the start.
    pub fn take(&mut self, lost: Bytes) -> Interval {
        let since = lost.saturating_sub(std::mem::replace(&mut self.lost_before, lost));
        Interval { lost: since, ..std::mem::take(&mut self.interval) }
    }
}

impl CongestionControl for External {
    fn on_sent(&mut self, _now: Instant, len: Bytes, _in_flight: Bytes) {
        self.interval.sent += len;
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.interval.acked += sample.acked;
        if let Some(rtt) = sample.rtt {
            self.interval.rtt.add(now, rtt);
        }
    }
    fn on_congestion(&mut self, _now: Instant, _event: CongestionEvent, _in_flight: Bytes) {}
    fn cwnd(&self) -> Bytes {
        self.window
    }
    fn ssthresh(&self) -> Bytes {
        Bytes(u64::MAX)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
    fn owns_recovery_window(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(samples: &[(u64, u64)]) -> RttInterval {
        let mut rtt = RttInterval::default();
        samples.iter().for_each(|(at, ms)| rtt.add(Instant::from_millis(*at), Duration::from_millis(*ms)));
        rtt
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_round_trip_times() {
        // 2 ms more for segments that are sent 10 ms later.
        let rtt = interval(&[(100, 40), (112, 42), (124, 44)]);
        assert!((rtt.gradient() - 0.2).abs() < 1e-9 && (rtt.mean_s().unwrap() - 0.042).abs() < 1e-12);
        assert_eq!((rtt.count, rtt.least), (3, Some(Duration::from_millis(40))));
        assert_eq!(interval(&[(5, 30)]).gradient(), 0.0);
        assert_eq!((interval(&[]).gradient(), interval(&[]).mean_s()), (0.0, None));
    }

    #[test]
    fn connections_are_merged_as_if_their_samples_were_one_series() {
        let whole = [(100, 40), (105, 50), (110, 41), (130, 45), (135, 70)];
        let (one, other): (Vec<_>, Vec<_>) = whole.iter().copied().partition(|(at, _)| at % 10 == 0);
        for (first, second) in [(&one, &other), (&other, &one)] {
            let mut merged = interval(first);
            merged.merge(&interval(second));
            let expected = interval(&whole);
            assert!((merged.gradient() - expected.gradient()).abs() < 1e-9);
            assert!((merged.mean_s().unwrap() - expected.mean_s().unwrap()).abs() < 1e-12);
            assert_eq!((merged.count, merged.least), (5, Some(Duration::from_millis(40))));
        }
        let mut nothing = RttInterval::default();
        nothing.merge(&interval(&one));
        nothing.merge(&RttInterval::default());
        assert_eq!(nothing, interval(&one));
    }

    #[test]
    fn events_change_nothing_and_measurements_begin_anew() {
        let mut control = External::new(1000, 10);
        assert_eq!((control.cwnd(), control.pacing_rate()), (Bytes(10_000), None));
        control.set(Setting { window: Some(Bytes(50_000)), rate: Some(Rate(8_000_000)) });
        control.on_sent(Instant::ZERO, Bytes(1000), Bytes(1000));
        let sample = AckSample { acked: Bytes(1000), ..AckSample::default() };
        control.on_ack(Instant::from_millis(30), &sample);
        control.on_congestion(Instant::from_millis(30), CongestionEvent::Timeout, Bytes::ZERO);
        assert_eq!((control.cwnd(), control.pacing_rate()), (Bytes(50_000), Some(Rate(8_000_000))));
        let first = control.take(Bytes(3000));
        assert_eq!((first.sent, first.acked, first.lost), (Bytes(1000), Bytes(1000), Bytes(3000)));
        let second = control.take(Bytes(3500));
        assert_eq!((second.sent, second.acked, second.lost), (Bytes::ZERO, Bytes::ZERO, Bytes(500)));
        control.set(Setting::default());
        assert!(control.cwnd() > Bytes(1 << 39) && control.pacing_rate().is_none());
    }
}
