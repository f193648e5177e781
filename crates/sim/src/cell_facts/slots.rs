//! The slots of one period: their symbols, distances and largest transport blocks.

use crate::scenario::CellPlan;
use paceline_net::tdd::{SYMBOLS_PER_SLOT, SlotKind};
use paceline_ran::lte::{mcs, tbs, tdd};
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::tbs::{re_per_prb, transport_block_bits};
use paceline_ran::{NrConfig, Rat};
use serde::Serialize;

/// One slot.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SlotFacts {
    /// Number in the period.
    pub slot: usize,
    /// `D`, `S`, `U` or `F`; `D+U` in FDD.
    pub kind: String,
    /// Downlink symbols.
    pub downlink_symbols: u8,
    /// Symbols without a direction.
    pub guard_symbols: u8,
    /// Uplink symbols.
    pub uplink_symbols: u8,
    /// Slots from a PDSCH to its HARQ-ACK.
    pub k1: Option<u8>,
    /// Slots from the grants in this slot to their PUSCHs.
    pub k2: Vec<u8>,
    /// Largest downlink transport block in bits.
    pub downlink_block_bits: u32,
    /// Largest uplink transport block in bits.
    pub uplink_block_bits: u32,
}

/// The slots of a plan.
pub(super) fn of(plan: &CellPlan) -> Vec<SlotFacts> {
    let slot = |slot: usize| {
        let number = slot as u64;
        let kind = plan.pattern().map(|pattern| pattern.kind(number));
        let [down, guard, up] =
            kind.map_or([SYMBOLS_PER_SLOT, 0, SYMBOLS_PER_SLOT], |kind| [kind.down, kind.guard(), kind.up]);
        SlotFacts {
            slot,
            kind: kind.map_or_else(|| String::from("D+U"), |kind| kind.letter().to_string()),
            downlink_symbols: down,
            guard_symbols: guard,
            uplink_symbols: up,
            k1: plan.timing.k1(number),
            k2: plan.timing.grants(number).to_vec(),
            downlink_block_bits: downlink_bits(plan, down),
            uplink_block_bits: if plan.timing.is_up(number) { uplink_bits(plan) } else { 0 },
        }
    };
    (0..plan.timing.period()).map(slot).collect()
}

/// The largest downlink block of a slot with `down` downlink symbols.
fn downlink_bits(plan: &CellPlan, down: u8) -> u32 {
    match &plan.rat {
        Rat::Lte => {
            let prbs = match down {
                SYMBOLS_PER_SLOT => Some(plan.downlink_prb),
                // LTE has at most 100 PRBs.
                dwpts => tdd::dwpts_tbs_prbs(plan.downlink_prb as u8, dwpts).map(u16::from),
            };
            let highest = mcs::DOWNLINK[mcs::MCS_COUNT - 1];
            prbs.filter(|_| down > 0).map_or(0, |prbs| tbs::transport_block_bits(highest.i_tbs, prbs))
        }
        Rat::Nr(nr) => {
            let symbols = down.saturating_sub(nr.pdcch_symbols);
            nr_bits(nr, nr.downlink_table, downlink_layers(nr), symbols, plan.downlink_prb)
        }
    }
}

/// The largest uplink block of a slot with uplink symbols alone.
fn uplink_bits(plan: &CellPlan) -> u32 {
    let prbs = plan.uplink_prb.saturating_sub(plan.pucch_prb);
    match &plan.rat {
        Rat::Lte => {
            let highest = mcs::UPLINK[usize::from(plan.max_uplink_mcs)];
            tbs::transport_block_bits(highest.i_tbs, prbs.max(1))
        }
        Rat::Nr(nr) => nr_bits(nr, nr.uplink_table, uplink_layers(nr), SlotKind::UP.up, prbs),
    }
}

/// Most downlink layers of a station.
pub(super) fn downlink_layers(nr: &NrConfig) -> u8 {
    nr.downlink_layers.min(nr.downlink_antennas)
}

/// Most uplink layers of a station.
pub(super) fn uplink_layers(nr: &NrConfig) -> u8 {
    nr.uplink_layers.min(nr.uplink_antennas)
}

fn nr_bits(nr: &NrConfig, table: McsTable, layers: u8, symbols: u8, prbs: u16) -> u32 {
    let highest = table.highest(f64::INFINITY).expect("a table has rows");
    transport_block_bits(highest, layers, re_per_prb(symbols, nr.dmrs_re, nr.overhead_re), prbs)
}
