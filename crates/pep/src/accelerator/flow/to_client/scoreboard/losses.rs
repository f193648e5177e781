//! Bytes found lost since the last ACK, by their likely cause.

use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::flow::to_client::scoreboard::sent::{PAST_EDGE, Sent};
use paceline_net::Instant;

/// Consecutive lost bytes that make a run. An outage of a radio loses all segments sent meanwhile; noise and
/// full queues let some through in between. Chosen: ten segments of 1460 bytes.
const MIN_RUN_BYTES: u32 = 14_600;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Losses {
    /// Bytes that were inside the client's window when they were sent, and bytes past it.
    within: u32,
    beyond: u32,
    /// Bytes of `within` in runs.
    in_runs: u32,
    /// Bytes of the current run, and its end.
    run: u32,
    run_end: u64,
    /// When the first and the last segment of `within` was sent.
    sent: Option<(Instant, Instant)>,
}

impl Losses {
    pub fn on_lost(&mut self, record: &Sent) {
        let len = record.len;
        if record.is(PAST_EDGE) {
            self.beyond += len;
            return;
        }
        self.within += len;
        let (first, last) = self.sent.unwrap_or((record.at, record.at));
        self.sent = Some((first.min(record.at), last.max(record.at)));
        let before = if record.off == self.run_end { self.run } else { 0 };
        (self.run, self.run_end) = (before + len, record.end());
        if before >= MIN_RUN_BYTES {
            self.in_runs += len;
        } else if self.run >= MIN_RUN_BYTES {
            self.in_runs += self.run;
        }
    }
    /// Bytes are missing whose records are not known.
    pub fn on_missing(&mut self, bytes: u64) {
        self.within += u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    /// Moves the bytes found lost since the last call to `delivery`.
    pub fn take(&mut self, delivery: &mut Delivery) {
        delivery.lost = u64::from(std::mem::take(&mut self.within));
        delivery.lost_beyond_window = u64::from(std::mem::take(&mut self.beyond));
        delivery.lost_in_runs = u64::from(std::mem::take(&mut self.in_runs));
        delivery.lost_sent = self.sent.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(losses: &mut Losses, offs: impl Iterator<Item = u64>, state: u8) -> (u64, u64, u64) {
        for off in offs {
            losses.on_lost(&Sent { off: 1000 * off, at: Instant::ZERO, len: 1000, gap_ms: 0, state });
        }
        let mut delivery = Delivery::default();
        losses.take(&mut delivery);
        (delivery.lost, delivery.lost_beyond_window, delivery.lost_in_runs)
    }

    #[test]
    fn a_long_run_counts_from_its_start() {
        let mut losses = Losses::default();
        assert_eq!(lost(&mut losses, 0..14, 0), (14_000, 0, 0));
        assert_eq!(lost(&mut losses, 14..16, 0), (2_000, 0, 16_000), "the run continues at the next ACK");
        assert_eq!(lost(&mut losses, 16..17, 0), (1_000, 0, 1_000));
        assert_eq!(lost(&mut losses, 18..30, 0), (12_000, 0, 0), "one arrived in between");
    }

    #[test]
    fn scattered_losses_and_losses_past_the_window_are_no_run() {
        let mut losses = Losses::default();
        assert_eq!(lost(&mut losses, (0..60).step_by(2), 0), (30_000, 0, 0));
        assert_eq!(lost(&mut losses, 60..120, PAST_EDGE), (0, 60_000, 0));
    }
}
