//! Configured grants of type 1 (TS 38.321 §5.8.2): PUSCH occasions that RRC assigns, without PDCCH and
//! without scheduling requests.
//!
//! Stations of a cell take turns in the uplink slots of the period and, within a slot, in PRBs from the upper
//! end of PUSCH down. These PRBs are reserved, used or not. A dynamic grant of the slot takes precedence
//! (§5.4.1). A failed block is retransmitted by a dynamic grant. Stations beyond
//! [`ConfiguredGrant::capacity`], which scenarios refuse, have no configured grant. Left out: type 2,
//! repetitions, autonomous retransmissions.

use super::config::CellConfig;
use crate::mcs::Mcs;
use crate::nr::config::ConfiguredGrant;
use crate::prb::PrbSet;
use crate::rat::Rat;
use crate::slot::{Slot, SlotSpan};

/// The occasion of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Occasion {
    offset: SlotSpan,
    pub prbs: PrbSet,
}

/// The configured grants of all cells.
pub(super) struct ConfiguredGrants {
    period: SlotSpan,
    pub mcs: Option<Mcs>,
    /// By station.
    occasions: Vec<Option<Occasion>>,
    /// By cell and slot of the period, the PRBs of all occasions.
    reserved: Vec<Vec<PrbSet>>,
}

impl ConfiguredGrants {
    /// The grants of a configuration; `members` has the stations of each cell and `pusch` the PRBs of PUSCH.
    pub fn new(config: &CellConfig, members: &[Vec<usize>], pusch: PrbSet) -> Self {
        let stations = members.iter().map(Vec::len).sum();
        let none = Self {
            period: SlotSpan(1),
            mcs: None,
            occasions: vec![None; stations],
            reserved: vec![vec![PrbSet::NONE]; members.len()],
        };
        let Rat::Nr(nr) = &config.rat else { return none };
        let Some(ConfiguredGrant { period, prbs, mcs }) = nr.configured_grant else { return none };
        let rows = nr.uplink_table.rows();
        let row = &rows[usize::from(mcs).min(rows.len() - 1)];
        let mut grants = Self {
            period,
            mcs: Some(Mcs::Nr { row, layers: 1 }),
            reserved: vec![vec![PrbSet::NONE; period.0 as usize]; members.len()],
            ..none
        };
        for (cell, stations) in members.iter().enumerate() {
            for (turn, station) in stations.iter().enumerate() {
                let offset = config.duplex.uplink_offset(turn as u64, period);
                let reserved = &mut grants.reserved[cell][offset.0 as usize];
                let free = pusch.without(*reserved);
                if prbs == 0 || free.len() < u32::from(prbs) {
                    continue;
                }
                let prbs = free.without(free.lowest(free.len() - u32::from(prbs)));
                *reserved = reserved.with(prbs);
                grants.occasions[*station] = Some(Occasion { offset, prbs });
            }
        }
        grants
    }
    /// A station that leaves its cell loses its configured grant; its PRBs stay reserved in that cell.
    pub fn release(&mut self, station: usize) {
        self.occasions[station] = None;
    }
    /// Whether a station has a configured grant.
    pub fn has(&self, station: usize) -> bool {
        self.occasions[station].is_some()
    }
    /// The occasion of a station in a slot of the uplink.
    pub fn occasion(&self, station: usize, slot: Slot) -> Option<Occasion> {
        self.occasions[station].filter(|occasion| slot.within(self.period) == occasion.offset)
    }
    /// PRBs of the occasions of a cell in a slot of the uplink.
    pub fn reserved(&self, cell: usize, slot: Slot) -> PrbSet {
        match &self.reserved[cell][..] {
            [same] => *same, // without a division in cells without configured grants
            period => period[slot.within(self.period).0 as usize],
        }
    }
}
