//! Peak rates: the formula of TS 38.306, and the rate of the scheduler with the largest block in every slot.
//! Overheads: the shares of resource elements without data.

use super::SlotFacts;
use super::slots::{downlink_layers, uplink_layers};
use crate::scenario::CellPlan;
use paceline_net::tdd::SYMBOLS_PER_SLOT;
use paceline_ran::nr::carrier::FrequencyRange;
use paceline_ran::nr::overhead::ssb_share;
use paceline_ran::nr::peak_rate::peak_mbps;
use paceline_ran::{NrConfig, Rat, SlotClock};
use serde::Serialize;

/// Peak rates of both directions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rates {
    /// Downlink.
    pub downlink: DirectionRate,
    /// Uplink.
    pub uplink: DirectionRate,
}

/// Peak rates of one direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DirectionRate {
    /// Largest number of layers.
    pub layers: u8,
    /// Bits per symbol of the highest modulation.
    pub modulation_bits: u8,
    /// Maximum data rate of TS 38.306 §4.1.2, which counts every slot; none in LTE.
    pub formula_mbps: Option<f64>,
    /// That rate in proportion to this direction's symbols.
    pub formula_of_pattern_mbps: Option<f64>,
    /// The largest transport block in every slot of the direction.
    pub ceiling_mbps: f64,
}

/// Resource elements without data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overhead {
    /// Channel or signal.
    pub name: &'static str,
    /// How many, in words.
    pub amount: String,
    /// Share in percent of the resource elements of the direction, or of all symbols for the guard.
    pub percent: Option<f64>,
}

impl Rates {
    pub(super) fn of(plan: &CellPlan, slots: &[SlotFacts]) -> Self {
        let ceiling = |bits: fn(&SlotFacts) -> u32| {
            let sum: u64 = slots.iter().map(|slot| u64::from(bits(slot))).sum();
            sum as f64 / (slots.len() as f64 * plan.numerology.slot_seconds()) / 1e6
        };
        let share = |downlink: bool| match plan.pattern() {
            None => 1.0,
            Some(pattern) if downlink => pattern.down_share(),
            Some(pattern) => pattern.up_share(),
        };
        let rate = |downlink: bool, ceiling_mbps: f64| {
            let (layers, modulation_bits, formula_mbps) = match &plan.rat {
                Rat::Lte => {
                    let highest = if downlink { 28 } else { plan.max_uplink_mcs };
                    let table = if downlink {
                        &paceline_ran::lte::mcs::DOWNLINK
                    } else {
                        &paceline_ran::lte::mcs::UPLINK
                    };
                    (1, table[usize::from(highest)].qm, None)
                }
                Rat::Nr(config) => nr(plan, config, downlink),
            };
            DirectionRate {
                layers,
                modulation_bits,
                formula_mbps,
                formula_of_pattern_mbps: formula_mbps.map(|mbps| mbps * share(downlink)),
                ceiling_mbps,
            }
        };
        Self {
            downlink: rate(true, ceiling(|slot| slot.downlink_block_bits)),
            uplink: rate(false, ceiling(|slot| slot.uplink_block_bits)),
        }
    }
}

fn nr(plan: &CellPlan, config: &NrConfig, downlink: bool) -> (u8, u8, Option<f64>) {
    let (table, layers, prbs) = if downlink {
        (config.downlink_table, downlink_layers(config), plan.downlink_prb)
    } else {
        (config.uplink_table, uplink_layers(config), plan.uplink_prb)
    };
    let qm = table.highest(f64::INFINITY).expect("a table has rows").qm;
    let mbps =
        peak_mbps(plan.range.unwrap_or(FrequencyRange::Fr1), downlink, plan.numerology, prbs, layers, qm);
    (layers, qm, Some(mbps))
}

pub(super) fn overheads(plan: &CellPlan) -> Vec<Overhead> {
    let mut list = Vec::new();
    let mut add = |name, amount: String, percent: Option<f64>| list.push(Overhead { name, amount, percent });
    match &plan.rat {
        Rat::Lte => {
            let amount = "as the table of transport block sizes assumes (TS 36.213 §7.1.7.2)";
            add("PDCCH, reference signals", amount.to_owned(), None);
        }
        Rat::Nr(nr) => nr_overheads(plan, nr, &mut add),
    }
    let share = 100.0 * f64::from(plan.pucch_prb) / f64::from(plan.uplink_prb);
    add("PUCCH", format!("{} of {} uplink PRBs", plan.pucch_prb, plan.uplink_prb), Some(share));
    if let Some(pattern) = plan.pattern() {
        let guard: u32 = pattern.slots().iter().map(|slot| u32::from(slot.guard())).sum();
        let all = pattern.slots().len() as u32 * u32::from(SYMBOLS_PER_SLOT);
        let share = 100.0 * f64::from(guard) / f64::from(all);
        add("guard and flexible symbols", format!("{guard} of {all} symbols"), Some(share));
    }
    list
}

fn nr_overheads(plan: &CellPlan, nr: &NrConfig, add: &mut impl FnMut(&'static str, String, Option<f64>)) {
    let symbols = f64::from(SYMBOLS_PER_SLOT);
    let plural = if nr.pdcch_symbols == 1 { "symbol" } else { "symbols" };
    let amount = format!("{} {plural} of a slot with downlink", nr.pdcch_symbols);
    add("PDCCH", amount, Some(100.0 * f64::from(nr.pdcch_symbols) / symbols));
    let per_prb = 12.0 * symbols;
    let amount = format!("{} resource elements of a PRB of a block", nr.dmrs_re);
    add("DMRS", amount, Some(100.0 * f64::from(nr.dmrs_re) / per_prb));
    if nr.overhead_re > 0 {
        let amount = format!("{} resource elements of a PRB of a block", nr.overhead_re);
        add("xOverhead", amount, Some(100.0 * f64::from(nr.overhead_re) / per_prb));
    }
    let period_ms = SlotClock::new(plan.numerology).duration(nr.ssb_period).as_millis();
    let share = ssb_share(plan.numerology, plan.downlink_prb, nr.ssb_beams, period_ms as u32);
    let down = plan.pattern().map_or(1.0, paceline_net::SlotPattern::down_share);
    let amount =
        format!("{} of 20 PRBs and 4 symbols every {period_ms} ms; not in the ceiling", nr.ssb_beams);
    add("SSB", amount, Some(100.0 * share / down));
}
