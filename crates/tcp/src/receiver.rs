//! The receiving half of a connection: reassembly, SACK blocks (RFC 2018, RFC 2883), the application that reads, and
//! the timestamp to echo (RFC 7323 §4.3). When to acknowledge is told by `ack_policy`.
//!
//! Only what waits for the application takes room in the window; data held out of order do not.

use crate::ack_policy::{AckPolicy, Times};
use crate::app::Reader;
use crate::config::EndpointConfig;
use crate::ecn::MarkEffect;
use crate::options::BeyondWindow;
use crate::ranges::RangeSet;
use crate::receive_window::ReceiveWindow;
use paceline_net::{Duration, Instant, SackBlocks, SeqNumber};

/// A segment of data or FIN as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub seq: SeqNumber,
    pub payload: u32,
    pub fin: bool,
}

/// The receiving half; offsets count from the first byte of data, FIN counts one.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    first_seq: SeqNumber,
    rcv_nxt: u64,
    held: RangeSet,
    gaps: Vec<(u64, u64)>,
    /// The latest blocks that changed, newest first.
    recent: [(u64, u64); 4],
    duplicate: Option<(u64, u64)>,
    /// Offset of the peer's FIN, when known.
    fin_at: Option<u64>,
    pub(crate) acks: AckPolicy,
    /// An acknowledgment of what came before a mark of congestion changed, with the echo of then.
    early: Option<(u64, bool)>,
    reader: Reader,
    beyond: BeyondWindow,
    dsack: bool,
    /// What the last acknowledgment sent said.
    acked_to: u64,
    /// Largest payload seen: what a full segment is.
    full: u32,
    window: ReceiveWindow,
    ts_recent: Option<u32>,
}

impl Receiver {
    /// A receiver of the stream whose SYN had the sequence number `irs`.
    pub fn new(config: &EndpointConfig, irs: SeqNumber, shift: u8) -> Self {
        Self {
            first_seq: irs + 1,
            rcv_nxt: 0,
            held: RangeSet::default(),
            gaps: Vec::new(),
            recent: [(0, 0); 4],
            duplicate: None,
            fin_at: None,
            acks: AckPolicy::new(config),
            early: None,
            reader: Reader::new(config.read_rate, config.segment_size),
            beyond: config.beyond_window,
            dsack: config.dsack,
            acked_to: 0,
            full: 0,
            window: ReceiveWindow::new(config, shift),
            ts_recent: None,
        }
    }
    pub fn seq_next(&self) -> SeqNumber {
        self.first_seq + self.rcv_nxt as u32
    }
    /// Whether everything up to the peer's FIN arrived.
    pub fn closed(&self) -> bool {
        self.fin_at.is_some_and(|fin_at| self.rcv_nxt > fin_at)
    }
    /// The window field of the next segment.
    pub fn advertise(&mut self) -> u16 {
        self.window.advertise(self.rcv_nxt, self.unread(), self.full)
    }
    /// The timestamp to echo.
    pub fn echo(&self) -> u32 {
        self.ts_recent.unwrap_or(0)
    }
    /// Takes note of a segment's timestamp; false if the segment is an old duplicate (RFC 7323 §5).
    pub fn on_timestamp(&mut self, seq: SeqNumber, val: u32) -> bool {
        let older = self.ts_recent.is_some_and(|recent| (val.wrapping_sub(recent) as i32) < 0);
        if !older && seq <= self.first_seq + self.acked_to as u32 {
            self.ts_recent = Some(val);
        }
        !older
    }
    fn offset(&self, seq: SeqNumber) -> i64 {
        self.rcv_nxt as i64 + i64::from(seq.distance(self.seq_next()))
    }
    /// Whether an empty segment at `seq` asks for an acknowledgment: a window or keep-alive probe.
    pub fn is_probe(&self, seq: SeqNumber) -> bool {
        seq + 1 == self.seq_next()
    }
    /// Whether `seq` lies behind the window; FIN may stand on its edge, and what follows FIN behind it.
    pub fn is_beyond(&self, seq: SeqNumber) -> bool {
        self.offset(seq) > self.window.edge().max(self.rcv_nxt) as i64 + 1
    }
    /// Whether a byte at `seq` is one that the peer may send now.
    pub fn in_window(&self, seq: SeqNumber) -> bool {
        let offset = self.offset(seq);
        offset >= self.rcv_nxt as i64 && offset < self.window.edge() as i64
    }
    /// An acknowledgment should leave at once.
    pub fn acknowledge_now(&mut self) {
        self.acks.now();
    }
    /// Payload of a full segment of the peer.
    pub fn full(&self) -> u32 {
        self.full
    }
    /// Payload bytes that the application has read.
    pub fn read(&self) -> u64 {
        self.reader.read()
    }
    fn unread(&self) -> u64 {
        self.readable().saturating_sub(self.reader.read())
    }
    /// The ECN mark of a segment that arrives, before [`Self::on_arrival`].
    pub fn on_mark(&mut self, effect: MarkEffect) {
        match effect {
            MarkEffect::Nothing => {}
            MarkEffect::QuickAcks => self.acks.enter_quick(2),
            MarkEffect::Changed { before } => {
                if self.acks.deadline().is_some() {
                    self.early = Some((self.rcv_nxt, before));
                }
                self.acks.now();
            }
        }
    }
    /// What [`Self::on_mark`] wants acknowledged apart, and its echo.
    pub fn take_early(&mut self) -> Option<(SeqNumber, bool)> {
        let (rcv_nxt, echo) = self.early.take()?;
        Some((self.first_seq + rcv_nxt as u32, echo))
    }
    /// Times that decide when to acknowledge.
    pub fn times(&self, srtt: Option<Duration>, rto: Duration) -> Times {
        Times { srtt, rcv_rtt: self.window.rtt(), rto: Some(rto) }
    }

