//! A reaction to marks like that of TCP Prague (draft-briscoe-iccrg-prague-congestion-control): in
//! proportion, as DCTCP, with ECT(1), and with reduced dependence on the RTT: below 25 ms the window grows
//! and is reduced as if the RTT were 25 ms.
//!
//! Marked bytes do not grow the window. A loss halves the window from before the marks of the same round
//! trip. Left out: fractional windows, the fall-back at classic AQMs, and pacing.

use super::dctcp::Marks;
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent, Ecn};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant};

/// Shortest round trip for growth and marks (draft-briscoe-iccrg-prague-congestion-control, RTT_VIRT).
const VIRTUAL_RTT: Duration = Duration::from_millis(25);

/// Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    window: Window,
    marks: Marks,
    round_end: u64,
    round_start: Instant,
    srtt: Duration,
    /// The time of the last reduction by marks, and the window before it in segments.
    reduced: Option<(Instant, u32)>,
}

impl Prague {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Window::new(mss, initial),
            marks: Marks::new(),
            round_end: 0,
            round_start: Instant::ZERO,
            srtt: VIRTUAL_RTT,
            reduced: None,
        }
    }
    /// Acknowledged segments per increase by one: the window times (virtual RTT / RTT)^2, since both the
    /// window and the number of round trips per second depend on the RTT.
    fn acked_per_increase(&self) -> u32 {
        let (virtual_ns, rtt) =
            (VIRTUAL_RTT.as_nanos(), self.srtt.as_nanos().clamp(1000, VIRTUAL_RTT.as_nanos()));
        let ratio = u128::from(virtual_ns).pow(2) * u128::from(self.window.cwnd) / u128::from(rtt).pow(2);
        u32::try_from(ratio).unwrap_or(u32::MAX)
    }
    fn grow(&mut self, unmarked: Bytes) {
        let acked = self.window.after_slow_start(unmarked);
        if acked > 0 {
            self.window.increase(self.acked_per_increase(), acked);
        }
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.srtt = sample.srtt.unwrap_or(self.srtt);
        self.marks.on_ack(sample);
        if sample.snd_una >= self.round_end && now.since(self.round_start) >= VIRTUAL_RTT {
            self.marks.update();
            (self.round_end, self.round_start) = (sample.snd_nxt, now);
        }
        if !sample.in_recovery && sample.advanced && sample.cwnd_limited {
            self.grow(sample.acked.saturating_sub(sample.ce_bytes));
        }
    }
    fn on_congestion(&mut self, now: Instant, event: CongestionEvent, in_flight: Bytes) {
        let reaction_time = self.srtt.max(VIRTUAL_RTT);
        let recent = self.reduced.filter(|(at, _)| now.since(*at) < reaction_time);
        let ssthresh = match event {
            CongestionEvent::Ecn if recent.is_some() => return,
            CongestionEvent::Ecn => {
                self.reduced = Some((now, self.window.cwnd));
                self.marks.reduced(&self.window)
            }
            _ => recent.map_or(self.window.half(), |(_, before)| (before / 2).max(2).min(self.window.cwnd)),
        };
        self.window.react(event, ssthresh, in_flight);
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
    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(acked: u64, ce: u64, rtt: u64) -> AckSample {
        AckSample {
            acked: Bytes(acked),
            ce_bytes: Bytes(ce),
            advanced: true,
            cwnd_limited: true,
            srtt: Some(Duration::from_millis(rtt)),
            ..Default::default()
        }
    }

    #[test]
    fn flows_of_short_and_long_round_trips_grow_alike_per_second() {
        // One second in congestion avoidance: 1/RTT windows, each one segment at 25 ms and (5/25)^2 at 5 ms.
        let grown = |rtt: u64| {
            let mut prague = Prague::new(1000, 50);
            prague.window.ssthresh = 50;
            for _ in 0..1000 / rtt {
                prague.on_ack(Instant::ZERO, &ack(prague.cwnd().0, 0, rtt));
            }
            prague.window.cwnd - 50
        };
        assert_eq!((grown(25), grown(50)), (40, 20));
        assert!((7..=8).contains(&grown(5)), "{}", grown(5)); // 200 round trips of 1/25 each
    }

    #[test]
    fn marked_bytes_do_not_grow_the_window_and_marks_reduce_it_once_per_virtual_rtt() {
        let mut prague = Prague::new(1000, 50);
        prague.on_ack(Instant::ZERO, &ack(10_000, 4000, 5));
        assert_eq!(prague.cwnd(), Bytes(56_000));
        prague.marks = Marks::new(); // alpha 1: a mark halves
        prague.on_congestion(Instant::from_millis(100), CongestionEvent::Ecn, Bytes(0));
        assert_eq!(prague.cwnd(), Bytes(28_000));
        prague.on_congestion(Instant::from_millis(110), CongestionEvent::Ecn, Bytes(0));
        assert_eq!(prague.cwnd(), Bytes(28_000));
        // A loss in the same round trip halves the window from before the marks.
        prague.on_congestion(Instant::from_millis(110), CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(prague.ssthresh(), Bytes(28_000));
        prague.on_congestion(Instant::from_millis(200), CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(prague.ssthresh(), Bytes(14_000));
        assert_eq!(prague.ecn(), Ecn::Ect1);
    }
}
