//! The SINR of a flat channel that fails as often as the resource blocks of a transmission together: by mutual
//! information (MIESM, IEEE 802.16m-08/004r5 §4.3). The exponential rule (EESM) is an oracle of the tests.
//!
//! MIESM averages the mutual information per bit of the modulation. It is looked up in a table with 32 steps per
//! octave of the SINR (0.09 dB), linear in between, as the part of a bit that is lost: so that it stays exact where
//! nearly nothing is. SINRs are linear; below -30 dB and above 40 dB they count as those. Left out: several
//! layers, the spread of channel estimates.

use crate::decibel::to_db;
use std::sync::LazyLock;

/// Modulation of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// 2 bits per symbol.
    Qpsk,
    /// 4 bits per symbol.
    Qam16,
    /// 6 bits per symbol.
    Qam64,
}

impl Modulation {
    /// The modulation with `order` bits per symbol; 64QAM for 6 and more.
    pub fn of_order(order: u8) -> Self {
        match order {
            0..=2 => Self::Qpsk,
            3..=4 => Self::Qam16,
            _ => Self::Qam64,
        }
    }
    /// The part of a bit that is lost at the linear SINR, by the formulas.
    pub fn lost(self, sinr: f64) -> f64 {
        let root = sinr.sqrt();
        match self {
            Self::Qpsk => lost(2.0 * root),
            Self::Qam16 => 0.5 * lost(0.8 * root) + 0.25 * (lost(2.17 * root) + lost(0.965 * root)),
            Self::Qam64 => (lost(1.47 * root) + lost(0.529 * root) + lost(0.366 * root)) / 3.0,
        }
    }
}

/// Where the cubic of the exponent is left along its tangent: it turns upwards beyond.
const TANGENT: f64 = 40.0;

/// `1 - J(x)` of IEEE 802.16m-08/004r5.
fn lost(x: f64) -> f64 {
    if x < 1.6363 {
        return 1.0 - ((-0.042_106_61 * x + 0.209_252) * x - 0.006_400_81) * x;
    }
    let exponent = |x: f64| ((0.001_814_92 * x - 0.142_675) * x - 0.082_205_4) * x + 0.054_960_8;
    if x < TANGENT {
        return libm::exp(exponent(x));
    }
    let slope = (3.0 * 0.001_814_92 * TANGENT - 2.0 * 0.142_675) * TANGENT - 0.082_205_4;
    libm::exp(exponent(TANGENT) + slope * (x - TANGENT))
}

/// Steps per octave as a power of two.
const STEP_BITS: u32 = 5;
/// Octaves of the table: from 2^-10 to 2^14.
const OCTAVES: (i32, i32) = (-10, 14);
const ENTRIES: usize = (((OCTAVES.1 - OCTAVES.0) as usize) << STEP_BITS) + 1;
/// Bits of the mantissa below a step.
const SHIFT: u32 = 52 - STEP_BITS;
/// The bits of the smallest entry above the steps.
const FIRST: u64 = ((1023 + OCTAVES.0) as u64) << STEP_BITS;
/// Linear SINRs at the ends of what is looked up: -30 dB and 40 dB.
const LIMITS: (f64, f64) = (1e-3, 1e4);

/// The part of a bit that is lost at the SINR of an entry, and what is added to it up to the next.
#[derive(Clone, Copy)]
struct Entry {
    lost: f64,
    step: f64,
}

struct Table {
    entries: [Entry; ENTRIES - 1],
    /// The parts lost at all entries, which fall, and where they come to the values whose upper bits are the index.
    lost: [f64; ENTRIES],
    places: Vec<u16>,
}

static TABLES: LazyLock<[Table; 3]> =
    LazyLock::new(|| [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64].map(Table::new));

/// The linear SINR of an entry.
fn grid(index: usize) -> f64 {
    f64::from_bits((FIRST + index as u64) << SHIFT)
}

/// Bits of a part lost that are below those which a search begins with: 32 places per octave.
const PLACE_SHIFT: u32 = 52 - 5;
/// The upper bits of the first place, from 2^-40 on, and places up to 2; what is less is searched for.
const FIRST_PLACE: u64 = (1023 - 40) << 5;
const PLACES: u64 = 41 << 5;

