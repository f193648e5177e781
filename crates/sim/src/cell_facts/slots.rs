//! The slots of one period: their symbols, distances and largest transport blocks.

use crate::scenario::{Blocks, CellPlan, NrBlocks};
use paceline_net::tdd::{SYMBOLS_PER_SLOT, SlotKind};
use paceline_ran::lte::{mcs, tbs, tdd};
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::tbs::{re_per_prb, transport_block_bits};
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
        let kind = plan.pattern.as_ref().map(|pattern| pattern.kind(number));
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
    match &plan.blocks {
        Blocks::Lte { .. } => {
            let prbs = match down {
                SYMBOLS_PER_SLOT => Some(plan.downlink_prb),
                // LTE has at most 100 PRBs.
                dwpts => tdd::dwpts_tbs_prbs(plan.downlink_prb as u8, dwpts).map(u16::from),
            };
            let highest = mcs::DOWNLINK[mcs::MCS_COUNT - 1];
            prbs.filter(|_| down > 0).map_or(0, |prbs| tbs::transport_block_bits(highest.i_tbs, prbs))
        }
        Blocks::Nr(blocks) => {
            let symbols = down.saturating_sub(blocks.pdcch_symbols);
            nr_bits(blocks, blocks.downlink, symbols, plan.downlink_prb)
        }
    }
}

/// The largest uplink block of a slot with uplink symbols alone.
fn uplink_bits(plan: &CellPlan) -> u32 {
    let prbs = plan.uplink_prb.saturating_sub(plan.pucch_prb);
    match &plan.blocks {
        Blocks::Lte { max_uplink_mcs } => {
            tbs::transport_block_bits(mcs::UPLINK[usize::from(*max_uplink_mcs)].i_tbs, prbs.max(1))
        }
        Blocks::Nr(blocks) => nr_bits(blocks, blocks.uplink, SlotKind::UP.up, prbs),
    }
}

fn nr_bits(blocks: &NrBlocks, (table, layers): (McsTable, u8), symbols: u8, prbs: u16) -> u32 {
    let highest = table.highest(f64::INFINITY).expect("a table has rows");
    transport_block_bits(highest, layers, re_per_prb(symbols, blocks.dmrs_re, blocks.overhead_re), prbs)
}
