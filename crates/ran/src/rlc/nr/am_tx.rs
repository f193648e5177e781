//! The transmitting side of AM (TS 38.322 §5.2.3.1): window, polling (§5.3.3), retransmission (§5.3.2).

use super::am_block::{AmBlock, AmConfig};
use super::headers::Headers;
use super::ranges::END;
use super::ring::Ring;
use super::runs::{Filler, Position, Sdu, SduRun, SduSource};
use super::status::Status;
use crate::slot::Slot;
use paceline_net::Ranges;
use std::collections::BTreeSet;

/// An SDU of which a byte was sent and that is not confirmed.
#[derive(Clone, Debug)]
pub struct Sent<T> {
    /// The SDU; what it leaves once the receiver has delivered it.
    pub sdu: T,
    /// Whether the receiver has delivered it.
    pub delivered: bool,
    /// Length in bytes.
    pub bytes: u32,
    /// Whether a STATUS PDU confirmed it, while an older SDU is missing.
    pub acknowledged: bool,
    /// RETX_COUNT.
    retx_count: Option<u32>,
    /// Bytes considered for retransmission and not sent yet.
    pending: Ranges<u32>,
}

/// State variables and timer of polling (§5.3.3).
#[derive(Clone, Debug, Default)]
struct Polling {
    pdu_without_poll: u32,
    byte_without_poll: u64,
    poll_sn: u64,
    /// Whether the next PDU has to poll, since t-PollRetransmit expired.
    due: bool,
    t_poll_retransmit: Option<Slot>,
}

impl Polling {
    /// A PDU with SDU `sdu` polls; `highest` is the highest number sent.
    fn poll(&mut self, slot: Slot, config: &AmConfig, highest: u64) {
        let t_poll_retransmit = Some(slot + config.t_poll_retransmit);
        *self = Self { poll_sn: highest, t_poll_retransmit, ..Self::default() };
    }
    /// Counts a PDU of new data; whether it has to poll.
    fn count(&mut self, config: &AmConfig, bytes: u32) -> bool {
        self.pdu_without_poll += 1;
        self.byte_without_poll += u64::from(bytes);
        config.poll_pdu.is_some_and(|limit| self.pdu_without_poll >= limit)
            || config.poll_byte.is_some_and(|limit| self.byte_without_poll >= limit)
    }
}

/// The transmitting side.
#[derive(Clone, Debug)]
pub struct Tx<T> {
    config: AmConfig,
    /// SDUs from TX_Next_Ack to TX_Next.
    window: Ring<Sent<T>>,
    held: u64,
    /// The next byte of new data.
    next: Position,
    polling: Polling,
    /// Numbers of the SDUs with pending bytes.
    pending: BTreeSet<u64>,
    pending_bytes: u64,
    failed: bool,
    window_stalls: u64,
}

