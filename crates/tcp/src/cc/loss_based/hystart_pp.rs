//! HyStart++ (RFC 9406): when the RTT of a round has risen by an eighth over that of the round before, clamped to
//! 4..16 ms, growth slows to a quarter for five rounds, Conservative Slow Start; if the RTT falls back below where it
//! began, slow start goes on, else it ends. For the first slow start of a connection only (§4.3).

use crate::cc::control::AckSample;
use paceline_net::Duration;

const MIN_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_THRESHOLD: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR.
const DIVISOR: u64 = 8;
/// N_RTT_SAMPLE.
const MIN_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments that one ACK may add: L of a sender that does not pace.
const LIMIT: u32 = 8;

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
    /// Segments acknowledged that are not a whole step of growth yet.
    rest: u32,
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
    /// Whether slow start should end.
    pub fn on_ack(&mut self, sample: &AckSample) -> bool {
        // The round ends when what was next to be sent is acknowledged: an ACK of all before it still belongs to it.
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
                self.conservative = None; // the rise was no queue
            }
        } else if let Some(last) = self.last_round {
            let rise = (last / DIVISOR).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
            if least >= last + rise {
                self.conservative = Some(Conservative { baseline: least, rounds: 0, rest: 0 });
            }
        }
        false
    }
    /// What the window grows by for `acked` counts acknowledged, of which a segment has `segment`.
    pub fn growth(&mut self, acked: u32, segment: u32) -> u32 {
        let acked = acked.min(LIMIT * segment);
        let Some(conservative) = &mut self.conservative else { return acked };
        conservative.rest += acked;
        let grown = conservative.rest / CSS_GROWTH_DIVISOR;
        conservative.rest %= CSS_GROWTH_DIVISOR;
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of ten ACKs with this RTT; how many ACKs ended slow start.
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
    fn a_risen_rtt_slows_growth_for_five_rounds_and_ends_slow_start() {
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
    fn an_rtt_that_falls_back_resumes_slow_start() {
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
    fn one_ack_adds_eight_segments_at_most() {
        assert_eq!(HyStartPlusPlus::default().growth(40, 1), 8);
        assert_eq!(HyStartPlusPlus::default().growth(40_000, 1000), 8000);
    }
}
