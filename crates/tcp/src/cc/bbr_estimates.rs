//! Two estimates of BBR version 1 as in Linux `tcp_bbr`: the rate of a policer, when losses show a token bucket, and
//! by how much ACKs come in bursts.

use super::AckSample;
use super::bbr::UNIT;
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Round trips of an interval, at least; four times as many at most.
const INTERVAL_ROUNDS: u64 = 4;
/// Share of loss that makes an interval suspicious, in 1/256.
const LOSS_SHARE: u64 = 50;
/// Two intervals agree if their rates differ by this share, or by this many bit/s.
const RATE_SHARE: u64 = 8;
const RATE_DIFFERENCE: u64 = 4000;
/// Round trips for which the policer's rate is used.
const USE_ROUNDS: u64 = 48;

/// Detector of a policer: two intervals between losses with the same rate and a fifth lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    in_use: bool,
    /// Rate of the last interval, in bit/s; zero before one.
    rate: u64,
    rounds: u64,
    since: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The policer's rate in bit/s, while it is in use.
    pub fn rate(&self) -> Option<u64> {
        self.in_use.then_some(self.rate)
    }
    fn begin(&mut self, now: Instant, sample: &AckSample) {
        (self.since, self.rounds) = (now, 0);
        (self.delivered, self.lost) = (sample.delivered.0, sample.lost_total.0);
    }
    /// Takes an acknowledgment in; true if the rate was in use long enough and is forgotten.
    pub fn on_ack(
        &mut self,
        now: Instant,
        sample: &AckSample,
        losses: bool,
        round_start: bool,
        probing: bool,
    ) -> bool {
        if self.in_use {
            self.rounds += u64::from(probing && round_start);
            let over = probing && round_start && self.rounds >= USE_ROUNDS;
            if over {
                *self = Self::default();
            }
            return over;
        }
        if !self.sampling {
            if !losses {
                return false;
            }
            self.sampling = true;
            self.begin(now, sample);
        }
        self.rounds += u64::from(round_start);
        if sample.rate.app_limited || self.rounds > 4 * INTERVAL_ROUNDS {
            *self = Self::default();
        } else if self.rounds >= INTERVAL_ROUNDS && losses {
            self.end_interval(now, sample);
        }
        false
    }
    fn end_interval(&mut self, now: Instant, sample: &AckSample) {
        let lost = sample.lost_total.0 - self.lost;
        let delivered = sample.delivered.0 - self.delivered;
        let span = now.since(self.since);
        let few = u128::from(lost) * u128::from(UNIT) < u128::from(delivered) * u128::from(LOSS_SHARE);
        if delivered == 0 || few || span < Duration::from_millis(1) {
            return;
        }
        let rate = Rate::of(Bytes(delivered), span).0;
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0 && (difference <= self.rate / RATE_SHARE || difference <= RATE_DIFFERENCE) {
            self.rate = rate / 2 + self.rate / 2;
            (self.in_use, self.rounds) = (true, 0);
            return;
        }
        self.rate = rate;
        self.begin(now, sample);
    }
}

/// Round trips of each of the two halves of the maximum's window.
pub(super) const AGGREGATION_ROUNDS: u32 = 5;
/// An epoch restarts at this many bytes, so that it does not average for ever (2^20 segments in Linux).
const EPOCH_BYTES: u64 = 1 << 30;
/// At most this time's worth of bandwidth is allowed for aggregation.
const ALLOWANCE: Duration = Duration::from_millis(100);

/// How much more is acknowledged at a time than the bandwidth explains: the maximum of five to ten round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct AckAggregation {
    epoch: Instant,
    acked: u64,
    extra: [u64; 2],
    half: usize,
    rounds: u32,
}

impl AckAggregation {
    /// Begins a new epoch after a pause.
    pub fn restart(&mut self, now: Instant) {
        (self.epoch, self.acked) = (now, 0);
    }
    /// `rounds` tells whether a round begins, and how many of them each half of the window lasts.
    pub fn on_ack(&mut self, now: Instant, acked: Bytes, bw: u64, cwnd: u64, rounds: (bool, u32)) {
        if acked == Bytes::ZERO {
            return;
        }
        if rounds.0 {
            self.rounds += 1;
            if self.rounds >= rounds.1 {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.extra[self.half] = 0;
            }
        }
        let mut expected = bytes_in(bw, now.since(self.epoch));
        if self.acked <= expected || self.acked + acked.0 >= EPOCH_BYTES {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked.0;
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        self.extra[self.half] = self.extra[self.half].max(extra);
    }
    /// Bytes that the window may hold for it.
    pub fn allowance(&self, bw: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(bytes_in(bw, ALLOWANCE))
    }
}

/// Bytes at `bw` bit/s over `span`.
pub(super) fn bytes_in(bw: u64, span: Duration) -> u64 {
    let bytes = u128::from(bw) * u128::from(span.as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_train_of_acks_is_what_exceeds_the_bandwidth() {
        // 8 Mb/s, 1000 bytes per ms, acknowledged in trains of 20 every 20 ms.
        let mut aggregation = AckAggregation::default();
        for i in 0..400 {
            aggregation.on_ack(MS(i / 20 * 20 + 20), Bytes(1000), 8_000_000, 1_000_000, (i % 40 == 0, 5));
        }
        assert_eq!(aggregation.allowance(8_000_000), 20_000);
        assert_eq!(aggregation.allowance(800_000), 10_000); // 100 ms of a tenth
        // Without trains one ACK is left after ten rounds.
        for i in 0..400 {
            aggregation.on_ack(MS(420 + i), Bytes(1000), 8_000_000, 1_000_000, (i % 40 == 0, 5));
        }
        assert!(aggregation.allowance(8_000_000) <= 2000, "{aggregation:?}");
    }

    /// Rounds of 100 ms with `delivered` bytes and `lost` bytes each.
    fn police(policer: &mut Policer, rounds: std::ops::Range<u64>, delivered: u64, lost: u64) -> u64 {
        let mut expired = 0;
        for round in rounds {
            let sample = AckSample {
                delivered: Bytes(round * delivered),
                lost_total: Bytes(round * lost),
                ..Default::default()
            };
            expired += u64::from(policer.on_ack(MS(100 * round), &sample, lost > 0, true, true));
        }
        expired
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        // 100,000 bytes per 100 ms delivered and a quarter as much lost: 8 Mb/s.
        assert_eq!(police(&mut policer, 0..8, 100_000, 25_000), 0);
        assert_eq!(policer.rate(), Some(8_000_000));
        assert_eq!(police(&mut policer, 8..55, 100_000, 25_000), 0);
        assert_eq!(police(&mut policer, 55..56, 100_000, 25_000), 1);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_are_no_policer() {
        let mut policer = Policer::default();
        police(&mut policer, 0..200, 100_000, 19_000); // below 50/256
        assert_eq!(policer.rate(), None);
    }
}
