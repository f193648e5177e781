//! One-way latency of an idle cell, from the arrival of a packet at the transmitter to its decoding, by the
//! position of the arrival in the period, which is uniform.
//!
//! Downlink: preparation, wait for a slot with downlink symbols, the slot, decoding. Uplink with a configured
//! grant in every uplink slot: the same. Uplink with a scheduling request: preparation, wait for its
//! occasion, the gNB's decision, the grant, the PUSCH; if that one carries the buffer status report alone, a
//! second grant. Left out: retransmissions, several transport blocks, delays of core network and hosts.

use super::SlotTiming;
use super::processing::Capability;

/// Mean and maximum of a latency in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Latency {
    /// Mean over arrivals.
    pub mean_ms: f64,
    /// Largest value over arrivals.
    pub max_ms: f64,
}

/// Times in slots that sender and receiver need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preparation {
    /// From the arrival of a packet to the earliest start of its slot.
    pub before: f64,
    /// From the end of the slot to the decoded packet.
    pub after: f64,
}

impl Preparation {
    /// Half of N2 before and half of N1 after, as in the user-plane evaluation of TR 37.910.
    pub fn of(capability: Capability, timing: &SlotTiming) -> Self {
        let mu = timing.numerology();
        Self { before: capability.n2(mu) / 28.0, after: capability.n1(mu) / 28.0 }
    }
}

/// Latency of a packet in the downlink.
pub fn downlink(timing: &SlotTiming, times: Preparation) -> Latency {
    data(timing, times, |slot| timing.is_down(slot))
}

/// Latency of a packet in the uplink with a configured grant in every uplink slot.
pub fn uplink_with_grant(timing: &SlotTiming, times: Preparation) -> Latency {
    data(timing, times, |slot| timing.is_up(slot))
}

/// Latency of a packet in the uplink by a scheduling request every `sr_period` slots, in the first uplink
/// slot of a period: until the first PUSCH, and until the second one that a buffer status report in the first
/// obtains. `sr_period` must be a multiple of the period.
pub fn uplink_by_request(timing: &SlotTiming, times: Preparation, sr_period: u64) -> [Latency; 2] {
    let occasion = (0..).find(|slot| timing.is_up(*slot)).expect("an uplink slot");
    let first = timing.pusch_after(timing.decision(occasion));
    let second = timing.pusch_after(timing.decision(first));
    [first, second].map(|pusch| {
        let rest = times.before + (pusch + 1 - occasion) as f64 + times.after;
        of_slots(timing, sr_period as f64 / 2.0 + rest, sr_period as f64 + rest)
    })
}

fn data(timing: &SlotTiming, times: Preparation, carries: impl Fn(u64) -> bool) -> Latency {
    let period = timing.period() as u64;
    let starts: Vec<u64> = (0..=2 * period).filter(|slot| carries(*slot)).collect();
    let gaps =
        starts.windows(2).take_while(|pair| pair[0] < starts[0] + period).map(|pair| pair[1] - pair[0]);
    let (squares, largest) = gaps.fold((0, 0), |(sum, largest), gap| (sum + gap * gap, gap.max(largest)));
    let rest = times.before + 1.0 + times.after;
    of_slots(timing, squares as f64 / (2 * period) as f64 + rest, largest as f64 + rest)
}

fn of_slots(timing: &SlotTiming, mean: f64, max: f64) -> Latency {
    let slot_ms = timing.numerology().slot_seconds() * 1000.0;
    Latency { mean_ms: mean * slot_ms, max_ms: max * slot_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Numerology;
    use paceline_net::tdd::SlotPattern;

    fn tdd(letters: &str, min_k1: u8, min_k2: u8, gnb: u8) -> SlotTiming {
        let pattern = SlotPattern::from_letters(letters, 1).unwrap();
        SlotTiming::tdd(Numerology::new(1).unwrap(), &pattern, min_k1, min_k2, gnb).unwrap()
    }

    /// Every row of the slot model. The model counts one slot of preparation and no decoding, and samples
    /// arrivals every 0.05 ms, at some rows every 0.01 ms: its maxima are lower by one sample, its means by
    /// half of one.
    #[test]
    fn every_row_of_the_latency_model_holds() {
        let mut count = 0;
        for line in include_str!("../../../data/nr_latency_model.csv").lines().skip(4) {
            let fields: Vec<&str> = line.split(',').collect();
            let [_, min_k1, min_k2, sr_ms, gnb] = [2, 3, 4, 5, 6].map(|i| fields[i].parse::<f64>().unwrap());
            let expected: Vec<f64> = fields[7..].iter().map(|field| field.parse().unwrap()).collect();
            let [k1, k2, gnb] = [min_k1, min_k2, gnb].map(|slots| slots as u8);
            let timing = match fields[0] {
                "FDD" => SlotTiming::fdd(Numerology::LTE, k1, k2, gnb).unwrap(),
                letters => tdd(letters, k1, k2, gnb),
            };
            let slot_ms = timing.numerology().slot_seconds() * 1000.0;
            let times = Preparation { before: 1.0, after: 0.0 };
            let [first, second] = uplink_by_request(&timing, times, (sr_ms / slot_ms) as u64);
            let one_way = [downlink(&timing, times), uplink_with_grant(&timing, times), first, second];
            for (latency, pair) in one_way.iter().zip(expected.chunks(2)) {
                let (mean, max) = (latency.mean_ms - pair[0], latency.max_ms - pair[1]);
                assert!((-0.006..=0.031).contains(&mean), "{line}: {latency:?}");
                assert!((-0.001..=0.056).contains(&max), "{line}: {latency:?}");
            }
            let period = timing.period() as u64;
            let down: Vec<u64> = (0..period).filter_map(|slot| timing.downlink_round_trip(slot)).collect();
            let up: Vec<u64> = (0..period).filter_map(|slot| timing.uplink_round_trip(slot)).collect();
            for (trips, pair) in [down, up].iter().zip(expected[8..].chunks(2)) {
                let mean = trips.iter().sum::<u64>() as f64 / trips.len() as f64 * slot_ms;
                let max = trips.iter().max().copied().unwrap() as f64 * slot_ms;
                assert!((mean - pair[0]).abs() < 0.0051 && max == pair[1], "{line}: {mean} {max}");
            }
            count += 1;
        }
        assert_eq!(count, 33);
    }

    /// N2/2, half a slot of alignment, the slot, N1/2.
    #[test]
    fn user_plane_of_fdd_holds_by_hand() {
        for (mu, expected) in [(0, 2.143), (1, 1.143), (2, 0.732)] {
            let timing = SlotTiming::fdd(Numerology::new(mu).unwrap(), 2, 2, 1).unwrap();
            let latency = downlink(&timing, Preparation::of(Capability::One, &timing));
            assert!((latency.mean_ms - expected).abs() < 0.0005, "{mu} {latency:?}");
        }
    }

    #[test]
    fn user_plane_of_tdd_patterns_holds_by_hand() {
        for (letters, expected) in [
            ("DDDSU", ["1.24 1.89", "2.14 3.39"]),
            ("DDDDDDDSUU", ["1.29 2.39", "2.94 5.39"]),
            ("DDSUU", ["1.44 2.39", "1.74 2.89"]),
            ("DSUUU", ["1.74 2.89", "1.44 2.39"]),
        ] {
            let timing = tdd(letters, 2, 2, 1);
            let times = Preparation::of(Capability::One, &timing);
            let text = |latency: Latency| format!("{:.2} {:.2}", latency.mean_ms, latency.max_ms);
            assert_eq!([downlink(&timing, times), uplink_with_grant(&timing, times)].map(text), expected);
        }
    }
}
