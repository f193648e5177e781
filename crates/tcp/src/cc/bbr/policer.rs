//! Detection of a policer (a token bucket that drops) by BBR version 1, as Linux `tcp_bbr`
//! (`bbr_lt_bw_sampling`): two intervals between losses with the same delivery rate and enough loss.

use crate::cc::control::AckSample;
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Shortest interval in round trips (Linux `bbr_lt_intvl_min_rtts`); the longest one is four times as long.
const INTERVAL_ROUNDS: u64 = 4;
/// Smallest ratio of lost to delivered bytes in an interval, in 1/256 (Linux `bbr_lt_loss_thresh`).
const LOSS_RATIO: u64 = 50;
/// Scale of [`LOSS_RATIO`] (Linux `BBR_SCALE`, 2^8).
const LOSS_RATIO_SCALE: u64 = 256;
/// Two intervals agree if their rates differ by at most 1/8 (Linux `bbr_lt_bw_ratio`).
const RATE_RATIO_DIVISOR: u64 = 8;
/// Two intervals agree if their rates differ by at most this many bit/s (Linux `bbr_lt_bw_diff`, 4 kbit/s).
const RATE_DIFFERENCE_BPS: u64 = 4000;
/// Round trips for which the policer's rate is used (Linux `bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u64 = 48;

/// The detector of one connection.
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
    /// Processes an acknowledgment; true if the use of the rate has ended.
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
        let few =
            u128::from(lost) * u128::from(LOSS_RATIO_SCALE) < u128::from(delivered) * u128::from(LOSS_RATIO);
        if delivered == 0 || few || span < Duration::from_millis(1) {
            return;
        }
        let rate = Rate::of(Bytes(delivered), span).0;
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0
            && (difference <= self.rate / RATE_RATIO_DIVISOR || difference <= RATE_DIFFERENCE_BPS)
        {
            self.rate = rate / 2 + self.rate / 2;
            (self.in_use, self.rounds) = (true, 0);
            return;
        }
        self.rate = rate;
        self.begin(now, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    /// Round trips of 100 ms with `delivered` and `lost` bytes each; returns how often the use of the rate
    /// ended.
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
    fn two_lossy_intervals_of_one_rate_indicate_a_policer_for_48_round_trips() {
        let mut policer = Policer::default();
        // 100,000 bytes per 100 ms delivered and a quarter as much lost: 8 Mb/s.
        assert_eq!(police(&mut policer, 0..8, 100_000, 25_000), 0);
        assert_eq!(policer.rate(), Some(8_000_000));
        assert_eq!(police(&mut policer, 8..55, 100_000, 25_000), 0);
        assert_eq!(police(&mut policer, 55..56, 100_000, 25_000), 1);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_indicate_no_policer() {
        let mut policer = Policer::default();
        police(&mut policer, 0..200, 100_000, 19_000); // below 50/256
        assert_eq!(policer.rate(), None);
    }
}
