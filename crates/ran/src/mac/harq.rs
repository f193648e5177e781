//! Hybrid ARQ (TS 36.321 §5.3.2 and §5.4.2, TS 36.213 §7 and §8): eight stop-and-wait processes per station
//! and direction; a block is retransmitted until it is decoded or the maximum number of transmissions is
//! reached.
//!
//! Downlink HARQ is asynchronous: a retransmission goes out at the earliest eight slots later, when its
//! feedback (n+4) has been processed. Uplink HARQ is synchronous and non-adaptive: the same PRBs eight slots
//! later. Where the PRACH or a Msg3 needs these PRBs, a grant moves the retransmission, or it waits eight
//! more slots. The linear SINRs of all transmissions add up (Chase combining). Feedback is never lost.

use super::pdu as mac;
use crate::lte::block_errors;
use crate::lte::mcs::Mcs;
use crate::prb::PrbSet;
use crate::rlc;
use crate::slot::{Slot, SlotSpan};

/// HARQ processes per station and direction in FDD (TS 36.213 §7 and §8).
pub const PROCESSES: usize = 8;
/// HARQ round-trip time in slots, from a transmission to the earliest retransmission in FDD (TS 36.213 §7 and
/// §8).
pub const HARQ_RTT: SlotSpan = SlotSpan(8);

/// A transport block in a HARQ process.
#[derive(Clone, Debug)]
pub struct TransportBlock {
    pub pdu: mac::Pdu,
    pub mcs: &'static Mcs,
    /// Size in bits.
    pub bits: u32,
    /// Number of PRBs that every transmission takes.
    pub n_prb: u8,
    /// PRBs of the last transmission.
    pub prbs: PrbSet,
    /// Whether the outer loop of link adaptation has used the result of the first transmission.
    pub outer_loop_done: bool,
    pub transmissions: u32,
    pub first_sent_at: Slot,
    pub sent_at: Slot,
    /// Whether the last transmission was decoded.
    pub decoded: bool,
    /// For a Msg3, whether another station sends a Msg3 in the same PRBs: then it is never decoded.
    pub msg3: Option<bool>,
    combined_sinr: f64,
}

impl TransportBlock {
    pub fn new(pdu: mac::Pdu, mcs: &'static Mcs, bits: u32, n_prb: u8) -> Self {
        Self {
            pdu,
            mcs,
            bits,
            n_prb,
            prbs: PrbSet::NONE,
            outer_loop_done: false,
            transmissions: 0,
            first_sent_at: Slot(0),
            sent_at: Slot(0),
            decoded: false,
            msg3: None,
            combined_sinr: 0.0,
        }
    }
    /// A block of random access on these PRBs, which the outer loop of link adaptation ignores.
    pub fn signalling(pdu: mac::Pdu, mcs: &'static Mcs, bits: u32, prbs: PrbSet) -> Self {
        Self { outer_loop_done: true, prbs, ..Self::new(pdu, mcs, bits, prbs.len() as u8) }
    }
    /// Whether it is a Msg3 in the same PRBs as another station's.
    pub fn collides(&self) -> bool {
        self.msg3 == Some(true)
    }
    /// Transmits or retransmits the block in `slot` at this linear SINR. `draw`, uniform in `[0, 1)`, decides
    /// whether it is decoded.
    pub fn transmit(&mut self, slot: Slot, sinr: f64, draw: f64) {
        if self.transmissions == 0 {
            self.first_sent_at = slot;
        }
        self.transmissions += 1;
        self.sent_at = slot;
        self.combined_sinr += sinr;
        let error = block_errors::block_error_linear(self.mcs, self.bits, self.combined_sinr);
        self.decoded = !self.collides() && draw >= error;
    }
}

#[derive(Clone, Debug, Default)]
pub struct Processes {
    blocks: [Option<Box<TransportBlock>>; PROCESSES],
}

