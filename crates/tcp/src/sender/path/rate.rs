//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation): the bytes delivered over the flight of
//! one segment, for congestion controls that model the path.

use crate::cc::{LossSample, RateSample};
use paceline_net::{Bytes, Duration, Instant};

/// Shortest interval of a sample. Equals the tick of Linux's `tcp_mstamp`; it gives a path without any delay,
/// as simulations have, a rate.
const LEAST_INTERVAL: Duration = Duration::from_micros(1);

/// The state of the connection when a segment was sent.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct RateStamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
    /// Bytes marked as lost before, modulo 2^32, and bytes in flight with this segment.
    lost: u32,
    in_flight: u32,
}

/// The connection's part of the estimation.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited_until: u64,
    lost: u64,
    newest: Option<(RateStamp, Instant)>,
}

impl RateSampler {
    /// Sending starts while nothing is outstanding.
    pub fn on_transmit_start(&mut self, now: Instant) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }
    /// The stamp of a segment of `len` bytes that is sent now, with `in_flight` before it.
    pub fn on_send(&mut self, in_flight: u64, len: u64) -> RateStamp {
        RateStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited(),
            lost: self.lost as u32,
            in_flight: u32::try_from(in_flight + len).unwrap_or(u32::MAX),
        }
    }
    /// A segment was delivered for the first time.
    pub fn on_delivered(&mut self, now: Instant, len: u64, stamp: RateStamp, sent_at: Instant) {
        self.delivered += len;
        self.delivered_at = now;
        // The segment sent last gives the sample; of several with equal times, the one with more bytes
        // delivered.
        if self.newest.is_none_or(|(newest, at)| (sent_at, stamp.delivered) >= (at, newest.delivered)) {
            self.newest = Some((stamp, sent_at));
        }
    }
    /// `len` bytes were marked as lost.
    pub fn on_lost(&mut self, len: u64) {
        self.lost += len;
    }
    /// The sample of a segment that was marked as lost, after [`Self::on_lost`].
    pub fn loss_sample(&self, stamp: RateStamp) -> LossSample {
        LossSample {
            lost: self.lost_since(stamp),
            tx_in_flight: Bytes(u64::from(stamp.in_flight)),
            app_limited: stamp.app_limited,
        }
    }
    fn lost_since(&self, stamp: RateStamp) -> Bytes {
        Bytes(u64::from((self.lost as u32).wrapping_sub(stamp.lost)))
    }
    /// Bytes marked as lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Whether samples are application-limited.
    pub fn app_limited(&self) -> bool {
        self.app_limited_until > 0
    }
    /// The sender has no data to send while `in_flight` bytes are in flight.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }
    /// The sample of the acknowledgment that has just been processed.
    pub fn take(&mut self, now: Instant, min_rtt: Option<Duration>) -> RateSample {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let Some((stamp, sent_at)) = self.newest.take() else { return RateSample::default() };
        self.first_sent_at = sent_at;
        let interval = sent_at.since(stamp.first_sent_at).max(now.since(stamp.delivered_at));
        let valid = min_rtt.is_none_or(|min| interval >= min);
        RateSample {
            delivered: Bytes(self.delivered - stamp.delivered),
            interval: if valid { interval.max(LEAST_INTERVAL) } else { Duration::ZERO },
            prior_delivered: Bytes(stamp.delivered),
            lost: self.lost_since(stamp),
            tx_in_flight: Bytes(u64::from(stamp.in_flight)),
            app_limited: stamp.app_limited,
        }
    }
    /// Bytes delivered since the start.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Rate;

    #[test]
    fn a_sample_spans_the_flight_of_the_newest_segment() {
        let mut sampler = RateSampler::default();
        let ms = Instant::from_millis;
        let first = sampler.on_send(0, 1000);
        let second = sampler.on_send(1000, 1000);
        sampler.on_lost(500);
        sampler.on_delivered(ms(100), 1000, first, ms(0));
        let sample = sampler.take(ms(100), None);
        assert_eq!((sample.delivered, sample.interval), (Bytes(1000), Duration::from_millis(100)));
        sampler.on_delivered(ms(110), 1000, second, ms(10));
        let sample = sampler.take(ms(110), None);
        assert_eq!(
            (sample.delivered, sample.lost, sample.tx_in_flight),
            (Bytes(2000), Bytes(500), Bytes(2000))
        );
        assert_eq!(sample.rate(), Some(Rate::of(Bytes(2000), Duration::from_millis(110))));
    }

    #[test]
    fn a_path_without_delay_has_a_rate() {
        let mut sampler = RateSampler::default();
        let stamp = sampler.on_send(0, 1000);
        sampler.on_delivered(Instant::ZERO, 1000, stamp, Instant::ZERO);
        let sample = sampler.take(Instant::ZERO, Some(Duration::ZERO));
        assert_eq!(sample.rate(), Some(Rate(8_000_000_000)));
    }

    #[test]
    fn a_sample_shorter_than_a_round_trip_has_no_rate() {
        let mut sampler = RateSampler::default();
        let stamp = sampler.on_send(0, 1000);
        sampler.on_delivered(Instant::from_millis(5), 1000, stamp, Instant::ZERO);
        assert_eq!(sampler.take(Instant::from_millis(5), Some(Duration::from_millis(6))).rate(), None);
    }
}
