//! In-order delivery stalls of layer 2: a transport block is retransmitted, and everything behind it waits so
//! that it is delivered in order (RLC acknowledged mode, TS 36.322 5.1.3.2; reordering after HARQ, TS 25.321
//! 11.6.2).
//!
//! A stall shows as a pause without acknowledgments, after which the bytes of the whole pause arrive at once.
//! The radio kept sending, so the path holds one more stall's worth of data, and round-trip times near the
//! minimum are rare even without a standing queue. `target_delay` keeps the queue at least as long as the
//! longest recent stall.
//!
//! A radio that serves its stations in short turns looks the same, and needs the same queue.

use paceline_net::{Duration, Instant};

/// A pause is a stall if this share of its bytes, those that the radio could have sent in it, arrives right
/// after it: within one over [`BURST_DIVISOR`] of the pause. Chosen: that is fourteen times the link's rate,
/// faster than any queue drains.
const BURST_SHARE: f64 = 0.6;
/// See [`BURST_SHARE`]. Chosen.
const BURST_DIVISOR: u64 = 24;
/// Smallest number of those bytes. Chosen: a few packets do not show how fast they arrive.
pub(in crate::accelerator) const MIN_MISSED_BYTES: f64 = 15_000.0;
/// Longest stall. Chosen: layer 2 retransmits sooner; a longer pause is an outage.
const MAX_STALL: Duration = Duration::from_millis(100);
/// Time in which a stall is forgotten. Chosen: retransmissions of layer 2 recur much sooner.
const MEMORY_SECONDS: f64 = 3.0;

/// The longest recent stall of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct InOrderStalls {
    longest: Duration,
    /// The last pause, until the bytes after it show whether it was a stall.
    candidate: Option<Pause>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
    ended_at: Instant,
    /// Bytes delivered before its end, and bytes that the radio could have delivered in it.
    delivered: u64,
    missed: f64,
}

impl InOrderStalls {
    /// The longest recent stall, decaying with time.
    pub fn longest(&self) -> Duration {
        self.longest
    }
    /// An acknowledgment `gap` after the previous one. `delivered`: bytes delivered before it.
    pub fn on_ack(&mut self, now: Instant, gap: Duration, delivered: u64) {
        let forgotten = (gap.as_secs_f64() / MEMORY_SECONDS).min(1.0);
        self.longest = Duration::from_secs_f64(self.longest.as_secs_f64() * (1.0 - forgotten));
        let is_over = |pause: &Pause| now.since(pause.ended_at) >= pause.length / BURST_DIVISOR;
        if let Some(pause) = self.candidate.filter(is_over) {
            self.candidate = None;
            if (delivered - pause.delivered) as f64 >= BURST_SHARE * pause.missed {
                self.longest = self.longest.max(pause.length);
            }
        }
    }
    /// A pause of `length` ends, in which the radio could have delivered `missed` bytes.
    pub fn on_pause(&mut self, now: Instant, length: Duration, delivered: u64, missed: f64) {
        let may_be_stall = missed >= MIN_MISSED_BYTES && length <= MAX_STALL;
        self.candidate = may_be_stall.then_some(Pause { length, ended_at: now, delivered, missed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(60);

    /// Ten pauses of 60 ms. After each, 60,000 bytes arrive within `burst`, then 1,000 bytes per millisecond
    /// for 60 ms.
    fn after_pauses(burst: Duration) -> InOrderStalls {
        let (mut stalls, mut now, mut delivered) = (InOrderStalls::default(), Instant::from_millis(1), 0);
        for _ in 0..10 {
            now += PAUSE;
            stalls.on_ack(now, PAUSE, delivered);
            stalls.on_pause(now, PAUSE, delivered, 60_000.0);
            for _ in 0..60 {
                delivered += 1_000;
                now += burst / 60;
                stalls.on_ack(now, burst / 60, delivered);
            }
            for _ in 0..60 {
                delivered += 1_000;
                now += Duration::from_millis(1);
                stalls.on_ack(now, Duration::from_millis(1), delivered);
            }
        }
        stalls
    }

    #[test]
    fn a_pause_whose_bytes_arrive_at_once_is_a_stall() {
        let stalls = after_pauses(Duration::from_millis(2));
        assert!(stalls.longest() > PAUSE * 3 / 4, "{stalls:?}");
    }

    #[test]
    fn a_pause_whose_bytes_arrive_at_the_links_rate_is_none() {
        assert_eq!(after_pauses(Duration::from_millis(50)).longest(), Duration::ZERO);
    }

    #[test]
    fn a_stall_is_forgotten() {
        let (mut stalls, mut now) = (after_pauses(Duration::from_millis(2)), Instant::from_millis(5_000));
        for _ in 0..20_000 {
            now += Duration::from_millis(1);
            stalls.on_ack(now, Duration::from_millis(1), 2_000_000);
        }
        assert!(stalls.longest() < Duration::from_millis(5), "{stalls:?}");
    }
}
