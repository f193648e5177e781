//! HyStart (Ha and Rhee, 2011) as in Linux `tcp_cubic`: slow start ends before a loss if the ACKs of a round
//! trip come in one train longer than half the smallest RTT, or if the RTT of the first segments of a round
//! trip has risen by an eighth, at least 4 and at most 16 ms.

use crate::cc::control::AckSample;
use crate::cc::window::Window;
use paceline_net::{Duration, Instant};

/// Window in segments below which slow start goes on (Linux `hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// Largest interval between two ACKs of one train (Linux `hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// RTT samples of a round trip before its minimum is used (Linux `HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Smallest rise of the RTT that ends slow start (Linux `HYSTART_DELAY_MIN`).
const DELAY_MIN: Duration = Duration::from_millis(4);
/// Largest rise of the RTT that is required (Linux `HYSTART_DELAY_MAX`).
const DELAY_MAX: Duration = Duration::from_millis(16);
/// The bursts of segmentation offload by which ACK trains may be interrupted: four of 64 KiB, in bits (Linux
/// `hystart_ack_delay`).
const BURST_BITS: u64 = 4 * 65_536 * 8;
/// Largest duration of these bursts (Linux `hystart_ack_delay`, 1 ms).
const BURST_MAX: Duration = Duration::from_millis(1);

/// Detector of one slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round_start: Instant,
    last_ack: Instant,
    round_end: u64,
    smallest: Option<Duration>,
    samples: u32,
    found: bool,
}

impl HyStart {
    /// Begins a new slow start, or a new round trip in it.
    pub fn restart(&mut self, now: Instant, snd_nxt: u64) {
        *self = Self { round_start: now, last_ack: now, round_end: snd_nxt, ..Self::default() };
    }
    /// Whether an earlier sample has ended slow start.
    pub fn found(&self) -> bool {
        self.found
    }
    /// Processes an acknowledgment with a round-trip time of `rtt`; returns whether slow start should end.
    /// `delay_min` is the smallest RTT of the connection.
    pub fn on_ack(
        &mut self,
        now: Instant,
        sample: &AckSample,
        rtt: Duration,
        delay_min: Duration,
        window: &Window,
    ) -> bool {
        if sample.snd_una > self.round_end {
            self.restart(now, sample.snd_nxt);
        }
        // Round trips are delimited below the window, too, so that the first one evaluated is complete.
        if window.cwnd / window.segment < LOW_WINDOW {
            return false;
        }
        if now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = now;
            let threshold = (delay_min + burst_allowance(sample, window.bytes().0)) / 2;
            self.found |= now.since(self.round_start) > threshold;
        }
        self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let rise = (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX);
            self.found |= self.smallest.is_some_and(|smallest| smallest > delay_min + rise);
        }
        self.found
    }
}

/// Duration of the bursts at the pacing rate of Linux in slow start, twice the window per round trip.
fn burst_allowance(sample: &AckSample, cwnd: u64) -> Duration {
    let Some(srtt) = sample.srtt else { return BURST_MAX };
    let bits_per_rtt = u128::from(cwnd.max(1)) * 8 * 2;
    let ns = u128::from(BURST_BITS) * u128::from(srtt.as_nanos()) / bits_per_rtt;
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).min(BURST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(una: u64, nxt: u64) -> AckSample {
        AckSample { snd_una: una, snd_nxt: nxt, srtt: Some(MS(100)), ..Default::default() }
    }

    /// Feeds ACKs `gap` apart with the given RTT in one round, and returns the number of ACKs until slow
    /// start ends.
    fn acks_until_found(gap: Duration, rtt: Duration, delay_min: Duration) -> Option<u64> {
        let mut hystart = HyStart::default();
        hystart.restart(Instant::ZERO, 1_000_000);
        let (mut now, window) = (Instant::ZERO, Window::new(1448, 1000));
        (1..=200).find(|i| {
            now += gap;
            hystart.on_ack(now, &sample(i * 1000, 1_000_000), rtt, delay_min, &window)
        })
    }

    #[test]
    fn a_long_ack_train_ends_slow_start() {
        // (100 ms + 1 ms) / 2 = 50.5 ms of ACKs 1 ms apart.
        assert_eq!(acks_until_found(MS(1), MS(100), MS(100)), Some(51));
    }

    #[test]
    fn an_interrupted_train_does_not_end_slow_start() {
        assert_eq!(acks_until_found(MS(3), MS(100), MS(100)), None);
    }

    #[test]
    fn a_risen_delay_ends_slow_start_after_eight_samples() {
        assert_eq!(acks_until_found(MS(3), MS(113), MS(100)), Some(9)); // 100 + 12.5 ms
        assert_eq!(acks_until_found(MS(3), MS(112), MS(100)), None);
        assert_eq!(acks_until_found(MS(3), MS(23), MS(20)), None); // at least 4 ms
        assert_eq!(acks_until_found(MS(3), MS(25), MS(20)), Some(9));
        assert_eq!(acks_until_found(MS(3), MS(416), MS(400)), None); // at most 16 ms
        assert_eq!(acks_until_found(MS(3), MS(417), MS(400)), Some(9));
    }
}
