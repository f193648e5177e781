//! One direction of a station: buffer, RLC, HARQ processes, link adaptation, and its counters.

use super::link_stats::LinkStats;
use crate::lte::mcs::Mcs;
use crate::mac::harq::{self, Block};
use crate::mac::scheduler::{Candidate, ServedRate};
use crate::rlc::Reassembled;
use crate::rlc::{self, Rlc};
use crate::slot::Tti;
use paceline_net::{DropReason, Instant, Output, Packet, Port, SduQueue};
use std::collections::VecDeque;

/// Block error of first transmissions that the outer loop aims at.
const OUTER_TARGET: f64 = 0.1;
/// Its step down after a failure, in dB.
const OUTER_STEP_DB: f64 = 0.5;
/// Its largest correction, in dB.
const OUTER_LIMIT_DB: f64 = 10.0;

/// One direction of a station.
pub(crate) struct Link {
    pub buffer: Box<dyn SduQueue + Send>,
    pub rlc: Rlc,
    pub harq: harq::Processes,
    last_served: Tti,
    served: ServedRate,
    /// The MCS that link adaptation has chosen for this TTI.
    pub mcs: Option<&'static Mcs>,
    /// Outer loop of link adaptation: dB to add to what was measured.
    pub offset_db: f64,
    pub stats: LinkStats,
    /// PDUs decoded, on their way through the receiver: when they reach RLC.
    decoded: VecDeque<(Tti, rlc::Pdu)>,
    /// Until when the waits for grants are accounted for.
    accounted_to: Instant,
    /// Blocks that are done with, for the storage of new ones.
    #[expect(clippy::vec_box, reason = "a process takes the box")]
    spare: Vec<Box<Block>>,
}

impl Link {
    pub fn new(buffer: Box<dyn SduQueue + Send>, rlc: Rlc) -> Self {
        Self {
            buffer,
            rlc,
            harq: harq::Processes::default(),
            last_served: Tti(0),
            served: ServedRate::default(),
            mcs: None,
            offset_db: 0.0,
            stats: LinkStats::default(),
            decoded: VecDeque::new(),
            accounted_to: Instant::ZERO,
            spare: Vec::new(),
        }
    }
    /// What is in the buffer has waited until `now`, for a first grant or not: called before anything comes into it or
    /// leaves it, and before the reason changes.
    pub fn account(&mut self, now: Instant, for_grant: bool) {
        if for_grant {
            let waited = self.buffer.packets() as u64 * now.since(self.accounted_to).as_nanos();
            self.stats.grant_wait_ns += waited;
        }
        self.accounted_to = self.accounted_to.max(now);
    }
    /// This station as the scheduler sees it.
    pub fn candidate(&self, tti: Tti, station: usize, wanted_prb: u8, bits_per_prb: f64) -> Candidate {
        Candidate::new(station, wanted_prb, self.last_served, bits_per_prb, self.served.at(tti))
    }
    /// A block of `bits` is scheduled.
    pub fn serve(&mut self, tti: Tti, bits: u32) {
        self.last_served = tti;
        self.served.add(tti, bits);
    }
    /// Whether nothing below the buffer needs time to pass.
    pub fn idle_below(&self) -> bool {
        self.harq.idle() && self.decoded.is_empty() && self.rlc.idle()
    }
    /// Data waiting: above, in RLC, and reports about the other direction.
    pub fn available(&self, reverse: &Self) -> u64 {
        self.rlc.available(&*self.buffer) + u64::from(reverse.rlc.status_len())
    }
    /// Packets held.
    pub fn held(&self) -> u64 {
        let decoded: u64 = self.decoded.iter().map(|(_, pdu)| pdu.held()).sum();
        self.buffer.packets() as u64 + self.rlc.held() + self.harq.held() + decoded
    }
    /// Empty storage for the PDUs of a block.
    pub fn storage(&mut self) -> Vec<rlc::Pdu> {
        self.spare.last_mut().map(|block| std::mem::take(&mut block.pdu.sdus)).unwrap_or_default()
    }
    /// Puts a block into a process.
    pub fn start(&mut self, process: usize, block: Block) {
        let block = match self.spare.pop() {
            Some(mut spare) => {
                *spare = block;
                spare
            }
            None => Box::new(block),
        };
        self.harq.start(process, block);
    }

    /// Sends a block at this linear SINR and, if it is decoded, passes its RLC PDUs to the receiver. Returns whether it is.
    pub fn send(&mut self, process: usize, tti: Tti, sinr: f64, draw: f64, decode_delay: u64) -> bool {
        let block = self.harq.block(process).expect("a block is sent from its process");
        block.transmit(tti, sinr, draw);
        let stats = &mut self.stats;
        stats.prb += u64::from(block.n_prb);
        if block.transmissions == 1 {
            stats.blocks += 1;
            stats.block_bytes += u64::from(block.bits / 8);
            stats.padding_bytes += u64::from(block.pdu.padding);
            stats.mcs_sum += u64::from(block.mcs.index);
            for pdu in &block.pdu.sdus {
                match pdu {
                    rlc::Pdu::Am(pdu) => stats.rlc_retransmissions += u64::from(pdu.retransmission),
                    rlc::Pdu::Status(_) => stats.status_pdus += 1,
                    rlc::Pdu::Um(_) => {}
                }
            }
        } else {
            stats.retransmissions += 1;
        }
        if block.decoded {
            stats.harq_wait_ttis += tti.since(block.first_sent_at);
            let due = tti + 1 + decode_delay;
            self.decoded.extend(block.pdu.sdus.drain(..).map(|pdu| (due, pdu)));
        }
        block.decoded
    }

