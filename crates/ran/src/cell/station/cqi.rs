//! CQI reports of a station on their way to the downlink scheduler, and the one in use.

use crate::air::{CqiReport, Network, StationRadio};
use crate::cell::config::Carrier;
use crate::duplex::{Direction, Duplex};
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// The reports of a station.
pub(super) struct CqiReports {
    /// With the slot of their first use. The front one is in use, the others are not yet.
    reports: VecDeque<(Slot, CqiReport)>,
    /// The slot in which another of them comes into use, or the last one is too old.
    changes_at: Slot,
}

impl CqiReports {
    pub fn new() -> Self {
        Self { reports: VecDeque::new(), changes_at: Slot(0) }
    }
    /// Reports the CQI if it is due, in a slot with downlink symbols; `periodic`: whether the slot has a
    /// periodic report ([`measures_cqi`]). Stations report also while they are idle; after slots that were
    /// skipped, the report in use is one of the present slot.
    #[inline]
    pub fn report(
        &mut self,
        slot: Slot,
        periodic: bool,
        carrier: &Carrier,
        radio: &mut StationRadio,
        network: &mut Option<Network>,
    ) {
        if periodic || slot >= self.changes_at {
            self.renew(slot, periodic, carrier, radio, network);
        }
    }
    fn renew(
        &mut self,
        slot: Slot,
        periodic: bool,
        carrier: &Carrier,
        radio: &mut StationRadio,
        network: &mut Option<Network>,
    ) {
        let delay = carrier.config.cqi_delay;
        let most = carrier.config.cqi_period + delay;
        let stale = self.reports.back().is_none_or(|(due, _)| slot.since(*due) > most);
        if periodic || stale {
            let report = radio.measure_cqi(&carrier.adaptation, network, slot);
            if stale {
                self.reports.clear();
            }
            let due = if stale { slot } else { slot + delay };
            self.reports.push_back((due, report));
        }
        while self.reports.get(1).is_some_and(|(due, _)| *due <= slot) {
            if let (Some((_, report)), Some(network)) = (self.reports.pop_front(), network.as_mut()) {
                network.recycle(report);
            }
        }
        let too_old = self.reports.back().map_or(slot, |(due, _)| *due + most + SlotSpan(1));
        self.changes_at = self.reports.get(1).map_or(too_old, |(due, _)| too_old.min(*due));
    }
    /// The report in use by the scheduler.
    pub fn in_use(&mut self) -> Option<&mut CqiReport> {
        self.reports.front_mut().map(|(_, report)| report)
    }
    /// Reports of the former cell's channel say nothing about that of the present one.
    pub fn forget(&mut self) {
        *self = Self::new();
    }
}

/// Whether a periodic report is measured in a slot. A report whose slot has no downlink symbols is measured
/// in the next one that has: the CSI reference resource is a slot with downlink (TS 38.214 §5.2.2.5, TS
/// 36.213 §7.2.3).
pub(in crate::cell) fn measures_cqi(duplex: &Duplex, period: SlotSpan, slot: Slot) -> bool {
    duplex.next(Slot(slot.0 - slot.within(period).0), Direction::Down) == slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::SlotPattern;

    #[test]
    fn reports_that_are_due_in_uplink_slots_are_measured_in_the_next_slot_with_downlink() {
        let measured = |duplex: &Duplex, period, slots| {
            let in_slot = |slot: &u64| measures_cqi(duplex, SlotSpan(period), Slot(*slot));
            (0..slots).filter(in_slot).collect::<Vec<u64>>()
        };
        let tdd = Duplex::Tdd(SlotPattern::from_letters("DDDSU", 1).unwrap());
        // Slot 64 is the U slot of its pattern.
        assert_eq!(measured(&tdd, 16, 100), [0, 16, 32, 48, 65, 80, 96]);
        assert_eq!(measured(&tdd, 1, 7), [0, 1, 2, 3, 5, 6]);
        assert_eq!(measured(&Duplex::Fdd, 16, 70), [0, 16, 32, 48, 64]);
    }
}
