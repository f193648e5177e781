//! Round-trip time estimation and the retransmission timeout (RFC 6298), to the letter or as Linux does it
//! (`tcp_rtt_estimator`).
//!
//! In Linux, the variance is the largest mean deviation of a round trip, decays by a quarter per round trip,
//! and is at least the minimum timeout, so that the timeout is at least `srtt + min_rto`. A decrease of the
//! RTT raises the deviation by an eighth only.

use crate::config::EndpointConfig;
use crate::options::RtoStyle;
use paceline_net::Duration;

/// Largest exponent of the backoff: with it the timeout exceeds [`MAX_RTO`] for every base of 2 ms and more.
/// Chosen: it keeps the shift in range.
const MAX_BACKOFF: u32 = 16;

/// Clock granularity G of RFC 6298 §2, in nanoseconds. Chosen: one tick of the timestamp clock, 1 ms.
const GRANULARITY_NS: i64 = 1_000_000;
/// Timeout of data before the first sample, if the SYN was lost (RFC 6298 §5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// Largest timeout, backoff included (Linux `TCP_RTO_MAX`; at least 60 s by RFC 6298 §2.5).
pub(crate) const MAX_RTO: Duration = Duration::from_secs(120);

/// Estimator of one connection; times inside are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    style: RtoStyle,
    min_rto: i64,
    initial: Duration,
    srtt: Option<i64>,
    /// RTTVAR (Linux `mdev`, times four there).
    deviation: i64,
    /// Four times the largest deviation of the current round trip (Linux `mdev_max`).
    deviation_max: i64,
    /// The variance term of the timeout (Linux `rttvar`).
    variance: i64,
    /// End of the current round trip, as an offset.
    round_end: u64,
    /// Number of times that the timeout is doubled.
    backoff: u32,
    min_rtt: Option<Duration>,
}

