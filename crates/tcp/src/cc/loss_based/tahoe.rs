//! Tahoe (Jacobson, 1988), for teaching: growth as Reno; after every loss the window is one segment, ssthresh
//! is half the window, and all unacknowledged data is sent again from the loss on.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::{CwndUnit, Window};
use paceline_net::{Bytes, Instant};

/// Tahoe.
#[derive(Clone, Debug)]
pub struct Tahoe {
    window: Window,
}

impl Tahoe {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(unit: CwndUnit, mss: u32, initial: u32) -> Self {
        Self { window: Window::counting(unit, mss, initial) }
    }
}

impl CongestionControl for Tahoe {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if sample.advanced && sample.cwnd_limited {
            self.window.grow(sample.acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, _in_flight: Bytes) {
        let event = match event {
            CongestionEvent::FastRecovery => CongestionEvent::Timeout,
            CongestionEvent::RecoveryEnd => return,
            other => other,
        };
        self.window.react(event, self.window.half(), Bytes::ZERO);
    }
    fn on_idle(&mut self, _now: Instant, cwnd: Bytes) {
        self.window.shrink(cwnd);
    }
    fn cwnd(&self) -> Bytes {
        self.window.bytes()
    }
    fn ssthresh(&self) -> Bytes {
        self.window.ssthresh_bytes()
    }
    fn restarts_on_loss(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_every_loss_the_window_is_one_segment_and_ssthresh_half_the_window() {
        for event in [CongestionEvent::FastRecovery, CongestionEvent::Timeout] {
            let mut tahoe = Tahoe::new(CwndUnit::Segments, 1000, 40);
            tahoe.on_congestion(Instant::ZERO, event, Bytes(30_000));
            assert_eq!((tahoe.cwnd(), tahoe.ssthresh()), (Bytes(1000), Bytes(20_000)));
            let ack =
                AckSample { acked: Bytes(1000), advanced: true, cwnd_limited: true, ..Default::default() };
            for _ in 0..19 {
                tahoe.on_ack(Instant::ZERO, &ack); // slow start
            }
            assert_eq!(tahoe.cwnd(), Bytes(20_000));
            for _ in 0..20 {
                tahoe.on_ack(Instant::ZERO, &ack); // one segment per window
            }
            assert_eq!(tahoe.cwnd(), Bytes(21_000));
        }
    }
}
