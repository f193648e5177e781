//! Delivery rate of the path to a device: bytes acknowledged in an interval, divided by the longer of the
//! times in which they were sent and acknowledged, after draft-cheng-iccrg-delivery-rate-estimation. The
//! longer time keeps a burst of ACKs after an outage, or one turn of a round-robin radio scheduler, from
//! being taken for capacity.
//!
//! The estimate is the maximum of the latest samples. An application-limited sample raises it but never
//! lowers it, unless the round-trip times show a standing queue or the buffer overflowed.
//!
//! Unlike the draft, one state serves the whole device instead of one per segment: intervals are at least a
//! round trip.

use crate::accelerator::rate::losses::short_buffer::is_lossy;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// Parts of an interval; each end of a part gives a sample over the whole interval. Chosen: a fall of the
/// capacity is noticed after a quarter of an interval.
const INTERVAL_PARTS: usize = 4;
/// Samples of which the maximum is the estimate. Chosen: two intervals.
const SAMPLE_COUNT: usize = 8;
/// Share of the estimate from which a sample confirms it, and for how long. Chosen: the time holds several
/// bursts of radio losses, so that one burst does not make the estimate doubtful.
const CONFIRMING_SHARE: f64 = 0.9;
const CONFIRMED_FOR: Duration = Duration::from_secs(1);

/// Totals at the end of a part of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Instant,
    delivered: u64,
    lost: u64,
    /// When the newest segment delivered by then had been sent.
    sent_at: Instant,
}

/// Circumstances under which a sample is taken.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct SampleConditions {
    /// Round-trip times that are all longer than this show a standing queue.
    pub queue_rtt: Duration,
    /// The window is below the path's capacity on purpose, for a probe of the minimum RTT.
    pub window_reduced: bool,
    /// The lost packets were lost by the radio: the buffer had room for them.
    pub radio_loss: bool,
    /// The bytes acknowledged may have been counted before, when duplicate ACKs of a client without SACK
    /// came.
    pub counted_twice: bool,
}

/// Delivery-rate estimator of a device.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct DeliveryRate {
    /// Bytes since the beginning.
    delivered: u64,
    lost: u64,
    newest_sent_at: Instant,
    /// Ends of the latest parts, the oldest first.
    marks: [Mark; INTERVAL_PARTS],
    mark_count: usize,
    /// Rate samples in bit/s, a ring.
    samples: [f64; SAMPLE_COUNT],
    next_sample: usize,
    /// Since the last mark: whether the sender was application-limited at any time, and the lowest RTT.
    app_limited: bool,
    lowest_rtt: Duration,
    /// The estimate in bit/s.
    bandwidth: f64,
    confirmed_at: Instant,
}

impl Default for DeliveryRate {
    fn default() -> Self {
        Self {
            delivered: 0,
            lost: 0,
            newest_sent_at: Instant::ZERO,
            marks: [Mark::default(); INTERVAL_PARTS],
            mark_count: 0,
            samples: [0.0; SAMPLE_COUNT],
            next_sample: 0,
            app_limited: false,
            lowest_rtt: Duration::MAX,
            bandwidth: 0.0,
            confirmed_at: Instant::ZERO,
        }
    }
}

