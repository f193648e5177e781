//! Hybrid ARQ (TS 36.321 §5.3.2 and §5.4.2): stop-and-wait processes per station and direction, as many as
//! the timing says; a block is retransmitted until it is decoded or the maximum number of transmissions is
//! reached.
//!
//! Asynchronous HARQ retransmits in any slot from the verdict on, when the feedback has been processed.
//! Synchronous HARQ retransmits in the next turn of the process, non-adaptively: in the same PRBs. Where the
//! PRACH or a Msg3 needs these PRBs, a grant moves the retransmission, or it waits for another turn. The
//! linear SINRs of all transmissions add up (Chase combining). Feedback is never lost.

use super::pdu as mac;
use crate::decibel::Sinr;
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::rlc;
use crate::slot::Slot;
use crate::timing::MAX_PROCESSES;

/// The role of a block in random access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// User data, or Msg4.
    Data,
    /// Msg3.
    Msg3,
    /// Msg3 in the same PRBs as another station's: it is never decoded.
    CollidedMsg3,
}

/// A transport block in a HARQ process.
#[derive(Clone, Debug)]
pub struct TransportBlock {
    pub pdu: mac::Pdu,
    pub mcs: Mcs,
    /// Size of a PRB of the first transmission.
    pub size: PrbSize,
    /// Size in bits.
    pub bits: u32,
    /// Number of PRBs of the first transmission.
    pub n_prb: u16,
    /// PRBs of the last transmission.
    pub prbs: PrbSet,
    /// Whether the outer loop of link adaptation has used the result of the first transmission.
    pub outer_loop_done: bool,
    pub transmissions: u32,
    pub first_sent_at: Slot,
    /// Whether a transmission was decoded: the receiver keeps a decoded block.
    pub decoded: bool,
    /// Whether the answer to the last transmission was the NACK of a bundle with a block that failed.
    bundle_failed: bool,
    pub kind: BlockKind,
    /// The sum of the SINRs of all transmissions.
    combined: Sinr,
}

impl TransportBlock {
    pub fn new(pdu: mac::Pdu, mcs: Mcs, size: PrbSize, n_prb: u16) -> Self {
        Self {
            pdu,
            mcs,
            size,
            bits: mcs.block_bits(size, n_prb),
            n_prb,
            prbs: PrbSet::NONE,
            outer_loop_done: false,
            transmissions: 0,
            first_sent_at: Slot(0),
            decoded: false,
            bundle_failed: false,
            kind: BlockKind::Data,
            combined: Sinr::Linear(0.0),
        }
    }
    /// Makes a finished block a new one, as [`Self::new`] does. Field by field: a block is too large to be
    /// built elsewhere and moved here, once per slot and station.
    pub fn restart(&mut self, pdu: mac::Pdu, mcs: Mcs, size: PrbSize, n_prb: u16) {
        self.pdu = pdu;
        self.mcs = mcs;
        self.size = size;
        self.bits = mcs.block_bits(size, n_prb);
        self.n_prb = n_prb;
        self.prbs = PrbSet::NONE;
        self.outer_loop_done = false;
        self.transmissions = 0;
        self.first_sent_at = Slot(0);
        self.decoded = false;
        self.bundle_failed = false;
        self.kind = BlockKind::Data;
        self.combined = Sinr::Linear(0.0);
    }
    /// Makes the block one of random access on these PRBs, which the outer loop of link adaptation ignores.
    pub fn set_signalling(&mut self, kind: BlockKind, prbs: PrbSet) {
        (self.outer_loop_done, self.kind, self.prbs) = (true, kind, prbs);
    }
    /// PRBs of a retransmission in a slot whose PRBs hold `size`: as many resource elements as the first
    /// transmission had, or a part of a PRB more.
    pub fn prbs_in(&self, size: PrbSize) -> u32 {
        (u32::from(self.n_prb) * u32::from(self.size.0)).div_ceil(u32::from(size.0))
    }
    pub fn is_msg3(&self) -> bool {
        self.kind != BlockKind::Data
    }
    /// Whether the base station has an ACK of the block, once its verdict is due.
    pub fn acknowledged(&self) -> bool {
        self.decoded && !self.bundle_failed
    }
    /// Transmits or retransmits the block in `slot` at this SINR. `draw`, uniform in `[0, 1)`, decides
    /// whether it is decoded.
    pub fn transmit(&mut self, slot: Slot, sinr: Sinr, draw: f64) {
        if self.transmissions == 0 {
            (self.first_sent_at, self.combined) = (slot, sinr);
        } else {
            self.combined = self.combined.plus(sinr);
        }
        self.transmissions += 1;
        let decodes = self.mcs.error_curve(self.bits).decodes(self.combined, draw);
        self.decoded |= self.kind != BlockKind::CollidedMsg3 && decodes;
        self.bundle_failed = false;
    }
}

