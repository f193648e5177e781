//! The extra window for ACKs that come in bursts, as Linux `tcp_bbr` estimates it (`bbr_update_ack_aggregation`).

use paceline_net::{Bytes, Duration, Instant};

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
}
