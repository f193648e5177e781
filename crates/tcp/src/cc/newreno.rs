//! Reno congestion control (RFC 5681): double per round trip up to the threshold, then one segment per round
//! trip; half on loss. Growth by bytes acknowledged (RFC 3465) without its limit, as Linux `reno`.

use super::window::Window;
use super::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Instant};

/// Reno.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
}

impl NewReno {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self { window: Window::new(mss, initial) }
    }
    fn half(&self) -> u32 {
        (self.window.cwnd / 2).max(2)
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if sample.in_recovery || !sample.advanced || !sample.cwnd_limited {
            return;
        }
        let mut acked = self.window.segments(sample.acked);
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.window.increase(self.window.cwnd, acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        match event {
            CongestionEvent::FastRecovery => self.window.reduce(self.half()),
            CongestionEvent::Ecn => {
                self.window.reduce(self.half());
                self.window.end_recovery(); // nothing was lost: no recovery will end it
            }
            CongestionEvent::RecoveryEnd => self.window.end_recovery(),
            CongestionEvent::Timeout => self.window.restart(Some(self.half()), in_flight),
            CongestionEvent::RepeatedTimeout => self.window.restart(None, in_flight),
            CongestionEvent::Undo => self.window.undo(),
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(acked: u64) -> AckSample {
        AckSample { acked: Bytes(acked), advanced: true, cwnd_limited: true, ..Default::default() }
    }

    #[test]
    fn doubles_in_slow_start_then_adds_one_per_round() {
        let mut reno = NewReno::new(1000, 10);
        reno.on_ack(Instant::ZERO, &ack(10_000));
        assert_eq!(reno.cwnd(), Bytes(20_000));
        reno.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        reno.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (Bytes(10_000), Bytes(10_000)));
        for _ in 0..10 {
            reno.on_ack(Instant::ZERO, &ack(1000));
        }
        assert_eq!(reno.cwnd(), Bytes(11_000));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut reno = NewReno::new(1000, 10);
        reno.on_ack(Instant::ZERO, &AckSample { cwnd_limited: false, ..ack(10_000) });
        assert_eq!(reno.cwnd(), Bytes(10_000));
    }
}
