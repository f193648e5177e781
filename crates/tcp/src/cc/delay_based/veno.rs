//! Veno (Fu and Liew, IEEE JSAC 21, 2003) as in Linux `tcp_veno`: the number of queued packets, estimated as
//! in Vegas, distinguishes random loss from congestion. Below beta = 3 packets a loss reduces the window by a
//! fifth, above by half; above beta the window grows by one segment in every other round trip.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant};

/// beta in half packets (Linux `beta`, 3 packets).
const BETA_HALF_PACKETS: u64 = 6;
/// RTT samples that must be exceeded before the estimate is used (Linux `tcp_veno_cong_avoid`).
const MIN_SAMPLES: u32 = 2;

/// Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    window: Window,
    base_rtt: Option<Duration>,
    rtt: Option<Duration>,
    samples: u32,
    /// Estimated queue in half packets.
    backlog: u64,
    /// Above beta: the current window of ACKs grows the window, the next one does not.
    grow: bool,
}

impl Veno {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        let window = Window::new(mss, initial);
        Self { window, base_rtt: None, rtt: None, samples: 0, backlog: 0, grow: true }
    }
    fn estimate(&mut self) -> bool {
        let (Some(base), Some(rtt)) = (self.base_rtt, self.rtt.take()) else { return false };
        if self.samples <= MIN_SAMPLES {
            return false;
        }
        let cwnd = u128::from(self.window.cwnd) * 2;
        let expected = cwnd * u128::from(base.as_nanos()) / u128::from(rtt.as_nanos().max(1));
        self.backlog = cwnd.saturating_sub(expected) as u64;
        true
    }
}

impl CongestionControl for Veno {
    fn on_transmit_start(&mut self, _now: Instant, _app_limited: bool) {
        // After an idle time the path may have changed.
        (self.base_rtt, self.rtt, self.samples, self.grow) = (None, None, 0, true);
    }
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        if sample.in_recovery || !sample.advanced || !sample.cwnd_limited {
            return;
        }
        let known = !sample.in_loss && self.estimate();
        if !known || self.window.in_slow_start() || self.backlog < BETA_HALF_PACKETS {
            self.window.grow(sample.acked);
        } else {
            let acked = self.window.counts(sample.acked);
            if self.window.count_window(acked) {
                if self.grow {
                    self.window.cwnd += 1;
                }
                self.grow = !self.grow;
            }
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        let ssthresh =
            if self.backlog < BETA_HALF_PACKETS { self.window.share(4, 5) } else { self.window.half() };
        self.window.react(event, ssthresh, in_flight);
        self.rtt = None;
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

    fn ack(rtt: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt));
        AckSample { acked: Bytes(1000), advanced: true, cwnd_limited: true, rtt, ..Default::default() }
    }
    /// In congestion avoidance with a window of 40 and `rtt` over a base of 100 ms.
    fn with_rtt(rtt: u64) -> Veno {
        let mut veno = Veno::new(1000, 40);
        veno.window.ssthresh = 20;
        for rtt in [100, 100, 100, rtt] {
            veno.on_ack(Instant::ZERO, &ack(rtt));
        }
        veno
    }

    #[test]
    fn a_loss_without_a_queue_reduces_the_window_by_a_fifth() {
        // A window of 40 in halves is 80. At 106 ms 80 - 75 = 5 of them queue: random; at 107 ms 80 - 74 = 6
        // = beta.
        for (rtt, left) in [(106, 32), (107, 20)] {
            let mut veno = with_rtt(rtt);
            veno.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
            assert_eq!(veno.window.ssthresh, left, "{rtt} {}", veno.backlog);
        }
    }

    #[test]
    fn above_beta_the_window_grows_in_every_other_round_trip() {
        let mut veno = with_rtt(120);
        let start = veno.window.cwnd;
        for _ in 0..4 * start {
            veno.on_ack(Instant::ZERO, &ack(120));
        }
        assert_eq!(veno.window.cwnd - start, 2);
        let mut veno = with_rtt(100);
        for _ in 0..4 * start {
            veno.on_ack(Instant::ZERO, &ack(100));
        }
        assert!((3..=4).contains(&(veno.window.cwnd - start)));
    }
}
