//! Effective SINR by mutual information (MIESM, IEEE 802.16m-08/004r5 §4.3): the SINR of a flat channel that
//! has the same block error as the PRBs of a transmission together.
//!
//! MIESM averages the mutual information per bit of the modulation over the PRBs. The code works with the
//! information loss, 1 less the mutual information, which stays exact where the loss is tiny. A table has 32
//! entries per octave of the SINR (0.09 dB), linear in between. SINRs are linear and limited to -30..40 dB.
//! Left out: several layers, the effect of channel estimation.

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
    /// Information loss per bit at a linear SINR, by the formulas of IEEE 802.16m-08/004r5.
    pub fn information_loss(self, sinr: f64) -> f64 {
        let root = sinr.sqrt();
        match self {
            Self::Qpsk => loss(2.0 * root),
            Self::Qam16 => 0.5 * loss(0.8 * root) + 0.25 * (loss(2.17 * root) + loss(0.965 * root)),
            Self::Qam64 => (loss(1.47 * root) + loss(0.529 * root) + loss(0.366 * root)) / 3.0,
        }
    }
}

/// Effective linear SINR of a sequence of linear SINRs; zero for an empty one.
pub fn miesm_of(modulation: Modulation, sinrs: impl ExactSizeIterator<Item = f64>) -> f64 {
    if sinrs.len() == 0 { 0.0 } else { TABLES[modulation as usize].inverse(mean_loss(modulation, sinrs)) }
}

/// Mean information loss per bit over these linear SINRs, at least one.
pub fn mean_loss(modulation: Modulation, sinrs: impl ExactSizeIterator<Item = f64>) -> f64 {
    let table = &TABLES[modulation as usize];
    let count = sinrs.len() as f64;
    sinrs.fold(0.0, |sum, sinr| sum + table.at(sinr)) / count
}

