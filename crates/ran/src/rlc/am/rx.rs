//! The receiving side of an AM entity (TS 36.322 §5.1.3.2) and its status reports (§5.2.3).

use super::config::AmConfig;
use super::pdu::{Pdu, WINDOW, distance, plus};
use super::status::{Nack, Status, TO_THE_END, len_of};
use crate::slot::{Slot, SlotSpan};
use paceline_net::Ranges;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Rx {
    config: AmConfig,
    reordering: SlotSpan,
    /// VR(R): the first number not completely received.
    vr_r: u16,
    /// VR(MS): the highest ACK_SN that a STATUS PDU may state.
    vr_ms: u16,
    /// VR(X): the number after the one that started t-Reordering.
    vr_x: u16,
    /// Reception state of the numbers from VR(R) to below VR(H).
    received: VecDeque<Reception>,
    t_reordering: Option<Slot>,
    t_status_prohibit: Option<Slot>,
    /// Numbers of PDUs with a poll above VR(MS): the report waits for reordering (§5.2.3).
    polls: Vec<u16>,
    status_triggered: bool,
    /// A report is triggered and t-StatusProhibit does not run.
    status_due: bool,
    /// Position in the stream of SDUs up to which all bytes have been received.
    in_sequence: u64,
}

impl Rx {
    pub fn new(config: AmConfig, reordering: SlotSpan) -> Self {
        Self {
            config,
            reordering,
            vr_r: 0,
            vr_ms: 0,
            vr_x: 0,
            received: VecDeque::new(),
            t_reordering: None,
            t_status_prohibit: None,
            polls: Vec::new(),
            status_triggered: false,
            status_due: false,
            in_sequence: 0,
        }
    }
    /// VR(H): the number after the highest one received.
    fn vr_h(&self) -> u16 {
        plus(self.vr_r, self.received.len() as u16)
    }
    /// VR(MR): the number after the receiving window.
    fn vr_mr(&self) -> u16 {
        plus(self.vr_r, WINDOW)
    }
    pub fn in_sequence(&self) -> u64 {
        self.in_sequence
    }
    pub fn idle(&self) -> bool {
        self.t_reordering.is_none() && !self.status_triggered
    }

    /// A PDU or segment arrives (§5.1.3.2.2 and §5.1.3.2.3).
    pub fn receive(&mut self, slot: Slot, pdu: &Pdu) {
        let at = usize::from(distance(pdu.sn, self.vr_r));
        let discarded =
            at >= usize::from(WINDOW) || self.received.get(at).is_some_and(|state| state.has(pdu));
        if !discarded {
            if at >= self.received.len() {
                self.received.resize_with(at + 1, Reception::default);
            }
            self.received[at].place(pdu);
            self.vr_ms = self.first_missing(self.vr_ms);
            self.move_window();
            self.update_reordering(slot);
        }
        if pdu.poll && discarded {
            self.status_triggered = true;
        } else if pdu.poll {
            self.polls.push(pdu.sn);
        }
        self.answer_polls(slot);
    }

    /// The first number at or above `from` that is not completely received.
    fn first_missing(&self, from: u16) -> u16 {
        let at = usize::from(distance(from, self.vr_r));
        let complete = self.received.iter().skip(at).take_while(|state| state.complete).count();
        plus(from, complete as u16)
    }
    fn move_window(&mut self) {
        while let Some(state) = self.received.pop_front_if(|state| state.complete) {
            self.in_sequence = state.start + u64::from(state.len.unwrap_or(0));
            self.vr_r = plus(self.vr_r, 1);
        }
        // The first bytes of an incomplete PDU can complete an SDU.
        if let Some(state) = self.received.front()
            && let Some((0, to)) = state.parts.first()
        {
            self.in_sequence = state.start + u64::from(to);
        }
    }
    fn update_reordering(&mut self, slot: Slot) {
        let outside = distance(self.vr_x, self.vr_r) >= WINDOW && self.vr_x != self.vr_mr();
        if self.vr_x == self.vr_r || outside {
            self.t_reordering = None;
        }
        if self.t_reordering.is_none() && !self.received.is_empty() {
            self.start_reordering(slot);
        }
    }
    fn start_reordering(&mut self, slot: Slot) {
        self.t_reordering = Some(slot + self.reordering);
        self.vr_x = self.vr_h();
    }

