//! Vegas (Brakmo, O'Malley and Peterson, 1994) as in Linux `tcp_vegas`: once per round trip the number of
//! queued packets is estimated from the smallest RTT of the round trip and of the connection, and kept
//! between alpha = 2 and beta = 4. Slow start ends above gamma = 1. Losses as Reno.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant};

/// Queued packets below which the window grows (Linux `alpha`).
const ALPHA_PACKETS: u64 = 2;
/// Queued packets above which the window shrinks (Linux `beta`).
const BETA_PACKETS: u64 = 4;
/// Queued packets above which slow start ends (Linux `gamma`).
const GAMMA_PACKETS: u64 = 1;
/// RTT samples that a round trip must exceed to be evaluated; with fewer, all ACKs may have been delayed
/// (Linux `tcp_vegas_cong_avoid`).
const MIN_SAMPLES: u32 = 2;

/// Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: Window,
    base_rtt: Option<Duration>,
    round_rtt: Option<Duration>,
    samples: u32,
    round_end: u64,
    /// False from a loss until its repair is complete.
    enabled: bool,
}

impl Vegas {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Window::new(mss, initial),
            base_rtt: None,
            round_rtt: None,
            samples: 0,
            round_end: 0,
            enabled: true,
        }
    }
    fn begin_round(&mut self, snd_nxt: u64) {
        (self.round_end, self.round_rtt, self.samples) = (snd_nxt, None, 0);
    }
    /// Adjusts the window after a round trip with the smallest RTT `rtt`; `base` is that of the connection.
    fn adjust(&mut self, base: Duration, rtt: Duration, acked: Bytes) {
        let (base, rtt) = (base.as_nanos().max(1), rtt.as_nanos().max(1));
        let cwnd = u128::from(self.window.cwnd);
        let queued = (cwnd * u128::from(rtt - base.min(rtt)) / u128::from(base)) as u64;
        let window = &mut self.window;
        if window.in_slow_start() {
            if queued > GAMMA_PACKETS {
                let target = (cwnd * u128::from(base) / u128::from(rtt)) as u32;
                window.cwnd = window.cwnd.min(target.saturating_add(1)).max(2);
                window.ssthresh = window.ssthresh.min(window.cwnd - 1);
            } else {
                window.grow(acked);
            }
        } else if queued > BETA_PACKETS {
            window.cwnd = (window.cwnd - 1).max(2);
            window.ssthresh = window.ssthresh.min(window.cwnd - 1);
        } else if queued < ALPHA_PACKETS {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2);
        window.ssthresh = window.ssthresh.max((u64::from(window.cwnd) * 3 / 4) as u32);
    }
}

impl CongestionControl for Vegas {
    fn on_transmit_start(&mut self, _now: Instant, _app_limited: bool) {
        // After an idle time the path may have changed.
        (self.base_rtt, self.round_rtt, self.samples) = (None, None, 0);
    }
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round_rtt = Some(self.round_rtt.map_or(rtt, |least| least.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        let repairing = sample.in_recovery || sample.in_loss;
        if !self.enabled && !repairing {
            self.enabled = true;
            self.begin_round(sample.snd_nxt);
        }
        if sample.in_recovery || !sample.advanced {
            return;
        }
        let limited = sample.cwnd_limited;
        if !self.enabled {
            if limited {
                self.window.grow(sample.acked);
            }
        } else if sample.snd_una > self.round_end {
            match (self.base_rtt, self.round_rtt) {
                (Some(base), Some(rtt)) if self.samples > MIN_SAMPLES => self.adjust(base, rtt, sample.acked),
                _ if limited => self.window.grow(sample.acked),
                _ => {}
            }
            self.begin_round(sample.snd_nxt);
        } else if self.window.in_slow_start() && limited {
            self.window.grow(sample.acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        self.enabled &= matches!(event, CongestionEvent::RecoveryEnd | CongestionEvent::Undo);
        self.window.react(event, self.window.half(), in_flight);
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

    /// Window and ssthresh after a round trip of four ACKs with `rtt` over a base of 100 ms.
    fn after_round(cwnd: u32, ssthresh: u32, rtt: u64) -> (u32, u32) {
        let mut vegas = Vegas::new(1000, cwnd);
        vegas.window.ssthresh = ssthresh;
        vegas.base_rtt = Some(Duration::from_millis(100));
        vegas.round_end = 4000;
        for i in 1..=5 {
            let sample = AckSample {
                acked: Bytes(1000),
                advanced: true,
                cwnd_limited: true,
                rtt: Some(Duration::from_millis(rtt)),
                snd_una: i * 1000,
                snd_nxt: 100_000,
                ..Default::default()
            };
            vegas.on_ack(Instant::ZERO, &sample);
        }
        (vegas.window.cwnd, vegas.window.ssthresh)
    }

    #[test]
    fn keeps_two_to_four_packets_queued() {
        // A window of 50: 100 ms -> 0, 103 -> 1.5, 104 -> 2, 109 -> 4.5 (4), 110 -> 5 packets queued.
        for (rtt, cwnd) in [(100, 51), (103, 51), (104, 50), (109, 50), (110, 49)] {
            assert_eq!(after_round(50, 40, rtt).0, cwnd, "{rtt}");
        }
    }

    #[test]
    fn slow_start_ends_above_one_queued_packet_at_the_window_of_the_base_rtt() {
        // 54 segments after four ACKs; at 110 ms 54 * 100/110 + 1 = 50 of them.
        assert_eq!(after_round(50, 1000, 110), (50, 49));
        // At 101 ms less than a packet is queued: slow start goes on.
        assert_eq!(after_round(50, 1000, 101), (55, 1000));
    }

    #[test]
    fn a_loss_halves_the_window_and_suspends_vegas_until_repaired() {
        let mut vegas = Vegas::new(1000, 50);
        vegas.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        assert!(!vegas.enabled);
        vegas.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        assert_eq!(vegas.window.cwnd, 25);
        let sample = AckSample { snd_nxt: 9000, ..Default::default() };
        vegas.on_ack(Instant::ZERO, &sample);
        assert!(vegas.enabled && vegas.round_end == 9000);
    }
}
