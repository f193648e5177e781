//! Segments of a sender and their ACKs.

use super::state::Sender;
use crate::causes::Cause;
use crate::halves::Half;
use crate::segment::Segment;
use crate::space::Arrival;
use paceline_net::{Duration, Instant, TcpFlags};

/// Segments whose ACK is awaited as a sample of the round trip. Chosen: 128 samples in a round trip.
const MAX_PROBES: usize = 128;
/// Most bytes that a sender may have in flight (RFC 7323 §2.3): numbers further ahead are forged or damaged.
const MAX_WINDOW: u64 = 1 << 30;
/// Codepoint of a mark (RFC 3168 §5).
const CE: u8 = 3;
/// Least time beyond the least round trip after which the ACK of a last segment was delayed by the receiver:
/// half of Linux's least timer (TCP_DELACK_MIN, 40 ms), the shortest in use.
const DELAYED_NS: u64 = 20_000_000;

impl Sender {
    /// A segment of this sender. Returns whether it has new data.
    pub fn on_sent(&mut self, segment: &Segment) -> bool {
        if segment.has(TcpFlags::SYN) {
            self.space.start(segment.seq + 1);
            return false;
        }
        self.space.start(segment.seq);
        self.ce_marks += u64::from(segment.ecn == CE);
        self.finished |= segment.has(TcpFlags::FIN);
        let start = self.space.place(segment.seq);
        if segment.has(TcpFlags::FIN) {
            self.space.finish(start + u64::from(segment.len));
        }
        if segment.len == 0 || self.is_keepalive(start, segment.len) {
            return false;
        }
        if start > self.space.next() + MAX_WINDOW {
            return false;
        }
        self.segments += 1;
        self.on_size(segment.len);
        let tsval = segment.options.timestamps.map(|(val, _)| val);
        let (arrival, new) = self.space.add(start, segment.len, segment.at, tsval);
        self.bytes += new;
        let end = start + u64::from(segment.len);
        let is_new = match arrival {
            Arrival::New => true,
            Arrival::Fills(hole) if self.is_reordered(&hole, segment.at, tsval) => {
                self.losses.out_of_order += 1;
                false
            }
            _ => {
                self.on_repair((start, end), segment, arrival);
                self.note_copy((start, end), segment.at);
                return false;
            }
        };
        self.note_copy((start, end), segment.at);
        if is_new {
            self.on_new(end, segment);
        }
        is_new
    }
    fn note_copy(&mut self, range: (u64, u64), at: Instant) {
        let edge = self.acked.map_or(u64::MAX, |acked| acked + u64::from(self.window_field));
        self.copies.on_sent(range, at, edge);
    }
    fn on_new(&mut self, end: u64, segment: &Segment) {
        self.commit_data(segment.at);
        let start = end - u64::from(segment.len);
        if self.acked.is_none_or(|acked| acked >= start) {
            self.view.awaited = Some(segment.at);
        }
        let first = self.data_span.map_or(segment.at, |(first, _)| first);
        self.data_span = Some((first, segment.at));
        self.short = !segment.len.is_multiple_of(self.full());
        self.pushed = segment.has(TcpFlags::PSH);
        self.last_sent = Some(segment.at);
        self.view.acked_at_send = self.view.acked;
        self.view.flight_at_send = end.saturating_sub(self.view.acked);
        if self.probes.len() < MAX_PROBES {
            self.probes.push_back((end, segment.at));
        }
    }
    fn on_size(&mut self, len: u32) {
        let is_merged = self.announced.is_some_and(|announced| len > announced);
        self.merged += u64::from(is_merged);
        if !is_merged {
            self.largest = self.largest.max(len);
        }
    }
    /// A probe of one byte before the next one (RFC 9293 §3.8.4), or of a closed window (§3.8.6.1).
    fn is_keepalive(&self, start: u64, len: u32) -> bool {
        let is_closed = self.last_window == Some(0) && self.acked.is_some_and(|acked| start <= acked);
        len == 1 && self.acked == Some(self.space.next()) && (start + 1 == self.space.next() || is_closed)
    }
    /// A segment of the receiver with an ACK; `window` in bytes if its scale is known. `toward_sender` is the
    /// half of the round trip towards this sender. Returns the round trip from the capture point to the
    /// receiver, if it is a sample.
    pub fn on_ack(
        &mut self,
        segment: &Segment,
        window: Option<u64>,
        toward_sender: &Half,
    ) -> Option<Duration> {
        let number = segment.ack?;
        self.space.open(number);
        let ack = self.space.place(number);
        if ack > self.space.next() + MAX_WINDOW {
            return None;
        }
        self.acks += u64::from(segment.len == 0);
        self.ece_acks += u64::from(segment.has(TcpFlags::ECE) && !segment.has(TcpFlags::SYN));
        let before = *self.acked.get_or_insert(ack);
        self.commit(segment.at, ack > before);
        self.on_sack(segment, ack);
        let mut sample = None;
        if ack > before {
            sample = self.on_progress(segment, (before, ack), toward_sender);
        } else {
            self.on_duplicate(segment, ack, window);
        }
        if let Some(window) = window {
            self.zero_windows += u64::from(window == 0 && self.last_window.is_some_and(|last| last > 0));
            self.view.is_window_known = true;
        }
        self.last_window = window;
        self.window_field = segment.window;
        self.last_heard = Some(segment.at);
        self.view.has_heard = true;
        self.view.push(segment.at, ack.max(before), ack.max(before) + window.unwrap_or(0), toward_sender);
        sample
    }
    fn on_progress(
        &mut self,
        segment: &Segment,
        (before, ack): (u64, u64),
        toward_sender: &Half,
    ) -> Option<Duration> {
        self.acked = Some(ack);
        self.view.awaited = Some(segment.at);
        self.duplicates = 0;
        self.progress_acks += 1;
        self.acked_bytes += ack - before;
        self.check_spurious(segment, ack);
        self.space.acknowledge(ack);
        self.copies.on_ack(ack);
        if self.episode.as_ref().is_some_and(|episode| ack >= episode.point) {
            self.episode = None;
        }
        let mut sent_at = None;
        while let Some(&(end, at)) = self.probes.front().filter(|(end, _)| *end <= ack) {
            self.probes.pop_front();
            sent_at = (end > before).then_some(at);
        }
        let sample = sent_at.map(|sent_at| segment.at.since(sent_at));
        let whole = sample.map(|sample| sample.as_nanos() + toward_sender.recent_ns());
        self.series.add(segment.at, ack - before, whole);
        if let Some(sample) = sample {
            let ns = sample.as_nanos() + toward_sender.recent_ns();
            // The receiver delays the ACK of a last segment (RFC 9293 §3.8.6.3).
            let is_delayed = ack >= self.space.next() && (self.short || self.pushed);
            // In mid-stream the other half is known from the first echo of a timestamp on.
            let is_half = toward_sender.samples.count() == 0 && segment.options.timestamps.is_some();
            let is_late = self.rtt.least().is_some_and(|least| ns >= least + DELAYED_NS);
            self.delayed_acks += u64::from(is_delayed && is_late && self.episode.is_none());
            let is_plain = !is_delayed || self.srtt.is_none_or(|(srtt, _)| ns <= srtt);
            if is_plain && !is_half {
                self.on_rtt(ns, sent_at);
            }
        }
        let rtt_ns = self.srtt_ns();
        if self.episode.is_none() {
            self.flowing.add_bytes(rtt_ns, ack - before);
        }
        if let Some(gap_ns) = self.bunches.on_ack(segment.at, sent_at, rtt_ns)
            && self.episode.is_none()
        {
            self.times.add(Cause::AckPath, gap_ns);
        }
        sample
    }
    fn on_duplicate(&mut self, segment: &Segment, ack: u64, window: Option<u64>) {
        let outstanding = self.space.next() > ack;
        // RFC 5681 §2: no data, no change of the window, data outstanding; with SACK blocks also with a
        // change.
        let is_same = window == self.last_window || !segment.options.sack.is_empty();
        if Some(ack) == self.acked && outstanding && segment.len == 0 && is_same {
            self.duplicates += 1;
            self.duplicate_acks += 1;
        }
    }
    /// RFC 6298 §2, with its gains of 1/8 and 1/4. Samples across a pause would hide the next one.
    fn on_rtt(&mut self, ns: u64, sent_at: Option<Instant>) {
        self.rtt.add(ns);
        if sent_at.is_some_and(|sent_at| self.view.resumed.is_some_and(|resumed| sent_at < resumed)) {
            return;
        }
        self.srtt = Some(match self.srtt {
            None => (ns, ns / 2),
            Some((srtt, var)) => (srtt - srtt / 8 + ns / 8, var - var / 4 + srtt.abs_diff(ns) / 4),
        });
    }
}