impl Table {
    fn new(modulation: Modulation) -> Self {
        let lost: [f64; ENTRIES] = std::array::from_fn(|index| modulation.lost(grid(index)));
        let entries =
            std::array::from_fn(|index| Entry { lost: lost[index], step: lost[index + 1] - lost[index] });
        let least = |place| f64::from_bits((FIRST_PLACE + place) << PLACE_SHIFT);
        let entries_from = |place| lost.partition_point(|entry| *entry >= least(place)) as u16;
        let places = std::iter::once(ENTRIES as u16).chain((1..=PLACES).map(entries_from)).collect();
        Self { entries, lost, places }
    }
    /// The part of a bit lost at a linear SINR.
    #[inline(always)]
    fn at(&self, sinr: f64) -> f64 {
        let bits = sinr.clamp(LIMITS.0, LIMITS.1).to_bits();
        let Entry { lost, step } = self.entries[((bits >> SHIFT) - FIRST) as usize];
        // The rest of the mantissa is how far the next entry is gone to.
        let rest = bits << STEP_BITS & ((1 << 52) - 1);
        lost + (f64::from_bits(1.0f64.to_bits() | rest) - 1.0) * step
    }
    /// The linear SINR at which this part of a bit is lost.
    fn inverse(&self, lost: f64) -> f64 {
        // Entries fall: the last that is not below the value.
        let place = (lost.to_bits() >> PLACE_SHIFT).saturating_sub(FIRST_PLACE).min(PLACES - 1) as usize;
        let (from, to) = (usize::from(self.places[place + 1]), usize::from(self.places[place]));
        let after = from + self.lost[from..to].partition_point(|entry| *entry >= lost);
        let index = after.clamp(1, ENTRIES - 1) - 1;
        let (from, to) = (self.lost[index], self.lost[index + 1]);
        let rest = (from - lost) / (from - to);
        (grid(index) + rest * (grid(index + 1) - grid(index))).clamp(LIMITS.0, LIMITS.1)
    }
}

/// Effective linear SINR of resource blocks with these linear SINRs; zero for none.
pub fn miesm(modulation: Modulation, sinrs: &[f64]) -> f64 {
    miesm_of(modulation, sinrs.iter().copied())
}

/// The same of any sequence.
pub fn miesm_of(modulation: Modulation, sinrs: impl ExactSizeIterator<Item = f64>) -> f64 {
    if sinrs.len() == 0 { 0.0 } else { TABLES[modulation as usize].inverse(mean_lost(modulation, sinrs)) }
}

/// The part of a bit that is lost on average over resource blocks with these linear SINRs, at least one.
pub fn mean_lost(modulation: Modulation, sinrs: impl ExactSizeIterator<Item = f64>) -> f64 {
    let table = &TABLES[modulation as usize];
    let count = sinrs.len() as f64;
    sinrs.fold(0.0, |sum, sinr| sum + table.at(sinr)) / count
}

/// Most of a bit that may be lost on average for an effective SINR of so many dB, below the largest that counts.
pub fn most_lost(modulation: Modulation, db: f64) -> f64 {
    let table = &TABLES[modulation as usize];
    let (mut holds, mut fails) = (0, 1.0f64.to_bits());
    while fails - holds > 1 {
        let middle = holds + (fails - holds) / 2;
        match to_db(table.inverse(f64::from_bits(middle))) >= db {
            true => holds = middle,
            false => fails = middle,
        }
    }
    f64::from_bits(holds)
}

/// The effective SINR of blocks that are added one after the other.
pub struct Mean {
    table: &'static Table,
    sum: f64,
    blocks: u32,
    /// The last SINR and what it loses: neighbours often have the same.
    last: (f64, f64),
}

