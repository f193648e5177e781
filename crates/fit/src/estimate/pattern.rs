//! The TDD pattern: the one of all usual patterns whose slots explain the deliveries over 20 ms.
//!
//! While a queue lasts, every slot of the data's direction carries a full block, special slots a smaller one.
//! Patterns are compared by the squares that they leave unexplained; a flat profile is FDD.

use super::profile::{Profile, SLOTS, SPAN};
use super::{Confidence, Estimate};

/// Periods, ns (TS 38.331 §6.3.2, dl-UL-TransmissionPeriodicity, with those of 3 and 4 ms).
const PERIODS: [f64; 10] = [0.5e6, 0.625e6, 1e6, 1.25e6, 2e6, 2.5e6, 3e6, 4e6, 5e6, 10e6];
/// Most slots of a period. Chosen: two frames at 15 kHz, one at 30 kHz; longer ones are not in use.
const MOST_SLOTS: usize = 40;
/// Uplink-downlink configurations of LTE that no single run of downlink and uplink slots describes (TS 36.211
/// Table 4.2-2): 0, 3, 4, 5 and 6 begin with D S; 3 to 5 do have a single run.
const LTE_TWO_RUNS: [&str; 1] = ["DSUUUDSUUD"];
/// Largest share of a special slot's block of that of a downlink slot: 12 of 14 symbols, the most that leave
/// a guard (TS 36.211 Table 4.2-1), less those of control and reference signals.
const LARGEST_SPECIAL: f64 = 0.9;
/// Share of the squares that a pattern may leave. Chosen: blocks that HARQ repeats, and synchronisation
/// blocks, leave a hundredth; a wrong pattern of 20 slots at least a twentieth.
const LARGEST_REST: f64 = 0.04;
/// Factor by which every other pattern must leave more squares. Chosen: by cells of the project with other
/// seeds than those that judge it.
const CLEAR: f64 = 2.5;
/// Squares that any pattern leaves by chance, as a share. Chosen: rates of single slots vary by 3% in the mean
/// of some seconds.
const NOISE: f64 = 0.001;
/// Deliveries below which nothing is claimed.
const FEW: usize = 300;

/// Direction of the deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// From the base station.
    Down,
    /// To the base station.
    Up,
}

/// Slots of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// Letters from the first downlink slot behind an uplink slot on; empty in FDD.
    pub letters: String,
    /// Length of a slot, ms.
    pub slot_ms: f64,
    /// Share of a special slot's block of that of a downlink slot, if seen.
    pub special: Option<f64>,
}

impl Slots {
    /// Length of the period, ms.
    pub fn period_ms(&self) -> f64 {
        self.letters.len() as f64 * self.slot_ms
    }
    /// The pattern and the subcarrier spacing, as in `DDDSU/30kHz`; `FDD` without a pattern.
    pub fn name(&self) -> String {
        if self.letters.is_empty() {
            return "FDD".into();
        }
        format!("{}/{}kHz", self.letters, (15.0 / self.slot_ms + 0.5) as u32)
    }
}

struct Candidate {
    letters: String,
    slot: f64,
}

fn candidates() -> Vec<Candidate> {
    let mut list = vec![Candidate { letters: String::new(), slot: 1e6 }];
    for slot in SLOTS {
        for period in PERIODS {
            let count = period / slot;
            let slots = (count + 0.5) as usize;
            if (count - slots as f64).abs() > 1e-6 || !(2..=MOST_SLOTS).contains(&slots) {
                continue;
            }
            for up in 1..slots {
                let down = slots - up - 1;
                if down == 0 && slots > 2 {
                    // Special slots alone carry the downlink: DSUUU's relatives begin with D.
                    continue;
                }
                list.push(Candidate { letters: "D".repeat(down) + "S" + &"U".repeat(up), slot });
            }
        }
    }
    list.extend(LTE_TWO_RUNS.map(|letters| Candidate { letters: rotated(letters), slot: 1e6 }));
    list
}

/// The letters from the first D behind a U on.
fn rotated(letters: &str) -> String {
    let bytes = letters.as_bytes();
    let starts = (0..bytes.len()).filter(|index| {
        bytes[*index] != b'U' && bytes[(index + bytes.len() - 1) % bytes.len()] == b'U'
    });
    let turn = |start: usize| letters[start..].to_owned() + &letters[..start];
    starts.map(turn).min().unwrap_or_else(|| letters.to_owned())
}

