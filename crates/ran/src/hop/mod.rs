//! A hop of a radio path: HARQ, the blocks that its receiver has decoded, scheduling state and counters.
//!
//! A hop carries the RLC PDUs of a bearer in one direction: a direction of a station in a cell, or a part of
//! a path of a pair (`crate::sidelink`).

mod stats;

pub use stats::{DropCounts, LinkStats, SINR_ORIGIN_DB};

use crate::decibel::Sinr;
use crate::mac::harq::{self, TransportBlock};
use crate::mac::pdu as mac;
use crate::mac::scheduler::{Candidate, ServedRate};
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::rlc;
use crate::slot::{Numerology, Slot};
use std::collections::VecDeque;

/// MAC of a hop.
pub(crate) struct HopMac {
    pub harq: harq::Processes,
    last_served: Slot,
    served_rate: ServedRate,
    /// Factor of the scheduler's priority.
    pub weight: f64,
    pub stats: LinkStats,
    /// Decoded RLC PDUs, each with the slot in which it reaches the receiving RLC.
    pub decoded: VecDeque<(Slot, rlc::Pdu)>,
    /// Finished blocks, whose storage new blocks reuse.
    #[expect(clippy::vec_box, reason = "a process takes the box")]
    spare: Vec<Box<TransportBlock>>,
}

impl HopMac {
    /// A hop with so many HARQ processes.
    pub fn new(processes: usize, numerology: Numerology) -> Self {
        Self {
            harq: harq::Processes::new(processes),
            last_served: Slot(0),
            served_rate: ServedRate::new(numerology),
            weight: 1.0,
            stats: LinkStats::default(),
            decoded: VecDeque::new(),
            spare: Vec::new(),
        }
    }
    /// A candidate whose demand and rates are not known yet.
    pub fn contender(&self, station: usize) -> Candidate {
        let mut candidate = Candidate::new(station, 0, self.last_served, 0.0, 0.0);
        candidate.weight = self.weight;
        candidate
    }
    pub fn candidate(&self, slot: Slot, station: usize, wanted_prb: u16, bits_per_prb: f64) -> Candidate {
        let served = self.served_rate.at(slot);
        let mut candidate = Candidate::new(station, wanted_prb, self.last_served, bits_per_prb, served);
        candidate.weight = self.weight;
        candidate
    }
    /// Mean bits per slot that the station was served.
    pub fn served_bits(&self, slot: Slot) -> f64 {
        self.served_rate.at(slot)
    }
    pub fn on_scheduled(&mut self, slot: Slot, bits: u32) {
        self.last_served = slot;
        self.served_rate.add(slot, bits);
    }
    /// Whether HARQ and the receiver are idle.
    pub fn idle(&self) -> bool {
        self.harq.idle() && self.decoded.is_empty()
    }
    /// Packets whose last byte is in a block.
    pub fn held(&self) -> u64 {
        let decoded: u64 = self.decoded.iter().map(|(_, pdu)| pdu.held()).sum();
        self.harq.held() + decoded
    }
    /// Whether a decoded PDU reaches RLC in `slot`.
    pub fn delivery_due(&self, slot: Slot) -> bool {
        self.decoded.front().is_some_and(|(due, _)| *due <= slot)
    }
    /// An empty vector for the PDUs of a block.
    pub fn pdu_storage(&mut self) -> Vec<rlc::Pdu> {
        self.spare.last_mut().map(|block| std::mem::take(&mut block.pdu.sdus)).unwrap_or_default()
    }
    /// Starts a process with a block of `n_prb` PRBs of this size.
    pub fn start(
        &mut self,
        process: usize,
        pdu: mac::Pdu,
        mcs: Mcs,
        size: PrbSize,
        n_prb: u16,
    ) -> &mut TransportBlock {
        let block = match self.spare.pop() {
            Some(mut block) => {
                block.restart(pdu, mcs, size, n_prb);
                block
            }
            None => Box::new(TransportBlock::new(pdu, mcs, size, n_prb)),
        };
        self.harq.start(process, block)
    }

    /// Transmits the block of a process in these PRBs at this SINR. If it is decoded, its RLC PDUs go
    /// to the receiver. `times` are the slots of the transmission, of the verdict, and of the delivery to
    /// RLC. Calls `on_first` with the content at the first transmission. Returns whether the block is
    /// decoded.
    pub fn transmit(
        &mut self,
        process: usize,
        prbs: PrbSet,
        times: (Slot, Slot, Slot),
        (sinr, draw): (Sinr, f64),
        on_first: impl FnOnce(&mac::Pdu),
    ) -> bool {
        let (slot, verdict_at, due) = times;
        let known = self.harq.block(process).is_some_and(|block| block.decoded);
        let sent = self.harq.transmit(process, prbs, (slot, verdict_at), sinr, draw);
        let block = sent.expect("a block is sent from its process");
        let stats = &mut self.stats;
        if block.transmissions == 1 {
            stats.prbs += u64::from(block.n_prb);
            stats.transport_blocks += 1;
            stats.transport_block_bytes += u64::from(block.bits / 8);
            stats.padding_bytes += u64::from(block.pdu.padding);
            stats.mcs_index_sum += u64::from(block.mcs.index());
            stats.sinr_millidecibels += sinr.millidecibels_above(SINR_ORIGIN_DB);
            on_first(&block.pdu);
            for pdu in &block.pdu.sdus {
                stats.rlc_retransmissions += pdu.retransmissions();
                stats.status_pdus += u64::from(pdu.is_status());
            }
        } else {
            stats.prbs += u64::from(prbs.len());
            stats.harq_retransmissions += 1;
        }
        if block.decoded && !known {
            stats.harq_wait_slots += slot.since(block.first_sent_at);
            for pdu in block.pdu.sdus.drain(..) {
                self.decoded.push_back((due, pdu)); // `extend` counts and reserves first, for mostly one PDU
            }
        }
        block.decoded
    }
    /// Ends the process of a decoded block.
    pub fn finish(&mut self, process: usize) {
        let Some(block) = self.harq.finish(process) else { return };
        debug_assert!(block.pdu.sdus.is_empty(), "the PDUs of a decoded block are at the receiver");
        self.spare.push(block);
    }
    /// Ends the process of a block whose last transmission failed: calls `lost` with its PDUs.
    pub fn give_up(&mut self, process: usize, lost: impl FnMut(rlc::Pdu)) {
        self.stats.transport_blocks_lost += 1;
        let Some(mut block) = self.harq.finish(process) else { return };
        block.pdu.sdus.drain(..).for_each(lost);
        self.spare.push(block);
    }
    /// All processes are emptied: calls `lost` with the PDUs of their blocks.
    pub fn reset(&mut self, mut lost: impl FnMut(rlc::Pdu)) {
        for process in self.harq.busy() {
            let Some(block) = self.harq.finish(process) else { continue };
            block.pdu.sdus.into_iter().for_each(&mut lost);
        }
    }
}