/// The HARQ processes of one station and direction.
#[derive(Clone, Debug)]
pub struct Processes {
    blocks: [Option<Box<TransportBlock>>; MAX_PROCESSES],
    /// Processes that exist, and those that carry a block.
    all: ProcessSet,
    busy: ProcessSet,
    /// For each process with a block, the slot in which the base station reacts to the last transmission; 0
    /// before the first one, the end of time until a granted retransmission is sent. Here and not in the
    /// blocks, since they are looked through in every slot.
    verdicts: [Slot; MAX_PROCESSES],
    /// Processes whose block has not been sent yet.
    unsent: ProcessSet,
    /// Processes whose verdict was due in the last slot for which [`Self::due`] was called.
    due: ProcessSet,
    /// The first slot in which another verdict is due, or an earlier one.
    next: Slot,
}

/// The slot of a verdict that is not due, later than all slots by definition.
const NO_VERDICT: Slot = Slot(u64::MAX);

impl Processes {
    pub fn new(count: usize) -> Self {
        assert!(count <= MAX_PROCESSES, "{count} HARQ processes");
        let all = ProcessSet(((1u32 << count) - 1) as u16);
        let blocks = [const { None }; MAX_PROCESSES];
        Self {
            blocks,
            all,
            busy: ProcessSet(0),
            verdicts: [NO_VERDICT; MAX_PROCESSES],
            unsent: ProcessSet(0),
            due: ProcessSet(0),
            next: NO_VERDICT,
        }
    }
    /// The first process without a block, for asynchronous HARQ.
    pub fn free(&self) -> Option<usize> {
        ProcessSet(self.all.0 & !self.busy.0).next()
    }
    /// The first process that carries no block and is not among these.
    pub fn free_but(&self, granted: impl Iterator<Item = usize>) -> Option<usize> {
        let taken = granted.fold(self.busy.0, |set, process| set | 1 << process);
        ProcessSet(self.all.0 & !taken).next()
    }
    /// Puts a block into an empty process.
    pub fn start(&mut self, process: usize, block: Box<TransportBlock>) -> &mut TransportBlock {
        debug_assert!(self.blocks[process].is_none(), "a HARQ process carries one block");
        self.busy.0 |= 1 << process;
        self.unsent.0 |= 1 << process;
        self.verdicts[process] = Slot(0);
        self.blocks[process].insert(block)
    }
    /// Transmits the block of a process in these PRBs (see [`TransportBlock::transmit`]). Returns the block.
    pub fn transmit(
        &mut self,
        process: usize,
        prbs: PrbSet,
        (slot, verdict_at): (Slot, Slot),
        sinr: Sinr,
        draw: f64,
    ) -> Option<&mut TransportBlock> {
        self.unsent.0 &= !(1 << process);
        self.set_verdict(process, verdict_at);
        let block = self.blocks[process].as_deref_mut()?;
        block.prbs = prbs;
        block.transmit(slot, sinr, draw);
        Some(block)
    }
    fn set_verdict(&mut self, process: usize, at: Slot) {
        self.due.0 &= !(1 << process);
        self.verdicts[process] = at;
        self.next = self.next.min(at);
    }
    /// A grant for a retransmission was sent: no verdict is due until then.
    pub fn await_retransmission(&mut self, process: usize) {
        self.set_verdict(process, NO_VERDICT);
    }
    /// The granted retransmission was not sent: the verdict of the last one counts from `slot` on.
    pub fn miss_retransmission(&mut self, process: usize, slot: Slot) {
        self.set_verdict(process, slot);
    }
    /// For the outer loop, once per block: whether its first transmission was decoded.
    pub fn take_first_result(&mut self, process: usize) -> Option<bool> {
        let block = self.blocks[process].as_deref_mut().filter(|block| !block.outer_loop_done)?;
        block.outer_loop_done = true;
        Some(block.acknowledged() && block.transmissions == 1)
    }
    pub fn block(&self, process: usize) -> Option<&TransportBlock> {
        self.blocks.get(process)?.as_deref()
    }
    pub fn block_mut(&mut self, process: usize) -> Option<&mut TransportBlock> {
        self.blocks[process].as_deref_mut()
    }
    pub fn finish(&mut self, process: usize) -> Option<Box<TransportBlock>> {
        self.busy.0 &= !(1 << process);
        self.unsent.0 &= !(1 << process);
        self.due.0 &= !(1 << process);
        self.blocks[process].take()
    }
    /// The processes that carry a block.
    pub fn busy(&self) -> ProcessSet {
        self.busy
    }
    /// The processes whose verdict is due: those that were decoded, failed, or wait for a retransmission;
    /// and those whose block has not been sent. `slot` is not before that of the last call.
    #[inline]
    pub fn due(&mut self, slot: Slot) -> ProcessSet {
        // Called for every station in every slot.
        if slot >= self.next {
            self.collect_due(slot);
        }
        ProcessSet(self.due.0 | self.unsent.0)
    }
    fn collect_due(&mut self, slot: Slot) {
        self.next = NO_VERDICT;
        for process in ProcessSet(self.busy.0 & !self.unsent.0 & !self.due.0) {
            let at = self.verdicts[process];
            if at <= slot {
                self.due.0 |= 1 << process;
            } else {
                self.next = self.next.min(at);
            }
        }
    }
    /// Bundles the HARQ-ACKs that are due (TS 36.213 §7.3): blocks whose verdict is due in the same slot have
    /// one answer, a NACK if one of them failed.
    pub fn bundle(&mut self, slot: Slot) {
        for failed in self.due(slot) {
            if self.block(failed).is_none_or(|block| block.decoded) {
                continue;
            }
            let verdict_at = self.verdicts[failed];
            for (block, at) in self.blocks.iter_mut().zip(&self.verdicts) {
                if let Some(block) = block.as_deref_mut().filter(|_| *at == verdict_at) {
                    block.bundle_failed = true;
                }
            }
        }
    }
    pub fn idle(&self) -> bool {
        self.busy.0 == 0
    }
    /// Packets whose last byte is in one of the blocks.
    pub fn held(&self) -> u64 {
        self.blocks.iter().flatten().flat_map(|block| &block.pdu.sdus).map(rlc::Pdu::held).sum()
    }
}