impl DeliveryRate {
    /// Bytes delivered since the beginning.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Estimated bandwidth in bit/s; zero before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }
    /// Sending begins after idle time: a new interval begins.
    pub fn on_idle(&mut self, now: Instant) {
        self.mark_count = 0;
        self.newest_sent_at = now;
        self.mark(now);
    }
    /// A fade ended: no interval may contain it, since its losses say nothing about the rate between fades.
    pub fn on_fade(&mut self) {
        self.mark_count = 0;
    }
    /// An acknowledgment: bytes delivered and found lost, and when the newest delivered segment was sent, if
    /// known.
    pub fn on_ack(&mut self, bytes: u64, lost: u64, sent_at: Option<Instant>, app_limited: bool) {
        self.delivered += bytes;
        self.lost += lost;
        self.app_limited |= app_limited;
        self.newest_sent_at = self.newest_sent_at.max(sent_at.unwrap_or(Instant::ZERO));
    }
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.lowest_rtt = self.lowest_rtt.min(rtt);
    }
    /// Whether a part of an `interval` has passed since the last mark.
    pub fn is_due(&self, now: Instant, interval: Duration) -> bool {
        let last = self.mark_count.checked_sub(1).map(|last| self.marks[last]);
        last.is_none_or(|mark| now.since(mark.at) >= interval / INTERVAL_PARTS as u64)
    }
    /// Whether a sample came near the estimate within the last second. Without one the path may have become
    /// slower.
    pub fn is_confirmed(&self, now: Instant) -> bool {
        now.since(self.confirmed_at) <= CONFIRMED_FOR
    }
    /// Ends a part. Returns the rate over the interval in bit/s, if an interval had begun.
    pub fn measure(&mut self, now: Instant, conditions: &SampleConditions) -> Option<f64> {
        let rate = (self.mark_count > 0).then(|| self.sample(now, conditions));
        self.app_limited = false;
        self.lowest_rtt = Duration::MAX;
        self.mark(now);
        rate
    }

    fn sample(&mut self, now: Instant, conditions: &SampleConditions) -> f64 {
        let (first, last) = (self.marks[0], self.marks[self.mark_count - 1]);
        let ack_time = now.since(first.at);
        let send_time = self.newest_sent_at.since(first.sent_at);
        let seconds = ack_time.max(send_time).as_secs_f64().max(1e-6);
        let delivered = self.delivered - first.delivered;
        let mut rate = 8.0 * delivered as f64 / seconds;
        if rate >= CONFIRMING_SHARE * self.bandwidth {
            self.confirmed_at = now;
        }
        if conditions.counted_twice {
            rate = rate.min(self.bandwidth);
        }
        let lost = self.lost - last.lost;
        let radio_loss = lost > 0 && conditions.radio_loss;
        if radio_loss {
            // The radio sent the lost bytes too, so they count. They raise no estimate: only arrivals show
            // that the path can be faster.
            let transmitted = delivered + (self.lost - first.lost);
            rate = rate.max(self.bandwidth.min(8.0 * transmitted as f64 / seconds));
        }
        // With a standing queue the link was busy, however little data the application had.
        let queued = self.lowest_rtt < Duration::MAX && self.lowest_rtt > conditions.queue_rtt;
        // A buffer that overflowed was offered more than the path takes. Without this an estimate that is too
        // high would lose most packets, every sample would count as application-limited, and the estimate
        // would never fall.
        let overflowed = !radio_loss && is_lossy(self.delivered - last.delivered, lost);
        let at_capacity = queued || overflowed || !self.app_limited && !conditions.window_reduced;
        if at_capacity || rate > self.bandwidth {
            self.samples[self.next_sample] = rate;
            self.next_sample = (self.next_sample + 1) % SAMPLE_COUNT;
            self.bandwidth = self.samples.iter().copied().fold(0.0, f64::max);
        }
        rate
    }
    fn mark(&mut self, now: Instant) {
        if self.mark_count == INTERVAL_PARTS {
            self.marks.rotate_left(1);
            self.mark_count -= 1;
        }
        let (delivered, lost, sent_at) = (self.delivered, self.lost, self.newest_sent_at);
        self.marks[self.mark_count] = Mark { at: now, delivered, lost, sent_at };
        self.mark_count += 1;
    }
    /// Loads its cache lines.
    pub fn prefetch(&self) {
        black_box((self.delivered, self.marks[1].at, self.marks[INTERVAL_PARTS - 1].sent_at));
        black_box((self.samples[SAMPLE_COUNT - 1], self.bandwidth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: SampleConditions = SampleConditions {
        queue_rtt: Duration::from_millis(60),
        window_reduced: false,
        radio_loss: false,
        counted_twice: false,
    };
    const RADIO_LOSS: SampleConditions = SampleConditions { radio_loss: true, ..CONDITIONS };

    struct MeasuredPath {
        estimate: DeliveryRate,
        ms: u64,
    }

    impl MeasuredPath {
        /// After half a second at 8 Mb/s.
        fn at_8_mbps() -> Self {
            let mut path = Self { estimate: DeliveryRate::default(), ms: 1_000 };
            path.estimate.on_idle(Instant::from_millis(path.ms - 40));
            path.run(50, 1_000, 0, &CONDITIONS);
            assert!((path.estimate.bandwidth() - 8e6).abs() < 1e5, "{:?}", path.estimate);
            path
        }
        /// Parts of 10 ms, with bytes delivered and lost in each millisecond.
        fn run(&mut self, parts: u64, bytes: u64, lost: u64, conditions: &SampleConditions) {
            for _ in 0..parts {
                for _ in 0..10 {
                    self.ms += 1;
                    self.estimate.on_ack(bytes, lost, Some(Instant::from_millis(self.ms - 40)), false);
                    self.estimate.on_rtt(Duration::from_millis(40));
                }
                self.estimate.measure(Instant::from_millis(self.ms), conditions);
            }
        }
    }

    #[test]
    fn bytes_lost_by_the_radio_count_as_transmitted_and_those_lost_in_the_buffer_do_not() {
        let mut path = MeasuredPath::at_8_mbps();
        path.run(30, 500, 400, &RADIO_LOSS);
        assert!((7.1e6..7.3e6).contains(&path.estimate.bandwidth()), "{:?}", path.estimate);
        path.run(30, 500, 400, &CONDITIONS);
        assert!((path.estimate.bandwidth() - 4e6).abs() < 1e5, "{:?}", path.estimate);
    }

    #[test]
    fn losses_do_not_raise_the_estimate() {
        let mut path = MeasuredPath::at_8_mbps();
        path.run(30, 1_000, 1_000, &RADIO_LOSS);
        assert!((path.estimate.bandwidth() - 8e6).abs() < 1e5, "{:?}", path.estimate);
    }

    #[test]
    fn an_estimate_that_no_sample_comes_near_is_unconfirmed_after_a_second() {
        let mut path = MeasuredPath::at_8_mbps();
        path.run(90, 500, 500, &RADIO_LOSS);
        assert!(path.estimate.is_confirmed(Instant::from_millis(path.ms)));
        path.run(20, 500, 500, &RADIO_LOSS);
        assert!(!path.estimate.is_confirmed(Instant::from_millis(path.ms)), "{:?}", path.estimate);
    }

    #[test]
    fn a_sample_is_no_faster_than_its_bytes_were_sent() {
        let MeasuredPath { mut estimate, ms } = MeasuredPath::at_8_mbps();
        // The bytes of 100 ms are acknowledged at once.
        estimate.on_ack(100_000, 0, Some(Instant::from_millis(ms + 60)), false);
        let rate = estimate.measure(Instant::from_millis(ms + 10), &CONDITIONS);
        assert!(rate.is_some_and(|rate| rate < 9e6), "{rate:?}");
    }
}
