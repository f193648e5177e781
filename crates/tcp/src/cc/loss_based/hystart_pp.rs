//! HyStart++ (RFC 9406). When the RTT of a round trip has risen by an eighth over the round trip before, at
//! least 4 and at most 16 ms, growth slows to a quarter for five round trips: Conservative Slow Start. If the
//! RTT then falls below its value at the beginning, slow start goes on, else it ends. Only for the first slow
//! start of a connection (§4.3).

use crate::cc::control::AckSample;
use paceline_net::Duration;

/// MIN_RTT_THRESH (RFC 9406 §4.3).
const MIN_THRESHOLD: Duration = Duration::from_millis(4);
/// MAX_RTT_THRESH (RFC 9406 §4.3).
const MAX_THRESHOLD: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR (RFC 9406 §4.3).
const RTT_DIVISOR: u64 = 8;
/// N_RTT_SAMPLE (RFC 9406 §4.3).
const MIN_SAMPLES: u32 = 8;
/// CSS_GROWTH_DIVISOR (RFC 9406 §4.3).
const CSS_GROWTH_DIVISOR: u32 = 4;
/// CSS_ROUNDS (RFC 9406 §4.3).
const CSS_ROUNDS: u32 = 5;
/// Largest growth per ACK in segments: L of a sender without pacing (RFC 9406 §4.3).
const MAX_GROWTH_SEGMENTS: u32 = 8;

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// cssBaselineMinRtt.
    baseline: Duration,
    rounds: u32,
    /// Acknowledged data below one unit of growth.
    remainder: u32,
}

/// Detector of the first slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    round_end: u64,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStartPlusPlus {
    /// Processes an acknowledgment; returns whether slow start should end.
    pub fn on_ack(&mut self, sample: &AckSample) -> bool {
        // A round trip ends when data sent after its beginning is acknowledged.
        if sample.snd_una > self.round_end {
            self.round_end = sample.snd_nxt;
            self.last_round = self.this_round.take().or(self.last_round);
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        let Some(rtt) = sample.rtt else { return false };
        let least = self.this_round.map_or(rtt, |least| least.min(rtt));
        self.this_round = Some(least);
        self.samples += 1;
        if self.samples < MIN_SAMPLES {
            return false;
        }
        if let Some(conservative) = self.conservative {
            if least < conservative.baseline {
                self.conservative = None; // the rise was no queueing delay
            }
        } else if let Some(last) = self.last_round {
            let rise = (last / RTT_DIVISOR).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
            if least >= last + rise {
                self.conservative = Some(Conservative { baseline: least, rounds: 0, remainder: 0 });
            }
        }
        false
    }
    /// Growth of the window for `acked` acknowledged window units; a segment has `segment` units.
    pub fn growth(&mut self, acked: u32, segment: u32) -> u32 {
        let acked = acked.min(MAX_GROWTH_SEGMENTS * segment);
        let Some(conservative) = &mut self.conservative else { return acked };
        conservative.remainder += acked;
        let grown = conservative.remainder / CSS_GROWTH_DIVISOR;
        conservative.remainder %= CSS_GROWTH_DIVISOR;
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round trip of ten ACKs with this RTT; returns the number of ACKs that end slow start.
    fn round(detector: &mut HyStartPlusPlus, rtt: u64) -> usize {
        let start = detector.round_end;
        (0..10)
            .filter(|i| {
                detector.on_ack(&AckSample {
                    rtt: Some(Duration::from_millis(rtt)),
                    snd_una: start + i,
                    snd_nxt: start + 10,
                    ..Default::default()
                })
            })
            .count()
    }

    #[test]
    fn a_risen_rtt_slows_growth_for_five_round_trips_and_ends_slow_start() {
        let mut detector = HyStartPlusPlus::default();
        assert_eq!((round(&mut detector, 80), round(&mut detector, 89)), (0, 0));
        assert_eq!(detector.growth(6, 1), 6);
        assert!(detector.conservative.is_none());
        round(&mut detector, 101); // 89 + 89/8 = 100.1
        assert_eq!((detector.growth(6, 1), detector.growth(6, 1)), (1, 2));
        for _ in 0..4 {
            assert_eq!(round(&mut detector, 101), 0);
        }
        assert!(round(&mut detector, 101) > 0);
    }

    #[test]
    fn an_rtt_below_the_baseline_resumes_slow_start() {
        let mut detector = HyStartPlusPlus::default();
        round(&mut detector, 80);
        round(&mut detector, 95);
        assert!(detector.conservative.is_some());
        round(&mut detector, 94);
        assert!(detector.conservative.is_none());
    }

    #[test]
    fn the_threshold_is_clamped_to_4_and_16_ms() {
        for (base, risen, found) in [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)] {
            let mut detector = HyStartPlusPlus::default();
            round(&mut detector, base);
            round(&mut detector, risen);
            assert_eq!(detector.conservative.is_some(), found, "{base} {risen}");
        }
    }

    #[test]
    fn one_ack_adds_at_most_eight_segments() {
        assert_eq!(HyStartPlusPlus::default().growth(40, 1), 8);
        assert_eq!(HyStartPlusPlus::default().growth(40_000, 1000), 8000);
    }
}
