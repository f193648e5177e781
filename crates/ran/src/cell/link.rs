//! One direction of a station: its bearer, HARQ processes, outer loop of link adaptation, counters.

use super::link_stats::{LinkStats, SINR_ORIGIN_DB};
use crate::bearer::{Bearer, Ended, Fate};
use crate::decibel;
use crate::duplex::Direction;
use crate::mac::harq::{self, TransportBlock};
use crate::mac::nr_encode::EncodedPdu;
use crate::mac::pdu as mac;
use crate::mac::scheduler::{Candidate, ServedRate};
use crate::mcs::{Mcs, PrbSize};
use crate::pdcp::StatusReport;
use crate::prb::PrbSet;
use crate::rlc::{self, Reassembled};
use crate::slot::{Numerology, Slot};
use crate::timing::HarqTiming;
use paceline_net::{DropReason, Instant, Output, Packet, Port};
use std::collections::VecDeque;

/// Block error of first transmissions that the outer loop aims at. Chosen: the error at which TS 36.213
/// §7.2.3 defines the CQI.
const OUTER_LOOP_TARGET: f64 = 0.1;
/// Step of the outer loop after a failed first transmission, in dB. Chosen: within the 0.1 to 1 dB of
/// IMTAphy's BlerAdaptiveLA.
const OUTER_LOOP_STEP_DB: f64 = 0.5;
/// Largest correction of the outer loop, in dB. Chosen: about a third of the span of the MCS
/// thresholds, 27 dB.
const OUTER_LOOP_LIMIT_DB: f64 = 10.0;

/// One direction of a station.
pub(crate) struct Link {
    pub bearer: Bearer,
    /// Whether first transmissions are captured, in NR.
    pub captures: bool,
    /// The first transmission since it was last taken.
    pub captured: Option<EncodedPdu>,
    direction: Direction,
    /// Where delivered packets go.
    port: Port,
    pub harq: harq::Processes,
    last_served: Slot,
    served_rate: ServedRate,
    /// The MCS that link adaptation has chosen for this slot.
    pub mcs: Option<Mcs>,
    /// Correction of the outer loop in dB, added to the measured SINR.
    pub outer_loop_db: f64,
    pub stats: LinkStats,
    /// Decoded RLC PDUs, each with the slot in which it reaches the receiving RLC.
    decoded: VecDeque<(Slot, rlc::Pdu)>,
    /// Time up to which `grant_wait_ns` is counted.
    grant_wait_counted_to: Instant,
    /// Finished blocks, whose storage new blocks reuse.
    #[expect(clippy::vec_box, reason = "a process takes the box")]
    spare: Vec<Box<TransportBlock>>,
}

