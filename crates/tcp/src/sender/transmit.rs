//! Choice of the next segment: tail loss probe, then retransmission, then new data, as the congestion window,
//! pacing and the peer's window allow (RFC 9293 §3.8, RFC 5681).

use super::recovery::{Phase, SentSegment, TailProbe};
use super::state::{Segment, Sender};
use super::timers::{TimerKind, remaining_timeout};
use crate::cc::CongestionControl;
use crate::limits::Limit;
use crate::options::{LossRecovery, Nagle};
use crate::stats::Stats;
use paceline_net::{Bytes, Instant, Rate};

impl Sender {
    /// The next segment that may leave now, recorded as sent. `clock` is the timestamp that it will carry.
    pub fn poll_segment(&mut self, now: Instant, clock: u32, stats: &mut Stats) -> Option<Segment> {
        if self.only_acknowledges() {
            self.rates.on_app_limited(0);
            return None;
        }
        if self.tail_probe.take_due()
            && let Some(segment) = self.send_tail_probe(now, clock, stats)
        {
            return Some(segment);
        }
        let rate = self.pacing_rate(now);
        if rate.is_some() && self.pacer.waits(now) {
            self.record_usage_after_burst(now);
            self.record_wait(now, Limit::Pacing);
            return None;
        }
        let new = self.next_new(self.rules.nagle);
        if self.recovery.frto_sends_new() && new.is_none() && self.snd_nxt <= self.recovery.end() {
            self.recovery.stop_frto();
        }
        let lost = if self.recovery.frto_sends_new() { None } else { self.scoreboard.next_lost() };
        if let Some(lost) = lost {
            if !self.recovery.awaits_first_retransmission() && !self.fits_cwnd(lost.payload()) {
                self.record_usage(now, true);
                self.record_wait(now, Limit::CongestionWindow);
                return None;
            }
            let stamp = self.rates.on_send(self.scoreboard.in_flight(), lost.len());
            self.scoreboard.resend(now, stamp);
            self.on_resent(now, &lost, clock, stats);
            let segment = self.segment(lost.start, lost.payload(), lost.fin, false);
            return Some(self.on_sent(now, segment, rate, stats));
        }
        let Some((payload, fin)) = new else {
            self.on_nothing_to_send(now);
            self.record_wait(now, Limit::Application);
            return None;
        };
        if !self.fits_cwnd(payload) {
            self.record_usage(now, true);
            self.record_wait(now, Limit::CongestionWindow);
            return None;
        }
        Some(self.send_new(now, payload, fin, rate, stats))
    }
    /// Whether `payload` more bytes may be in flight.
    pub(super) fn fits_cwnd(&self, payload: u32) -> bool {
        // Without limited transmit, the first duplicate ACKs make no room (RFC 3042 §1).
        let arrived = if !self.rules.limited_transmit && self.recovery.phase() == Phase::Open {
            self.scoreboard.arrived_bytes()
        } else {
            0
        };
        let in_flight = self.scoreboard.in_flight() + arrived;
        in_flight == 0 || in_flight + u64::from(payload) <= self.cwnd()
    }
    fn send_new(
        &mut self,
        now: Instant,
        payload: u32,
        fin: bool,
        rate: Option<Rate>,
        stats: &mut Stats,
    ) -> Segment {
        let (start, len) = (self.snd_nxt, u64::from(payload) + u64::from(fin));
        let first = self.scoreboard.is_empty();
        if first {
            self.limits.on_progress(now);
            self.restart_after_idle(now);
            self.rates.on_transmit_start(now);
            self.control.on_transmit_start(now, self.rates.app_limited());
        }
        let stamp = self.rates.on_send(self.scoreboard.in_flight(), len);
        self.scoreboard.push(start, start + len, fin, now, stamp);
        self.snd_nxt += len;
        if payload < self.mss {
            self.small_segment_end = self.snd_nxt;
        }
        self.recovery.on_sent(len, None);
        self.persist.on_data_sent();
        self.start_timer_after_new(now, first);
        let segment = self.segment(start, payload, fin, true);
        self.on_sent(now, segment, rate, stats)
    }
    /// The tail loss probe: a new segment whatever the congestion window is, else the last one again
    /// (RFC 8985 §7.3).
    fn send_tail_probe(&mut self, now: Instant, clock: u32, stats: &mut Stats) -> Option<Segment> {
        stats.tail_loss_probes += 1;
        self.loss_timer.stop();
        let segment = if let Some((payload, fin)) = self.next_new(Nagle::Off) {
            let segment = self.send_new(now, payload, fin, None, stats);
            self.tail_probe.on_sent(self.snd_nxt, false);
            Some(segment)
        } else {
            let stamp = self.rates.on_send(self.scoreboard.in_flight(), 0);
            self.scoreboard.resend_last(now, stamp).map(|last| {
                self.tail_probe.on_sent(self.snd_nxt, true);
                self.on_resent(now, &last, clock, stats);
                let segment = self.segment(last.start, last.payload(), last.fin, false);
                self.on_sent(now, segment, None, stats)
            })
        };
        self.loss_timer.stop();
        self.restart_rto(now);
        segment
    }
    fn segment(&mut self, start: u64, payload: u32, fin: bool, new: bool) -> Segment {
        let push = start + u64::from(payload) >= self.writer.written();
        let cwr = new && payload > 0 && self.ecn.take_cwr();
        let ecn = if payload > 0 { self.ecn.codepoint(new) } else { self.ecn.codepoint(false) };
        Segment { seq: self.first_seq + start as u32, payload, fin, push: push || fin, ecn, cwr }
    }
    /// Bookkeeping after a segment that is on the scoreboard.
    #[inline]
    fn on_sent(&mut self, now: Instant, segment: Segment, rate: Option<Rate>, stats: &mut Stats) -> Segment {
        let len = u64::from(segment.payload) + u64::from(segment.fin);
        self.usage.on_sent();
        self.last_sent_at = Some(now);
        self.control.on_sent(now, Bytes(len), Bytes(self.scoreboard.in_flight()));
        match rate.filter(|_| self.control.pacing_rate().is_some()) {
            Some(own) => self.pacer.on_sent_at_own_rate(now, len, own),
            None => self.pacer.on_sent(now, len, rate, self.rtt.min_rtt()),
        }
        if segment.payload > 0 {
            stats.segments_sent += 1;
            stats.bytes_sent += u64::from(segment.payload);
        }
        segment
    }
    /// Bookkeeping after a retransmission.
    fn on_resent(&mut self, now: Instant, sent: &SentSegment, clock: u32, stats: &mut Stats) {
        self.recovery.on_sent(sent.len(), Some(clock));
        self.retries.on_resent(now);
        stats.retransmitted_segments += 1;
        let reordering = self.loss_timer.kind() == Some(TimerKind::Reordering);
        // A retransmission of the first segment starts a full timeout, except from the second hole on with
        // the impatient variant (RFC 6582 §4).
        let first = sent.start <= self.snd_una && !reordering && !self.keeps_timer_running();
        if !self.loss_timer.is_running() || first {
            self.loss_timer.set(TimerKind::Retransmission, now + self.rtt.rto());
        }
    }
    /// End of the bytes that the application has written and the send buffer holds.
    pub(super) fn buffered_end(&self) -> u64 {
        self.writer.written().min(self.snd_una.saturating_add(self.send_buffer))
    }
    /// Payload of the next new segment and whether it carries FIN, as the data and the peer's window allow.
    pub(super) fn next_new(&self, nagle: Nagle) -> Option<(u32, bool)> {
        if self.fin_sent() {
            return None;
        }
        let mss = u64::from(self.mss);
        let buffered = self.buffered_end();
        let len = buffered.saturating_sub(self.snd_nxt).min(mss);
        let last = self.snd_nxt + len == self.stream_end();
        if len == 0 {
            return (last && self.closes).then_some((0, true));
        }
        if len < mss && !(last && self.closes) && !self.scoreboard.is_empty() {
            let waits = match nagle {
                _ if buffered < self.writer.written() => true, // a full segment will follow
                Nagle::Off => false,
                Nagle::Rfc896 => true,
                Nagle::Minshall => self.small_segment_end > self.snd_una,
            };
            if waits {
                return None;
            }
        }
        let usable = self.window.end().saturating_sub(self.snd_nxt);
        if usable >= len {
            return Some((len as u32, last && self.closes));
        }
        // Silly window avoidance (RFC 9293 §3.8.6.2.1): a small segment only if it is half of the largest
        // window.
        let worth = usable > 0 && (2 * usable >= self.window.largest() || self.persist.is_probe_due());
        worth.then_some((usable as u32, false))
    }
}

