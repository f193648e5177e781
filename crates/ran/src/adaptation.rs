//! Link adaptation: the CQI and rank that a station reports, and the MCS that a scheduler takes for a report
//! or for an uplink SINR.
//!
//! A CQI holds where one transport block in ten at most fails (TS 36.213 §7.2.3, TS 38.214 §5.2.2.1), one in
//! 100,000 in NR's table of low efficiency. Published thresholds are those of one code block. A transport
//! block of the whole carrier has up to 140, and fails with any of them: its thresholds are higher. A step to
//! more bits is also not taken before it carries more, retransmissions included, so that goodput never falls
//! with a rising SINR. The uplink of LTE keeps the thresholds of its table, whose steps are large enough on
//! all carriers.

use crate::decibel::to_db;
use crate::duplex::Direction;
use crate::error_curve::ErrorCurve;
use crate::lte;
use crate::mcs::{Mcs, PrbSize};
use crate::nr::config::NrConfig;
use crate::nr::mcs::McsTable;
use crate::nr::{self, rank};
use crate::radio::Modulation;
use crate::radio::effective_sinr::max_loss;
use crate::rat::{Quality, Rat};
use paceline_net::tdd::SYMBOLS_PER_SLOT;

/// Block error that a CQI or an MCS may have (TS 36.213 §7.2.3, TS 38.214 §5.2.2.1).
const TARGET: f64 = 0.1;
/// Block error that a CQI of NR's table of low efficiency may have (TS 38.214 §5.2.2.1).
const LOW_TARGET: f64 = 1e-5;
/// Steps of a search for a SINR. Chosen: half of 10 dB, halved so often, is below 1e-8 dB.
const BISECTIONS: u32 = 30;
/// Distance in dB from a threshold at which a block is always decoded. Chosen: the largest sigma is about 1
/// dB, of 40 bits, and the curve ends at 6 of them.
const CERTAIN_DB: f64 = 6.0;

/// One of the choices by SINR.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// Lowest SINR in dB.
    pub from_db: f64,
    /// Number of the CQI or of the row in its table.
    pub index: u8,
    /// Bits of a transport block of the whole carrier.
    bits: u32,
    /// The curve of such a block.
    curve: ErrorCurve,
}

impl Choice {
    /// Bits per transmission of a block at a SINR in dB: a failed one takes another transmission, which Chase
    /// combining lets succeed.
    fn carried(&self, sinr_db: f64) -> f64 {
        f64::from(self.bits) / (1.0 + self.curve.error(sinr_db))
    }
}

/// Choices in ascending order of SINRs and bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices(Vec<Choice>);

impl Choices {
    /// Of these, whose `from_db` holds for one code block, those that carry the most bits at some SINR with
    /// the block error `target` at most.
    fn new(all: impl IntoIterator<Item = Choice>, target: f64) -> Self {
        let mut all: Vec<Choice> = all.into_iter().collect();
        all.sort_by_key(|choice| choice.bits);
        let mut steps: Vec<Choice> = Vec::new();
        for mut choice in all {
            if choice.curve.code_blocks > 1 {
                choice.from_db = choice
                    .from_db
                    .max(lowest(choice.curve.s50_db, |sinr_db| choice.curve.error(sinr_db) <= target));
            }
            steps.retain(|step| step.from_db < choice.from_db);
            let Some(last) = steps.last() else {
                steps.push(choice);
                continue;
            };
            if choice.bits > last.bits {
                let carries_more = |sinr_db| choice.carried(sinr_db) >= last.carried(sinr_db);
                choice.from_db = lowest(choice.from_db, carries_more);
                steps.push(choice);
            }
        }
        Self(steps)
    }
    /// The choice at a SINR in dB; none below the lowest.
    pub fn at(&self, sinr_db: f64) -> Option<&Choice> {
        self.0[..self.0.partition_point(|choice| choice.from_db <= sinr_db)].last()
    }
    /// The lowest SINR in dB of the choice with this index, or of the one that took its place.
    fn threshold_db(&self, index: u8) -> Option<f64> {
        self.0.iter().find(|choice| choice.index >= index).map(|choice| choice.from_db)
    }
}

