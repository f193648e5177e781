//! The transmitting side of an AM entity (TS 36.322 §5.1.3.1), its retransmissions (§5.2.1) and polls
//! (§5.2.2).

use super::config::AmConfig;
use super::pdu::{MAX_DATA, MAX_LENGTH_INDICATOR, MODULUS, Pdu, WINDOW, distance, header_len, plus};
use super::sdus::Sdus;
use super::status::{Nack, Status, TO_THE_END};
use crate::pdcp;
use crate::slot::Slot;
use paceline_net::Ranges;
use std::collections::VecDeque;

/// A transmitted PDU from VT(A) on.
#[derive(Clone, Debug)]
struct Sent {
    /// Position in the stream of SDUs at which the PDU begins.
    start: u64,
    len: u32,
    acknowledged: bool,
    /// RETX_COUNT; none before the PDU is first considered for retransmission.
    retx_count: Option<u32>,
    pending: Ranges<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Tx {
    config: AmConfig,
    /// VT(A): the first number not acknowledged.
    vt_a: u16,
    poll_sn: u16,
    pdu_without_poll: u32,
    byte_without_poll: u64,
    t_poll_retransmit: Option<Slot>,
    /// t-PollRetransmit has expired: the next PDU has a poll.
    poll_due: bool,
    /// The PDUs from VT(A) to below VT(S).
    window: VecDeque<Sent>,
    /// Position in the stream of SDUs of the first byte never sent.
    sent: u64,
    /// Bytes to retransmit, and the PDUs that they belong to.
    retx_bytes: u64,
    retx_pdus: u32,
    failed: bool,
}

impl Tx {
    pub fn new(config: AmConfig) -> Self {
        Self {
            config,
            vt_a: 0,
            poll_sn: 0,
            pdu_without_poll: 0,
            byte_without_poll: 0,
            t_poll_retransmit: None,
            poll_due: false,
            window: VecDeque::new(),
            sent: 0,
            retx_bytes: 0,
            retx_pdus: 0,
            failed: false,
        }
    }
    /// VT(S): the number of the next new PDU.
    fn vt_s(&self) -> u16 {
        plus(self.vt_a, self.window.len() as u16)
    }
    /// Whether VT(S) has reached VT(MS) = VT(A) + AM_Window_Size.
    pub fn stalled(&self) -> bool {
        self.window.len() >= usize::from(WINDOW)
    }
    fn unsent(&self, sdus: &Sdus) -> u64 {
        sdus.end() - self.sent
    }
    pub fn available_below(&self, sdus: &Sdus) -> u64 {
        self.retx_bytes + self.unsent(sdus)
    }
    pub fn available(&self, above: pdcp::Waiting, sdus: &Sdus) -> u64 {
        self.available_below(sdus) + above.bytes
    }
    pub fn sendable(&self, above: pdcp::Waiting, sdus: &Sdus) -> bool {
        self.retx_pdus > 0 || (!self.stalled() && self.available(above, sdus) > 0)
    }
    /// Whether the full window alone holds data back.
    pub fn window_stalled(&self, above: pdcp::Waiting, sdus: &Sdus) -> bool {
        self.stalled() && self.retx_pdus == 0 && self.available(above, sdus) > 0
    }
    pub fn retransmissions_pending(&self) -> u32 {
        self.retx_pdus
    }
    pub fn partial_sdus(&self, sdus: &Sdus) -> u64 {
        u64::from(self.unsent(sdus) > 0)
    }
    pub fn idle(&self) -> bool {
        self.t_poll_retransmit.is_none()
    }
    pub fn radio_link_failed(&self) -> bool {
        self.failed
    }
    /// Whether no data wait for transmission; PDUs that wait for acknowledgment do not count (§5.2.2).
    fn buffers_empty(&self, above: pdcp::Waiting, sdus: &Sdus) -> bool {
        self.retx_pdus == 0 && self.unsent(sdus) == 0 && above.is_empty()
    }

