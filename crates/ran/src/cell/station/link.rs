//! One direction of a station: its bearer, HARQ processes, outer loop of link adaptation, counters.

use crate::bearer::{Bearer, Carried, Ended, Fate};
use crate::decibel::Sinr;
use crate::duplex::Direction;
use crate::hop::{HopMac, LinkStats};
use crate::mac::nr_encode::EncodedPdu;
use crate::mcs::Mcs;
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
pub(crate) struct RadioLink {
    pub bearer: Bearer,
    pub mac: HopMac,
    /// Whether first transmissions are captured, in NR.
    pub captures: bool,
    /// The first transmission since it was last taken.
    pub captured: Option<EncodedPdu>,
    /// Whether the packets of blocks are listed.
    pub watched: bool,
    /// Those of the latest first transmission.
    pub carried: Vec<Carried>,
    direction: Direction,
    /// Where delivered packets go.
    port: Port,
    /// The MCS that link adaptation has chosen for this slot.
    pub mcs: Option<Mcs>,
    /// Correction of the outer loop in dB, added to the measured SINR.
    pub outer_loop_db: f64,
    /// Time up to which `grant_wait_ns` is counted.
    grant_wait_counted_to: Instant,
}

impl RadioLink {
    pub fn new(
        bearer: Bearer,
        direction: Direction,
        port: Port,
        harq: &HarqTiming,
        numerology: Numerology,
    ) -> Self {
        Self {
            bearer,
            mac: HopMac::new(harq.processes, numerology),
            captures: false,
            captured: None,
            watched: false,
            carried: Vec::new(),
            direction,
            port,
            mcs: None,
            outer_loop_db: 0.0,
            grant_wait_counted_to: Instant::ZERO,
        }
    }
    /// Counts the wait of the packets in the buffer until `now` as a wait for a grant, if `for_grant`. Called
    /// before a packet enters or leaves the buffer and before `for_grant` changes.
    pub fn count_grant_wait(&mut self, now: Instant, for_grant: bool) {
        if for_grant {
            let waited =
                self.bearer.buffer.packets() as u64 * now.since(self.grant_wait_counted_to).as_nanos();
            self.mac.stats.grant_wait_ns += waited;
        }
        self.grant_wait_counted_to = self.grant_wait_counted_to.max(now);
    }
    /// Whether HARQ, the receiver and RLC are idle.
    pub fn idle_below_buffer(&self) -> bool {
        self.mac.idle() && self.bearer.idle()
    }
    pub fn held(&self) -> u64 {
        self.bearer.held() + self.mac.held()
    }
    /// See [`HopMac::transmit`].
    pub fn transmit(
        &mut self,
        process: usize,
        prbs: PrbSet,
        times: (Slot, Slot, Slot),
        sinr: Sinr,
        draw: f64,
    ) -> bool {
        let Self { bearer, captures, captured, watched, carried, direction, .. } = self;
        self.mac.transmit(process, prbs, times, (sinr, draw), |pdu| {
            if *captures {
                *captured = bearer.encode(pdu, *direction);
            }
            if *watched {
                *carried = bearer.carried(pdu);
            }
        })
    }

    /// Updates the outer loop with the result of a block's first transmission. At the target error, steps up
    /// and down cancel.
    pub fn update_outer_loop(&mut self, process: usize) {
        let Some(decoded) = self.mac.harq.take_first_result(process) else { return };
        let step = if decoded {
            OUTER_LOOP_STEP_DB * OUTER_LOOP_TARGET / (1.0 - OUTER_LOOP_TARGET)
        } else {
            -OUTER_LOOP_STEP_DB
        };
        self.outer_loop_db = (self.outer_loop_db + step).clamp(-OUTER_LOOP_LIMIT_DB, OUTER_LOOP_LIMIT_DB);
    }
    /// Ends the process of a decoded block.
    pub fn finish(&mut self, process: usize) {
        self.mac.finish(process);
    }
    /// Ends the process of a block whose last transmission failed. In UM the packets that end in the block
    /// are dropped.
    pub fn give_up(&mut self, process: usize, output: &mut VecDeque<Output>) {
        let mut lost = Vec::new();
        self.mac.give_up(process, |pdu| lost.push(pdu));
        lost.into_iter().for_each(|pdu| self.lose(pdu, DropReason::HarqFailed, output));
    }