/// The largest mean information loss whose effective SINR is at least `db`, for `db` below 40.
pub fn max_loss(modulation: Modulation, db: f64) -> f64 {
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

/// Accumulates the effective SINR of PRBs that are added one after the other.
pub struct EffectiveSinr {
    table: &'static Table,
    loss_sum: f64,
    prbs: u32,
    /// The last SINR and its loss: adjacent PRBs often have the same SINR.
    last: (f64, f64),
}

impl EffectiveSinr {
    /// Without any PRB.
    pub fn new(modulation: Modulation) -> Self {
        Self { table: &TABLES[modulation as usize], loss_sum: 0.0, prbs: 0, last: (f64::NAN, 0.0) }
    }
    /// Adds `prbs` PRBs with this linear SINR.
    #[inline(always)]
    pub fn add(&mut self, sinr: f64, prbs: u32) {
        if sinr != self.last.0 {
            self.last = (sinr, self.table.at(sinr));
        }
        self.loss_sum += f64::from(prbs) * self.last.1;
        self.prbs += prbs;
    }
    /// The effective linear SINR; zero without any PRB.
    pub fn sinr(&self) -> f64 {
        if self.prbs == 0 { 0.0 } else { self.table.inverse(self.loss_sum / f64::from(self.prbs)) }
    }
}

/// Argument from which on the exponent of [`loss`] is continued along its tangent. Chosen: the cubic turns
/// upwards beyond.
const TANGENT: f64 = 40.0;

/// `1 - J(x)` of IEEE 802.16m-08/004r5.
fn loss(x: f64) -> f64 {
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

/// Table entries per octave of the SINR, as a power of two. Chosen: the table is within 0.02 dB of the
/// formulas (test).
const STEP_BITS: u32 = 5;
/// Octaves of the table: SINRs from 2^-10 to 2^14. Chosen: they enclose [`LIMITS`].
const OCTAVES: (i32, i32) = (-10, 14);
/// Number of table entries. Derived from the two constants above.
const ENTRIES: usize = (((OCTAVES.1 - OCTAVES.0) as usize) << STEP_BITS) + 1;
/// Bits of an f64 mantissa below a table step. Derived.
const SHIFT: u32 = 52 - STEP_BITS;
/// Upper bits of the f64 of the first entry. Derived: biased exponent and no mantissa bits.
const FIRST: u64 = ((1023 + OCTAVES.0) as u64) << STEP_BITS;
/// Smallest and largest linear SINR that is looked up: -30 dB and 40 dB. Chosen: no MCS works or fails beyond
/// them.
const LIMITS: (f64, f64) = (1e-3, 1e4);

/// Loss at the SINR of an entry, and its difference to the next entry's.
#[derive(Clone, Copy)]
struct Entry {
    loss: f64,
    step: f64,
}

struct Table {
    entries: [Entry; ENTRIES - 1],
    /// Losses of all entries, in descending order.
    losses: [f64; ENTRIES],
    /// For each value of a loss's upper bits, the index in `losses` at which a search for it begins.
    places: Vec<u16>,
}

static TABLES: LazyLock<[Table; 3]> =
    LazyLock::new(|| [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64].map(Table::new));

/// The linear SINR of an entry.
fn grid(index: usize) -> f64 {
    f64::from_bits((FIRST + index as u64) << SHIFT)
}

/// Bits of a loss's f64 below those that select a place. Chosen: 32 places per octave.
const PLACE_SHIFT: u32 = 52 - 5;
/// Upper bits of the first place, a loss of 2^-40. Chosen: a smaller loss needs a longer search and is rare.
const FIRST_PLACE: u64 = (1023 - 40) << 5;
/// Number of places. Derived: 41 octaves up to a loss of 2.
const PLACES: u64 = 41 << 5;

impl Table {
    fn new(modulation: Modulation) -> Self {
        let losses: [f64; ENTRIES] = std::array::from_fn(|index| modulation.information_loss(grid(index)));
        let entries = std::array::from_fn(|index| Entry {
            loss: losses[index],
            step: losses[index + 1] - losses[index],
        });
        let least = |place| f64::from_bits((FIRST_PLACE + place) << PLACE_SHIFT);
        let entries_from = |place| losses.partition_point(|entry| *entry >= least(place)) as u16;
        let places = std::iter::once(ENTRIES as u16).chain((1..=PLACES).map(entries_from)).collect();
        Self { entries, losses, places }
    }
    /// Information loss at a linear SINR.
    #[inline(always)]
    fn at(&self, sinr: f64) -> f64 {
        let bits = sinr.clamp(LIMITS.0, LIMITS.1).to_bits();
        let Entry { loss, step } = self.entries[((bits >> SHIFT) - FIRST) as usize];
        // The lower mantissa bits are the position between this entry and the next.
        let rest = bits << STEP_BITS & ((1 << 52) - 1);
        loss + (f64::from_bits(1.0f64.to_bits() | rest) - 1.0) * step
    }
    /// The linear SINR of an information loss.
    fn inverse(&self, loss: f64) -> f64 {
        let place = (loss.to_bits() >> PLACE_SHIFT).saturating_sub(FIRST_PLACE).min(PLACES - 1) as usize;
        let (from, to) = (usize::from(self.places[place + 1]), usize::from(self.places[place]));
        // The last entry with at least this loss, and the next one.
        let after = from + self.losses[from..to].partition_point(|entry| *entry >= loss);
        let index = after.clamp(1, ENTRIES - 1) - 1;
        let (from, to) = (self.losses[index], self.losses[index + 1]);
        let rest = (from - loss) / (from - to);
        (grid(index) + rest * (grid(index + 1) - grid(index))).clamp(LIMITS.0, LIMITS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::from_db;
    use paceline_net::Stream;

    fn miesm(modulation: Modulation, sinrs: &[f64]) -> f64 {
        miesm_of(modulation, sinrs.iter().copied())
    }

    /// Effective linear SINR `-beta ln(mean(exp(-sinr / beta)))`; zero without SINRs.
    fn eesm(beta: f64, sinrs: &[f64]) -> f64 {
        if sinrs.is_empty() {
            return 0.0;
        }
        // Relative to the smallest SINR, so that the largest term is 1.
        let smallest = sinrs.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 = sinrs.iter().map(|sinr| libm::exp(-(sinr - smallest) / beta)).sum();
        smallest - beta * libm::log(sum / sinrs.len() as f64)
    }

    /// The beta of EESM for a CQI 1..=15, from one public code without a second source.
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
            if modulation.information_loss(from_db(middle)) > lost { low = middle } else { high = middle }
        }
        low
    }

    #[test]
    fn mutual_information_holds_by_hand() {
        // J(1) = -0.04210661 + 0.209252 - 0.00640081 = 0.16074458, QPSK at x = 2 sqrt(0.25).
        assert!((1.0 - Modulation::Qpsk.information_loss(0.25) - 0.160_744_58).abs() < 1e-9);
        // J(2) = 1 - exp(0.01451936 - 0.5707 - 0.1644108 + 0.0549608) = 0.4861 at 0 dB.
        assert!(
            (1.0 - Modulation::Qpsk.information_loss(1.0) - 0.486_15).abs() < 5e-4,
            "{}",
            Modulation::Qpsk.information_loss(1.0)
        );
        // 16QAM and 64QAM carry less information per bit at the same SINR; at 40 dB all carry one bit.
        for db in [-5.0, 0.0, 5.0, 10.0] {
            let [a, b, c] = ALL.map(|modulation| modulation.information_loss(from_db(db)));
            assert!(a < b && b < c, "{db}");
        }
        assert!(ALL.iter().all(|modulation| modulation.information_loss(1e4) < 1e-12));
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
                let lost = sinrs.iter().map(|sinr| modulation.information_loss(*sinr)).sum::<f64>() / 25.0;
                worst = worst.max((to_db(miesm(modulation, &sinrs)) - bisected(modulation, lost)).abs());
            }
            assert!(worst < 0.02, "{modulation:?} {worst}");
        }
    }

    #[test]
    fn information_loss_decreases_over_the_whole_table() {
        for table in TABLES.iter() {
            assert!(table.losses.windows(2).all(|pair| pair[1] < pair[0] && pair[1] > 0.0));
        }
    }

    #[test]
    fn the_inverse_finds_the_entries_around_every_value() {
        let mut stream = Stream::new(2, "losses");
        for table in TABLES.iter() {
            let drawn = (0..20_000).map(|_| libm::exp(-stream.uniform_in(-0.01, 60.0)));
            let entries = table.losses.iter().flat_map(|entry| [entry.next_down(), *entry, entry.next_up()]);
            for lost in drawn.chain(entries).chain([0.0, 1.0, 1.5]) {
                let after = table.losses.partition_point(|entry| *entry >= lost);
                let index = after.clamp(1, ENTRIES - 1) - 1;
                let (from, to) = (table.losses[index], table.losses[index + 1]);
                let rest = (from - lost) / (from - to);
                let plain = grid(index) + rest * (grid(index + 1) - grid(index));
                assert_eq!(table.inverse(lost), plain.clamp(LIMITS.0, LIMITS.1), "{lost:e}");
            }
        }
    }

    #[test]
    fn the_maximum_loss_is_exact_to_one_float() {
        for (index, modulation) in ALL.into_iter().enumerate() {
            for db in [-6.94, 0.0, 9.3, 19.83] {
                let most = max_loss(modulation, db);
                let sinr = |lost| to_db(TABLES[index].inverse(lost));
                assert!(sinr(most) >= db && sinr(most.next_up()) < db, "{modulation:?} {db}");
            }
        }
    }

    #[test]
    fn the_effective_sinr_lies_between_the_prbs_sinrs() {
        for modulation in ALL {
            let sinrs = [1.0, 10.0];
            let got = miesm(modulation, &sinrs);
            // Below the mean SINR of 5.5, since mutual information is concave.
            assert!(got > 1.0 && got < 5.5, "{modulation:?} {got}");
        }
        // By hand: -2 ln((e^-0.5 + e^-5) / 2) = -2 ln(0.3066343) = 2.36417.
        assert!((eesm(2.0, &[1.0, 10.0]) - 2.364_17).abs() < 1e-4, "{}", eesm(2.0, &[1.0, 10.0]));
        assert_eq!((eesm_beta(1), eesm_beta(15)), (5.01, 35.41));
        assert!(eesm(1.0, &[2000.0, 3000.0]).is_finite());
    }

    #[test]
    fn miesm_and_eesm_agree_roughly() {
        // QPSK of CQI 5 over two PRBs 6 dB apart.
        let sinrs = [from_db(-3.0), from_db(3.0)];
        let (mutual, exponential) =
            (to_db(miesm(Modulation::Qpsk, &sinrs)), to_db(eesm(eesm_beta(5), &sinrs)));
        assert!((mutual - exponential).abs() < 0.5, "{mutual} {exponential}");
    }
}