    /// The outer loop takes up how the first transmission of a block went: at the target, steps up and down cancel.
    pub fn adapt(&mut self, process: usize) {
        let Some(block) = self.harq.block(process).filter(|block| !block.seen) else { return };
        block.seen = true;
        let decoded = block.decoded && block.transmissions == 1;
        let step = if decoded { OUTER_STEP_DB * OUTER_TARGET / (1.0 - OUTER_TARGET) } else { -OUTER_STEP_DB };
        self.offset_db = (self.offset_db + step).clamp(-OUTER_LIMIT_DB, OUTER_LIMIT_DB);
    }
    /// Ends a process whose block was decoded.
    pub fn finish(&mut self, process: usize) {
        let Some(block) = self.harq.finish(process) else { return };
        debug_assert!(block.pdu.sdus.is_empty(), "the receiver has what was decoded");
        self.spare.push(block);
    }
    /// Ends a block whose last transmission failed, and in UM the packets that end in it.
    pub fn give_up(&mut self, process: usize, output: &mut VecDeque<Output>) {
        self.stats.blocks_lost += 1;
        let Some(mut block) = self.harq.finish(process) else { return };
        let stats = &mut self.stats;
        for pdu in block.pdu.sdus.drain(..) {
            self.rlc.lost(pdu, |packet| end(stats, packet, DropReason::HarqFailed, output));
        }
        self.spare.push(block);
    }

    /// Whether [`Link::hand_up`] has anything to do: a PDU has passed the receiver, or RLC's time has come.
    pub fn has_news(&self, tti: Tti) -> bool {
        self.decoded.front().is_some_and(|(due, _)| *due <= tti) || self.rlc.due(tti)
    }
    /// Passes decoded PDUs through RLC and PDCP to the IP side, status reports to the other direction.
    pub fn hand_up(
        &mut self,
        reverse: &mut Rlc,
        tti: Tti,
        port: Port,
        reassembled: &mut Vec<Reassembled>,
        output: &mut VecDeque<Output>,
    ) {
        while let Some((_, pdu)) = self.decoded.pop_front_if(|(due, _)| *due <= tti) {
            match pdu {
                rlc::Pdu::Status(status) => reverse.on_status(&status),
                data => self.rlc.receive(tti, data, reassembled),
            }
        }
        self.rlc.tick(tti, &*self.buffer, reassembled);
        for result in reassembled.drain(..) {
            match result {
                Reassembled::Sdu(packet) => {
                    self.stats.packets_out += 1;
                    self.stats.bytes_out += u64::from(packet.len);
                    output.push_back(Output::Transmit(port, packet));
                }
                Reassembled::Incomplete(packet) => {
                    end(&mut self.stats, packet, DropReason::RlcReassembly, output);
                }
            }
        }
    }
    /// Emits what the buffer has dropped.
    pub fn collect_dropped(&mut self, output: &mut VecDeque<Output>) {
        while let Some((packet, reason)) = self.buffer.pop_dropped() {
            end(&mut self.stats, packet, reason, output);
        }
    }
    /// Counts a radio-link failure if RLC reports one.
    pub fn take_up_failure(&mut self) -> bool {
        let failed = self.rlc.failed();
        self.stats.radio_link_failures += u64::from(failed);
        failed
    }
    /// MAC is reset: nothing is in flight any more. In AM no packet is lost by it; in UM those end whose last byte
    /// was in flight, and what was decoded is handed up when the link is back.
    pub fn reset_mac(&mut self, output: &mut VecDeque<Output>) {
        let stats = &mut self.stats;
        for process in 0..harq::ROUND_TRIP as usize {
            let Some(block) = self.harq.finish(process) else { continue };
            for pdu in block.pdu.sdus {
                self.rlc.lost(pdu, |packet| end(stats, packet, DropReason::RadioLinkFailure, output));
            }
        }
        if self.rlc.repeats() {
            self.decoded.clear();
        }
    }
    /// RLC is re-established: what was under way ends here.
    pub fn reestablish(&mut self, output: &mut VecDeque<Output>) {
        let stats = &mut self.stats;
        self.rlc.reestablish(|packet| end(stats, packet, DropReason::RadioLinkFailure, output));
    }
}

/// Ends a packet and counts why.
fn end(stats: &mut LinkStats, packet: Packet, reason: DropReason, output: &mut VecDeque<Output>) {
    stats.dropped.add(reason);
    output.push_back(Output::Drop(packet, reason));
}
