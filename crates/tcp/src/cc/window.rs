//! The congestion window that the loss-based variants share: slow start, additive increase, reduction and
//! undo. The unit is whole segments with the integer arithmetic of Linux, or bytes as in RFC 5681; one unit
//! is called a count.

use super::control::CongestionEvent;
use paceline_net::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of ssthresh before any reduction (Linux `TCP_INFINITE_SSTHRESH`).
pub(in crate::cc) const INFINITE: u32 = u32::MAX >> 1;

/// Unit of a congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum CwndUnit {
    /// Whole segments, as Linux and ns-3's TcpCubic.
    #[default]
    #[serde(rename = "segments")]
    Segments,
    /// Bytes, as RFC 5681, RFC 9438, BSD, Windows and INET.
    #[serde(rename = "bytes")]
    Bytes,
}

/// Congestion window and ssthresh, in counts: segments or bytes.
#[derive(Clone, Debug)]
pub(in crate::cc) struct Window {
    pub mss: u32,
    /// Counts of a full segment: 1, or its bytes.
    pub segment: u32,
    /// Bytes of one count.
    unit: u64,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Acknowledged counts towards the next increase by one (Linux `snd_cwnd_cnt`).
    count: u64,
    /// Acknowledged bytes below one count.
    partial: u64,
    prior_cwnd: u32,
    prior_ssthresh: u32,
}

