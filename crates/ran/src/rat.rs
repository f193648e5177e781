//! The radio technology of a cell: LTE or NR. Everything in which both differ is decided here, in [`Mcs`], in
//! [`crate::adaptation`] or by the [`Timing`], from the tables of [`crate::lte`] and [`crate::nr`].

use crate::duplex::{Direction, Duplex};
use crate::lte;
use crate::lte::tdd::Distances;
use crate::mcs::{Mcs, PrbSize};
use crate::nr::config::NrConfig;
use crate::nr::mcs::McsTable;
use crate::nr::timing::TimingError;
use crate::nr::{self, overhead, rank, tbs};
use crate::pdcp::{NrPdcp, PdcpConfig};
use crate::prb::{self, PrbSet, precodable};
use crate::slot::{Numerology, Slot, SlotClock, SlotSpan};
use crate::timing::Timing;

/// Fewest symbols of a PDSCH of mapping type A (TS 38.214 Table 5.1.2.1-1).
const LEAST_PDSCH_SYMBOLS: u8 = 3;
/// PRBs of the PRACH in LTE (TS 36.211 §5.7.3).
const LTE_PRACH_PRBS: u32 = 6;
/// PRBs of a short PRACH preamble of 139 subcarriers (TS 38.211 Table 6.3.3.2-1).
const NR_PRACH_PRBS: u32 = 12;

/// The radio technology of a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Rat {
    /// LTE (TS 36.300).
    #[default]
    Lte,
    /// NR (TS 38.300).
    Nr(NrConfig),
}

/// A report of a station about its downlink.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Quality {
    /// Channel quality indicator; zero is out of range.
    pub cqi: u8,
    /// Rank indicator; one in LTE.
    pub layers: u8,
}

/// One of the layers of a transmission.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Layer {
    /// Modulation order.
    pub qm: u8,
    /// SINR relative to that of a single layer, linear.
    pub gain: f64,
}

impl Rat {
    /// PDCP of the stations' bearers.
    pub fn pdcp(&self, numerology: Numerology) -> PdcpConfig {
        match self {
            Self::Lte => PdcpConfig::Lte,
            Self::Nr(config) => PdcpConfig::Nr(NrPdcp {
                sn: config.pdcp_sn,
                sdap_header: config.sdap_header,
                t_reordering: config.pdcp_reordering.map(|timer| SlotClock::new(numerology).span(timer)),
            }),
        }
    }
    /// The distances between the messages of a cell; an error where 3GPP forbids one.
    pub fn timing(&self, numerology: Numerology, duplex: &Duplex) -> Result<Timing, TimingError> {
        match (self, duplex) {
            (Self::Lte, Duplex::Fdd) => Ok(lte::timing::fdd()),
            (Self::Lte, Duplex::Tdd(pattern)) => {
                let distances = Distances::of_pattern(pattern).ok_or(TimingError::NotLte)?;
                Ok(lte::timing::tdd(distances))
            }
            (Self::Nr(config), duplex) => {
                let processes = (config.downlink_processes, config.uplink_processes);
                Ok(config.slot_timing(numerology, duplex)?.of_cell(processes))
            }
        }
    }
    /// Size of a PRB of the shared channel in a slot with so many symbols of a direction; none without the
    /// channel.
    pub(crate) fn prb_size(&self, direction: Direction, symbols: u8) -> Option<PrbSize> {
        let size = match (self, direction) {
            (_, Direction::Up) if symbols < paceline_net::tdd::SYMBOLS_PER_SLOT => 0,
            // TS 36.213 §7.1.7: DwPTS of configurations 0 and 5 carries no PDSCH, that of 9 and 10 three
            // eighths.
            (Self::Lte, _) => match symbols {
                0..=3 => 0,
                4..=6 => 3,
                7..=13 => 6,
                _ => 8,
            },
            (Self::Nr(config), direction) => {
                let control = if direction == Direction::Down { config.pdcch_symbols } else { 0 };
                let symbols = symbols.saturating_sub(control);
                let symbols = if symbols < LEAST_PDSCH_SYMBOLS { 0 } else { symbols };
                tbs::re_per_prb(symbols, config.dmrs_re, config.overhead_re)
            }
        };
        (size > 0).then_some(PrbSize(size))
    }
    /// Downlink PRBs of a carrier that PDSCH may use in a slot: all but those of synchronization blocks in
    /// NR, in the middle of the carrier. In LTE the blocks take no PRBs from PDSCH.
    pub(crate) fn pdsch_prbs(&self, numerology: Numerology, slot: Slot, n_prb: u16) -> PrbSet {
        let all = PrbSet::range(0, u32::from(n_prb));
        let Self::Nr(config) = self else { return all };
        let SlotSpan(at) = slot.within(config.ssb_period);
        if at >= 5 << numerology.mu() || overhead::ssb_blocks(numerology, config.ssb_beams, at as u32) == 0 {
            return all;
        }
        let taken = overhead::SSB_PRBS.min(n_prb);
        all.without(PrbSet::range(u32::from((n_prb - taken) / 2), u32::from(taken)))
    }
    /// PRBs of a resource block group, the unit of downlink allocations.
    pub(crate) fn rbg_size(&self, n_prb: u16) -> u16 {
        match self {
            Self::Lte => prb::rbg_size(n_prb),
            Self::Nr(_) => nr::carrier::rbg_size(n_prb),
        }
    }
    /// The most PRBs up to `n_prb` that an uplink grant may have. LTE's transform precoder allows some
    /// numbers; NR is without transform precoding.
    pub(crate) fn grantable(&self, n_prb: u16) -> u16 {
        match self {
            Self::Lte => precodable(n_prb),
            Self::Nr(_) => n_prb,
        }
    }
    /// PRBs of the PRACH.
    pub(crate) fn prach_prbs(&self) -> u32 {
        match self {
            Self::Lte => LTE_PRACH_PRBS,
            Self::Nr(_) => NR_PRACH_PRBS,
        }
    }
    /// A layer of a transmission with this MCS.
    pub(crate) fn layer(&self, direction: Direction, mcs: Mcs) -> Layer {
        let gain = match self {
            Self::Lte => 1.0,
            Self::Nr(config) => rank::layer_gain(mcs.layers(), config.antennas(direction)),
        };
        Layer { qm: mcs.qm(), gain }
    }