impl Mean {
    /// Of no block yet.
    pub fn new(modulation: Modulation) -> Self {
        Self { table: &TABLES[modulation as usize], sum: 0.0, blocks: 0, last: (f64::NAN, 0.0) }
    }
    /// Adds so many blocks with this linear SINR.
    #[inline(always)]
    pub fn add(&mut self, sinr: f64, blocks: u32) {
        if sinr != self.last.0 {
            self.last = (sinr, self.table.at(sinr));
        }
        self.sum += f64::from(blocks) * self.last.1;
        self.blocks += blocks;
    }
    /// The effective linear SINR; zero for no block.
    pub fn sinr(&self) -> f64 {
        if self.blocks == 0 { 0.0 } else { self.table.inverse(self.sum / f64::from(self.blocks)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::from_db;
    use paceline_net::Stream;

    /// Effective linear SINR `-beta ln(mean(exp(-sinr / beta)))`; zero for no resource blocks.
    fn eesm(beta: f64, sinrs: &[f64]) -> f64 {
        if sinrs.is_empty() {
            return 0.0;
        }
        // From the smallest, so that the largest term is 1.
        let smallest = sinrs.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 = sinrs.iter().map(|sinr| libm::exp(-(sinr - smallest) / beta)).sum();
        smallest - beta * libm::log(sum / sinrs.len() as f64)
    }

    /// The beta of EESM for a CQI 1..=15, from one public code: uncalibrated against a second.
    fn eesm_beta(cqi: usize) -> f64 {
        static BETAS: LazyLock<Vec<f64>> = LazyLock::new(|| {
            let rows =
                include_str!("../../data/lte_cqi_sinr.csv").lines().filter(|line| !line.starts_with('#'));
            rows.skip(1).filter_map(|row| row.split(',').nth(10)?.parse().ok()).collect()
        });
        BETAS[cqi - 1]
    }

    const ALL: [Modulation; 3] = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64];

    /// The inverse of the formulas by bisection in dB.
    fn bisected(modulation: Modulation, lost: f64) -> f64 {
        let (mut low, mut high) = (-30.0, 40.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if modulation.lost(from_db(middle)) > lost { low = middle } else { high = middle }
        }
        low
    }

    #[test]
    fn information_holds_by_hand() {
        // J(1) = -0.04210661 + 0.209252 - 0.00640081 = 0.16074458, QPSK at x = 2 sqrt(0.25).
        assert!((1.0 - Modulation::Qpsk.lost(0.25) - 0.160_744_58).abs() < 1e-9);
        // J(2) = 1 - exp(0.01451936 - 0.5707 - 0.1644108 + 0.0549608) = 0.4861 at 0 dB.
        assert!((1.0 - Modulation::Qpsk.lost(1.0) - 0.486_15).abs() < 5e-4, "{}", Modulation::Qpsk.lost(1.0));
        // 16QAM and 64QAM carry less per bit at the same SINR, and all carry one bit at the end.
        for db in [-5.0, 0.0, 5.0, 10.0] {
            let [a, b, c] = ALL.map(|modulation| modulation.lost(from_db(db)));
            assert!(a < b && b < c, "{db}");
        }
        assert!(ALL.iter().all(|modulation| modulation.lost(1e4) < 1e-12));
    }

    #[test]
    fn a_flat_channel_keeps_its_sinr() {
        for modulation in ALL {
            for tenth in -299..400 {
                let sinr = from_db(f64::from(tenth) * 0.1);
                let got = miesm(modulation, &[sinr; 7]);
                assert!((to_db(got / sinr)).abs() < 1e-6, "{modulation:?} {tenth} {got}");
            }
            assert_eq!(miesm(modulation, &[]), 0.0);
        }
        assert!((eesm(5.01, &[3.0; 9]) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_table_agrees_with_the_formulas() {
        let mut stream = Stream::new(1, "sinrs");
        for modulation in ALL {
            let mut worst = 0.0f64;
            for _ in 0..4000 {
                let (mean, spread) = (stream.uniform_in(-10.0, 25.0), stream.uniform_in(0.0, 6.0));
                let sinrs: Vec<f64> =
                    (0..25).map(|_| from_db((mean + spread * stream.normal()).clamp(-29.0, 39.0))).collect();
                let lost = sinrs.iter().map(|sinr| modulation.lost(*sinr)).sum::<f64>() / 25.0;
                worst = worst.max((to_db(miesm(modulation, &sinrs)) - bisected(modulation, lost)).abs());
            }
            assert!(worst < 0.02, "{modulation:?} {worst}");
        }
    }

    #[test]
    fn tables_fall_everywhere() {
        for table in TABLES.iter() {
            assert!(table.lost.windows(2).all(|pair| pair[1] < pair[0] && pair[1] > 0.0));
        }
    }

    #[test]
    fn the_way_back_finds_the_entries_around_every_value() {
        let mut stream = Stream::new(2, "losses");
        for table in TABLES.iter() {
            let drawn = (0..20_000).map(|_| libm::exp(-stream.uniform_in(-0.01, 60.0)));
            let entries = table.lost.iter().flat_map(|entry| [entry.next_down(), *entry, entry.next_up()]);
            for lost in drawn.chain(entries).chain([0.0, 1.0, 1.5]) {
                let after = table.lost.partition_point(|entry| *entry >= lost);
                let index = after.clamp(1, ENTRIES - 1) - 1;
                let (from, to) = (table.lost[index], table.lost[index + 1]);
                let rest = (from - lost) / (from - to);
                let plain = grid(index) + rest * (grid(index + 1) - grid(index));
                assert_eq!(table.inverse(lost), plain.clamp(LIMITS.0, LIMITS.1), "{lost:e}");
            }
        }
    }

    #[test]
    fn the_most_that_may_be_lost_stands_between_two_sinrs() {
        for (index, modulation) in ALL.into_iter().enumerate() {
            for db in [-6.94, 0.0, 9.3, 19.83] {
                let most = most_lost(modulation, db);
                let sinr = |lost| to_db(TABLES[index].inverse(lost));
                assert!(sinr(most) >= db && sinr(most.next_up()) < db, "{modulation:?} {db}");
            }
        }
    }

    #[test]
    fn the_effective_sinr_lies_between_its_blocks() {
        for modulation in ALL {
            let sinrs = [1.0, 10.0];
            let got = miesm(modulation, &sinrs);
            // Worse than the mean SINR of 5.5: information is concave.
            assert!(got > 1.0 && got < 5.5, "{modulation:?} {got}");
        }
        // By hand: -2 ln((e^-0.5 + e^-5) / 2) = -2 ln(0.3066343) = 2.36417.
        assert!((eesm(2.0, &[1.0, 10.0]) - 2.364_17).abs() < 1e-4, "{}", eesm(2.0, &[1.0, 10.0]));
        assert_eq!((eesm_beta(1), eesm_beta(15)), (5.01, 35.41));
        assert!(eesm(1.0, &[2000.0, 3000.0]).is_finite());
    }

    #[test]
    fn both_maps_agree_roughly() {
        // QPSK of CQI 5 over two blocks 6 dB apart.
        let sinrs = [from_db(-3.0), from_db(3.0)];
        let (mutual, exponential) =
            (to_db(miesm(Modulation::Qpsk, &sinrs)), to_db(eesm(eesm_beta(5), &sinrs)));
        assert!((mutual - exponential).abs() < 0.5, "{mutual} {exponential}");
    }
}
