//! Reassembly of the received stream: data in order, data held above gaps with its SACK blocks (RFC 2018, RFC
//! 2883), the application that reads, and the timestamp to echo (RFC 7323 §4.3).
//!
//! Only data that waits for the application reduces the window; data held out of order does not.

use super::ack_policy::{AckPolicy, Times};
use super::receive_window::ReceiveWindow;
use crate::application::Reader;
use crate::config::EndpointConfig;
use crate::ecn::MarkEffect;
use crate::options::BeyondWindow;
use crate::timestamps::is_older;
use paceline_net::{Duration, Instant, Ranges, SackBlocks, SeqNumber};

/// An arriving segment with data or FIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub seq: SeqNumber,
    pub payload: u32,
    pub fin: bool,
}

/// The receiving half of a connection. Offsets count from the first byte of data; FIN counts one.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Sequence number of the first byte of data.
    first_seq: SeqNumber,
    rcv_nxt: u64,
    /// Data received above a gap.
    held: Ranges,
    /// Kept between calls to reuse its memory.
    gaps: Vec<(u64, u64)>,
    /// The ranges of `held` that changed last, newest first.
    recent: [(u64, u64); 4],
    /// The duplicate that the next ACK reports (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Offset of the peer's FIN, if it has arrived.
    fin_at: Option<u64>,
    acks: AckPolicy,
    /// An ACK of the segments before a change of the ECN mark: RCV.NXT and ECE at that time.
    ecn_ack: Option<(u64, bool)>,
    reader: Reader,
    beyond: BeyondWindow,
    dsack: bool,
    /// RCV.NXT of the last ACK sent (RFC 7323 §4.3, Last.ACK.sent).
    acked_to: u64,
    /// Payload bytes of the peer's full segments: the largest payload seen.
    segment_size: u32,
    window: ReceiveWindow,
    /// TS.Recent (RFC 7323 §4.3).
    ts_recent: Option<u32>,
}

impl Receiver {
    /// A receiver of the stream whose SYN had the sequence number `irs`.
    pub fn new(config: &EndpointConfig, irs: SeqNumber, shift: u8) -> Self {
        Self {
            first_seq: irs + 1,
            rcv_nxt: 0,
            held: Ranges::default(),
            gaps: Vec::new(),
            recent: [(0, 0); 4],
            duplicate: None,
            fin_at: None,
            acks: AckPolicy::new(config),
            ecn_ack: None,
            reader: Reader::new(config.read_rate, config.segment_size),
            beyond: config.beyond_window,
            dsack: config.dsack,
            acked_to: 0,
            segment_size: 0,
            window: ReceiveWindow::new(config, shift),
            ts_recent: None,
        }
    }
    pub fn seq_next(&self) -> SeqNumber {
        self.first_seq + self.rcv_nxt as u32
    }
    /// Whether everything up to the peer's FIN has arrived.
    pub fn closed(&self) -> bool {
        self.fin_at.is_some_and(|fin_at| self.rcv_nxt > fin_at)
    }
    /// The window field of the next segment.
    pub fn advertise(&mut self) -> u16 {
        self.window.advertise(self.rcv_nxt, self.unread(), self.segment_size)
    }
    /// The timestamp to echo.
    pub fn echo(&self) -> u32 {
        self.ts_recent.unwrap_or(0)
    }
    /// Whether a segment with the timestamp `val` is an old duplicate (RFC 7323 §5.3 R1).
    pub fn is_old_duplicate(&self, val: u32) -> bool {
        self.ts_recent.is_some_and(|recent| is_older(val, recent))
    }
    /// Updates TS.Recent with the timestamp of an acceptable segment of `len` sequence numbers, if
    /// Last.ACK.sent lies in it or at its end (RFC 7323 §4.3). A duplicate that ends earlier is outside the
    /// window, and no reason for an update (§5.3 R2).
    pub fn record_timestamp(&mut self, seq: SeqNumber, len: u32, val: u32) {
        let acked_to = self.first_seq + self.acked_to as u32;
        if !self.is_old_duplicate(val) && seq <= acked_to && seq + len >= acked_to {
            self.ts_recent = Some(val);
        }
    }
    fn offset(&self, seq: SeqNumber) -> i64 {
        self.rcv_nxt as i64 + i64::from(seq.distance(self.seq_next()))
    }
    /// Whether an empty segment at `seq` is a window or keep-alive probe, which is to be answered.
    pub fn is_probe(&self, seq: SeqNumber) -> bool {
        seq + 1 == self.seq_next()
    }
    /// Whether `seq` lies beyond the window. A FIN may lie at its edge, and a segment after the FIN one
    /// above.
    pub fn is_beyond(&self, seq: SeqNumber) -> bool {
        self.offset(seq) > self.window.edge().max(self.rcv_nxt) as i64 + 1
    }
    /// Whether `seq` lies inside the window.
    pub fn in_window(&self, seq: SeqNumber) -> bool {
        let offset = self.offset(seq);
        offset >= self.rcv_nxt as i64 && offset < self.window.edge() as i64
    }
    /// Makes an ACK leave at once.
    pub fn acknowledge_now(&mut self) {
        self.acks.acknowledge_now();
    }
    /// Data left, with the current acknowledgment number.
    pub fn on_data_sent(&mut self, now: Instant) {
        self.acks.on_data_sent(now);
    }
    /// Duplicate ACKs merged with a later one since the start.
    pub fn merged_acks(&self) -> u64 {
        self.acks.merged_total()
    }
    /// Payload bytes of a full segment of the peer.
    pub fn segment_size(&self) -> u32 {
        self.segment_size
    }
    /// Payload bytes that the application has read.
    pub fn read(&self) -> u64 {
        self.reader.read()
    }
    fn unread(&self) -> u64 {
        self.readable().saturating_sub(self.reader.read())
    }
    /// Reacts to the ECN codepoint of an arriving segment, before [`Self::on_arrival`].
    pub fn on_mark(&mut self, effect: MarkEffect) {
        match effect {
            MarkEffect::Nothing => {}
            MarkEffect::QuickAcks => self.acks.enter_quick_mode(2),
            MarkEffect::Changed { before } => {
                if self.acks.deadline().is_some() {
                    self.ecn_ack = Some((self.rcv_nxt, before));
                }
                self.acks.acknowledge_now();
            }
        }
    }
    /// The acknowledgment number and ECE flag of an extra ACK that [`Self::on_mark`] has requested.
    pub fn take_ecn_ack(&mut self) -> Option<(SeqNumber, bool)> {
        let (rcv_nxt, echo) = self.ecn_ack.take()?;
        Some((self.first_seq + rcv_nxt as u32, echo))
    }
    /// The times on which the ACK policy depends.
    pub fn times(&self, srtt: Option<Duration>, rto: Duration) -> Times {
        Times { srtt, rcv_rtt: self.window.rtt(), rto: Some(rto) }
    }