/// The lowest SINR in dB from `from_db` on at which `holds`, which holds from there on.
fn lowest(from_db: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(from_db) {
        return from_db;
    }
    let (mut fails, mut held) = (from_db, from_db + CERTAIN_DB);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(fails, held);
        if holds(middle) { held = middle } else { fails = middle }
    }
    held
}

/// A choice of NR: a block of a row in PRBs of a size.
fn nr_choice(row: &'static nr::mcs::Mcs, (index, from_db): (u8, f64), block: (u8, PrbSize, u16)) -> Choice {
    let (layers, size, prbs) = block;
    let mcs = Mcs::Nr { row, layers };
    let bits = mcs.block_bits(size, prbs);
    Choice { from_db, index, bits, curve: mcs.error_curve(bits) }
}
/// The CQIs of a table of NR for blocks of these layers, PRB size and PRBs.
pub(crate) fn nr_cqis(table: McsTable, block: (u8, PrbSize, u16)) -> Choices {
    let target = if table == McsTable::LowEfficiency { LOW_TARGET } else { TARGET };
    let of = |cqi: u8| {
        let threshold = nr::cqi::threshold_db(table, cqi)?;
        if let Some(row) = nr::cqi::mcs(table, cqi) {
            return Some(nr_choice(row, (cqi, threshold), block));
        }
        // Below MCS 0, whose failed blocks HARQ combines: as many bits as the CQI's own rate would carry.
        let lowest = nr_choice(&table.rows()[0], (cqi, threshold), block);
        let bits = u64::from(lowest.bits) * u64::from(nr::cqi::rows(table)[usize::from(cqi) - 1].bits_x2048)
            / u64::from(table.rows()[0].bits_x2048());
        let curve = ErrorCurve { s50_db: f64::NEG_INFINITY, sigma_db: 1.0, code_blocks: 1 };
        (block.0 == 1).then_some(Choice { bits: bits as u32, curve, ..lowest })
    };
    Choices::new((1..=15).filter_map(of), target)
}
/// The rows of an MCS table of NR for such blocks.
fn nr_rows(table: McsTable, block: (u8, PrbSize, u16)) -> Choices {
    let rows = table.rows().iter().map(|row| nr_choice(row, (row.index, row.s10_db), block));
    Choices::new(rows, TARGET)
}

/// Transmissions with a number of layers in NR.
#[derive(Clone, Debug)]
struct Layers {
    /// SINR of a layer relative to that of a single one, dB.
    gain_db: f64,
    cqis: Choices,
    rows: Choices,
}

/// Link adaptation of one carrier.
#[derive(Clone, Debug)]
pub(crate) enum LinkAdaptation {
    Lte(Box<LteCqis>),
    Nr(Box<NrLayers>),
}

/// The CQIs of an LTE carrier.
#[derive(Clone, Debug)]
pub(crate) struct LteCqis {
    /// The lowest SINR in dB of each.
    thresholds_db: [f64; 15],
    /// By modulation, the largest mean information loss per bit that supports each.
    pub max_loss: [[f64; 15]; 3],
}

/// The numbers of layers of an NR carrier, from one on.
#[derive(Clone, Debug)]
pub(crate) struct NrLayers {
    tables: (McsTable, McsTable),
    downlink: Vec<Layers>,
    uplink: Vec<Layers>,
}

