//! Hybrid ARQ (TS 36.321 §5.3.2 and §5.4.2, TS 36.213 §7 and §8): eight stop-and-wait processes per station and
//! direction, retransmission until decoded or given up.
//!
//! Downlink: asynchronous, the retransmission at the earliest eight TTIs later, when its feedback (n+4) has been
//! processed. Uplink: synchronous and non-adaptive, the same resource blocks eight TTIs later; where the PRACH or
//! a Msg3 takes them, a grant moves the repetition, or it waits another eight TTIs. The SINR of all
//! transmissions adds up (Chase combining). Feedback is never lost.

use crate::lte::block_errors;
use crate::lte::mcs::Mcs;
use crate::mac::pdu as mac;
use crate::prb::PrbSet;
use crate::rlc;
use crate::slot::Tti;

/// Number of processes, and TTIs from a transmission to the earliest retransmission (FDD).
pub const ROUND_TRIP: u64 = 8;

/// A transport block in flight.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its content.
    pub pdu: mac::Pdu,
    /// Modulation and coding.
    pub mcs: &'static Mcs,
    /// Size in bits.
    pub bits: u32,
    /// Resource blocks that every transmission takes.
    pub n_prb: u8,
    /// Which ones the last transmission took.
    pub blocks: PrbSet,
    /// Whether link adaptation has seen how the first transmission went.
    pub seen: bool,
    /// Transmissions so far.
    pub transmissions: u32,
    /// When it was sent first.
    pub first_sent_at: Tti,
    /// When it was sent last.
    pub sent_at: Tti,
    /// Whether the last transmission was decoded.
    pub decoded: bool,
    /// For a Msg3, whether another station's collides with it: then it is never decoded.
    pub msg3: Option<bool>,
    combined_sinr: f64,
}

impl Block {
    /// A block that was not sent yet.
    pub fn new(pdu: mac::Pdu, mcs: &'static Mcs, bits: u32, n_prb: u8) -> Self {
        Self {
            pdu,
            mcs,
            bits,
            n_prb,
            blocks: PrbSet::NONE,
            seen: false,
            transmissions: 0,
            first_sent_at: Tti(0),
            sent_at: Tti(0),
            decoded: false,
            msg3: None,
            combined_sinr: 0.0,
        }
    }
    /// A block of random access on these resource blocks: link adaptation learns nothing of it.
    pub fn signalling(pdu: mac::Pdu, mcs: &'static Mcs, bits: u32, blocks: PrbSet) -> Self {
        Self { seen: true, blocks, ..Self::new(pdu, mcs, bits, blocks.len() as u8) }
    }
    /// Whether it is a Msg3 that another station's collides with.
    pub fn collides(&self) -> bool {
        self.msg3 == Some(true)
    }
    /// Sends it (again) in `tti` at this linear SINR. `draw` is uniform in `[0, 1)` and decides whether it is decoded.
    pub fn transmit(&mut self, tti: Tti, sinr: f64, draw: f64) {
        if self.transmissions == 0 {
            self.first_sent_at = tti;
        }
        self.transmissions += 1;
        self.sent_at = tti;
        self.combined_sinr += sinr;
        let error = block_errors::block_error_at(self.mcs, self.bits, self.combined_sinr);
        self.decoded = !self.collides() && draw >= error;
    }
}

/// The processes of one station in one direction.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    slots: [Option<Box<Block>>; ROUND_TRIP as usize],
}

impl Processes {
    /// A process without a block, for asynchronous HARQ.
    pub fn free(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_none)
    }
    /// The process that belongs to a TTI, for synchronous HARQ.
    pub fn of(tti: Tti) -> usize {
        (tti.0 % ROUND_TRIP) as usize
    }
    /// Puts a block into a process.
    pub fn start(&mut self, process: usize, block: Box<Block>) {
        debug_assert!(self.slots[process].is_none(), "a HARQ process carries one block");
        self.slots[process] = Some(block);
    }
    /// The block of a process.
    pub fn block(&mut self, process: usize) -> Option<&mut Block> {
        self.slots[process].as_deref_mut()
    }
    /// The block of a process, to look at.
    pub fn peek(&self, process: usize) -> Option<&Block> {
        self.slots.get(process)?.as_deref()
    }
    /// Ends a process.
    pub fn finish(&mut self, process: usize) -> Option<Box<Block>> {
        self.slots[process].take()
    }
    /// The processes whose block was sent `age` or more TTIs ago.
    pub fn due(&self, tti: Tti, age: u64) -> impl Iterator<Item = usize> + use<> {
        let mut due = [false; ROUND_TRIP as usize];
        for (due, slot) in due.iter_mut().zip(&self.slots) {
            *due = slot.as_ref().is_some_and(|block| tti.since(block.sent_at) >= age);
        }
        (0..due.len()).filter(move |process| due[*process])
    }
    /// Whether no block is in flight.
    pub fn idle(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }
    /// Packets whose last byte is in a block in flight.
    pub fn held(&self) -> u64 {
        self.slots.iter().flatten().flat_map(|block| &block.pdu.sdus).map(rlc::Pdu::held).sum()
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
        let mut block = Block::new(pdu, mcs, 6120, 10);
        let sinr = from_db(mcs.s50_6144_db) / 2.0;
        block.transmit(Tti(0), sinr, 0.9999);
        assert!(!block.decoded);
        // The second brings it to its 50% point.
        let mut again = block.clone();
        again.transmit(Tti(8), sinr, 0.51);
        assert!(again.decoded);
        block.transmit(Tti(8), sinr, 0.49);
        assert!(!block.decoded);
    }

    #[test]
    fn the_mean_number_of_transmissions_is_that_of_the_sum() {
        let mcs = &DOWNLINK[10];
        let mut draws = paceline_net::Stream::new(3, "test");
        // Later transmissions without any signal leave every attempt with the error of the first.
        for (below_s50, most) in [(0.0, 1), (0.0, 2), (0.0, 4), (0.1, 4), (-0.1, 5), (-0.2, 8), (0.2, 28)] {
            let first = mcs.s50_6144_db - below_s50;
            let p = block_errors::block_error(mcs, 6120, first);
            const BLOCKS: u32 = 40_000;
            let (mut transmissions, mut lost) = (0, 0);
            for _ in 0..BLOCKS {
                let mut block = Block::new(mac::Pdu::default(), mcs, 6120, 10);
                while !block.decoded && block.transmissions < most {
                    let sinr = if block.transmissions == 0 { from_db(first) } else { 0.0 };
                    block.transmit(Tti(8 * u64::from(block.transmissions)), sinr, draws.uniform());
                }
                transmissions += block.transmissions;
                lost += u32::from(!block.decoded);
            }
            let all = libm::pow(p, f64::from(most));
            let expected = (1.0 - all) / (1.0 - p);
            let mean = f64::from(transmissions) / f64::from(BLOCKS);
            // No less varied than without a limit: sqrt(p) / (1 - p).
            let deviation = (p / f64::from(BLOCKS)).sqrt() / (1.0 - p);
            assert!((mean - expected).abs() < 4.0 * deviation, "{p}, {most}: {mean}, by hand {expected}");
            let share = f64::from(lost) / f64::from(BLOCKS);
            assert!((share - all).abs() < 4.0 * (all * (1.0 - all) / f64::from(BLOCKS)).sqrt() + 1e-9);
        }
    }
}
