//! The eNB relays packets by its downlink: asynchronous HARQ first, then new blocks, in equal shares (TS
//! 36.213 §7).

use super::access::DECODING;
use super::flow::{DOWNLINK_VERDICT, Hop};
use super::node::Sidelink;
use super::stats::MessageKind;
use super::uplink::{FULL_PRB, bytes_needed};
use crate::mac::scheduler::{self, Budget, Policy};
use crate::prb::{PrbSet, rbg_size};
use crate::slot::Slot;

impl Sidelink {
    pub(super) fn send_downlink(&mut self, slot: Slot) {
        let prb = self.config.prb;
        let mut free = PrbSet::range(0, u32::from(prb));
        self.candidates.clear();
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            if self.retransmit_downlink(slot, pair, flow, &mut free) {
                continue;
            }
            let own = &self.pairs[pair];
            if own.flows[flow].relay.harq.free().is_none() || !own.relay_sendable(flow) {
                continue;
            }
            let mcs = own.channel.downlink[flow].mcs();
            let needed = bytes_needed(own.available(flow, Hop::Relay));
            let wanted = mcs.fewest_prbs(FULL_PRB, needed, prb);
            let bits = mcs.bits_per_prb(FULL_PRB, prb);
            self.candidates.push(own.flows[flow].relay.candidate(slot, index, wanted, bits));
        }
        let count = self.candidates.len();
        let budget = Budget { n_prb: free.len() as u16, max_grants: count, granularity: rbg_size(prb) };
        let policy = Policy::RoundRobin;
        scheduler::allocate(slot, policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let prbs = free.lowest(u32::from(n_prb));
            free = free.without(prbs);
            self.start_downlink(slot, index / 2, index % 2, prbs);
        }
    }

    /// Ends blocks that were decoded or have failed too often, and retransmits one that failed. Returns
    /// whether one is retransmitted.
    fn retransmit_downlink(&mut self, slot: Slot, pair: usize, flow: usize, free: &mut PrbSet) -> bool {
        let mut again = false;
        let link = &mut self.pairs[pair].flows[flow].relay;
        for process in link.harq.due(slot) {
            let Some(block) = link.harq.block(process) else { continue };
            if block.decoded {
                link.finish(process);
            } else if block.transmissions >= self.config.max_harq_tx {
                link.give_up(process, &mut self.output);
            } else if !again && u32::from(block.n_prb) <= free.len() {
                again = true;
                let prbs = free.lowest(u32::from(block.n_prb));
                *free = free.without(prbs);
                let snr = self.pairs[pair].channel.downlink[flow].snr;
                let link = &mut self.pairs[pair].flows[flow].relay;
                let times = (slot, slot + DOWNLINK_VERDICT, slot + DECODING);
                link.transmit(process, prbs, times, snr, self.draws.uniform());
                return again;
            }
        }
        again
    }
    fn start_downlink(&mut self, slot: Slot, pair: usize, flow: usize, prbs: PrbSet) {
        let now = self.clock.start(slot);
        let radio = self.pairs[pair].channel.downlink[flow];
        let (mcs, n_prb) = (radio.mcs(), prbs.len() as u16);
        let (link, reverse) = self.pairs[pair].hop(flow, Hop::Relay);
        let Some(process) = link.harq.free() else { return };
        let bits = mcs.block_bits(FULL_PRB, n_prb);
        let storage = link.pdu_storage();
        let pdu = link.bearer.sender(&mut reverse.bearer, now).downlink_pdu(slot, bits / 8, storage);
        link.on_scheduled(slot, bits);
        link.start(process, pdu, mcs, FULL_PRB, n_prb);
        let times = (slot, slot + DOWNLINK_VERDICT, slot + DECODING);
        link.transmit(process, prbs, times, radio.snr, self.draws.uniform());
        self.note(slot, pair, flow, MessageKind::Relayed);
    }
}