impl LteCqis {
    /// The CQIs of a carrier with so many downlink PRBs.
    pub fn new(n_prb: u16) -> Self {
        let of = |cqi: u8| {
            let mcs = Mcs::Lte(&lte::mcs::DOWNLINK[usize::from(lte::cqi::mcs(cqi)?)]);
            let bits = mcs.block_bits(PrbSize(8), n_prb);
            Some(Choice {
                from_db: lte::cqi::threshold_db(cqi)?,
                index: cqi,
                bits,
                curve: mcs.error_curve(bits),
            })
        };
        let choices = Choices::new((1..=15).filter_map(of), TARGET);
        let thresholds_db =
            std::array::from_fn(|index| choices.threshold_db(index as u8 + 1).unwrap_or(f64::INFINITY));
        let max_loss = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64]
            .map(|modulation| thresholds_db.map(|threshold_db| max_loss(modulation, threshold_db)));
        Self { thresholds_db, max_loss }
    }
    /// The highest CQI that a wideband SINR in dB supports; 0 means out of range.
    pub fn of_sinr(&self, sinr_db: f64) -> u8 {
        self.thresholds_db.partition_point(|threshold| *threshold <= sinr_db) as u8
    }
    /// The lowest SINR in dB of a CQI; none for CQI 0.
    pub fn threshold_db(&self, cqi: u8) -> Option<f64> {
        self.thresholds_db.get(usize::from(cqi).checked_sub(1)?).copied()
    }
}

impl NrLayers {
    fn new(config: &NrConfig, rat: &Rat, (downlink_prb, uplink_prb): (u16, u16)) -> Self {
        let of = |direction, (table, most, antennas, prbs)| {
            let size = rat.prb_size(direction, SYMBOLS_PER_SLOT);
            let size = size.expect("reference signals and overhead leave resource elements in a slot");
            let layers = |layers: u8| Layers {
                gain_db: to_db(rank::layer_gain(layers, antennas)),
                cqis: nr_cqis(table, (layers, size, prbs)),
                rows: nr_rows(table, (layers, size, prbs)),
            };
            (1..=u8::min(most, antennas)).map(layers).collect()
        };
        let NrConfig { downlink_table, uplink_table, .. } = *config;
        let down = (downlink_table, config.downlink_layers, config.downlink_antennas, downlink_prb);
        let up = (uplink_table, config.uplink_layers, config.uplink_antennas, uplink_prb);
        Self {
            tables: (downlink_table, uplink_table),
            downlink: of(Direction::Down, down),
            uplink: of(Direction::Up, up),
        }
    }
}

/// The number of layers, with its choice at their SINRs, that carries the most bits; of equal ones, the
/// fewest layers. `effective_db` gives the effective SINR in dB of a layer whose SINR is changed by so many
/// dB.
fn best<'a>(
    layers: &'a [Layers],
    of: fn(&Layers) -> &Choices,
    effective_db: impl Fn(f64) -> f64,
) -> Option<(u8, &'a Choice)> {
    let at = |own: &'a Layers| {
        let sinr_db = effective_db(own.gain_db);
        of(own).at(sinr_db).map(|choice| (choice, sinr_db))
    };
    if let [single] = layers {
        return at(single).map(|(choice, _)| (1, choice));
    }
    let mut most: Option<(u8, &Choice, f64)> = None;
    for (index, own) in layers.iter().enumerate() {
        let Some((choice, sinr_db)) = at(own) else { continue };
        let carried = choice.carried(sinr_db);
        if most.is_none_or(|(.., other)| carried > other) {
            most = Some((index as u8 + 1, choice, carried));
        }
    }
    most.map(|(layers, choice, _)| (layers, choice))
}

