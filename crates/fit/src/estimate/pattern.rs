//! The TDD pattern: the one of all usual patterns whose slots explain the deliveries over 20 ms.
//!
//! While a queue lasts, every slot of the data's direction carries a full block, special slots a smaller one.
//! Patterns are compared by the squares that they leave unexplained; a flat profile is FDD. Timestamps of 1
//! ms do not tell slots of 1 ms from two of 0.5 ms: then the share of the special slot decides, which has few
//! usual values. Left out: 15 kHz TDD of NR, 60 kHz, and patterns of two runs of downlink slots, but for
//! those of LTE.

use super::profile::{Profile, SPAN};
use super::{Confidence, Estimate};

/// Periods of NR by length of slots, ns (TS 38.331 §6.3.2, dl-UL-TransmissionPeriodicity): those in use at 30
/// kHz in FR1, and at 120 kHz in FR2.
const NR: [(f64, &[f64]); 2] = [(500e3, &[2e6, 2.5e6, 5e6]), (125e3, &[0.625e6, 1.25e6])];
/// Configurations 0 to 6 of LTE (TS 36.211 Table 4.2-2), from the first downlink subframe behind an uplink
/// one on.
pub const LTE: [&str; 7] =
    ["DSUUU", "DDSUU", "DDDSU", "DDDDDDSUUU", "DDDDDDDSUU", "DDDDDDDDSU", "DDSUUUDSUU"];
/// Largest share of a special slot's block of that of a downlink slot: 12 of 14 symbols, the most that leave
/// a guard (TS 36.211 Table 4.2-1), less those of control and reference signals.
const LARGEST_SPECIAL: f64 = 0.9;
/// Shares of special slots of usual splits: 6 and 10 downlink symbols in NR, of which two are control and
/// reference signals as in full slots; in LTE 0.75 of the resource blocks (TS 36.213 §7.1.7) in a table of
/// block sizes.
const NR_SPECIAL: [f64; 2] = [4.0 / 12.0, 8.0 / 12.0];
const LTE_SPECIAL: [f64; 1] = [0.74];
/// Largest difference from these, in NR and in LTE. Chosen: fading changes the share by some hundredths;
/// LTE's is near one of NR's.
const NEAR_SPECIAL: f64 = 0.08;
const NEAR_LTE_SPECIAL: f64 = 0.05;
/// Share of the squares that a pattern may leave. Chosen: blocks that HARQ repeats, and synchronisation
/// blocks, leave a hundredth; a wrong pattern of 20 slots at least a twentieth.
const LARGEST_REST: f64 = 0.04;
/// The same of a flat profile: one uplink slot of 20 leaves a twentieth.
const LARGEST_FLAT: f64 = 0.012;
/// Factor by which every other pattern must leave more squares. Chosen: by cells of the project with other
/// seeds than those that judge it.
const CLEAR: f64 = 2.5;
/// Squares that any pattern leaves by chance, as a share. Chosen: rates of single slots vary by 3% in the
/// mean of some seconds.
const NOISE: f64 = 0.001;
/// Least period that timestamps of 1 ms tell from others, ms. Chosen: they show one of 2 ms by two values,
/// and shorter ones by their beat alone.
const LEAST_PERIOD: f64 = 2.1;
/// Deliveries below which nothing is claimed. Chosen: five for each millisecond of the span.
const FEW: usize = 100;

/// Direction of the deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// From the base station.
    Down,
    /// To the base station.
    Up,
}

/// The observations of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Arrivals, whose bins are slots.
    Arrivals,
    /// Timestamps, whose bins are of 1 ms.
    Timestamps,
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
    /// Whether the special slot has a usual share, or none is seen.
    fn is_usual(&self) -> bool {
        let (usual, near): (&[f64], f64) =
            if self.slot_ms > 0.9 { (&LTE_SPECIAL, NEAR_LTE_SPECIAL) } else { (&NR_SPECIAL, NEAR_SPECIAL) };
        self.special.is_none_or(|share| usual.iter().any(|known| (share - known).abs() <= near))
    }
}

struct Candidate {
    letters: String,
    slot: f64,
}