/// A set of process numbers, which iterates in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessSet(u16);

impl Iterator for ProcessSet {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        let process = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        process
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::from_db;
    use crate::lte::block_errors;
    use crate::lte::mcs::DOWNLINK;
    use crate::mcs::LTE_PRB;

    #[test]
    fn two_equal_transmissions_gain_three_decibels() {
        let mcs = &DOWNLINK[10];
        let pdu = mac::Pdu::default();
        let mut block = TransportBlock { bits: 6120, ..TransportBlock::new(pdu, Mcs::Lte(mcs), LTE_PRB, 10) };
        let sinr = Sinr::Linear(from_db(mcs.s50_6144_db) / 2.0);
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
    fn a_bundle_has_one_answer() {
        let mut processes = Processes::new(15);
        // Blocks of two bundles, one of which has a block that failed.
        for (process, (verdict, decoded)) in
            [(20, true), (20, false), (20, true), (21, true)].into_iter().enumerate()
        {
            let block = TransportBlock::new(mac::Pdu::default(), Mcs::Lte(&DOWNLINK[10]), LTE_PRB, 10);
            processes.start(process, Box::new(block));
            let sinr = Sinr::Linear(if decoded { 1e3 } else { 0.0 });
            processes.transmit(process, PrbSet::NONE, (Slot(10), Slot(verdict)), sinr, 0.5).unwrap();
        }
        let acknowledged = |processes: &Processes| {
            [0, 1, 2, 3].map(|process| processes.block(process).unwrap().acknowledged())
        };
        processes.bundle(Slot(19));
        assert_eq!(acknowledged(&processes), [true, false, true, true], "no verdict is due");
        processes.bundle(Slot(20));
        processes.bundle(Slot(21));
        assert_eq!(acknowledged(&processes), [false, false, false, true]);
        // The retransmitted block leaves the bundle; the others still wait for their retransmission.
        processes.transmit(1, PrbSet::NONE, (Slot(22), Slot(32)), Sinr::Linear(1e3), 0.5).unwrap();
        processes.bundle(Slot(22));
        assert_eq!(acknowledged(&processes), [false, true, false, true]);
        // A decoded block stays decoded, at any SINR.
        processes.transmit(0, PrbSet::NONE, (Slot(23), Slot(32)), Sinr::Linear(0.0), 0.0).unwrap();
        processes.bundle(Slot(32));
        assert_eq!(acknowledged(&processes), [true, true, false, true]);
    }

    #[test]
    fn a_changed_verdict_is_due_at_once() {
        let mut processes = Processes::new(8);
        let start = |processes: &mut Processes, process, verdict| {
            let block = TransportBlock::new(mac::Pdu::default(), Mcs::Lte(&DOWNLINK[10]), LTE_PRB, 10);
            processes.start(process, Box::new(block));
            processes
                .transmit(process, PrbSet::NONE, (Slot(10), Slot(verdict)), Sinr::Linear(0.0), 0.5)
                .unwrap();
        };
        start(&mut processes, 3, 20);
        assert_eq!(processes.due(Slot(11)).next(), None);
        start(&mut processes, 5, 15);
        assert_eq!(processes.due(Slot(15)).collect::<Vec<_>>(), [5]);
        assert_eq!(processes.due(Slot(16)).collect::<Vec<_>>(), [5], "it waits for its retransmission");
        processes.finish(5);
        assert_eq!(processes.due(Slot(17)).next(), None);
        processes.miss_retransmission(3, Slot(18));
        assert_eq!(processes.due(Slot(18)).collect::<Vec<_>>(), [3]);
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
                let block = TransportBlock::new(mac::Pdu::default(), Mcs::Lte(mcs), LTE_PRB, 10);
                let mut block = TransportBlock { bits: 6120, ..block };
                while !block.decoded && block.transmissions < most {
                    let sinr = if block.transmissions == 0 { Sinr::Db(first) } else { Sinr::Linear(0.0) };
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