impl<T> Tx<T> {
    /// The initial state.
    pub fn new(config: AmConfig) -> Self {
        Self {
            config,
            window: Ring::default(),
            held: 0,
            next: Position::default(),
            polling: Polling::default(),
            pending: BTreeSet::new(),
            pending_bytes: 0,
            failed: false,
            window_stalls: 0,
        }
    }
    /// Bytes for transmission below the buffer above: pending ones, and the rest of an SDU sent in part.
    pub fn available_below(&self) -> u64 {
        self.pending_bytes + u64::from(self.unsent())
    }
    /// Number of SDUs that were not delivered.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// An SDU of the window, if it is not delivered, and its length in bytes.
    pub fn sdu(&self, number: u64) -> (Option<&T>, u32) {
        self.window.get(number).map_or((None, 0), |sent| ((!sent.delivered).then_some(&sent.sdu), sent.bytes))
    }
    /// Number of SDUs with bytes to retransmit.
    pub fn retransmissions_pending(&self) -> u32 {
        self.pending.len() as u32
    }
    /// Number of SDUs between TX_Next_Ack and TX_Next.
    pub fn window_used(&self) -> u64 {
        self.window.end() - self.window.start()
    }
    /// Whether the window is full.
    pub fn stalled(&self) -> bool {
        self.window_used() >= self.config.sn.am_window()
    }
    /// Number of transmission opportunities in which the full window held data back.
    pub fn window_stalls(&self) -> u64 {
        self.window_stalls
    }
    /// Whether maxRetxThreshold was reached.
    pub fn failed(&self) -> bool {
        self.failed
    }
    /// The slot in which t-PollRetransmit expires.
    pub fn expires_at(&self) -> Option<Slot> {
        self.polling.t_poll_retransmit
    }
    /// Whether a transmission opportunity would be used.
    pub fn sendable(&self, above_empty: bool) -> bool {
        self.available_below() > 0 || (!above_empty && !self.stalled())
    }
    /// The SDU, for delivery by the receiving side.
    pub fn take(&mut self, sdu: u64) -> Option<T>
    where
        T: Sdu,
    {
        let sent = self.window.get_mut(sdu).filter(|sent| !sent.delivered)?;
        sent.delivered = true;
        self.held -= 1;
        Some(sent.sdu.take())
    }
    /// The SDUs that were not delivered, in ascending order.
    pub fn undelivered(&self) -> impl Iterator<Item = &T> {
        self.window.iter().filter(|sent| !sent.delivered).map(|sent| &sent.sdu)
    }
    /// The SDUs that no STATUS PDU confirmed, in ascending order, each with whether it was delivered.
    pub fn unconfirmed(&mut self) -> impl Iterator<Item = (&mut T, bool)> {
        let sent = self.window.iter_mut().filter(|sent| !sent.acknowledged);
        sent.map(|sent| (&mut sent.sdu, sent.delivered))
    }
    /// Unsent bytes of the SDU that was sent in part.
    pub fn unsent(&self) -> u32 {
        let sent = self.window.get(self.next.sdu);
        sent.map_or(0, |sent| sent.bytes - self.next.byte)
    }
    /// Whether no data wait for transmission; SDUs that wait for a confirmation do not count.
    fn buffers_empty(&self, above_empty: bool) -> bool {
        self.available_below() == 0 && above_empty
    }

    /// Fills `room` bytes of a transport block, retransmissions first (§5.2.3.1.1); none without data or
    /// without room for a byte.
    pub fn pull(&mut self, slot: Slot, above: &mut impl SduSource<T>, room: u32) -> Option<AmBlock> {
        let mut filler = Filler::new(Headers::am(self.config.sn), room);
        let retransmissions = if self.pending.is_empty() { Vec::new() } else { self.retransmit(&mut filler) };
        let (new, mut polls) =
            if self.pending.is_empty() { self.fill(slot, &mut filler, above) } else { (None, None) };
        let last = new.into_iter().chain(retransmissions.last().copied()).next()?.pdus().last()?.0;
        if self.polling.due || self.stalled() || self.buffers_empty(above.is_empty()) {
            self.polling.poll(slot, &self.config, self.window.end() - 1);
            polls = Some((polls.map_or(last, |(low, _): (u64, u64)| low.min(last)), last));
        }
        Some(AmBlock { retransmissions, new, polls, bytes: room - filler.room() })
    }
    /// Adds new data and returns the run with its polls.
    fn fill(
        &mut self,
        slot: Slot,
        filler: &mut Filler,
        above: &mut impl SduSource<T>,
    ) -> (Option<SduRun>, Option<(u64, u64)>) {
        let (at, limit) = (self.next, self.window.start() + self.config.sn.am_window());
        let (mut polls, mut sdu) = (None, at.sdu);
        let bytes = self.window.get(at.sdu).map_or(0, |sent| sent.bytes);
        let next = || {
            if self.window.end() >= limit {
                self.window_stalls += u64::from(!above.is_empty());
                return None;
            }
            let (sdu, bytes) = above.pull()?;
            let (delivered, acknowledged, pending) = (false, false, Ranges::default());
            self.window.push(Sent { sdu, delivered, bytes, acknowledged, retx_count: None, pending });
            self.held += 1;
            Some(bytes)
        };
        let placed = |bytes| {
            if self.polling.count(&self.config, bytes) {
                self.polling.poll(slot, &self.config, sdu);
                polls = Some((polls.map_or(sdu, |(low, _)| low), sdu));
            }
            sdu += 1;
        };
        let (run, _) = filler.fill(at, bytes, next, placed);
        self.next = run.to;
        ((run.from != run.to).then_some(run), polls)
    }
    /// Adds pending bytes, lowest number first. An SDU or segment that does not fit is segmented
    /// (§5.2.3.1.1).
    fn retransmit(&mut self, filler: &mut Filler) -> Vec<SduRun> {
        let mut runs: Vec<SduRun> = Vec::new();
        while let Some(&sdu) = self.pending.first() {
            let Some(sent) = self.window.get_mut(sdu) else { break };
            let Some((from, to)) = sent.pending.first() else { break };
            let data = filler.place(from, to, sent.bytes);
            if data == 0 {
                break;
            }
            sent.pending.remove_below(from + data);
            self.pending_bytes -= u64::from(data);
            if sent.pending.is_empty() {
                self.pending.remove(&sdu);
            }
            let begin = Position { sdu, byte: from };
            let end = if from + data == sent.bytes {
                Position { sdu: sdu + 1, byte: 0 }
            } else {
                Position { sdu, byte: from + data }
            };
            match runs.last_mut() {
                Some(run) if run.to == begin => run.to = end,
                _ => runs.push(SduRun { from: begin, to: end }),
            }
        }
        runs
    }

