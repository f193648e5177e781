//! Proportional rate reduction: the bytes that may be sent for each ACK of a recovery (RFC 6937, RFC 9937).
//!
//! The proportional part is rounded up to whole segments, as Linux counts them, so that a recovery begins
//! with a segment.

use crate::options::PrrMode;

/// The state of one reduction.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct Prr {
    mode: PrrMode,
    /// RecoverFS: the flight (RFC 6937) or window (Linux) that is reduced. All sizes are in bytes.
    recover_fs: u64,
    ssthresh: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    sent: u64,
    window: u64,
}

impl Prr {
    /// A reduction from `recover_fs` to `ssthresh`, in bytes.
    pub fn new(mode: PrrMode, recover_fs: u64, ssthresh: u64) -> Self {
        Self { mode, recover_fs: recover_fs.max(1), ssthresh, delivered: 0, sent: 0, window: ssthresh }
    }
    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.window
    }
    /// `len` bytes were sent.
    pub fn on_sent(&mut self, len: u64) {
        self.sent += len;
    }
    /// An acknowledgment delivered `delivered` bytes and leaves `in_flight`. `safe` if SND.UNA advanced and
    /// no further loss was found (RFC 9937, SafeACK).
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u64, safe: bool) {
        if self.mode == PrrMode::Off || delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let balance = self.delivered.saturating_sub(self.sent);
        let mut allowed = if in_flight > self.ssthresh {
            let due = (u128::from(self.ssthresh) * u128::from(self.delivered))
                .div_ceil(u128::from(self.recover_fs));
            (due as u64).div_ceil(mss).saturating_mul(mss).saturating_sub(self.sent)
        } else {
            let limit = match self.mode {
                PrrMode::Rfc6937Crb => balance,
                PrrMode::Rfc6937Ssrb => balance.max(delivered) + mss,
                PrrMode::Off | PrrMode::Rfc9937 => balance.max(delivered) + if safe { mss } else { 0 },
            };
            limit.min(self.ssthresh - in_flight)
        };
        if self.sent == 0 {
            allowed = allowed.max(mss); // the first retransmission leaves at once
        }
        self.window = (in_flight + allowed).max(mss); // a smaller window would block the sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// The examples of RFC 6937 §3.1: of 20 segments the first `lost` are lost. Two new segments were sent
    /// for the first two SACKs, so that 22 are outstanding at the third, and half of them is ssthresh.
    /// Returns, from the third SACK on, the pipe and the number of segments sent.
    fn example(mode: PrrMode, lost: u64) -> (Vec<u64>, Vec<u64>) {
        let (outstanding, acks) = (22, 20 - lost - 2);
        let (mut resent, mut new) = (0, 0);
        let mut prr = Prr::new(mode, outstanding * MSS, outstanding * MSS / 2);
        let (mut pipes, mut sent) = (Vec::new(), Vec::new());
        for sacked in 3..3 + acks {
            let pipe = |resent: u64, new: u64| outstanding + new - sacked - lost + resent;
            pipes.push(pipe(resent, new));
            prr.on_ack(MSS, pipe(resent, new) * MSS, MSS, false);
            let mut count = 0;
            // The first retransmission leaves whatever the window is.
            while resent == 0 || (pipe(resent, new) + 1) * MSS <= prr.window() {
                if resent < lost {
                    resent += 1
                } else {
                    new += 1
                }
                prr.on_sent(MSS);
                count += 1;
            }
            sent.push(count);
        }
        (pipes, sent)
    }

    #[test]
    fn one_loss_in_rfc_6937_section_3_1() {
        let (pipes, sent) = example(PrrMode::Off, 1);
        assert_eq!(pipes, [18, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10, 10, 10, 10, 10, 10]);
        assert_eq!(sent, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
        for mode in [PrrMode::Rfc6937Crb, PrrMode::Rfc6937Ssrb] {
            let (pipes, sent) = example(mode, 1);
            // One for two, none at ssthresh itself, and one each at the last two (`s`).
            assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1], "{mode:?}");
            // The RFC prints 18 three times and all later values one ACK late; these follow from its segments
            // sent.
            assert_eq!(
                pipes,
                [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10],
                "{mode:?}"
            );
        }
    }

    #[test]
    fn fifteen_losses_in_rfc_6937_section_3_1() {
        assert_eq!(example(PrrMode::Off, 15), (vec![4, 10, 10], vec![7, 1, 1]));
        assert_eq!(example(PrrMode::Rfc6937Crb, 15), (vec![4, 4, 4], vec![1, 1, 1]));
        assert_eq!(example(PrrMode::Rfc6937Ssrb, 15), (vec![4, 5, 6], vec![2, 2, 2]));
        // RFC 9937 is conservative while ACKs do not advance.
        assert_eq!(example(PrrMode::Rfc9937, 15), (vec![4, 4, 4], vec![1, 1, 1]));
    }

    #[test]
    fn above_ssthresh_seven_segments_leave_for_ten_delivered() {
        let mut prr = Prr::new(PrrMode::Rfc9937, 100_000, 70_000);
        let (mut in_flight, mut sent) = (99_000, 0);
        for _ in 0..60 {
            in_flight -= 1000;
            prr.on_ack(1000, in_flight, 1000, false);
            while in_flight + 1000 <= prr.window() {
                in_flight += 1000;
                sent += 1000;
                prr.on_sent(1000);
            }
        }
        // 0.7 * 60.
        assert_eq!(sent, 42_000);
    }

    #[test]
    fn the_first_retransmission_leaves_at_once() {
        let mut prr = Prr::new(PrrMode::Rfc9937, 100_000, 50_000);
        prr.on_ack(1000, 97_000, 1000, false);
        assert_eq!(prr.window(), 98_000);
    }

    #[test]
    fn below_ssthresh_the_window_grows_as_in_slow_start_only_while_no_more_is_lost() {
        let mut prr = Prr::new(PrrMode::Rfc9937, 100_000, 70_000);
        prr.on_sent(1000);
        prr.on_ack(1000, 20_000, 1000, true);
        assert_eq!(prr.window(), 22_000);
        prr.on_sent(2000);
        prr.on_ack(1000, 20_000, 1000, false);
        assert_eq!(prr.window(), 21_000);
        prr.on_ack(500_000, 60_000, 1000, true);
        assert_eq!(prr.window(), 70_000); // never above the threshold
    }

    #[test]
    fn with_prr_off_the_window_is_ssthresh() {
        let mut prr = Prr::new(PrrMode::Off, 20_000, 10_000);
        prr.on_ack(1000, 19_000, 1000, false);
        assert_eq!(prr.window(), 10_000);
    }
}
