//! The window that the loss-based variants share: whole segments, slow start, additive increase, the reaction to
//! a reduction and its undoing, with the integer arithmetic of Linux.

use paceline_net::Bytes;

/// A threshold that was never set.
pub(super) const INFINITE: u32 = u32::MAX >> 1;

/// Congestion window and threshold in segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    mss: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Acknowledged segments counted towards the next increase by one.
    count: u32,
    /// Acknowledged bytes that do not make up a segment yet.
    partial: u64,
    prior_cwnd: u32,
    prior_ssthresh: u32,
}

impl Window {
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            mss: mss.max(1),
            cwnd: initial.max(1),
            ssthresh: INFINITE,
            count: 0,
            partial: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
        }
    }
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.cwnd) * u64::from(self.mss))
    }
    pub fn ssthresh_bytes(&self) -> Bytes {
        if self.ssthresh >= INFINITE {
            return Bytes(u64::MAX);
        }
        Bytes(u64::from(self.ssthresh) * u64::from(self.mss))
    }
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Whole segments acknowledged, keeping the remainder for the next time.
    pub fn segments(&mut self, acked: Bytes) -> u32 {
        let total = self.partial + acked.0;
        self.partial = total % u64::from(self.mss);
        u32::try_from(total / u64::from(self.mss)).unwrap_or(u32::MAX)
    }
    /// Slow start up to the threshold; returns the acknowledged segments that are left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        rest
    }
    /// One segment more for each `every` acknowledged.
    pub fn increase(&mut self, every: u32, acked: u32) {
        // A rate that has just risen must not release the whole credit of the slower one.
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= every {
            self.cwnd += self.count / every;
            self.count %= every;
        }
        self.cwnd = self.cwnd.min(INFINITE - 1);
    }
    /// Enters a fast recovery: the window falls to the threshold when it ends.
    pub fn reduce(&mut self, ssthresh: u32) {
        self.save();
        self.ssthresh = ssthresh;
        self.count = 0;
    }
    /// Ends a fast recovery.
    pub fn end_recovery(&mut self) {
        self.cwnd = self.ssthresh;
    }
    /// Starts again after a timeout with `in_flight` still in the network; `None` keeps the threshold.
    pub fn restart(&mut self, ssthresh: Option<u32>, in_flight: Bytes) {
        if let Some(ssthresh) = ssthresh {
            self.save();
            self.ssthresh = ssthresh;
        }
        self.cwnd = (in_flight.0 / u64::from(self.mss)) as u32 + 1;
        self.count = 0;
    }
    /// Falls to `cwnd` because it was not used.
    pub fn shrink(&mut self, cwnd: Bytes) {
        if !self.in_slow_start() {
            self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
        }
        self.cwnd = self.cwnd.min((cwnd.0 / u64::from(self.mss)) as u32).max(1);
        self.count = 0;
    }
    /// Takes the last reduction back.
    pub fn undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.ssthresh = self.ssthresh.max(self.prior_ssthresh);
    }
    fn save(&mut self) {
        self.prior_cwnd = self.cwnd;
        self.prior_ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_rest() {
        let mut window = Window::new(1000, 10);
        window.ssthresh = 12;
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.cwnd, 12);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn increase_needs_its_count_and_bytes_make_segments() {
        let mut window = Window::new(1000, 10);
        window.increase(10, 9);
        assert_eq!(window.cwnd, 10);
        window.increase(10, 1);
        assert_eq!(window.cwnd, 11);
        assert_eq!((window.segments(Bytes(1500)), window.segments(Bytes(600))), (1, 1));
    }

    #[test]
    fn an_unused_window_shrinks_and_the_threshold_remembers_it() {
        let mut window = Window::new(1000, 40);
        window.shrink(Bytes(20_000));
        assert_eq!((window.cwnd, window.ssthresh), (20, INFINITE));
        window.ssthresh = 10;
        window.shrink(Bytes(12_000));
        assert_eq!((window.cwnd, window.ssthresh), (12, 15));
    }

    #[test]
    fn undo_restores_window_and_threshold() {
        let mut window = Window::new(1000, 40);
        window.restart(Some(20), Bytes(0));
        assert_eq!((window.cwnd, window.ssthresh), (1, 20));
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (40, INFINITE));
    }
}