fn candidates() -> Vec<Candidate> {
    let mut list: Vec<Candidate> =
        LTE.iter().map(|letters| Candidate { letters: (*letters).to_owned(), slot: 1e6 }).collect();
    for (slot, periods) in NR {
        for period in periods {
            let slots = (period / slot + 0.5) as usize;
            let runs = (1..slots - 1).map(|up| "D".repeat(slots - up - 1) + "S" + &"U".repeat(up));
            list.extend(runs.map(|letters| Candidate { letters, slot }));
        }
    }
    list
}

/// Squares that a flat profile leaves, as a share.
fn flatness(profile: &Profile) -> f64 {
    let mean = profile.weights.iter().sum::<f64>() / profile.weights.len() as f64;
    let rest = profile.weights.iter().map(|weight| (weight - mean) * (weight - mean)).sum::<f64>();
    rest / profile.power().max(1e-9)
}

/// Squares that a candidate leaves in the best position, as a share, and the special slot's share.
fn rest(profile: &Profile, candidate: &Candidate, link: Link) -> (f64, Option<f64>) {
    let bins = profile.weights.len();
    let power = profile.power().max(1e-9);
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

/// Finds the pattern in the profiles of one path, those of arrivals on the longest slots first.
pub fn find(profiles: &[Profile], link: Link, seen: Seen) -> Option<Estimate<Slots>> {
    let (source, all) = match seen {
        Seen::Arrivals => ("arrivals behind the radio", profiles),
        Seen::Timestamps => ("timestamps of acknowledgments", profiles),
    };
    let first = all.first()?;
    let count = first.count;
    let mut ranking: Vec<(f64, Slots)> = Vec::new();
    // One uplink slot in a period does not show its length.
    let used = if link == Link::Up { all } else { &all[..1] };
    for profile in used {
        for candidate in &candidates() {
            if seen == Seen::Arrivals && (candidate.slot - profile.bin).abs() > 1.0 {
                continue;
            }
            let (rest, special) = rest(profile, candidate, link);
            ranking.push((
                rest,
                Slots { letters: candidate.letters.clone(), slot_ms: candidate.slot / 1e6, special },
            ));
        }
    }
    ranking.sort_by(|a, b| a.0.total_cmp(&b.0));
    let flat = flatness(first);
    let least = ranking.first().map_or(flat, |(rest, _)| rest.min(flat));
    let limit = (least + NOISE) * CLEAR;
    if flat <= limit {
        let slots = Slots { letters: String::new(), slot_ms: first.bin / 1e6, special: None };
        let confidence = match flat {
            _ if count < FEW || flat > LARGEST_FLAT || flat > CLEAR * least.max(NOISE) => Confidence::Low,
            _ if flat < LARGEST_FLAT / 4.0 => Confidence::High,
            _ => Confidence::Medium,
        };
        let from = format!(
            "{source}: all slots of {} ms alike but for {:.2}% of the squares",
            slots.slot_ms,
            100.0 * flat
        );
        return Some(Estimate::new(slots, confidence, from));
    }
    let alike: Vec<&(f64, Slots)> = ranking.iter().filter(|(rest, _)| *rest <= limit).collect();
    let usual: Vec<&(f64, Slots)> = alike.iter().copied().filter(|(_, slots)| slots.is_usual()).collect();
    let (rest, slots) = usual.first().or(alike.first())?;
    let is_clear = alike.len() == 1 || usual.len() == 1;
    let confidence = match alike.len() {
        _ if *rest > LARGEST_REST || count < FEW || !is_clear => Confidence::Low,
        _ if seen == Seen::Timestamps && slots.period_ms() < LEAST_PERIOD => Confidence::Low,
        1 if *rest < LARGEST_REST / 2.0 => Confidence::High,
        2.. if *rest > LARGEST_REST / 2.0 => Confidence::Low,
        _ => Confidence::Medium,
    };
    let others = match alike.len() {
        1 => String::new(),
        _ if is_clear => format!("; the special slot tells it from {} others", alike.len() - 1),
        _ => format!("; {} others explain them alike", alike.len() - 1),
    };
    let from = format!("{source}: all but {:.2}% of the squares{others}", 100.0 * rest);
    Some(Estimate::new(slots.clone(), confidence, from))
}