impl RttEstimator {
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            style: config.rto_style,
            min_rto: config.min_rto.as_nanos() as i64,
            initial: config.initial_rto,
            srtt: None,
            deviation: 0,
            deviation_max: 0,
            variance: 0,
            round_end: 0,
            backoff: 0,
            min_rtt: None,
        }
    }
    /// A sample of a segment that was sent once. Ends the backoff (RFC 6298 §5).
    pub fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.on_coarse_sample(rtt, snd_una, snd_nxt);
    }
    /// A sample by the timestamps option, whose clock is too coarse for the minimum.
    pub fn on_coarse_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) {
        self.backoff = 0;
        let sample = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX / 16).max(1);
        let Some(srtt) = self.srtt else {
            self.srtt = Some(sample);
            self.deviation = sample / 2;
            self.variance = 4 * self.deviation;
            if self.style == RtoStyle::Linux {
                self.variance = self.variance.max(self.min_rto);
            }
            self.deviation_max = self.variance;
            self.round_end = snd_nxt;
            return;
        };
        let error = sample - srtt;
        self.srtt = Some(srtt + error / 8);
        let mut change = error.abs() - self.deviation;
        if self.style == RtoStyle::Rfc6298 {
            self.deviation += change / 4;
            self.variance = 4 * self.deviation;
            return;
        }
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.deviation += change / 4;
        if 4 * self.deviation > self.deviation_max {
            self.deviation_max = 4 * self.deviation;
            self.variance = self.variance.max(self.deviation_max);
        }
        if snd_una > self.round_end {
            self.variance -= (self.variance - self.deviation_max).max(0) / 4;
            self.round_end = snd_nxt;
            self.deviation_max = self.min_rto;
        }
    }
    /// The SYN was retransmitted, and the handshake gave no sample.
    pub fn on_lost_syn(&mut self) {
        self.initial = self.initial.max(RTO_AFTER_LOST_SYN);
    }
    /// The timer expired: doubles the timeout (RFC 6298 §5.5).
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }
    /// Whether no sample has followed the last timeout.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }
    /// The timeout in force.
    pub fn rto(&self) -> Duration {
        let base = match (self.srtt, self.style) {
            (Some(srtt), RtoStyle::Linux) => Duration::from_nanos((srtt + self.variance) as u64),
            (Some(srtt), RtoStyle::Rfc6298) => {
                Duration::from_nanos((srtt + self.variance.max(GRANULARITY_NS)).max(self.min_rto) as u64)
            }
            (None, _) => self.initial,
        };
        (base * (1 << self.backoff)).min(MAX_RTO)
    }
    /// The timeout before the first sample.
    pub fn initial(&self) -> Duration {
        self.initial
    }
    /// The timeout was spurious: ends the backoff without a sample.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt.map(|srtt| Duration::from_nanos(srtt as u64))
    }
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn estimator(rto_style: RtoStyle, min_rto: u64) -> RttEstimator {
        let address = "198.18.0.1:80".parse().unwrap();
        let config = EndpointConfig::new(address, address);
        RttEstimator::new(&EndpointConfig { rto_style, min_rto: MS(min_rto), ..config })
    }
    fn linux(min_rto: u64) -> RttEstimator {
        estimator(RtoStyle::Linux, min_rto)
    }

    #[test]
    fn rfc_6298_applies_the_minimum_to_the_whole_timeout() {
        let mut rtt = estimator(RtoStyle::Rfc6298, 1000);
        rtt.on_sample(MS(100), 0, 10); // 100 + 4 * 50
        assert_eq!(rtt.rto(), MS(1000));
        let mut rtt = estimator(RtoStyle::Rfc6298, 1);
        rtt.on_sample(MS(100), 0, 10);
        assert_eq!(rtt.rto(), MS(300));
        rtt.on_sample(MS(20), 5, 10);
        // RTTVAR 50 + (80 - 50)/4 = 57.5; SRTT 100 - 80/8 = 90.
        assert_eq!(rtt.rto(), MS(320));
        for round in 0..100 {
            rtt.on_sample(MS(90), round, 10);
        }
        assert_eq!(rtt.rto(), MS(91)); // G
    }

    #[test]
    fn the_first_sample_gives_three_times_the_rtt_or_rtt_plus_the_minimum() {
        let mut rtt = linux(200);
        assert_eq!(rtt.rto(), MS(1000));
        rtt.on_sample(MS(300), 0, 10);
        assert_eq!(rtt.rto(), MS(900));
        let mut rtt = linux(200);
        rtt.on_sample(MS(40), 0, 10);
        assert_eq!(rtt.rto(), MS(240));
    }

    #[test]
    fn a_steady_rtt_brings_the_timeout_down_to_rtt_plus_the_minimum() {
        let mut rtt = linux(200);
        for round in 0..200 {
            rtt.on_sample(MS(400), round * 10 + 1, round * 10 + 10);
        }
        assert_eq!(rtt.srtt(), Some(MS(400)));
        assert!(rtt.rto() < MS(602) && rtt.rto() >= MS(600), "{:?}", rtt.rto());
    }

    #[test]
    fn smoothing_uses_the_gains_one_eighth_and_one_quarter() {
        let mut rtt = linux(1);
        rtt.on_sample(MS(100), 0, 10);
        rtt.on_sample(MS(180), 5, 10); // same round trip
        assert_eq!(rtt.srtt(), Some(MS(110)));
        // Deviation 50 + (80 - 50)/4 = 57.5 ms, four of them on top of 110 ms.
        assert_eq!(rtt.rto(), MS(340));
        rtt.on_sample(MS(10), 6, 10);
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(97_500)));
        // Of a decrease by 100 ms an eighth of the excess counts: 57.5 + (100 - 57.5)/8/4 = 58.828125 ms.
        assert_eq!(rtt.rto(), Duration::from_nanos(97_500_000 + 4 * 58_828_125));
        assert_eq!(rtt.min_rtt(), Some(MS(10)));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rtt = linux(200);
        rtt.on_sample(MS(100), 0, 10);
        assert_eq!(rtt.rto(), MS(300));
        rtt.on_timeout();
        rtt.on_timeout();
        assert_eq!(rtt.rto(), MS(1200));
        for _ in 0..20 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.rto(), MAX_RTO);
        rtt.on_sample(MS(100), 5, 10);
        assert!(rtt.rto() <= MS(300));
    }
}
