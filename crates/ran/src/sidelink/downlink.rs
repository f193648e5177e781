//! The base station relays packets by its downlink: asynchronous HARQ first, then new blocks, in equal shares
//! (TS 36.213 §7, TS 38.214 §5.1).

use super::node::Sidelink;
use super::radio::Air;
use super::stats::MessageKind;
use crate::decibel::Sinr;
use crate::mac::scheduler::{self, Budget, Policy};
use crate::mcs::PrbSize;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::Bytes;

impl Sidelink {
    pub(super) fn send_downlink(&mut self, slot: Slot) {
        let Some((size, mut free)) = self.radio.downlink(slot) else { return };
        let prb = free.len() as u16;
        self.candidates.clear();
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            if self.retransmit_downlink(slot, (pair, flow), size, &mut free) {
                continue;
            }
            let own = &self.pairs[pair];
            if own.flows[flow].down.harq.free().is_none() || !own.sendable(flow, Air::Down) {
                continue;
            }
            let mcs = self.radio.mcs(Air::Down, own.channel.downlink[flow]);
            let needed = own.block_bytes(flow, Air::Down, own.available(flow, Air::Down));
            let wanted = mcs.fewest_prbs(size, needed, prb);
            let bits = mcs.bits_per_prb(size, prb);
            self.candidates.push(own.flows[flow].down.candidate(slot, index, wanted, bits));
        }
        let count = self.candidates.len();
        let budget =
            Budget { n_prb: free.len() as u16, max_grants: count, granularity: self.radio.rbg_size() };
        let policy = Policy::RoundRobin;
        scheduler::allocate(slot, policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let prbs = free.lowest(u32::from(n_prb));
            free = free.without(prbs);
            self.start_downlink(slot, (index / 2, index % 2), size, prbs);
        }
    }

    /// Ends blocks that were decoded or have failed too often, and retransmits one that failed. Returns
    /// whether one is retransmitted.
    fn retransmit_downlink(
        &mut self,
        slot: Slot,
        (pair, flow): (usize, usize),
        size: PrbSize,
        free: &mut PrbSet,
    ) -> bool {
        let mut again = false;
        let due = self.pairs[pair].flows[flow].down.harq.due(slot);
        for process in due {
            let down = &mut self.pairs[pair].flows[flow].down;
            let Some(block) = down.harq.block(process) else { continue };
            if block.decoded {
                down.finish(process);
            } else if block.transmissions >= self.config.max_harq_tx {
                self.give_up(slot, pair, flow, Air::Down, process);
            } else if !again && block.prbs_in(size) <= free.len() {
                again = true;
                let prbs = free.lowest(block.prbs_in(size));
                *free = free.without(prbs);
                let snr = Sinr::Linear(self.pairs[pair].channel.downlink[flow].snr);
                let times = self.radio.times(Air::Down, false, slot);
                let down = &mut self.pairs[pair].flows[flow].down;
                down.transmit(process, prbs, times, (snr, self.draws.uniform()), |_| {});
                return again;
            }
        }
        again
    }
    fn start_downlink(&mut self, slot: Slot, (pair, flow): (usize, usize), size: PrbSize, prbs: PrbSet) {
        let now = self.clock.start(slot);
        let radio = self.pairs[pair].channel.downlink[flow];
        let (mcs, n_prb) = (self.radio.mcs(Air::Down, radio), prbs.len() as u16);
        let down = &mut self.pairs[pair].flows[flow].down;
        let Some(process) = down.harq.free() else { return };
        let bits = mcs.block_bits(size, n_prb);
        let storage = down.pdu_storage();
        let back = &mut self.pairs[pair].flows[1 - flow].bearer.buffer;
        back.on_peer_block(Bytes(u64::from(bits / 8)));
        let Some(mut sender) = self.pairs[pair].sender(flow, Air::Down, now) else { return };
        let pdu = sender.downlink_pdu(slot, bits / 8, storage);
        let down = &mut self.pairs[pair].flows[flow].down;
        down.on_scheduled(slot, bits);
        down.start(process, pdu, mcs, size, n_prb);
        let times = self.radio.times(Air::Down, false, slot);
        down.transmit(process, prbs, times, (Sinr::Linear(radio.snr), self.draws.uniform()), |_| {});
        self.note(slot, pair, flow, MessageKind::Relayed);
    }
}
