//! Facts about a cell that follow from its configuration alone, for `paceline cell show`: the slots of a
//! period, the overheads, the peak rates, and the one-way latencies of an idle cell.

mod latency;
mod rates;
mod slots;
mod terms;

pub use latency::{Latencies, Span};
pub use rates::{DirectionRate, Overhead, Rates};
pub use slots::SlotFacts;
pub use terms::Term;

use crate::scenario::{self, Scenario};
use paceline_ran::Rat;
use paceline_ran::nr::carrier::{FrequencyRange, subcarrier_khz};
use serde::Serialize;

/// The facts of one cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CellFacts {
    /// `lte` or `nr`.
    pub rat: &'static str,
    /// `fdd` or `tdd`.
    pub duplex: &'static str,
    /// `FR1` or `FR2`; none in LTE.
    pub frequency_range: Option<&'static str>,
    /// Channel bandwidth of the downlink.
    pub bandwidth_mhz: f64,
    /// Channel bandwidth of the uplink.
    pub uplink_bandwidth_mhz: f64,
    /// Subcarrier spacing.
    pub subcarrier_spacing_khz: u32,
    /// Length of a slot; of a subframe in LTE.
    pub slot_ms: f64,
    /// Letters of the pattern and the symbols of its special slots; none in FDD.
    pub pattern: Option<String>,
    /// Length of the period of the slots below.
    pub period_ms: f64,
    /// PRBs of the downlink.
    pub downlink_prb: u16,
    /// PRBs of the uplink.
    pub uplink_prb: u16,
    /// Slots of one period.
    pub slots: Vec<SlotFacts>,
    /// Resource elements without data.
    pub overheads: Vec<Overhead>,
    /// Peak rates.
    pub rates: Rates,
    /// One-way latencies of an idle cell, and HARQ round trips.
    pub latency: Latencies,
}