/// Squares that a candidate leaves in the best position, as a share, and the special slot's share.
fn rest(profile: &Profile, candidate: &Candidate, link: Link) -> (f64, Option<f64>) {
    let bins = profile.weights.len();
    let power = profile.power().max(1e-9);
    if candidate.letters.is_empty() {
        let mean = profile.weights.iter().sum::<f64>() / bins as f64;
        let rest = profile.weights.iter().map(|weight| (weight - mean) * (weight - mean)).sum::<f64>();
        return (rest / power, None);
    }
    let letters = candidate.letters.as_bytes();
    let slots = (SPAN / candidate.slot + 0.5) as usize;
    let per_bin = profile.bin / candidate.slot;
    let mut best = (f64::INFINITY, None);
    for shift in 0..letters.len().max((per_bin + 0.5) as usize) {
        let (mut full, mut special) = (vec![0.0; bins], vec![0.0; bins]);
        for slot in 0..slots {
            let bin = (((slot + shift) % slots) as f64 / per_bin + 1e-9) as usize;
            match (letters[slot % letters.len()], link) {
                (b'D', Link::Down) | (b'U', Link::Up) => full[bin] += 1.0,
                (b'S', Link::Down) => special[bin] += 1.0,
                _ => {}
            }
        }
        let found = fitted(&profile.weights, &full, &special);
        if found.0 < best.0 {
            best = found;
        }
    }
    (best.0 / power, best.1)
}

/// Least squares of two shapes, the second one at most [`LARGEST_SPECIAL`] of the first.
fn fitted(weights: &[f64], full: &[f64], special: &[f64]) -> (f64, Option<f64>) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (ff, fs, ss) = (dot(full, full), dot(full, special), dot(special, special));
    let (wf, ws, ww) = (dot(weights, full), dot(weights, special), dot(weights, weights));
    let determinant = ff * ss - fs * fs;
    let mut share = if ss > 0.0 && determinant > 1e-9 {
        let (a, b) = ((wf * ss - ws * fs) / determinant, (ws * ff - wf * fs) / determinant);
        if a > 0.0 { b / a } else { 0.0 }
    } else {
        0.0
    };
    share = share.clamp(0.0, LARGEST_SPECIAL);
    let (shape, along) = (ff + 2.0 * share * fs + share * share * ss, wf + share * ws);
    let rest = if shape > 0.0 { ww - along * along / shape } else { ww };
    (rest.max(0.0), (ss > 0.0).then_some(share))
}

/// Finds the pattern in the profiles of one path: of arrivals on each length of slots on whose lattice they
/// are, or of timestamps.
pub fn find(profiles: &[Profile], link: Link, from: &str) -> Option<Estimate<Slots>> {
    let candidates = candidates();
    let mut ranking: Vec<(f64, Slots)> = Vec::new();
    for profile in profiles {
        for candidate in &candidates {
            let is_ticks = profile.sharpness >= 1.0 && profiles.len() == 1 && profile.bin >= 1e6;
            let is_flat = candidate.letters.is_empty();
            // Arrivals show the length of the slots.
            if !is_ticks && !is_flat && (candidate.slot - profile.bin).abs() > 1.0 {
                continue;
            }
            let (rest, special) = rest(profile, candidate, link);
            let slot_ms = if is_flat { profile.bin } else { candidate.slot } / 1e6;
            ranking.push((rest, Slots { letters: candidate.letters.clone(), slot_ms, special }));
        }
    }
    ranking.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = profiles.iter().map(|profile| profile.count).max()?;
    let least = ranking.first()?.0;
    // Of patterns that explain alike, the one with the shortest period.
    let limit = (least + NOISE) * CLEAR;
    let alike: Vec<&(f64, Slots)> = ranking.iter().filter(|(rest, _)| *rest <= limit).collect();
    let simplest: &(f64, Slots) = alike.iter().copied().min_by(|a, b| {
        a.1.period_ms().total_cmp(&b.1.period_ms()).then(a.0.total_cmp(&b.0))
    })?;
    let is_same = |slots: &Slots| {
        let ratio = slots.period_ms() / simplest.1.period_ms().max(1e-9);
        let whole = (ratio - (ratio + 0.5).floor()).abs() < 1e-6 && ratio >= 0.5;
        slots.letters.is_empty() == simplest.1.letters.is_empty()
            && (slots.letters.is_empty() || whole && slots.letters == simplest.1.letters.repeat((ratio + 0.5) as usize))
    };
    let is_clear = alike.iter().all(|(_, slots)| is_same(slots));
    let (rest, slots) = simplest;
    let confidence = match count {
        _ if *rest > LARGEST_REST || count < FEW || !is_clear => Confidence::Low,
        _ if *rest < LARGEST_REST / 4.0 => Confidence::High,
        _ => Confidence::Medium,
    };
    let others = if is_clear { String::new() } else { format!("; {} others explain it alike", alike.len() - 1) };
    let from = format!("{from}: leaves {:.2}% of the squares{others}", 100.0 * rest);
    Some(Estimate::new(slots.clone(), confidence, from))
}