    /// The most robust MCS that carries `bytes` on at most `max_prb` PRBs, and the number of PRBs.
    pub(crate) fn most_robust(
        &self,
        direction: Direction,
        size: PrbSize,
        bytes: u64,
        max_prb: u16,
    ) -> (Mcs, u16) {
        let fits = |mcs: &Mcs| u64::from(mcs.block_bits(size, max_prb) / 8) >= bytes;
        let mcs = match (self, direction) {
            (Self::Lte, direction) => {
                let table = match direction {
                    Direction::Down => &lte::mcs::DOWNLINK,
                    Direction::Up => &lte::mcs::UPLINK,
                };
                let last = Mcs::Lte(&table[table.len() - 1]);
                table.iter().map(Mcs::Lte).find(fits).unwrap_or(last)
            }
            (Self::Nr(config), direction) => {
                let rows = config.table(direction).rows();
                let one_layer = |row| Mcs::Nr { row, layers: 1 };
                rows.iter().map(one_layer).find(fits).unwrap_or(one_layer(&rows[rows.len() - 1]))
            }
        };
        (mcs, mcs.fewest_prbs(size, bytes, max_prb))
    }
}

impl NrConfig {
    /// The smaller number of antennas of both ends.
    fn antennas(&self, direction: Direction) -> u8 {
        match direction {
            Direction::Down => self.downlink_antennas,
            Direction::Up => self.uplink_antennas,
        }
    }
    fn table(&self, direction: Direction) -> McsTable {
        match direction {
            Direction::Down => self.downlink_table,
            Direction::Up => self.uplink_table,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nr() -> Rat {
        Rat::Nr(NrConfig::new(Numerology::new(1).unwrap()))
    }

    /// Sizes of truth: 13 symbols less 12 elements, and the special slots 10:2:2 and 6:4:4.
    #[test]
    fn special_slots_have_the_block_sizes_of_their_symbols() {
        let mcs = Mcs::Nr { row: &McsTable::Qam256.rows()[27], layers: 4 };
        let bits = |symbols| mcs.block_bits(nr().prb_size(Direction::Down, symbols).unwrap(), 273);
        assert_eq!([14, 10, 6].map(bits), [1_179_864, 770_568, 385_272]);
        assert_eq!(nr().prb_size(Direction::Down, 3), None, "one symbol of PDCCH and two others");
        assert_eq!(nr().prb_size(Direction::Up, 14), Some(PrbSize(156)));
        assert_eq!(nr().prb_size(Direction::Up, 4), None, "special slots carry no PUSCH");
        let lte = [14, 12, 10, 6, 3].map(|symbols| Rat::Lte.prb_size(Direction::Down, symbols));
        assert_eq!(lte.map(|size| size.map_or(0, |size| size.0)), [8, 6, 6, 3, 0]);
    }

    #[test]
    fn synchronization_blocks_take_their_slots() {
        let numerology = Numerology::new(1).unwrap();
        let prbs = |slot| nr().pdsch_prbs(numerology, Slot(slot), 273).len();
        assert_eq!([0, 1, 10, 39, 40].map(prbs), [253, 273, 273, 273, 253]);
        assert_eq!(Rat::Lte.pdsch_prbs(Numerology::LTE, Slot(0), 100).len(), 100);
    }
}
