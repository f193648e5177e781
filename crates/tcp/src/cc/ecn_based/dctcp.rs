//! DCTCP (RFC 8257) as in Linux `tcp_dctcp`: alpha follows the share of marked bytes per window with the gain
//! g = 1/16, and a window with marks is reduced by alpha/2. Growth, losses and timeouts as Reno.
//!
//! The receiver must echo each mark (RFC 8257 §3.2, or RFC 9768), which is the endpoint's part.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent, Ecn};
use crate::cc::window::Window;
use paceline_net::{Bytes, Instant};

/// The value 1 of alpha (Linux `DCTCP_MAX_ALPHA`).
const ONE: u64 = 1024;
/// The gain g = 2^-4 (RFC 8257 §4.2; Linux `dctcp_shift_g`).
const G_SHIFT: u32 = 4;

/// The smoothed share of marked bytes, updated once per window.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// In 1/1024.
    alpha: u64,
    /// Bytes acknowledged and marked in the current window.
    acked: u64,
    marked: u64,
}

impl Marks {
    pub fn new() -> Self {
        Self { alpha: ONE, acked: 0, marked: 0 }
    }
    pub fn on_ack(&mut self, sample: &AckSample) {
        self.acked += sample.acked.0;
        self.marked += sample.ce_bytes.0;
    }
    /// Ends a window.
    pub fn update(&mut self) {
        // An alpha whose sixteenth rounds to zero decays to zero at once, as in Linux.
        let decay = if self.alpha >> G_SHIFT == 0 { self.alpha } else { self.alpha >> G_SHIFT };
        let share =
            (u128::from(self.marked) * u128::from(ONE >> G_SHIFT) / u128::from(self.acked.max(1))) as u64;
        self.alpha = (self.alpha - decay + share).min(ONE);
        (self.acked, self.marked) = (0, 0);
    }
    /// The window reduced by alpha/2, in window units.
    pub fn reduced(&self, window: &Window) -> u32 {
        window.share(2 * ONE - self.alpha, 2 * ONE)
    }
}

/// DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    marks: Marks,
    round_end: u64,
}

impl Dctcp {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self { window: Window::new(mss, initial), marks: Marks::new(), round_end: 0 }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        self.marks.on_ack(sample);
        if sample.snd_una >= self.round_end {
            self.marks.update();
            self.round_end = sample.snd_nxt;
        }
        if !sample.in_recovery && sample.advanced && sample.cwnd_limited {
            self.window.grow(sample.acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        let by_marks = event == CongestionEvent::Ecn;
        let ssthresh = if by_marks { self.marks.reduced(&self.window) } else { self.window.half() };
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
        Ecn::Ect0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 16 ACKs, of which `marked` are marked.
    fn round(dctcp: &mut Dctcp, marked: u64) {
        let start = dctcp.round_end;
        for i in 0..16 {
            let sample = AckSample {
                acked: Bytes(1000),
                ce_bytes: Bytes(if i < marked { 1000 } else { 0 }),
                snd_una: start + (i + 1) * 1000 - 16_000,
                snd_nxt: start + 16_000,
                ..Default::default()
            };
            dctcp.on_ack(Instant::ZERO, &sample);
        }
    }

    #[test]
    fn alpha_follows_the_share_of_marks_by_a_sixteenth() {
        let mut dctcp = Dctcp::new(1000, 100);
        dctcp.round_end = 16_000;
        assert_eq!(dctcp.marks.alpha, 1024);
        round(&mut dctcp, 0);
        assert_eq!(dctcp.marks.alpha, 960);
        round(&mut dctcp, 8); // 960 - 60 + 64/2
        assert_eq!(dctcp.marks.alpha, 932);
        for _ in 0..200 {
            round(&mut dctcp, 4);
        }
        assert!((256..=271).contains(&dctcp.marks.alpha), "{}", dctcp.marks.alpha); // a quarter, rounded
        for _ in 0..200 {
            round(&mut dctcp, 0);
        }
        assert_eq!(dctcp.marks.alpha, 0);
    }

    #[test]
    fn marks_reduce_by_half_of_alpha_and_losses_by_half_the_window() {
        let mut dctcp = Dctcp::new(1000, 100);
        dctcp.marks.alpha = 256;
        dctcp.on_congestion(Instant::ZERO, CongestionEvent::Ecn, Bytes(0));
        assert_eq!(dctcp.cwnd(), Bytes(87_000));
        dctcp.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(dctcp.ssthresh(), Bytes(43_000));
        assert_eq!(dctcp.ecn(), Ecn::Ect0);
    }
}
