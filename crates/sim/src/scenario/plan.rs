//! The carrier of a `[cell]` table: its slots, PRBs, block sizes and timing, resolved from the keys. The cell
//! is built from this plan, and `paceline cell show` prints it.

use super::cell::Cell;
use super::limits::Problem;
use paceline_net::SlotPattern;
use paceline_ran::nr::carrier::FrequencyRange;
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::timing::SlotTiming;
use paceline_ran::{Numerology, resource_blocks};

/// A carrier, with everything that follows from the keys of `[cell]` alone.
#[derive(Clone, PartialEq, Debug)]
pub struct CellPlan {
    /// Subcarrier spacing and length of a slot.
    pub numerology: Numerology,
    /// The slots of one period of TDD; none in FDD.
    pub pattern: Option<SlotPattern>,
    /// Downlink PRBs.
    pub downlink_prb: u16,
    /// Uplink PRBs, those of PUCCH included.
    pub uplink_prb: u16,
    /// Uplink PRBs of PUCCH.
    pub pucch_prb: u16,
    /// Distances between assignment, acknowledgment, grant and transmission.
    pub timing: SlotTiming,
    /// Block sizes and what they depend on.
    pub blocks: Blocks,
}

/// Block sizes of a radio access technology.
#[derive(Clone, PartialEq, Debug)]
pub enum Blocks {
    /// TS 36.213 §7.1.7; the control channels and reference signals are in the tables.
    Lte {
        /// Highest uplink MCS.
        max_uplink_mcs: u8,
    },
    /// TS 38.214 §5.1.3.2.
    Nr(NrBlocks),
}

/// Parameters of the block sizes of NR.
#[derive(Clone, PartialEq, Debug)]
pub struct NrBlocks {
    /// Range of the carrier frequency.
    pub range: FrequencyRange,
    /// Downlink MCS table and largest number of layers.
    pub downlink: (McsTable, u8),
    /// Uplink MCS table and largest number of layers.
    pub uplink: (McsTable, u8),
    /// PDCCH symbols at the start of a slot with downlink.
    pub pdcch_symbols: u8,
    /// Resource elements of demodulation reference signals per PRB of a block.
    pub dmrs_re: u8,
    /// xOverhead, in resource elements per PRB of a block.
    pub overhead_re: u8,
    /// Synchronization blocks in a burst.
    pub ssb_beams: u8,
    /// Period of the bursts in ms.
    pub ssb_period_ms: u32,
}

impl CellPlan {
    /// The plan of a table whose single keys were checked.
    pub(super) fn of(cell: &Cell) -> Result<Self, Problem> {
        let prb = |hertz: paceline_net::units::Hertz| resource_blocks(hertz.0 / 1000).expect("checked");
        Ok(Self {
            numerology: Numerology::LTE,
            pattern: None,
            downlink_prb: prb(cell.bandwidth),
            uplink_prb: prb(cell.uplink_bandwidth.unwrap_or(cell.bandwidth)),
            pucch_prb: cell.pucch_prb,
            timing: SlotTiming::lte_fdd(),
            blocks: Blocks::Lte { max_uplink_mcs: if cell.uplink_64qam { 28 } else { 20 } },
        })
    }
}
