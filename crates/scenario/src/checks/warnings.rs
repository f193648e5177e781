//! Keys that are allowed and have another effect than they say, in sentences.

use crate::{Cells, HandoverFate, RlcMode, Scenario};
use paceline_net::Duration;
use paceline_ran::Rat;
use paceline_ran::nr::overhead;
use paceline_ran::{Direction, SlotClock};

/// Distance of the cyclic shifts of PUCCH format 1. Chosen: 2 of 1 to 3 (TS 36.211 §5.4, deltaPUCCH-Shift),
/// for the delay spread of urban cells.
const SHIFT_STEP: u8 = 2;
/// Orthogonal covers of PUCCH format 1 in a slot of LTE (TS 36.211 §5.4.1).
const LTE_COVERS: f64 = 3.0;
/// Stations that share a PRB by PUCCH format 2 of LTE: its cyclic shifts (TS 36.211 §5.4.2).
const LTE_CQI_PER_PRB: f64 = 12.0;
/// CQI reports in a PRB and slot of NR. Chosen: PUCCH format 2 of two symbols, the most (TS 38.211 §6.3.2.5),
/// whose PRB one station has.
const NR_CQI_PER_PRB: f64 = 7.0;

impl Scenario {
    /// A sentence about each key with a former name, and each one that does something else than it says.
    pub fn warnings(&self) -> Vec<String> {
        self.renamed.iter().cloned().chain(self.of_cells()).collect()
    }
    fn of_cells(&self) -> Vec<String> {
        let Some(cells) = self.cells() else { return Vec::new() };
        let stations = self.station_count().div_ceil(self.served_cells() as u64);
        cells.fate_warning().into_iter().chain(cells.pucch_warning(stations)).collect()
    }
}

impl Cells {
    /// RLC UM keeps nothing that could be sent again.
    fn fate_warning(&self) -> Option<String> {
        let forwards = self.handover.as_ref().is_some_and(|table| table.fate == HandoverFate::Forward);
        (forwards && self.cell.rlc == RlcMode::Um).then(|| {
            String::from(
                "handover.fate = \"forward\" sends again only what RLC AM has not confirmed: with cell.rlc = \
                 \"um\" it does what \"drop\" does, and packets in RLC and HARQ are lost at a handover (TS 36.300 \
                 §10.1.2.2); set cell.rlc = \"am\"",
            )
        })
    }
    /// Scheduling requests and CQI reports take no resources of PUCCH in the model: more stations than PUCCH
    /// holds are served as if it held them.
    fn pucch_warning(&self, stations: u64) -> Option<String> {
        let cell = &self.cell;
        let needed = self.pucch_prbs(stations).ceil();
        // Without PRBs, PUCCH is left out of the scenario.
        (cell.pucch_prb > 0 && needed > f64::from(cell.pucch_prb)).then(|| {
            format!(
                "cell.pucch_prb = {}: {stations} stations of a cell need {needed} resource blocks for a scheduling \
                 request every {} and a CQI report every {}; the run has them, and PUSCH {} too many",
                cell.pucch_prb,
                cell.sr_period,
                cell.cqi_period,
                needed - f64::from(cell.pucch_prb)
            )
        })
    }
    /// PRBs of a slot that the stations of a cell need on PUCCH for scheduling requests and CQI reports, if
    /// these are spread evenly over the slots with an uplink.
    fn pucch_prbs(&self, stations: u64) -> f64 {
        let plan = self.cell.plan();
        let clock = SlotClock::new(plan.numerology);
        let period = plan.duplex.period() as u64;
        let uplink = (0..period).filter(|slot| plan.duplex.has(paceline_ran::Slot(*slot), Direction::Up));
        let share = uplink.count() as f64 / period as f64;
        let per_slot = |every: Duration| stations as f64 / (clock.span(every).0 as f64 * share).max(1.0);
        let (requests_per_prb, cqi_per_prb, requests) = match &plan.rat {
            Rat::Lte => (LTE_COVERS * 12.0 / f64::from(SHIFT_STEP), LTE_CQI_PER_PRB, true),
            // The stations of a configured grant send no requests. A hop halves the symbols of a cover.
            Rat::Nr(nr) => {
                let per_prb = f64::from(overhead::pucch_format_1_capacity(7, SHIFT_STEP));
                (per_prb, NR_CQI_PER_PRB, nr.configured_grant.is_none())
            }
        };
        let of_requests = if requests { per_slot(self.cell.sr_period) / requests_per_prb } else { 0.0 };
        of_requests + per_slot(self.cell.cqi_period) / cqi_per_prb
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    fn warnings(text: &str, set: &[&str]) -> Vec<String> {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        load("test.toml", text, &set).unwrap_or_else(|error| panic!("{error}")).warnings()
    }

    #[test]
    fn forwarding_without_acknowledged_mode_is_said() {
        let drive = "[deployment]\nserved_sites = 7\n[handover]\n[[station]]\n";
        let said = |set: &[&str]| warnings(drive, set).iter().any(|text| text.contains("handover.fate"));
        assert!(said(&["handover.fate=forward"]), "RLC UM is the default");
        assert!(said(&["handover.fate=forward", "cell.rat=nr", "cell.rlc=um"]));
        assert!(!said(&["handover.fate=forward", "cell.rlc=am"]));
        assert!(!said(&["handover.fate=drop"]) && !said(&["handover.fate=duplicate"]));
        assert_eq!(warnings("[[station]]\n", &[]), Vec::<String>::new());
    }

    #[test]
    fn more_stations_than_pucch_holds_are_said() {
        let nr = "cell.rat=nr";
        let cases: [(u64, &[&str], bool); 10] = [
            (1000, &[], true),
            (1000, &["cell.cqi_period=160 ms"], true),
            (1000, &["cell.cqi_period=160 ms", "cell.sr_period=80 ms"], false),
            (1000, &["cell.pucch_prb=30"], false),
            (1000, &["cell.pucch_prb=0"], false),
            (100, &[], false),
            (1000, &[nr], true),
            (1000, &[nr, "cell.pattern=DDDSU", "cell.cqi_period=160 ms"], true),
            (30, &[nr, "cell.pattern=DDDSU"], false),
            (10, &[nr, "cell.pattern=DDDSU", "cell.bandwidth=100 MHz"], false),
        ];
        for (count, set, expected) in cases {
            let said = warnings(&format!("[[station]]\ncount = {count}\n"), set);
            assert_eq!(said.iter().any(|text| text.contains("cell.pucch_prb")), expected, "{count} {set:?}");
        }
        // By hand: 200 CQI reports in a subframe by 12, 100 requests by 18.
        let text = &warnings("[[station]]\ncount = 1000\n", &[])[0];
        assert!(text.contains("1000 stations of a cell need 23 resource blocks"), "{text}");
        // Three cells have a third each.
        assert!(warnings("[deployment]\n[[station]]\ncount = 190\n", &[]).is_empty());
    }

    #[test]
    fn built_in_scenarios_say_nothing() {
        for text in [
            include_str!("../../../../scenarios/ack-filter-paper.toml"),
            include_str!("../../../../scenarios/drive.toml"),
            include_str!("../../../../scenarios/fwa-5g.toml"),
            include_str!("../../../../scenarios/mmwave.toml"),
            include_str!("../../../../scenarios/uplink-limited.toml"),
        ] {
            assert_eq!(warnings(text, &[]), Vec::<String>::new(), "{text}");
        }
    }
}