    /// Data or FIN arrives. Returns the bytes that became readable; `None` if it brought nothing new.
    pub fn on_arrival(&mut self, now: Instant, arrival: Arrival, times: &Times) -> Option<u64> {
        let start = self.offset(arrival.seq);
        let end = start + i64::from(arrival.payload) + i64::from(arrival.fin);
        self.full = self.full.max(arrival.payload);
        if end <= self.rcv_nxt as i64 {
            self.on_duplicate(start.max(0) as u64, end.max(0) as u64);
            return None;
        }
        if !self.is_acceptable(start, end - i64::from(arrival.fin)) {
            self.acks.now(); // beyond the window: say where it is
            return None;
        }
        let start = start.max(self.rcv_nxt as i64) as u64;
        let end = self.end_by_fin(end as u64, arrival.fin);
        if start >= end {
            self.acks.now();
            return None;
        }
        self.acks.on_data(now, self.window.size() / u64::from(self.full.max(1)), times);
        if start > self.rcv_nxt {
            return self.hold(now, start, end, times);
        }
        let before = self.readable();
        let had_holes = !self.held.is_empty();
        self.rcv_nxt = end;
        while let Some(reached) = self.held.take_reached(self.rcv_nxt) {
            self.rcv_nxt = self.rcv_nxt.max(reached);
        }
        if let Some(fin_at) = self.fin_at {
            self.rcv_nxt = self.rcv_nxt.min(fin_at + 1);
        }
        if had_holes {
            self.forget_below();
        }
        self.reader.on_readable(now, self.readable());
        self.window.on_progress(now, self.reader.read(), arrival.payload);
        let filled = had_holes && self.held.is_empty();
        let few = self.rcv_nxt - self.acked_to <= self.acks.patience(self.full);
        if filled || self.closed() || self.acks.is_quick() || !few {
            self.acks.now();
        } else if had_holes {
            self.acks.duplicate(now, self.rcv_nxt, times);
        } else {
            self.acks.delay(now, times);
        }
        Some(self.readable().saturating_sub(before))
    }
    /// Whether data from `start` to `end` may be taken, as far as the window is concerned.
    fn is_acceptable(&self, start: i64, end: i64) -> bool {
        let edge = self.window.edge().max(self.rcv_nxt) as i64;
        let inside = start < edge || (start == end && start <= edge); // a lone FIN needs no room
        inside && (end <= edge || self.beyond == BeyondWindow::Accept || self.unread() == 0)
    }
    /// Where a segment that ends at `end` ends: nothing follows FIN, and a second one elsewhere is no FIN.
    fn end_by_fin(&mut self, end: u64, fin: bool) -> u64 {
        let text_end = end - u64::from(fin);
        let is_fin = fin && *self.fin_at.get_or_insert(text_end) == text_end;
        let end = text_end + u64::from(is_fin);
        self.fin_at.map_or(end, |fin_at| end.min(fin_at + 1))
    }
    /// A relay reads up to `offset` of what arrives.
    pub fn read_to(&mut self, now: Instant, offset: u64) {
        let before = self.reader.read();
        self.reader.allow(offset);
        self.reader.on_readable(now, self.readable());
        if self.reader.read() > before {
            self.window.on_progress(now, self.reader.read(), 0);
            if self.window.opens(self.rcv_nxt, self.unread(), self.full) {
                self.acks.now();
            }
        }
    }
    /// Payload bytes that arrived in order.
    pub fn readable(&self) -> u64 {
        self.rcv_nxt - u64::from(self.closed())
    }
    /// Holds an out-of-order range; `None` if all of it was held already.
    fn hold(&mut self, now: Instant, start: u64, end: u64, times: &Times) -> Option<u64> {
        let block = self.held.insert(start, end, &mut self.gaps);
        if self.gaps.is_empty() {
            self.acks.now();
        } else {
            self.acks.duplicate(now, self.rcv_nxt, times);
        }
        // The block with what arrived last goes first; blocks that it swallowed leave.
        let mut kept = [(0, 0); 4];
        kept[0] = block;
        let others =
            self.recent.iter().filter(|other| other.0 < other.1 && (other.1 < block.0 || other.0 > block.1));
        for (slot, other) in kept[1..].iter_mut().zip(others) {
            *slot = *other;
        }
        self.recent = kept;
        if self.gaps.is_empty() {
            self.duplicate = Some((start, end)).filter(|_| self.dsack);
        }
        (!self.gaps.is_empty()).then_some(0)
    }
    fn on_duplicate(&mut self, start: u64, end: u64) {
        self.acks.now();
        self.acks.enter_quick(self.acks.most_quick());
        if start < end && self.dsack {
            self.duplicate = Some((start, end));
        }
    }
    /// Drops from the recent blocks what was delivered in order.
    fn forget_below(&mut self) {
        let mut kept = [(0, 0); 4];
        let left = self.recent.iter().filter(|block| block.0 > self.rcv_nxt);
        for (slot, block) in kept.iter_mut().zip(left) {
            *slot = *block;
        }
        self.recent = kept;
    }
    /// A segment with data echoed a timestamp `ms` milliseconds after it left.
    pub fn on_echo(&mut self, echo: u32, ms: u32) {
        self.window.on_echo(echo, ms);
    }
    /// When [`Self::on_timer`] has something to do or an acknowledgment must leave; `Instant::ZERO` for at once.
    pub fn deadline(&self) -> Option<Instant> {
        if self.early.is_some() {
            return Some(Instant::ZERO);
        }
        Instant::earliest([self.acks.deadline(), self.reader.deadline()])
    }
    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant, times: &Times) {
        self.acks.on_timer(now, times);
        if self.reader.on_timer(now, self.readable()) {
            self.window.on_progress(now, self.reader.read(), 0);
            if self.window.opens(self.rcv_nxt, self.unread(), self.full) {
                self.acks.now();
            }
        }
    }
    /// Whether an acknowledgment must leave at `now`.
    pub fn owes(&self, now: Instant) -> bool {
        self.acks.deadline().is_some_and(|at| at <= now)
    }
    /// Whether the acknowledgment has SACK blocks to report.
    pub fn has_blocks(&self) -> bool {
        !self.held.is_empty() || self.duplicate.is_some()
    }
    /// The SACK blocks of the next acknowledgment, at most `room`.
    pub fn blocks(&self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let recent = self.recent.iter().filter(|block| block.0 < block.1);
        for (left, right) in self.duplicate.iter().chain(recent).take(room) {
            blocks.push(self.first_seq + *left as u32, self.first_seq + *right as u32);
        }
        blocks
    }
    /// A segment with the acknowledgment left.
    pub fn on_ack_sent(&mut self) {
        self.acked_to = self.rcv_nxt;
        self.acks.on_ack_sent();
        self.duplicate = None;
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