impl Processes {
    /// The first process without a block, for asynchronous HARQ.
    pub fn free(&self) -> Option<usize> {
        self.blocks.iter().position(Option::is_none)
    }
    /// The process of a slot, for synchronous HARQ.
    pub fn synchronous(slot: Slot) -> usize {
        slot.within(HARQ_RTT).0 as usize
    }
    /// Puts a block into an empty process.
    pub fn start(&mut self, process: usize, block: Box<TransportBlock>) {
        debug_assert!(self.blocks[process].is_none(), "a HARQ process carries one block");
        self.blocks[process] = Some(block);
    }
    pub fn block(&self, process: usize) -> Option<&TransportBlock> {
        self.blocks.get(process)?.as_deref()
    }
    pub fn block_mut(&mut self, process: usize) -> Option<&mut TransportBlock> {
        self.blocks[process].as_deref_mut()
    }
    pub fn finish(&mut self, process: usize) -> Option<Box<TransportBlock>> {
        self.blocks[process].take()
    }
    /// The processes whose block was sent `age` or more slots ago.
    pub fn sent_before(&self, slot: Slot, age: SlotSpan) -> impl Iterator<Item = usize> + use<> {
        let mut due = [false; PROCESSES];
        for (due, block) in due.iter_mut().zip(&self.blocks) {
            *due = block.as_ref().is_some_and(|block| slot.since(block.sent_at) >= age);
        }
        (0..due.len()).filter(move |process| due[*process])
    }
    pub fn idle(&self) -> bool {
        self.blocks.iter().all(Option::is_none)
    }
    /// Packets whose last byte is in one of the blocks.
    pub fn held(&self) -> u64 {
        self.blocks.iter().flatten().flat_map(|block| &block.pdu.sdus).map(rlc::Pdu::held).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::from_db;
    use crate::lte::mcs::DOWNLINK;

    #[test]
    fn two_equal_transmissions_gain_three_decibels() {
        let mcs = &DOWNLINK[10];
        let pdu = mac::Pdu::default();
        let mut block = TransportBlock::new(pdu, mcs, 6120, 10);
        let sinr = from_db(mcs.s50_6144_db) / 2.0;
        block.transmit(Slot(0), sinr, 0.9999);
        assert!(!block.decoded);
        // The second transmission raises the SINR to the 50% point.
        let mut again = block.clone();
        again.transmit(Slot(8), sinr, 0.51);
        assert!(again.decoded);
        block.transmit(Slot(8), sinr, 0.49);
        assert!(!block.decoded);
    }

    #[test]
    fn the_mean_number_of_transmissions_is_that_of_the_geometric_sum() {
        let mcs = &DOWNLINK[10];
        let mut draws = paceline_net::Stream::new(3, "test");
        // Retransmissions have a SINR of zero, so that every transmission has the error probability of the
        // first.
        for (below_s50, most) in [(0.0, 1), (0.0, 2), (0.0, 4), (0.1, 4), (-0.1, 5), (-0.2, 8), (0.2, 28)] {
            let first = mcs.s50_6144_db - below_s50;
            let p = block_errors::block_error_db(mcs, 6120, first);
            const BLOCKS: u32 = 40_000;
            let (mut transmissions, mut lost) = (0, 0);
            for _ in 0..BLOCKS {
                let mut block = TransportBlock::new(mac::Pdu::default(), mcs, 6120, 10);
                while !block.decoded && block.transmissions < most {
                    let sinr = if block.transmissions == 0 { from_db(first) } else { 0.0 };
                    block.transmit(Slot(8 * u64::from(block.transmissions)), sinr, draws.uniform());
                }
                transmissions += block.transmissions;
                lost += u32::from(!block.decoded);
            }
            let all = libm::pow(p, f64::from(most));
            let expected = (1.0 - all) / (1.0 - p);
            let mean = f64::from(transmissions) / f64::from(BLOCKS);
            // Standard deviation without a limit, an upper bound: sqrt(p) / (1 - p).
            let deviation = (p / f64::from(BLOCKS)).sqrt() / (1.0 - p);
            assert!((mean - expected).abs() < 4.0 * deviation, "{p}, {most}: {mean}, by hand {expected}");
            let share = f64::from(lost) / f64::from(BLOCKS);
            assert!((share - all).abs() < 4.0 * (all * (1.0 - all) / f64::from(BLOCKS)).sqrt() + 1e-9);
        }
    }
}
