//! Reno congestion control (RFC 5681): the window doubles per round trip up to ssthresh, then grows by one
//! segment per round trip, and is halved on loss. `reno` and `newreno` share it; how a recovery ends is the
//! sender's part.
//!
//! Growth is by ACKs, by bytes with the limit of RFC 3465, or by bytes without a limit as in Linux `reno`.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::{CwndUnit, Window};
use paceline_net::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Appropriate byte counting: how Reno counts acknowledged data (RFC 3465).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Abc {
    /// Each ACK counts one segment, however much it acknowledges (RFC 5681 §3.1).
    #[serde(rename = "off")]
    Off,
    /// Bytes; in slow start at most one segment per ACK (L = 1).
    #[serde(rename = "l1")]
    One,
    /// Bytes; in slow start at most two segments per ACK (L = 2), after a timeout one.
    #[serde(rename = "l2")]
    Two,
    /// Bytes without a limit, as Linux since 3.15.
    #[default]
    #[serde(rename = "unlimited")]
    Unlimited,
}

/// Reno.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
    abc: Abc,
    /// The current slow start follows a timeout.
    after_timeout: bool,
}

impl Reno {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(unit: CwndUnit, mss: u32, initial: u32, abc: Abc) -> Self {
        Self { window: Window::counting(unit, mss, initial), abc, after_timeout: false }
    }
    /// Bytes counted for an acknowledgment of `acked` bytes.
    fn counted(&self, acked: Bytes) -> Bytes {
        let limit = match self.abc {
            Abc::Off => return Bytes(u64::from(self.window.mss)),
            _ if !self.window.in_slow_start() => return acked,
            Abc::Unlimited => return acked,
            Abc::Two if !self.after_timeout => 2,
            Abc::One | Abc::Two => 1,
        };
        acked.min(Bytes(limit * u64::from(self.window.mss)))
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if sample.in_recovery || !sample.advanced || !sample.cwnd_limited {
            return;
        }
        self.window.grow(self.counted(sample.acked));
        self.after_timeout &= self.window.in_slow_start();
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        self.after_timeout |= matches!(event, CongestionEvent::Timeout | CongestionEvent::RepeatedTimeout);
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

    fn ack(acked: u64) -> AckSample {
        AckSample { acked: Bytes(acked), advanced: true, cwnd_limited: true, ..Default::default() }
    }
    fn reno(abc: Abc) -> Reno {
        Reno::new(CwndUnit::Segments, 1000, 10, abc)
    }

    #[test]
    fn the_window_doubles_in_slow_start_then_grows_by_one_segment_per_round_trip() {
        let mut reno = reno(Abc::Unlimited);
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
        let mut reno = reno(Abc::Unlimited);
        reno.on_ack(Instant::ZERO, &AckSample { cwnd_limited: false, ..ack(10_000) });
        assert_eq!(reno.cwnd(), Bytes(10_000));
    }

    #[test]
    fn slow_start_grows_by_the_limit_of_rfc_3465() {
        // One ACK of four segments counts 1, 1, 2 and 4 of them.
        for (abc, grown) in [(Abc::Off, 1), (Abc::One, 1), (Abc::Two, 2), (Abc::Unlimited, 4)] {
            let mut reno = reno(abc);
            reno.on_ack(Instant::ZERO, &ack(4000));
            assert_eq!(reno.cwnd(), Bytes(10_000 + grown * 1000), "{abc:?}");
        }
    }

    #[test]
    fn after_a_timeout_the_limit_is_one_segment_until_ssthresh() {
        let mut reno = Reno::new(CwndUnit::Segments, 1000, 40, Abc::Two);
        reno.on_congestion(Instant::ZERO, CongestionEvent::Timeout, Bytes(0));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (Bytes(1000), Bytes(20_000)));
        for _ in 0..19 {
            reno.on_ack(Instant::ZERO, &ack(2000));
        }
        assert_eq!(reno.cwnd(), Bytes(20_000));
        assert!(!reno.after_timeout);
    }

    #[test]
    fn congestion_avoidance_counts_acks_or_bytes() {
        // ACKs of two segments in a window of 10: growth by one segment takes ten of them, or five by bytes.
        for (abc, acks) in [(Abc::Off, 10), (Abc::One, 5), (Abc::Two, 5), (Abc::Unlimited, 5)] {
            let mut reno = reno(abc);
            reno.window.ssthresh = 10;
            for _ in 0..acks {
                assert_eq!(reno.cwnd(), Bytes(10_000), "{abc:?}");
                reno.on_ack(Instant::ZERO, &ack(2000));
            }
            assert_eq!(reno.cwnd(), Bytes(11_000), "{abc:?}");
        }
    }
}