/// Setting the loss timer.
impl Sender {
    pub(super) fn restart_rto(&mut self, now: Instant) {
        self.loss_timer.restart_rto(now, self.rtt.rto(), self.scoreboard.first_sent_at());
    }
    /// A new segment left; `first` if nothing was outstanding before.
    fn start_timer_after_new(&mut self, now: Instant, first: bool) {
        if first || matches!(self.loss_timer.kind(), None | Some(TimerKind::TailProbe)) {
            self.restart_rto(now);
        }
        self.schedule_probe(now, false);
    }
    /// An acknowledgment delivered data that the running timer covered.
    pub(super) fn restart_timer_after_ack(&mut self, now: Instant) {
        if self.scoreboard.is_empty() {
            self.loss_timer.stop();
        } else if !self.schedule_probe(now, true) {
            self.loss_timer.stop();
            self.restart_rto(now);
        }
    }
    /// Sets the timer for a tail loss probe, if one may be needed (RFC 8985 §7.2); returns whether it did.
    /// `restarts` if the retransmission timeout starts anew, too.
    fn schedule_probe(&mut self, now: Instant, restarts: bool) -> bool {
        let rules = &self.rules;
        let enabled = rules.tail_loss_probe && rules.recovery == LossRecovery::Rack && self.uses_sack;
        let open = matches!(self.recovery.phase(), Phase::Open | Phase::Cwr);
        if !enabled || !open || !self.scoreboard.is_orderly() || self.scoreboard.is_empty() {
            return false;
        }
        let rto = self.rtt.rto();
        let single = self.scoreboard.len() == 1;
        let wait = TailProbe::timeout(self.rtt.srtt(), single, rules.min_rto, self.rtt.initial());
        let until_rto = match self.scoreboard.first_sent_at() {
            Some(sent_at) if !restarts => remaining_timeout(rto, sent_at, now),
            _ => Some(rto),
        };
        let wait = until_rto.map_or(wait, |until| until.min(wait));
        self.loss_timer.set(TimerKind::TailProbe, now + wait);
        true
    }
}