impl Link {
    pub fn new(
        bearer: Bearer,
        direction: Direction,
        port: Port,
        harq: &HarqTiming,
        numerology: Numerology,
    ) -> Self {
        Self {
            bearer,
            captures: false,
            captured: None,
            direction,
            port,
            harq: harq::Processes::new(harq.processes),
            last_served: Slot(0),
            served_rate: ServedRate::new(numerology),
            mcs: None,
            outer_loop_db: 0.0,
            stats: LinkStats::default(),
            decoded: VecDeque::new(),
            grant_wait_counted_to: Instant::ZERO,
            spare: Vec::new(),
        }
    }
    /// Counts the wait of the packets in the buffer until `now` as a wait for a grant, if `for_grant`. Called
    /// before a packet enters or leaves the buffer and before `for_grant` changes.
    pub fn count_grant_wait(&mut self, now: Instant, for_grant: bool) {
        if for_grant {
            let waited =
                self.bearer.buffer.packets() as u64 * now.since(self.grant_wait_counted_to).as_nanos();
            self.stats.grant_wait_ns += waited;
        }
        self.grant_wait_counted_to = self.grant_wait_counted_to.max(now);
    }
    pub fn candidate(&self, slot: Slot, station: usize, wanted_prb: u16, bits_per_prb: f64) -> Candidate {
        Candidate::new(station, wanted_prb, self.last_served, bits_per_prb, self.served_rate.at(slot))
    }
    pub fn on_scheduled(&mut self, slot: Slot, bits: u32) {
        self.last_served = slot;
        self.served_rate.add(slot, bits);
    }
    /// Whether HARQ, the receiver and RLC are idle.
    pub fn idle_below_buffer(&self) -> bool {
        self.harq.idle() && self.decoded.is_empty() && self.bearer.idle()
    }
    pub fn held(&self) -> u64 {
        let decoded: u64 = self.decoded.iter().map(|(_, pdu)| pdu.held()).sum();
        self.bearer.held() + self.harq.held() + decoded
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

    /// Transmits the block of a process in these PRBs at this linear SINR. If it is decoded, its RLC PDUs go
    /// to the receiver. `times` are the slots of the transmission, of the verdict, and of the delivery to
    /// RLC. Returns whether the block is decoded.
    pub fn transmit(
        &mut self,
        process: usize,
        prbs: PrbSet,
        times: (Slot, Slot, Slot),
        sinr: f64,
        draw: f64,
    ) -> bool {
        let (slot, verdict_at, due) = times;
        let known = self.harq.block(process).is_some_and(|block| block.decoded);
        let sent = self.harq.transmit(process, prbs, (slot, verdict_at), sinr, draw);
        let (block, sinr_db) = sent.expect("a block is sent from its process");
        let stats = &mut self.stats;
        if block.transmissions == 1 {
            stats.prbs += u64::from(block.n_prb);
            stats.transport_blocks += 1;
            stats.transport_block_bytes += u64::from(block.bits / 8);
            stats.padding_bytes += u64::from(block.pdu.padding);
            stats.mcs_index_sum += u64::from(block.mcs.index());
            stats.sinr_millidecibels += match sinr_db {
                Some(sinr_db) => decibel::millidecibels(sinr_db - SINR_ORIGIN_DB),
                None => decibel::millidecibels_above(sinr, SINR_ORIGIN_DB),
            };
            if self.captures {
                self.captured = self.bearer.encode(&block.pdu, self.direction);
            }
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
            self.decoded.extend(block.pdu.sdus.drain(..).map(|pdu| (due, pdu)));
        }
        block.decoded
    }

    /// Updates the outer loop with the result of a block's first transmission. At the target error, steps up
    /// and down cancel.
    pub fn update_outer_loop(&mut self, process: usize) {
        let Some(decoded) = self.harq.take_first_result(process) else { return };
        let step = if decoded {
            OUTER_LOOP_STEP_DB * OUTER_LOOP_TARGET / (1.0 - OUTER_LOOP_TARGET)
        } else {
            -OUTER_LOOP_STEP_DB
        };
        self.outer_loop_db = (self.outer_loop_db + step).clamp(-OUTER_LOOP_LIMIT_DB, OUTER_LOOP_LIMIT_DB);
    }
    /// Ends the process of a decoded block.
    pub fn finish(&mut self, process: usize) {
        let Some(block) = self.harq.finish(process) else { return };
        debug_assert!(block.pdu.sdus.is_empty(), "the PDUs of a decoded block are at the receiver");
        self.spare.push(block);
    }
    /// Ends the process of a block whose last transmission failed. In UM the packets that end in the block
    /// are dropped.
    pub fn give_up(&mut self, process: usize, output: &mut VecDeque<Output>) {
        self.stats.transport_blocks_lost += 1;
        let Some(mut block) = self.harq.finish(process) else { return };
        for pdu in block.pdu.sdus.drain(..) {
            self.lose(pdu, DropReason::HarqFailed, output);
        }
        self.spare.push(block);
    }

    /// Whether [`Link::deliver`] has work: a decoded PDU reaches RLC, or a timer of RLC or PDCP is due.
    pub fn delivery_due(&self, slot: Slot) -> bool {
        self.decoded.front().is_some_and(|(due, _)| *due <= slot) || self.bearer.timers_due(slot)
    }
    /// Delivers decoded data PDUs through RLC and PDCP, and status reports to the RLC of the other
    /// direction.
    pub fn deliver(
        &mut self,
        reverse: &mut Bearer,
        slot: Slot,
        reassembled: &mut Vec<Reassembled>,
        output: &mut VecDeque<Output>,
    ) {
        while let Some((_, pdu)) = self.decoded.pop_front_if(|(due, _)| *due <= slot) {
            if pdu.is_status() {
                reverse.rlc.on_status(&pdu);
            } else {
                self.bearer.rlc.receive(slot, pdu, reassembled);
            }
        }
        let (stats, port) = (&mut self.stats, self.port);
        self.bearer.deliver(reverse, slot, reassembled, |ended| end(stats, ended, port, output));
    }
    pub fn collect_dropped(&mut self, output: &mut VecDeque<Output>) {
        while let Some((packet, reason)) = self.bearer.buffer.pop_dropped() {
            drop_packet(&mut self.stats, packet, reason, output);
        }
    }
    /// Counts a radio-link failure if RLC reports one; returns whether it does.
    pub fn count_radio_link_failure(&mut self) -> bool {
        let failed = self.bearer.rlc.radio_link_failed();
        self.stats.radio_link_failures += u64::from(failed);
        failed
    }
    /// Resets MAC: all HARQ processes are emptied. In AM no packet is lost by it. In UM the packets whose
    /// last byte was in a process are dropped; in LTE decoded PDUs are delivered once the link is
    /// re-established.
    pub fn reset_mac(&mut self, reason: DropReason, output: &mut VecDeque<Output>) {
        for process in self.harq.busy() {
            let Some(block) = self.harq.finish(process) else { continue };
            for pdu in block.pdu.sdus {
                self.lose(pdu, reason, output);
            }
        }
        if self.bearer.rlc.is_am() || self.bearer.rlc.nr_headers().is_some() {
            self.decoded.clear(); // the packets are in RLC
        }
    }
    /// Drops the packets in the buffer.
    pub fn drop_waiting(&mut self, now: Instant, reason: DropReason, output: &mut VecDeque<Output>) {
        while let Some(packet) = self.bearer.buffer.pop(now) {
            drop_packet(&mut self.stats, packet, reason, output);
        }
    }
    fn lose(&mut self, pdu: rlc::Pdu, reason: DropReason, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.stats, self.port);
        self.bearer.on_pdu_lost(pdu, reason, |ended| end(stats, ended, port, output));
    }
    /// Delivers the decoded data PDUs at once, before their receiver ends.
    pub fn deliver_decoded(&mut self, reverse: &mut Bearer, slot: Slot, output: &mut VecDeque<Output>) {
        self.decoded.iter_mut().for_each(|(due, _)| *due = slot);
        self.deliver(reverse, slot, &mut Vec::new(), output);
    }
    /// Drops the blocks that the receiver is decoding, with the packets whose last byte is in one of them.
    pub fn lose_decoded(&mut self, reason: DropReason, output: &mut VecDeque<Output>) {
        for (_, pdu) in std::mem::take(&mut self.decoded) {
            self.lose(pdu, reason, output);
        }
    }
    /// Changes to RLC of the target cell, or adds it; returns the status report that the other direction has
    /// to send.
    pub fn hand_over(
        &mut self,
        fate: Fate,
        slot: Slot,
        output: &mut VecDeque<Output>,
    ) -> Option<StatusReport> {
        let (stats, port) = (&mut self.stats, self.port);
        self.bearer.hand_over(fate, slot, |ended| end(stats, ended, port, output))
    }
    /// The source ends, whose path was kept beside that of the target.
    pub fn confirm_handover(&mut self, slot: Slot, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.stats, self.port);
        let reason = DropReason::PathSwitch;
        self.bearer.confirm(false, slot, reason, |ended| end(stats, ended, port, output));
    }
    /// Re-establishes RLC.
    pub fn reestablish(&mut self, slot: Slot, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.stats, self.port);
        self.bearer.reestablish(slot, |ended| end(stats, ended, port, output));
    }
}

fn end(stats: &mut LinkStats, ended: Ended, port: Port, output: &mut VecDeque<Output>) {
    match ended {
        Ended::Delivered(packet) => {
            stats.packets_out += 1;
            stats.bytes_out += u64::from(packet.len);
            output.push_back(Output::Transmit(port, packet));
        }
        Ended::Dropped(packet, reason) => drop_packet(stats, packet, reason, output),
        Ended::Copy => stats.pdcp_copies += 1,
    }
}
fn drop_packet(stats: &mut LinkStats, packet: Packet, reason: DropReason, output: &mut VecDeque<Output>) {
    stats.dropped.add(reason);
    output.push_back(Output::Drop(packet, reason));
}
