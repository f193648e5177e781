//! The extra window for ACKs that come in bursts, as Linux `tcp_bbr` estimates it
//! (`bbr_update_ack_aggregation`).

use paceline_net::{Bytes, Duration, Instant};

/// Round trips in each half of the maximum's window (Linux `bbr_extra_acked_win_rtts`).
pub(super) const AGGREGATION_ROUNDS: u32 = 5;
/// Acknowledged bytes after which an epoch restarts. Chosen: about 2^20 segments of 1 KiB (Linux
/// `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_BYTES: u64 = 1 << 30;
/// The extra window is at most the bandwidth times this duration (Linux `bbr_extra_acked_max_us`).
const MAX_EXTRA: Duration = Duration::from_millis(100);

/// Bytes acknowledged in excess of the bandwidth, as the maximum over five to ten round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct AckAggregation {
    /// Start of the current epoch, and bytes acknowledged since.
    epoch: Instant,
    acked: u64,
    /// Largest excess in each half of the window, the index of the current half, and its age in round trips.
    extra: [u64; 2],
    half: usize,
    rounds: u32,
}

impl AckAggregation {
    /// Begins a new epoch, for example after an idle time.
    pub fn restart(&mut self, now: Instant) {
        (self.epoch, self.acked) = (now, 0);
    }
    /// `acked` bytes were acknowledged, with the bandwidth `bw` in bit/s and the window `cwnd` in bytes.
    /// `rounds` tells whether a round trip begins, and how many of them each half of the window lasts.
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
    /// The extra window in bytes, for the bandwidth `bw` in bit/s.
    pub fn allowance(&self, bw: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(bytes_in(bw, MAX_EXTRA))
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
    fn a_train_of_acks_exceeds_the_bandwidth_by_its_length() {
        // 8 Mb/s, 1000 bytes per ms, acknowledged in trains of 20 every 20 ms.
        let mut aggregation = AckAggregation::default();
        for i in 0..400 {
            aggregation.on_ack(MS(i / 20 * 20 + 20), Bytes(1000), 8_000_000, 1_000_000, (i % 40 == 0, 5));
        }
        assert_eq!(aggregation.allowance(8_000_000), 20_000);
        assert_eq!(aggregation.allowance(800_000), 10_000); // 100 ms of a tenth
        // Without trains, one ACK is left after ten round trips.
        for i in 0..400 {
            aggregation.on_ack(MS(420 + i), Bytes(1000), 8_000_000, 1_000_000, (i % 40 == 0, 5));
        }
        assert!(aggregation.allowance(8_000_000) <= 2000, "{aggregation:?}");
    }
}
