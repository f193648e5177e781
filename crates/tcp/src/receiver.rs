//! The receiving half of a connection: reassembly, SACK blocks (RFC 2018, RFC 2883), when to acknowledge
//! (RFC 5681 §4.2 with the quick ACKs of Linux), and the timestamp to echo (RFC 7323 §4.3).
//!
//! The application reads at once, so that only out-of-order data is held. Left out: the compression of duplicate
//! ACKs that Linux does within a millisecond.

use crate::config::{DelayedAck, EndpointConfig};
use crate::ranges::RangeSet;
use crate::receive_window::ReceiveWindow;
use paceline_net::{Instant, SackBlocks, SeqNumber};

/// A segment of data or FIN as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub seq: SeqNumber,
    pub payload: u32,
    pub fin: bool,
}

/// Whether an acknowledgment is owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owed {
    Nothing,
    By(Instant),
    Now,
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
    policy: DelayedAck,
    owed: Owed,
    /// What the last acknowledgment sent said.
    acked_to: u64,
    /// Largest payload seen: what a full segment is.
    full: u32,
    quick: u32,
    last_data: Option<Instant>,
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
            policy: config.delayed_ack,
            owed: Owed::Nothing,
            acked_to: 0,
            full: 0,
            quick: 0,
            last_data: None,
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
        self.window.advertise(self.rcv_nxt)
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
    /// Whether a byte at `seq` is one that the peer may send now.
    pub fn in_window(&self, seq: SeqNumber) -> bool {
        let offset = self.offset(seq);
        offset >= self.rcv_nxt as i64 && offset < self.window.edge() as i64
    }
    /// An acknowledgment should leave at once.
    pub fn acknowledge_now(&mut self) {
        self.owed = Owed::Now;
    }

    /// Data or FIN arrives. Returns the bytes that became readable; `None` if it brought nothing new.
    pub fn on_arrival(&mut self, now: Instant, arrival: Arrival) -> Option<u64> {
        let start = self.offset(arrival.seq);
        let len = i64::from(arrival.payload) + i64::from(arrival.fin);
        let end = start + len;
        self.full = self.full.max(arrival.payload);
        if end <= self.rcv_nxt as i64 {
            self.on_duplicate(start.max(0) as u64, end.max(0) as u64);
            return None;
        }
        let Some((start, end)) = self.accept(start, end as u64, arrival.fin) else {
            self.owed = Owed::Now; // beyond the window: say where it is
            return None;
        };
        self.refill_quick(now);
        if start > self.rcv_nxt {
            return self.hold(start, end).then_some(0);
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
        self.window.on_progress(now, self.rcv_nxt, arrival.payload);
        let at_once = had_holes || self.closed() || self.quick > 0;
        let few =
            self.rcv_nxt - self.acked_to <= u64::from(self.policy.segments.max(1) - 1) * u64::from(self.full);
        self.owed = match self.owed {
            _ if at_once || !few => Owed::Now,
            Owed::Nothing => Owed::By(now + self.policy.timeout),
            owed => owed,
        };
        Some(self.readable() - before)
    }
    /// The part of a segment that is new, inside the window, and not behind FIN.
    fn accept(&mut self, start: i64, end: u64, fin: bool) -> Option<(u64, u64)> {
        let start = start.max(self.rcv_nxt as i64) as u64;
        let text_end = end - u64::from(fin);
        let mut end = text_end.min(self.window.edge().max(self.rcv_nxt));
        // FIN needs no room in the window; one at another place than the first is no FIN.
        if fin && end == text_end && *self.fin_at.get_or_insert(text_end) == text_end {
            end += 1;
        }
        if let Some(fin_at) = self.fin_at {
            end = end.min(fin_at + 1);
        }
        (start < end).then_some((start, end))
    }
    /// Payload bytes that the application has read.
    fn readable(&self) -> u64 {
        self.rcv_nxt - u64::from(self.closed())
    }
    /// Holds an out-of-order range; false if all of it was held already.
    fn hold(&mut self, start: u64, end: u64) -> bool {
        self.owed = Owed::Now;
        let block = self.held.insert(start, end, &mut self.gaps);
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
            self.duplicate = Some((start, end));
        }
        !self.gaps.is_empty()
    }
    fn on_duplicate(&mut self, start: u64, end: u64) {
        self.owed = Owed::Now;
        self.quick = self.quick.max(self.policy.quick_acks);
        if start < end {
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
    /// At the start and after a pause, the peer's slow start should not wait for delayed ACKs.
    fn refill_quick(&mut self, now: Instant) {
        const PAUSE: paceline_net::Duration = crate::rtt::INITIAL_RTO;
        if self.last_data.is_none_or(|last| now.since(last) > PAUSE) {
            let by_window = self.window.size() / (2 * u64::from(self.full.max(1)));
            self.quick = self.policy.quick_acks.min(by_window.max(2) as u32);
        }
        self.last_data = Some(now);
    }
    /// A sample of the round-trip time by the timestamps option, in milliseconds.
    pub fn on_rtt(&mut self, ms: u32) {
        self.window.on_rtt(ms);
    }
    /// When an acknowledgment is owed at the latest; `Instant::ZERO` for at once.
    pub fn deadline(&self) -> Option<Instant> {
        match self.owed {
            Owed::Nothing => None,
            Owed::By(at) => Some(at),
            Owed::Now => Some(Instant::ZERO),
        }
    }
    /// Whether an acknowledgment must leave at `now`.
    pub fn owes(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
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
        self.owed = Owed::Nothing;
        self.quick = self.quick.saturating_sub(1);
        self.duplicate = None;
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