impl Window {
    /// A window that counts segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self::counting(CwndUnit::Segments, mss, initial)
    }
    /// A window of `initial` segments of `mss` bytes.
    pub fn counting(unit: CwndUnit, mss: u32, initial: u32) -> Self {
        let mss = mss.max(1);
        let segment = if unit == CwndUnit::Bytes { mss } else { 1 };
        Self {
            mss,
            segment,
            unit: u64::from(mss / segment),
            cwnd: initial.max(1).saturating_mul(segment).min(INFINITE - 1),
            ssthresh: INFINITE,
            count: 0,
            partial: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
        }
    }
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.cwnd) * self.unit)
    }
    pub fn counts_bytes(&self) -> bool {
        self.segment > 1
    }
    pub fn ssthresh_bytes(&self) -> Bytes {
        if self.ssthresh >= INFINITE {
            return Bytes(u64::MAX);
        }
        Bytes(u64::from(self.ssthresh) * self.unit)
    }
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Whether no reduction has set ssthresh yet.
    pub fn is_initial(&self) -> bool {
        self.ssthresh >= INFINITE
    }
    /// Acknowledged bytes in whole counts; the remainder is kept for the next call.
    pub fn counts(&mut self, acked: Bytes) -> u32 {
        let total = self.partial + acked.0;
        self.partial = total % self.unit;
        u32::try_from(total / self.unit).unwrap_or(u32::MAX)
    }
    /// Growth of Reno by `acked` bytes: slow start up to ssthresh, then one segment per window.
    pub fn grow(&mut self, acked: Bytes) {
        let acked = self.after_slow_start(acked);
        if acked > 0 {
            self.increase(self.cwnd, acked);
        }
    }
    /// Slow start by `acked` bytes, as far as the window is in it; returns the counts that remain.
    pub fn after_slow_start(&mut self, acked: Bytes) -> u32 {
        let acked = self.counts(acked);
        if self.in_slow_start() { self.slow_start(acked) } else { acked }
    }
    /// Half the window, at least two segments: the ssthresh of Reno after a loss.
    pub fn half(&self) -> u32 {
        (self.cwnd / 2).max(2 * self.segment)
    }
    /// The fraction `count / scale` of the window, at least two segments.
    pub fn share(&self, count: u64, scale: u64) -> u32 {
        ((u64::from(self.cwnd) * count / scale) as u32).max(2 * self.segment)
    }
    /// Reacts to an event; `ssthresh` is the value for reductions.
    pub fn react(&mut self, event: CongestionEvent, ssthresh: u32, in_flight: Bytes) {
        match event {
            CongestionEvent::FastRecovery => self.reduce(ssthresh),
            CongestionEvent::Ecn => {
                self.reduce(ssthresh);
                self.end_recovery(); // without a loss there is no recovery that would end
            }
            CongestionEvent::RecoveryEnd => self.end_recovery(),
            CongestionEvent::Timeout => self.restart(Some(ssthresh), in_flight),
            CongestionEvent::RepeatedTimeout => self.restart(None, in_flight),
            CongestionEvent::Undo => self.undo(),
        }
    }
    /// Slow start up to ssthresh; returns the acknowledged counts that remain.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh).max(self.cwnd);
        let rest = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        rest
    }
    /// One segment more for each `every` counts acknowledged.
    pub fn increase(&mut self, every: u32, acked: u32) {
        let every = u64::from(every);
        // After `every` has become smaller, the credit collected before counts as one increase at most.
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += u64::from(acked) * u64::from(self.segment);
        if self.count >= every {
            let more = u32::try_from(self.count / every).unwrap_or(INFINITE);
            self.cwnd = self.cwnd.saturating_add(more);
            self.count %= every;
        }
        self.cwnd = self.cwnd.min(INFINITE - 1);
    }
    /// Adds up acknowledged counts; true when they amount to a window.
    pub fn count_window(&mut self, acked: u32) -> bool {
        let full = self.count >= u64::from(self.cwnd);
        self.count = if full { 0 } else { self.count + u64::from(acked) };
        full
    }
    /// Sets the window, within bounds.
    pub fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(u64::from(self.segment), u64::from(INFINITE) - 1) as u32;
    }
    /// Enters a fast recovery, at whose end the window becomes `ssthresh`.
    pub fn reduce(&mut self, ssthresh: u32) {
        self.save();
        self.ssthresh = ssthresh;
        self.count = 0;
    }
    /// Ends a fast recovery.
    pub fn end_recovery(&mut self) {
        self.cwnd = self.ssthresh;
    }
    /// Slow start after a timeout, from `in_flight` and one segment; `None` keeps ssthresh.
    pub fn restart(&mut self, ssthresh: Option<u32>, in_flight: Bytes) {
        if let Some(ssthresh) = ssthresh {
            self.save();
            self.ssthresh = ssthresh;
        }
        self.set((in_flight.0 / self.unit).saturating_add(u64::from(self.segment)));
        self.count = 0;
    }
    /// Reduces a window that was not used to `cwnd`.
    pub fn shrink(&mut self, cwnd: Bytes) {
        if !self.in_slow_start() {
            self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
        }
        self.set((cwnd.0 / self.unit).min(u64::from(self.cwnd)));
        self.count = 0;
    }
    /// Undoes the last reduction.
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
    fn slow_start_stops_at_ssthresh_and_returns_the_remainder() {
        let mut window = Window::new(1000, 10);
        window.ssthresh = 12;
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.cwnd, 12);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn an_increase_needs_its_number_of_acks_and_bytes_add_up_to_segments() {
        let mut window = Window::new(1000, 10);
        window.increase(10, 9);
        assert_eq!(window.cwnd, 10);
        window.increase(10, 1);
        assert_eq!(window.cwnd, 11);
        assert_eq!((window.counts(Bytes(1500)), window.counts(Bytes(600))), (1, 1));
    }

    #[test]
    fn a_window_in_bytes_grows_by_a_segment_per_window_and_is_halved_exactly() {
        let mut window = Window::counting(CwndUnit::Bytes, 1000, 11);
        (window.ssthresh, window.cwnd) = (window.half(), window.half());
        assert_eq!(window.bytes(), Bytes(5500));
        for _ in 0..11 {
            window.grow(Bytes(500));
        }
        // In continuous growth, the square of the window grows by 2 * 1000 * 5500.
        assert!((6422..6432).contains(&window.cwnd), "{}", window.cwnd);
        window.restart(Some(window.half()), Bytes(0));
        assert_eq!(window.bytes(), Bytes(1000));
    }

    #[test]
    fn an_unused_window_shrinks_and_ssthresh_keeps_three_quarters() {
        let mut window = Window::new(1000, 40);
        window.shrink(Bytes(20_000));
        assert_eq!((window.cwnd, window.ssthresh), (20, INFINITE));
        window.ssthresh = 10;
        window.shrink(Bytes(12_000));
        assert_eq!((window.cwnd, window.ssthresh), (12, 15));
    }

    #[test]
    fn undo_restores_window_and_ssthresh() {
        let mut window = Window::new(1000, 40);
        window.restart(Some(20), Bytes(0));
        assert_eq!((window.cwnd, window.ssthresh), (1, 20));
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (40, INFINITE));
    }
}
