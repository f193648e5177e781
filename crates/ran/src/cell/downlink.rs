//! The cell's downlink of a TTI: repetitions that are due first (TS 36.213 §7), new blocks share the rest.

use super::enb::Cell;
use crate::air::Sent;
use crate::lte::tbs;
use crate::lte::tbs::{bits_per_prb, prb_for};
use crate::mac::harq::{self, Block};
use crate::mac::pdu as mac;
use crate::mac::scheduler::{self, Budget};
use crate::prb::PrbSet;
use crate::slot::Tti;
use paceline_net::Bytes;

impl Cell {
    /// Allocates a cell's PDSCH of this TTI: retransmissions that are due first, new blocks share the rest.
    pub(super) fn schedule_downlink(&mut self, tti: Tti, cell: usize) {
        let mut free = PrbSet::range(0, u32::from(self.config.downlink_prb));
        let mut max_grants = self.config.downlink_grants;
        self.respond(tti, cell, &mut free, &mut max_grants);
        self.candidates.clear();
        for at in 0..self.members[cell].len() {
            let index = self.members[cell][at];
            let repeated = self.retransmit_downlink(tti, index, &mut free, &mut max_grants);
            let station = &mut self.stations[index];
            station.report_cqi(tti, &self.config, &mut self.network);
            let ready = !station.suspended() && station.downlink_sendable();
            if repeated || !ready || station.downlink.harq.free().is_none() {
                continue;
            }
            let cqi = station.known_cqi(&mut self.network);
            let Some(mcs) = station.downlink_mcs(cqi, &self.config) else { continue };
            station.downlink.mcs = Some(mcs);
            let needed = mac::needed(&station.downlink.rlc, &station.uplink.rlc, &*station.downlink.buffer);
            let wanted_prb = prb_for(mcs.i_tbs, needed, self.config.downlink_prb);
            let bits_per_prb = bits_per_prb(mcs.i_tbs, self.config.downlink_prb);
            self.candidates.push(station.downlink.candidate(tti, index, wanted_prb, bits_per_prb));
        }
        let granularity = crate::prb::group_size(self.config.downlink_prb);
        let budget = Budget { n_prb: free.len() as u8, max_grants, granularity };
        let policy = self.config.scheduler;
        scheduler::allocate(tti, policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let blocks = free.lowest(u32::from(n_prb));
            free = free.without(blocks);
            self.transmit_downlink(tti, index, blocks);
        }
    }

    /// Finishes the station's decoded blocks and repeats one that failed. Returns whether one was repeated.
    fn retransmit_downlink(
        &mut self,
        tti: Tti,
        index: usize,
        free: &mut PrbSet,
        max_grants: &mut usize,
    ) -> bool {
        let link = &mut self.stations[index].downlink;
        let mut repeated = false;
        for process in link.harq.due(tti, harq::ROUND_TRIP) {
            if self.config.outer_loop {
                link.adapt(process);
            }
            let Some(block) = link.harq.block(process) else { continue };
            if block.decoded {
                link.finish(process);
            } else if block.transmissions >= self.config.max_harq_tx {
                link.give_up(process, &mut self.output);
            } else if !repeated && u32::from(block.n_prb) <= free.len() && *max_grants > 0 {
                // One block per station and TTI: a single codeword.
                repeated = true;
                let blocks = free.lowest(u32::from(block.n_prb));
                *free = free.without(blocks);
                *max_grants -= 1;
                self.sent.push(Sent { station: index, downlink: true, process, blocks });
            }
        }
        repeated
    }

    fn transmit_downlink(&mut self, tti: Tti, index: usize, blocks: PrbSet) {
        let station = &mut self.stations[index];
        let (Some(mcs), Some(process)) = (station.downlink.mcs, station.downlink.harq.free()) else { return };
        let n_prb = blocks.len() as u8;
        let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
        let storage = station.downlink.storage();
        let pdu = station.downlink_sender().downlink_pdu(tti, bits / 8, storage);
        station.uplink.buffer.on_peer_block(Bytes(u64::from(bits / 8)));
        let link = &mut station.downlink;
        link.serve(tti, bits);
        link.start(process, Block::new(pdu, mcs, bits, n_prb));
        self.sent.push(Sent { station: index, downlink: true, process, blocks });
    }
}