    /// Whether [`RadioLink::deliver`] has work: a decoded PDU reaches RLC, or a timer of RLC or PDCP is due.
    pub fn delivery_due(&self, slot: Slot) -> bool {
        self.mac.delivery_due(slot) || self.bearer.timers_due(slot)
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
        while let Some((_, pdu)) = self.mac.decoded.pop_front_if(|(due, _)| *due <= slot) {
            if pdu.is_status() {
                reverse.rlc.on_status(&pdu);
            } else {
                self.bearer.rlc.receive(slot, pdu, reassembled);
            }
        }
        let (stats, port) = (&mut self.mac.stats, self.port);
        self.bearer.deliver(reverse, slot, reassembled, |ended| end(stats, ended, port, output));
    }
    pub fn collect_dropped(&mut self, output: &mut VecDeque<Output>) {
        while let Some((packet, reason)) = self.bearer.buffer.pop_dropped() {
            drop_packet(&mut self.mac.stats, packet, reason, output);
        }
    }
    /// Counts a radio-link failure if RLC reports one; returns whether it does.
    pub fn count_radio_link_failure(&mut self) -> bool {
        let failed = self.bearer.rlc.radio_link_failed();
        self.mac.stats.radio_link_failures += u64::from(failed);
        failed
    }
    /// Resets MAC: all HARQ processes are emptied. In AM no packet is lost by it. In UM the packets whose
    /// last byte was in a process are dropped; in LTE decoded PDUs are delivered once the link is
    /// re-established.
    pub fn reset_mac(&mut self, reason: DropReason, output: &mut VecDeque<Output>) {
        let mut lost = Vec::new();
        self.mac.reset(|pdu| lost.push(pdu));
        lost.into_iter().for_each(|pdu| self.lose(pdu, reason, output));
        if self.bearer.rlc.is_am() || self.bearer.rlc.nr_headers().is_some() {
            self.mac.decoded.clear(); // the packets are in RLC
        }
    }
    fn lose(&mut self, pdu: rlc::Pdu, reason: DropReason, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.mac.stats, self.port);
        self.bearer.on_pdu_lost(pdu, reason, |ended| end(stats, ended, port, output));
    }
    /// Delivers the decoded data PDUs at once, before their receiver ends.
    pub fn deliver_decoded(&mut self, reverse: &mut Bearer, slot: Slot, output: &mut VecDeque<Output>) {
        self.mac.decoded.iter_mut().for_each(|(due, _)| *due = slot);
        self.deliver(reverse, slot, &mut Vec::new(), output);
    }
    /// Drops the blocks that the receiver is decoding, with the packets whose last byte is in one of them.
    pub fn lose_decoded(&mut self, reason: DropReason, output: &mut VecDeque<Output>) {
        for (_, pdu) in std::mem::take(&mut self.mac.decoded) {
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
        let (stats, port) = (&mut self.mac.stats, self.port);
        self.bearer.hand_over(fate, slot, |ended| end(stats, ended, port, output))
    }
    /// The source ends, whose path was kept beside that of the target.
    pub fn confirm_handover(&mut self, slot: Slot, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.mac.stats, self.port);
        let reason = DropReason::PathSwitch;
        self.bearer.confirm(false, slot, reason, |ended| end(stats, ended, port, output));
    }
    /// Re-establishes RLC.
    pub fn reestablish(&mut self, slot: Slot, output: &mut VecDeque<Output>) {
        let (stats, port) = (&mut self.mac.stats, self.port);
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
