//! What was found lost and has not been told yet, by what it may tell of.

use crate::accelerator::flow::to_client::delivery::Delivery;
use crate::accelerator::flow::to_client::sent::{PAST_EDGE, Sent};

/// A silence of the radio loses what was sent meanwhile, one segment after the other: so many bytes at least. Noise and full
/// queues mostly let some through in between.
const LONG_RUN: u32 = 14_600;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Losses {
    /// Bytes within the client's edge as it was when they were sent, and past it.
    within: u32,
    beyond: u32,
    /// Of the first, those in long runs.
    in_runs: u32,
    /// Bytes of the run at hand, and where it ends.
    run: u32,
    run_end: u64,
}

impl Losses {
    pub fn on_lost(&mut self, record: &Sent) {
        let len = record.len;
        if record.is(PAST_EDGE) {
            self.beyond += len;
            return;
        }
        self.within += len;
        let before = if record.off == self.run_end { self.run } else { 0 };
        (self.run, self.run_end) = (before + len, record.end());
        if before >= LONG_RUN {
            self.in_runs += len;
        } else if self.run >= LONG_RUN {
            self.in_runs += self.run;
        }
    }
    /// So much is missing, no one knows where.
    pub fn on_missing(&mut self, bytes: u64) {
        self.within += u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    /// What was found lost since the last call.
    pub fn take(&mut self, delivery: &mut Delivery) {
        delivery.lost = u64::from(std::mem::take(&mut self.within));
        delivery.lost_beyond_window = u64::from(std::mem::take(&mut self.beyond));
        delivery.lost_in_runs = u64::from(std::mem::take(&mut self.in_runs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Instant;

    fn lost(losses: &mut Losses, offs: impl Iterator<Item = u64>, state: u8) -> (u64, u64, u64) {
        for off in offs {
            losses.on_lost(&Sent { off: 1000 * off, at: Instant::ZERO, len: 1000, gap_ms: 0, state });
        }
        let mut delivery = Delivery::default();
        losses.take(&mut delivery);
        (delivery.lost, delivery.lost_beyond_window, delivery.lost_in_runs)
    }

    #[test]
    fn a_run_counts_from_its_beginning_once_it_is_long() {
        let mut losses = Losses::default();
        assert_eq!(lost(&mut losses, 0..14, 0), (14_000, 0, 0));
        assert_eq!(
            lost(&mut losses, 14..16, 0),
            (2_000, 0, 16_000),
            "and the next acknowledgment goes on with it"
        );
        assert_eq!(lost(&mut losses, 16..17, 0), (1_000, 0, 1_000));
        assert_eq!(lost(&mut losses, 18..30, 0), (12_000, 0, 0), "one arrived in between");
    }

    #[test]
    fn losses_here_and_there_and_past_the_edge_are_no_run() {
        let mut losses = Losses::default();
        assert_eq!(lost(&mut losses, (0..60).step_by(2), 0), (30_000, 0, 0));
        assert_eq!(lost(&mut losses, 60..120, PAST_EDGE), (0, 60_000, 0));
    }
}