    /// Data or FIN arrives. Returns the bytes that became readable; `None` if the segment contained no new
    /// bytes.
    pub fn on_arrival(&mut self, now: Instant, arrival: Arrival, times: &Times) -> Option<u64> {
        let start = self.offset(arrival.seq);
        let end = start + i64::from(arrival.payload) + i64::from(arrival.fin);
        self.segment_size = self.segment_size.max(arrival.payload);
        if end <= self.rcv_nxt as i64 {
            self.on_duplicate(start.max(0) as u64, end.max(0) as u64);
            return None;
        }
        if !self.is_acceptable(start, end - i64::from(arrival.fin)) {
            self.acks.acknowledge_now(); // beyond the window: the ACK shows where it ends
            return None;
        }
        let repeated = (start.max(0) as u64, (end as u64) - u64::from(arrival.fin));
        let start = start.max(self.rcv_nxt as i64) as u64;
        let end = self.end_by_fin(end as u64, arrival.fin);
        if start >= end {
            self.acks.acknowledge_now();
            return None;
        }
        self.acks.on_data(now, self.window.size() / u64::from(self.segment_size.max(1)), times);
        if start > self.rcv_nxt {
            return self.hold(now, start, end, times);
        }
        self.report_repeated_part(repeated);
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
            self.remove_delivered_blocks();
        }
        self.reader.on_readable(now, self.readable());
        self.window.on_progress(now, self.reader.read(), arrival.payload);
        let filled = had_holes && self.held.is_empty();
        let delayable = self.rcv_nxt - self.acked_to <= self.acks.delayable_bytes(self.segment_size);
        if filled || self.closed() || self.acks.is_quick() || !delayable {
            self.acks.acknowledge_now();
        } else if had_holes {
            self.acks.on_out_of_order(now, self.rcv_nxt, times);
        } else {
            self.acks.delay(now, times);
        }
        Some(self.readable().saturating_sub(before))
    }
    /// Whether the window allows data from `start` to `end` (RFC 9293 §3.4).
    fn is_acceptable(&self, start: i64, end: i64) -> bool {
        let edge = self.window.edge().max(self.rcv_nxt) as i64;
        let inside = start < edge || (start == end && start <= edge); // a FIN without data needs no space
        inside && (end <= edge || self.beyond == BeyondWindow::Accept || self.unread() == 0)
    }
    /// The end of a segment, at most that of the FIN. A second FIN at another offset is ignored.
    fn end_by_fin(&mut self, end: u64, fin: bool) -> u64 {
        let text_end = end - u64::from(fin);
        let is_fin = fin && *self.fin_at.get_or_insert(text_end) == text_end;
        let end = text_end + u64::from(is_fin);
        self.fin_at.map_or(end, |fin_at| end.min(fin_at + 1))
    }
    /// A relay allows reading up to `offset`.
    pub fn read_to(&mut self, now: Instant, offset: u64) {
        let before = self.reader.read();
        self.reader.allow(offset);
        self.reader.on_readable(now, self.readable());
        if self.reader.read() > before {
            self.window.on_progress(now, self.reader.read(), 0);
            if self.window.needs_update(self.rcv_nxt, self.unread(), self.segment_size) {
                self.acks.acknowledge_now();
            }
        }
    }
    /// Payload bytes that arrived in order.
    pub fn readable(&self) -> u64 {
        self.rcv_nxt - u64::from(self.closed())
    }
    /// Holds an out-of-order range; `None` if all of it was received already.
    fn hold(&mut self, now: Instant, start: u64, end: u64, times: &Times) -> Option<u64> {
        self.gaps.clear();
        self.gaps.extend(self.held.gaps(start, end));
        let block = self.held.insert(start, end);
        if self.gaps.is_empty() {
            self.acks.acknowledge_now();
        } else {
            self.acks.on_out_of_order(now, self.rcv_nxt, times);
        }
        // The block with the latest segment comes first (RFC 2018 §4); blocks merged into it are removed.
        let mut kept = [(0, 0); 4];
        kept[0] = block;
        let others =
            self.recent.iter().filter(|other| other.0 < other.1 && (other.1 < block.0 || other.0 > block.1));
        for (slot, other) in kept[1..].iter_mut().zip(others) {
            *slot = *other;
        }
        self.recent = kept;
        self.report_duplicate(first_outside(&self.gaps, start, end));
        (!self.gaps.is_empty()).then_some(0)
    }
    fn on_duplicate(&mut self, start: u64, end: u64) {
        self.acks.acknowledge_now();
        self.acks.enter_quick_mode(self.acks.max_quick());
        self.report_duplicate((start, end));
    }
    /// Reports that `[start, end)`, if it is not empty, was received before (RFC 2883 §4).
    fn report_duplicate(&mut self, (start, end): (u64, u64)) {
        if start < end && self.dsack {
            self.duplicate = Some((start, end));
        }
    }
    /// Reports the first part of the data `[start, end)` that was received before, in order or above a gap,
    /// when new bytes at RCV.NXT lie in it (RFC 2883 §4.1.2; Linux `tcp_data_queue`, `tcp_ofo_queue`).
    fn report_repeated_part(&mut self, (start, end): (u64, u64)) {
        let in_order = (start, self.rcv_nxt);
        let held = self.held.first().map_or((0, 0), |first| (first.0, first.1.min(end)));
        self.report_duplicate(if start < self.rcv_nxt { in_order } else { held });
    }
    /// Removes recent blocks that were delivered in order.
    fn remove_delivered_blocks(&mut self) {
        let mut kept = [(0, 0); 4];
        let left = self.recent.iter().filter(|block| block.0 > self.rcv_nxt);
        for (slot, block) in kept.iter_mut().zip(left) {
            *slot = *block;
        }
        self.recent = kept;
    }
    /// A segment with data echoed the timestamp `echo`, `ms` milliseconds after that left.
    pub fn on_echo(&mut self, echo: u32, ms: u32) {
        self.window.on_echo(echo, ms);
    }
    /// The time of the next timer or ACK; `Instant::ZERO` for an ACK at once.
    pub fn deadline(&self) -> Option<Instant> {
        if self.ecn_ack.is_some() {
            return Some(Instant::ZERO);
        }
        Instant::earliest([self.acks.deadline(), self.reader.deadline()])
    }
    /// Handles expired timers.
    pub fn on_timer(&mut self, now: Instant, times: &Times) {
        self.acks.on_timer(now, times);
        if self.reader.on_timer(now, self.readable()) {
            self.window.on_progress(now, self.reader.read(), 0);
            if self.window.needs_update(self.rcv_nxt, self.unread(), self.segment_size) {
                self.acks.acknowledge_now();
            }
        }
    }
    /// Whether an ACK is due at `now`.
    pub fn is_ack_due(&self, now: Instant) -> bool {
        self.acks.deadline().is_some_and(|at| at <= now)
    }
    /// Whether the next ACK has SACK blocks.
    pub fn has_blocks(&self) -> bool {
        !self.held.is_empty() || self.duplicate.is_some()
    }
    /// The SACK blocks of the next ACK, at most `room`.
    pub fn blocks(&self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let recent = self.recent.iter().filter(|block| block.0 < block.1);
        for (left, right) in self.duplicate.iter().chain(recent).take(room) {
            blocks.push(self.first_seq + *left as u32, self.first_seq + *right as u32);
        }
        blocks
    }
    /// A segment with the current acknowledgment number left.
    pub fn on_ack_sent(&mut self) {
        self.acked_to = self.rcv_nxt;
        self.acks.on_ack_sent();
        self.duplicate = None;
    }
}

/// The first part of `[start, end)` that lies in none of `gaps`, which are sorted parts of it; empty if the
/// gaps cover it.
fn first_outside(gaps: &[(u64, u64)], start: u64, end: u64) -> (u64, u64) {
    match gaps {
        [] => (start, end),
        [first, ..] if first.0 > start => (start, first.0),
        [first, rest @ ..] => (first.1, rest.first().map_or(end, |next| next.0)),
    }
}