impl CellFacts {
    /// The same facts with the terms of the path beside the cell.
    #[must_use]
    pub fn with_path(mut self, scenario: &Scenario) -> Self {
        self.latency.path_terms = terms::outside(scenario);
        self
    }
    /// The facts of the cell of a loaded scenario.
    pub fn of(cell: &scenario::Cell) -> Self {
        let plan = &cell.plan();
        let slots = slots::of(plan);
        let slot_ms = 1000.0 * plan.numerology.slot_seconds();
        let mhz = |hertz: paceline_net::units::Hertz| hertz.0 as f64 / 1e6;
        let range = |range| if range == FrequencyRange::Fr1 { "FR1" } else { "FR2" };
        Self {
            rat: if plan.rat == Rat::Lte { "lte" } else { "nr" },
            duplex: if plan.pattern().is_some() { "tdd" } else { "fdd" },
            frequency_range: plan.range.map(range),
            bandwidth_mhz: mhz(cell.bandwidth),
            uplink_bandwidth_mhz: mhz(cell.uplink_bandwidth.unwrap_or(cell.bandwidth)),
            subcarrier_spacing_khz: subcarrier_khz(plan.numerology),
            slot_ms,
            pattern: plan.pattern().map(ToString::to_string),
            period_ms: slot_ms * slots.len() as f64,
            downlink_prb: plan.downlink_prb,
            uplink_prb: plan.uplink_prb,
            overheads: rates::overheads(plan),
            rates: Rates::of(plan, &slots),
            latency: Latencies::of(plan, cell),
            slots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    /// 273 PRBs at 30 kHz, 4 layers of 256QAM, one PDCCH symbol, 12 elements of DMRS.
    fn nr(letters: &str) -> CellFacts {
        let cell = format!(
            "[cell]\nrat = \"nr\"\ngnb = \"ideal\"\npattern = \"{letters}\"\nbandwidth = \"100 MHz\"\n"
        );
        let scenario = load("test.toml", &(cell + "[[station]]\n"), &[]).unwrap();
        CellFacts::of(scenario.cell().unwrap())
    }

    #[test]
    fn ceilings_of_nr_patterns_hold() {
        for (letters, mbps) in [("DDDSU", 1724.1), ("DDDDDDDSUU 6:4:4", 1728.9), ("DDSUU 6:4:4", 1098.0)] {
            let rates = nr(letters).rates.downlink;
            assert!((rates.ceiling_mbps - mbps).abs() < 0.05, "{letters} {rates:?}");
            assert!((rates.formula_mbps.unwrap() - 2337.0).abs() < 0.05, "{rates:?}");
        }
        let facts = nr("DDDSU");
        assert_eq!(
            facts.slots.iter().map(|slot| slot.k1).collect::<Vec<_>>(),
            [Some(4), Some(8), Some(7), Some(6), None]
        );
        assert_eq!(facts.slots[0].k2, [4]);
        assert_eq!(facts.slots[3].downlink_block_bits, 770_568);
        assert_eq!(facts.overheads.last().unwrap().amount, "2 of 70 symbols");
        let latency = [facts.latency.downlink, facts.latency.uplink_with_configured_grant.unwrap()];
        let text = latency.map(|span| format!("{:.2} {:.2}", span.mean_ms, span.max_ms));
        assert_eq!(text, ["1.24 1.89", "2.14 3.39"]);
    }

    #[test]
    fn lte_has_the_blocks_of_its_table_and_the_latency_of_its_timing() {
        let ideal = ["cell.gnb=ideal".to_owned()];
        let scenario = load("test.toml", "[[station]]\n", &ideal).unwrap();
        let facts = CellFacts::of(scenario.cell().unwrap());
        assert_eq!((facts.slots.len(), facts.slots[0].kind.as_str()), (1, "D+U"));
        assert_eq!((facts.slots[0].k1, &facts.slots[0].k2[..]), (Some(4), [4].as_slice()));
        // TS 36.213 Table 7.1.7.2.1-1: 75,376 bits in 100 PRBs.
        assert_eq!(facts.slots[0].downlink_block_bits, 75_376);
        assert!((facts.rates.downlink.ceiling_mbps - 75.376).abs() < 1e-9);
        assert_eq!(facts.rates.downlink.formula_mbps, None);
        // Half a subframe of waiting, the subframe, and 2 ms of decoding.
        assert_eq!(facts.latency.downlink, Span { mean_ms: 3.5, max_ms: 4.0 });
        // Half of 10 ms of waiting, 8 or 16 subframes to the PUSCH, the subframe, and 2 ms.
        assert_eq!(facts.latency.uplink_first_pusch.mean_ms, 16.0);
        assert_eq!(facts.latency.uplink_data, Span { mean_ms: 24.0, max_ms: 29.0 });
        assert_eq!(
            [facts.latency.downlink_harq, facts.latency.uplink_harq].map(|span| span.max_ms),
            [8.0; 2]
        );
    }

    #[test]
    fn a_stated_lead_is_named_by_its_key_and_fdd_has_no_pattern() {
        let sources = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            let scenario = load("test.toml", "[[station]]\n", &set).unwrap();
            let terms = CellFacts::of(scenario.cell().unwrap()).latency.terms;
            terms.into_iter().map(|term| (term.part, term.source)).collect::<Vec<_>>()
        };
        let of =
            |set: &[&str], part: &str| sources(set).iter().find(|term| term.0 == part).unwrap().1.clone();
        assert_eq!(of(&[], "scheduling lead"), "cell.gnb = \"srsran\"");
        assert_eq!(of(&["cell.lte.scheduling_lead=2"], "scheduling lead"), "cell.lte.scheduling_lead");
        let nr = ["cell.rat=nr", "cell.nr.radio_lead=1 ms"];
        assert_eq!(of(&nr, "radio lead"), "cell.nr.radio_lead");
        assert_eq!(of(&nr, "scheduling lead"), "cell.gnb = \"srsran\"");
        assert!(sources(&[]).iter().all(|(_, source)| !source.contains("tdd_configuration")));
        let tdd = of(&["cell.tdd_configuration=2"], "wait for a slot of the downlink");
        assert!(tdd.contains("tdd_configuration"), "{tdd}");
    }

    #[test]
    fn the_terms_add_up_to_the_latencies() {
        for (rat, keys) in
            [("lte", ""), ("nr", "pattern = \"DDDSU\"\n"), ("nr", "pattern = \"DDSU 8:6:0\"\n")]
        {
            for gnb in ["ideal", "srsran"] {
                let cell = format!("[cell]\nrat = \"{rat}\"\nsr_period = \"10 ms\"\ngnb = \"{gnb}\"\n{keys}");
                let scenario =
                    load("test.toml", &(cell + "[[station]]\nprocessing = \"1 ms\"\n"), &[]).unwrap();
                let facts = CellFacts::of(scenario.cell().unwrap());
                let sum = |facts: &CellFacts, direction: &str| {
                    let own = facts.latency.terms.iter().filter(|term| term.direction == direction);
                    own.map(|term| term.mean_ms).sum::<f64>()
                };
                let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b} {:?}", facts.latency);
                close(sum(&facts, "downlink"), facts.latency.downlink.mean_ms);
                close(sum(&facts, "uplink"), facts.latency.uplink_first_pusch.mean_ms);
                assert!(facts.latency.terms.iter().all(|term| !term.source.is_empty()));
                let path = facts.clone().with_path(&scenario).latency.path_terms;
                let hops: f64 = scenario.core.hops.iter().map(|hop| hop.delay.as_millis_f64()).sum();
                close(path.iter().map(|term| term.mean_ms).sum(), 2.0 * (1.0 + hops));
            }
        }
    }
}