    /// A PDU of at most `room` bytes, retransmissions first (§5.1.3.1).
    pub fn pull(&mut self, slot: Slot, source: &mut pdcp::Source, sdus: &mut Sdus, room: u32) -> Option<Pdu> {
        let mut pdu = if self.retx_pdus > 0 {
            self.retransmit(sdus, room)?
        } else {
            self.assemble(source, sdus, room)?
        };
        let counted = self.config.poll_pdu.is_some_and(|limit| self.pdu_without_poll >= limit)
            || self.config.poll_byte.is_some_and(|limit| self.byte_without_poll >= limit);
        if self.poll_due || counted || self.stalled() || self.buffers_empty(source.waiting(), sdus) {
            pdu.poll = true;
            self.on_poll(slot);
        }
        Some(pdu)
    }
    /// A poll is sent (§5.2.2.1).
    fn on_poll(&mut self, slot: Slot) {
        self.poll_due = false;
        self.pdu_without_poll = 0;
        self.byte_without_poll = 0;
        self.poll_sn = plus(self.vt_s(), MODULUS - 1);
        self.t_poll_retransmit = Some(slot + self.config.t_poll_retransmit);
    }

    fn assemble(&mut self, source: &mut pdcp::Source, sdus: &mut Sdus, room: u32) -> Option<Pdu> {
        if self.stalled() {
            return None;
        }
        let (start, mut elements, mut data, mut last_element) = (self.sent, 0, 0, 0);
        loop {
            let left =
                room.saturating_sub(header_len(false, elements + 1)).min(MAX_DATA).saturating_sub(data);
            if left == 0 || last_element > MAX_LENGTH_INDICATOR {
                break;
            }
            if self.unsent(sdus) == 0 {
                let Some(pdu) = source.pull() else { break };
                sdus.push(pdu);
            }
            last_element = self.unsent(sdus).min(u64::from(left)) as u32;
            self.sent += u64::from(last_element);
            data += last_element;
            elements += 1;
        }
        if data == 0 {
            return None;
        }
        let sn = self.vt_s();
        let pending = Ranges::default();
        self.window.push_back(Sent { start, len: data, acknowledged: false, retx_count: None, pending });
        self.pdu_without_poll += 1;
        self.byte_without_poll += u64::from(data);
        let len = header_len(false, elements) + data;
        let (segment, poll, retransmission) = (false, false, false);
        Some(Pdu { sn, start, so: 0, data, last: true, segment, poll, retransmission, len })
    }

    /// Retransmits the lowest pending number: the PDU if it fits, else a segment (§5.2.1).
    fn retransmit(&mut self, sdus: &Sdus, room: u32) -> Option<Pdu> {
        let at = self.window.iter().position(|pdu| !pdu.pending.is_empty())?;
        let sent = &mut self.window[at];
        let (from, to) = sent.pending.first()?;
        let begin = sent.start + u64::from(from);
        let pdu_len = header_len(false, sdus.elements(begin, sent.start + u64::from(to))) + (to - from);
        let unsegmented = (from, to) == (0, sent.len) && pdu_len <= room;
        let data = if unsegmented { to } else { sdus.fit(begin, sent.start + u64::from(to), room) };
        if data == 0 {
            return None;
        }
        let len = if unsegmented {
            pdu_len
        } else {
            header_len(true, sdus.elements(begin, begin + u64::from(data))) + data
        };
        sent.pending.remove_below(from + data);
        self.retx_bytes -= u64::from(data);
        self.retx_pdus -= u32::from(sent.pending.is_empty());
        Some(Pdu {
            sn: plus(self.vt_a, at as u16),
            start: sent.start,
            so: from,
            data,
            last: from + data == sent.len,
            segment: !unsegmented,
            poll: false,
            retransmission: true,
            len,
        })
    }