    /// A STATUS PDU arrives (§5.3.2, §5.3.3.3). One older than another that arrived already changes nothing
    /// below TX_Next_Ack.
    pub fn on_status(&mut self, status: &Status) {
        if status.ack_sn > self.window.end() {
            return;
        }
        if self.polling.poll_sn < status.ack_sn {
            self.polling.t_poll_retransmit = None;
        }
        let mut counted = None;
        let mut unnamed = self.window.start();
        for nack in &status.nacks {
            (unnamed..nack.first).for_each(|sdu| self.acknowledge(sdu));
            unnamed = unnamed.max(nack.last() + 1);
            for (sdu, from, to) in nack.parts() {
                if self.consider(sdu, from, to, counted != Some(sdu)) {
                    counted = Some(sdu);
                }
            }
        }
        (unnamed..status.ack_sn).for_each(|sdu| self.acknowledge(sdu));
        while self.window.front().is_some_and(|sent| sent.acknowledged) {
            self.window.pop();
        }
    }
    fn acknowledge(&mut self, sdu: u64) {
        let Some(sent) = self.window.get_mut(sdu) else { return };
        sent.acknowledged = true;
        if !sent.pending.is_empty() {
            self.pending_bytes -= u64::from(sent.pending.total());
            self.pending.remove(&sdu);
            sent.pending.clear();
        }
    }
    /// Considers bytes of an SDU for retransmission (§5.3.2); whether any of them were not pending.
    /// RETX_COUNT rises if `count` is set: once per STATUS PDU.
    fn consider(&mut self, sdu: u64, from: u32, to: u32, count: bool) -> bool {
        let next = self.next;
        let Some(sent) = self.window.get_mut(sdu).filter(|sent| !sent.acknowledged) else { return false };
        let sent_bytes = if sdu == next.sdu { next.byte } else { sent.bytes };
        let before = sent.pending.total();
        sent.pending.insert(from, to.min(sent_bytes));
        let added = sent.pending.total() - before;
        if added == 0 {
            return false;
        }
        self.pending_bytes += u64::from(added);
        self.pending.insert(sdu);
        if count {
            let retx_count = sent.retx_count.map_or(0, |count| count + 1);
            sent.retx_count = Some(retx_count);
            self.failed |= retx_count >= self.config.max_retx_threshold;
        }
        true
    }

    /// Handles the expiry of t-PollRetransmit (§5.3.3.4).
    pub fn check_timers(&mut self, slot: Slot, above_empty: bool) {
        if self.window.is_empty() {
            return;
        }
        let newest = self.window.end() - 1;
        match self.polling.t_poll_retransmit {
            Some(at) if at <= slot => {
                self.polling.t_poll_retransmit = None;
                self.polling.due = true;
                if self.stalled() || self.buffers_empty(above_empty) {
                    let confirmed = self.window.get(newest).is_some_and(|sent| sent.acknowledged);
                    let sdu = if confirmed { self.window.start() } else { newest };
                    self.consider(sdu, 0, END, true);
                }
            }
            Some(_) => {}
            // The buffer above lost the data behind a PDU without a poll: that PDU counts as one with a poll.
            None if self.buffers_empty(above_empty) => self.polling.poll(slot, &self.config, newest),
            None => {}
        }
    }
}