    /// Whether [`Rx::check_timers`] has work: t-Reordering expires, or t-StatusProhibit, for which a report
    /// waits. Polls that wait for reordering are answered when a PDU arrives or t-Reordering expires.
    pub fn timers_due(&self, slot: Slot) -> bool {
        let expired = |timer: Option<Slot>| timer.is_none_or(|at| at <= slot);
        self.t_reordering.is_some_and(|at| at <= slot)
            || self.status_triggered && !self.status_due && expired(self.t_status_prohibit)
    }
    /// Handles the expiry of t-Reordering (§5.1.3.2.4) and t-StatusProhibit.
    pub fn check_timers(&mut self, slot: Slot) {
        if self.t_reordering.is_some_and(|at| at <= slot) {
            self.t_reordering = None;
            self.vr_ms = self.first_missing(self.vr_x);
            if self.vr_h() != self.vr_ms {
                self.start_reordering(slot);
            }
            self.status_triggered = true;
        }
        self.answer_polls(slot);
    }
    /// Triggers a status report for each poll below VR(MS), where HARQ reordering is over (§5.2.3).
    fn answer_polls(&mut self, slot: Slot) {
        let (vr_r, reported) = (self.vr_r, distance(self.vr_ms, self.vr_r));
        let waiting = |sn: &u16| (reported..WINDOW).contains(&distance(*sn, vr_r));
        let before = self.polls.len();
        self.polls.retain(waiting);
        self.status_triggered |= self.polls.len() < before;
        if self.t_status_prohibit.is_some_and(|at| at <= slot) {
            self.t_status_prohibit = None;
        }
        self.status_due = self.status_triggered && self.t_status_prohibit.is_none();
    }

    /// The byte ranges of the stream of SDUs that were received from VR(R) on.
    pub fn received_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for state in &self.received {
            let all = state.complete.then(|| (0, state.len.unwrap_or(0)));
            let parts = state.parts.iter().filter(|_| !state.complete);
            for (from, to) in all.into_iter().chain(parts) {
                let (from, to) = (state.start + u64::from(from), state.start + u64::from(to));
                match ranges.last_mut().filter(|last| last.1 == from) {
                    Some(last) => last.1 = to,
                    None => ranges.push((from, to)),
                }
            }
        }
        ranges
    }
    /// Calls `nack` for every missing PDU and byte range below VR(MS).
    fn for_each_missing(&self, nack: &mut impl FnMut(Nack)) {
        let reported = usize::from(distance(self.vr_ms, self.vr_r));
        for (offset, state) in self.received.iter().take(reported).enumerate() {
            state.for_each_missing(plus(self.vr_r, offset as u16), nack);
        }
    }
    pub fn status_len(&self) -> u32 {
        if !self.status_due {
            return 0;
        }
        let mut bits = 0;
        self.for_each_missing(&mut |nack| bits += nack.bits());
        len_of(bits)
    }
    /// The STATUS PDU that is due, cut to `room` bytes. ACK_SN is the first missing number without a NACK. A
    /// PDU that has a NACK is not acknowledged, so further missing ranges of it may be left out.
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Status> {
        if !self.status_due || room < len_of(0) {
            return None;
        }
        let (mut nacks, mut bits, mut full, mut ack_sn) = (Vec::<Nack>::new(), 0, false, None);
        self.for_each_missing(&mut |nack| {
            full |= len_of(bits + nack.bits()) > room;
            if !full {
                bits += nack.bits();
                nacks.push(nack);
            } else if nacks.last().is_none_or(|last| last.sn != nack.sn) {
                ack_sn.get_or_insert(nack.sn);
            }
        });
        self.status_triggered = false;
        self.status_due = false;
        self.t_status_prohibit = Some(slot + self.config.t_status_prohibit);
        Some(Status { ack_sn: ack_sn.unwrap_or(self.vr_ms), nacks, len: len_of(bits) })
    }
}

/// Reception state of one PDU.
#[derive(Clone, Debug, Default)]
struct Reception {
    /// Position in the stream of SDUs at which the PDU begins; valid once a part has been received.
    start: u64,
    /// Received byte ranges of an incomplete PDU.
    parts: Ranges<u32>,
    /// Length in bytes, once the last byte has been received.
    len: Option<u32>,
    complete: bool,
}

impl Reception {
    fn has(&self, pdu: &Pdu) -> bool {
        self.complete || self.parts.contains(pdu.so, pdu.so + pdu.data)
    }
    fn place(&mut self, pdu: &Pdu) {
        self.start = pdu.start;
        if pdu.last {
            self.len = Some(pdu.so + pdu.data);
        }
        if pdu.so == 0 && pdu.last {
            self.complete = true; // an unsegmented PDU
        } else {
            self.parts.insert(pdu.so, pdu.so + pdu.data);
            self.complete = self.len.is_some_and(|len| self.parts.contains(0, len));
        }
    }
    /// Calls `nack` for the missing PDU or for each missing byte range of it.
    fn for_each_missing(&self, sn: u16, nack: &mut impl FnMut(Nack)) {
        if self.complete {
            return;
        }
        if self.parts.is_empty() {
            return nack(Nack { sn, range: None });
        }
        let end = self.parts.end().unwrap_or(0);
        self.parts.gaps(0, end).for_each(|gap| nack(Nack { sn, range: Some(gap) }));
        if self.len.is_none() {
            nack(Nack { sn, range: Some((end, TO_THE_END)) });
        }
    }
}