    /// A STATUS PDU arrives (§5.2.1, §5.2.2.2). One older than a STATUS PDU already received is ignored.
    pub fn on_status(&mut self, status: &Status, sdus: &mut Sdus) {
        let reported = usize::from(distance(status.ack_sn, self.vt_a));
        if reported > self.window.len() {
            return;
        }
        if usize::from(distance(self.poll_sn, self.vt_a)) < reported {
            self.t_poll_retransmit = None;
        }
        let below = |nack: &&Nack| usize::from(distance(nack.sn, self.vt_a)) >= reported;
        let mut nacks = &status.nacks[status.nacks.iter().take_while(below).count()..];
        for at in 0..reported {
            let sn = plus(self.vt_a, at as u16);
            let of_this = nacks.iter().take_while(|nack| nack.sn == sn).count();
            let (missing, rest) = nacks.split_at(of_this);
            nacks = rest;
            if missing.is_empty() {
                self.acknowledge(at);
            } else {
                self.consider(at, missing.iter().map(|nack| nack.range));
            }
        }
        while self.window.pop_front_if(|pdu| pdu.acknowledged).is_some() {
            self.vt_a = plus(self.vt_a, 1);
        }
        sdus.release(self.window.front().map_or(self.sent, |pdu| pdu.start));
    }
    fn acknowledge(&mut self, at: usize) {
        let pdu = &mut self.window[at];
        pdu.acknowledged = true;
        if !pdu.pending.is_empty() {
            self.retx_bytes -= u64::from(pdu.pending.total());
            self.retx_pdus -= 1;
            pdu.pending = Ranges::default();
        }
    }
    /// Considers byte ranges of a PDU for retransmission (§5.2.1). RETX_COUNT rises by one if any of them was
    /// not pending.
    fn consider(&mut self, at: usize, ranges: impl Iterator<Item = Option<(u32, u32)>>) {
        let pdu = &mut self.window[at];
        if pdu.acknowledged {
            return;
        }
        let before = pdu.pending.total();
        for range in ranges {
            let (from, to) = range.unwrap_or((0, TO_THE_END));
            if from < to.min(pdu.len) {
                pdu.pending.insert(from, to.min(pdu.len));
            }
        }
        let added = pdu.pending.total() - before;
        if added == 0 {
            return;
        }
        self.retx_bytes += u64::from(added);
        self.retx_pdus += u32::from(before == 0);
        let count = pdu.retx_count.map_or(0, |count| count + 1);
        pdu.retx_count = Some(count);
        self.failed |= count >= self.config.max_retx_threshold;
    }

    /// Whether [`Tx::check_timers`] may have work: t-PollRetransmit expires, or it does not run and no data
    /// wait below PDCP.
    pub fn timers_due(&self, slot: Slot, sdus: &Sdus) -> bool {
        let due = self.t_poll_retransmit.map_or_else(|| self.available_below(sdus) == 0, |at| at <= slot);
        due && !self.window.is_empty()
    }
    /// Handles the expiry of t-PollRetransmit (§5.2.2.3).
    pub fn check_timers(&mut self, slot: Slot, above: pdcp::Waiting, sdus: &Sdus) {
        if self.window.is_empty() {
            return;
        }
        match self.t_poll_retransmit {
            Some(at) if at <= slot => {
                self.t_poll_retransmit = None;
                self.poll_due = true;
                if self.stalled() || self.buffers_empty(above, sdus) {
                    // The PDU with VT(S) - 1, or with VT(A) if the former is acknowledged.
                    let newest = self.window.len() - 1;
                    let at = if self.window[newest].acknowledged { 0 } else { newest };
                    self.consider(at, std::iter::once(None));
                }
            }
            Some(_) => {}
            // The discard timer removed the data after a PDU without a poll: treat that PDU as though it had
            // polled.
            None if self.buffers_empty(above, sdus) => self.on_poll(slot),
            None => {}
        }
    }
}