impl LinkAdaptation {
    /// Link adaptation of a carrier with so many PRBs of PDSCH and of PUSCH.
    pub fn new(rat: &Rat, prbs: (u16, u16)) -> Self {
        match rat {
            Rat::Lte => Self::Lte(Box::new(LteCqis::new(prbs.0))),
            Rat::Nr(config) => Self::Nr(Box::new(NrLayers::new(config, rat, prbs))),
        }
    }
    /// The report of a station at a SINR in dB, the same in every PRB.
    pub fn quality(&self, sinr_db: f64) -> Quality {
        match self {
            Self::Lte(cqis) => Quality { cqi: cqis.of_sinr(sinr_db), layers: 1 },
            Self::Nr(_) => self.quality_by(|gain_db| sinr_db + gain_db),
        }
    }
    /// The report of a station in NR. `effective_db` gives the effective SINR in dB of a layer whose SINR is
    /// changed by so many dB.
    pub fn quality_by(&self, effective_db: impl Fn(f64) -> f64) -> Quality {
        match self {
            Self::Lte(cqis) => Quality { cqi: cqis.of_sinr(effective_db(0.0)), layers: 1 },
            Self::Nr(nr) => {
                let best = best(&nr.downlink, |own| &own.cqis, effective_db);
                best.map_or(Quality { cqi: 0, layers: 1 }, |(layers, choice)| Quality {
                    cqi: choice.index,
                    layers,
                })
            }
        }
    }
    /// The downlink MCS for a report. With the outer loop, the MCS follows from the SINR threshold of the CQI
    /// and the correction in dB.
    pub fn downlink_mcs(&self, quality: Quality, outer_loop_db: Option<f64>) -> Option<Mcs> {
        let Quality { cqi, layers } = quality;
        match self {
            Self::Lte(cqis) => {
                let table = &lte::mcs::DOWNLINK;
                let Some(correction) = outer_loop_db else {
                    return lte::cqi::mcs(cqi).map(|index| Mcs::Lte(&table[usize::from(index)]));
                };
                let sinr = cqis.threshold_db(cqi)? + correction;
                Some(Mcs::Lte(lte::mcs::highest(table, sinr).unwrap_or(&table[0])))
            }
            Self::Nr(nr) => {
                let table = nr.tables.0;
                let own = nr.downlink.get(usize::from(layers).checked_sub(1)?)?;
                let threshold = own.cqis.threshold_db(cqi).filter(|_| cqi > 0)?;
                let row = match outer_loop_db {
                    None => nr::cqi::mcs(table, cqi),
                    Some(correction) => {
                        let choice = own.rows.at(threshold + correction);
                        choice.map(|choice| &table.rows()[usize::from(choice.index)])
                    }
                };
                // CQI 1 lies below MCS 0 of two tables; HARQ makes up for the difference.
                Some(Mcs::Nr { row: row.unwrap_or(&table.rows()[0]), layers })
            }
        }
    }
    /// The uplink MCS for a SINR in dB and a correction of the outer loop. In LTE the index is at most
    /// `max_index`. The lowest MCS serves also where a first transmission fails more often than one in ten,
    /// as long as the gain of HARQ makes up for it: Chase combining adds the SINRs of all `transmissions`
    /// (`mac::harq`).
    pub fn uplink_mcs(
        &self,
        sinr_db: f64,
        outer_loop_db: f64,
        max_index: u8,
        transmissions: u32,
    ) -> Option<Mcs> {
        let combined_db = || sinr_db + to_db(f64::from(transmissions));
        // The correction must not silence a station that the lowest MCS serves: the outer loop recovers only
        // by blocks.
        match self {
            Self::Lte(_) => {
                let usable = &lte::mcs::UPLINK[..=usize::from(max_index)];
                let lowest = || lte::mcs::highest(usable, combined_db()).map(|_| &usable[0]);
                lte::mcs::highest(usable, sinr_db + outer_loop_db).or_else(lowest).map(Mcs::Lte)
            }
            Self::Nr(nr) => {
                let rows = nr.tables.1.rows();
                let sinr_db = sinr_db + outer_loop_db;
                let chosen = best(&nr.uplink, |own| &own.rows, |gain_db| sinr_db + gain_db);
                if let Some((layers, choice)) = chosen {
                    return Some(Mcs::Nr { row: &rows[usize::from(choice.index)], layers });
                }
                let served = nr.uplink.first()?.rows.at(combined_db()).is_some();
                served.then_some(Mcs::Nr { row: &rows[0], layers: 1 })
            }
        }
    }
}

#[cfg(test)]
mod tests;
