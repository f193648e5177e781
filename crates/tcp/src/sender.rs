//! The sending half of a connection: the send window, what to send next, and what an acknowledgment does
//! (RFC 9293 §3.8, RFC 5681, RFC 6675, RFC 6298).
//!
//! Inside, bytes are counted from the first byte of data in 64 bits; FIN counts one. Left out: Nagle's rule (a
//! source here never writes small pieces) and the restart of the window after an idle period.

use crate::cc::{AckSample, CongestionControl, CongestionEvent, Controller};
use crate::config::{EndpointConfig, Source, Stats};
use crate::rate::RateSampler;
use crate::recovery::{Phase, Recovery};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Delivered, Scoreboard};
use paceline_net::{Bytes, Duration, Instant, SackBlocks, SeqNumber};

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub seq: SeqNumber,
    pub payload: u32,
    pub fin: bool,
    /// Last one of the data at hand.
    pub push: bool,
}

/// What an acknowledgment says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    /// Bytes, scaled.
    pub window: u64,
    pub sack: &'a SackBlocks,
    /// TSecr.
    pub echo: Option<u32>,
    /// The segment carried payload or FIN: it is no duplicate ACK.
    pub has_data: bool,
}

/// How much of the window the sender used (the validation of RFC 7661 as Linux does it).
#[derive(Clone, Copy, Default, Debug)]
struct Usage {
    limited: bool,
    most_outstanding: u64,
    until: u64,
}

/// The sending half.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    first_seq: SeqNumber,
    mss: u32,
    sack: bool,
    snd_una: u64,
    snd_nxt: u64,
    /// First byte that the peer does not accept, the largest window seen, and the segment that told last.
    edge: u64,
    largest_window: u64,
    window_seq: SeqNumber,
    window: u64,
    /// End of the data; `u64::MAX` for a source without end.
    end: u64,
    close: bool,
    send_buffer: u64,
    board: Scoreboard,
    recovery: Recovery,
    control: Controller,
    rtt: RttEstimator,
    rates: RateSampler,
    usage: Usage,
    sent_since_check: bool,
    rto_at: Option<Instant>,
    persist_at: Option<Instant>,
    persist_backoff: u32,
    /// A zero-window probe, or a segment below the usual size, is due.
    probe: bool,
    paced_until: Instant,
}

impl Sender {
    pub fn new(config: &EndpointConfig, source: Source, mss: u32, sack: bool) -> Self {
        let (end, close) = match source {
            Source::Nothing => (0, false),
            Source::Bulk => (u64::MAX, false),
            Source::File(size) => (size.0, true),
        };
        Self {
            first_seq: config.isn + 1,
            mss,
            sack,
            snd_una: 0,
            snd_nxt: 0,
            edge: 0,
            largest_window: 0,
            window_seq: SeqNumber(0),
            window: 0,
            end,
            close,
            send_buffer: config.send_buffer.0.max(u64::from(mss)),
            board: Scoreboard::default(),
            recovery: Recovery::new(),
            control: Controller::new(config, mss, sack),
            rtt: RttEstimator::new(config.min_rto),
            rates: RateSampler::default(),
            usage: Usage::default(),
            sent_since_check: false,
            rto_at: None,
            persist_at: None,
            persist_backoff: 0,
            probe: false,
            paced_until: Instant::ZERO,
        }
    }
    /// The window of the peer's SYN or of the ACK that ended the handshake.
    pub fn set_window(&mut self, seq: SeqNumber, window: u64) {
        self.window_seq = seq;
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        self.edge = self.snd_una + window;
    }
    /// The handshake is done; it took `rtt` if it was not repeated.
    pub fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt, 0, 0);
        }
        self.control.on_established(now, rtt);
    }
    /// Closes after the last byte; on a source without end it does nothing.
    pub fn close(&mut self) {
        self.close = true;
    }
    pub fn seq_next(&self) -> SeqNumber {
        self.first_seq + self.snd_nxt as u32
    }
    pub fn seq_una(&self) -> SeqNumber {
        self.first_seq + self.snd_una as u32
    }
    pub fn fin_sent(&self) -> bool {
        self.end != u64::MAX && self.snd_nxt > self.end
    }
    pub fn fin_acked(&self) -> bool {
        self.end != u64::MAX && self.snd_una > self.end
    }
    /// Whether every byte of a finite source was acknowledged.
    pub fn complete(&self) -> bool {
        self.snd_una >= self.end
    }
    pub fn cwnd(&self) -> u64 {
        match self.recovery.window() {
            Some(window) if !self.control.owns_recovery_window() => window,
            _ => self.control.cwnd().0,
        }
    }
    pub fn control(&self) -> &Controller {
        &self.control
    }
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }
    /// When [`Self::on_timer`] has something to do, or a paced segment may leave.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let paced = (self.paced_until > now && self.wants_to_send()).then_some(self.paced_until);
        [self.rto_at, self.persist_at, paced].into_iter().flatten().min()
    }
    fn wants_to_send(&self) -> bool {
        self.board.in_flight() < self.cwnd() && (self.snd_nxt < self.end || !self.board.is_empty())
    }

    /// The next segment that may leave now, recorded as sent. `clock` is the timestamp it will carry.
    pub fn poll_segment(&mut self, now: Instant, clock: u32, stats: &mut Stats) -> Option<Segment> {
        let pacing = self.control.pacing_rate();
        if pacing.is_some() && now < self.paced_until {
            if self.sent_since_check {
                self.check_usage(self.board.in_flight() >= self.cwnd());
            }
            return None;
        }
        let (in_flight, cwnd) = (self.board.in_flight(), self.cwnd());
        let fits = |payload: u32| in_flight == 0 || in_flight + u64::from(payload) <= cwnd;
        let (segment, len) = if let Some(lost) = self.board.next_lost() {
            if !fits(lost.payload()) {
                self.check_usage(true);
                return None;
            }
            self.board.resend(now, self.rates.on_send(in_flight, lost.len()));
            stats.retransmitted_segments += 1;
            if lost.start <= self.snd_una {
                self.rto_at = None; // the first segment's retransmission is given a full timeout
            }
            self.recovery.on_sent(lost.len(), Some(clock));
            let seq = self.first_seq + lost.start as u32;
            (Segment { seq, payload: lost.payload(), fin: lost.fin, push: lost.fin }, lost.len())
        } else {
            let Some((payload, fin)) = self.next_new() else {
                self.on_idle(now, in_flight, cwnd);
                return None;
            };
            if !fits(payload) {
                self.check_usage(true);
                return None;
            }
            let (start, len) = (self.snd_nxt, u64::from(payload) + u64::from(fin));
            if self.board.is_empty() {
                self.rates.on_transmit_start(now);
                self.control.on_transmit_start(now, self.rates.app_limited());
            }
            let stamp = self.rates.on_send(in_flight, len);
            self.board.push(start, start + len, fin, now, stamp);
            self.snd_nxt += len;
            self.recovery.on_sent(len, None);
            self.persist_at = None;
            self.probe = false;
            let push = self.snd_nxt >= self.end;
            (Segment { seq: self.first_seq + start as u32, payload, fin, push }, len)
        };
        self.sent_since_check = true;
        self.control.on_sent(now, Bytes(len), Bytes(self.board.in_flight()));
        if let Some(rate) = pacing {
            self.paced_until = self.paced_until.max(now) + rate.time_to_send(Bytes(len));
        }
        self.rto_at.get_or_insert(self.rtt.deadline(now));
        if segment.payload > 0 {
            stats.segments_sent += 1;
            stats.bytes_sent += u64::from(segment.payload);
        }
        Some(segment)
    }
    /// Size of the next new segment and whether it carries FIN, as the data and the peer's window allow.
    fn next_new(&self) -> Option<(u32, bool)> {
        if self.snd_nxt > self.end {
            return None;
        }
        let buffered = self.end.min(self.snd_una.saturating_add(self.send_buffer));
        let len = buffered.saturating_sub(self.snd_nxt).min(u64::from(self.mss));
        let last = self.snd_nxt + len == self.end;
        if len == 0 {
            return (last && self.close).then_some((0, true));
        }
        if len < u64::from(self.mss) && !last && !self.board.is_empty() {
            return None; // the send buffer will have room for a full segment
        }
        let usable = self.edge.saturating_sub(self.snd_nxt);
        if usable >= len {
            return Some((len as u32, last && self.close));
        }
        // Silly window avoidance (RFC 9293 §3.8.6.2.1): a small segment only if it is half of what the peer has.
        let worth = usable > 0 && (2 * usable >= self.largest_window || self.probe);
        worth.then_some((usable as u32, false))
    }
    /// Nothing may leave though the congestion window would allow it.
    fn on_idle(&mut self, now: Instant, in_flight: u64, cwnd: u64) {
        if self.sent_since_check {
            self.check_usage(in_flight >= cwnd);
        }
        let window_closed = self.snd_nxt < self.end && self.edge < self.snd_nxt + u64::from(self.mss);
        if window_closed && self.board.is_empty() {
            self.persist_at.get_or_insert(self.rtt.deadline(now));
        } else if in_flight < cwnd && self.snd_nxt >= self.end {
            self.rates.on_app_limited(in_flight);
        }
    }
    /// Takes note of how much of the window is in use, after a burst.
    fn check_usage(&mut self, limited: bool) {
        self.sent_since_check = false;
        let outstanding = self.board.outstanding();
        let more = !self.usage.limited && outstanding > self.usage.most_outstanding;
        if self.snd_una >= self.usage.until || limited || more {
            self.usage = Usage { limited, most_outstanding: outstanding, until: self.snd_nxt };
        }
    }
    fn cwnd_limited(&self) -> bool {
        let (cwnd, ssthresh) = (self.control.cwnd().0, self.control.ssthresh().0);
        self.usage.limited || (cwnd < ssthresh && cwnd < 2 * self.usage.most_outstanding)
    }
    /// Whether a zero-window probe should leave; it is then taken as sent.
    pub fn poll_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }

    /// Processes an acknowledgment; false if it acknowledges what was never sent.
    pub fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>, clock: u32, stats: &mut Stats) -> bool {
        let offset = |seq: SeqNumber| self.snd_una as i64 + i64::from(seq.distance(self.seq_una()));
        let acked_to = offset(info.ack);
        if acked_to > self.snd_nxt as i64 {
            return false;
        }
        if acked_to < self.snd_una as i64 {
            return true; // older than what is known
        }
        let una = acked_to as u64;
        let mut blocks = [(0, 0); 4];
        for (slot, (left, right)) in blocks.iter_mut().zip(info.sack.as_slice()) {
            let (left, right) = (offset(*left).max(acked_to), offset(*right));
            if self.sack && left < right && right <= self.snd_nxt as i64 {
                *slot = (left as u64, right as u64);
            }
        }
        let same_window = info.window == self.window;
        self.update_window(una, info);
        let advanced = una > self.snd_una;
        let prior_in_flight = self.board.in_flight();
        let mut out = Delivered::default();
        for block in blocks.into_iter().filter(|block| block.0 < block.1) {
            self.board.sack(block, now, &mut self.rates, &mut out);
        }
        if advanced {
            self.board.acknowledge(una, now, &mut self.rates, &mut out);
            stats.bytes_acked += una.min(self.end) - self.snd_una.min(self.end);
            self.snd_una = una;
            self.persist_backoff = 0;
        } else if !info.has_data && !self.board.is_empty() && (same_window || !info.sack.is_empty()) {
            stats.duplicate_acks_received += 1;
            if !self.sack {
                self.board.on_duplicate_ack(self.mss, &mut out);
            }
        }
        self.update_rtt(now, &out, advanced.then_some(info.echo).flatten(), clock);
        self.detect_losses(advanced, &mut out);
        self.change_phase(now, info.echo.filter(|_| advanced), &out, stats);
        self.report(now, &out, prior_in_flight, advanced);
        if advanced {
            self.rto_at = (!self.board.is_empty()).then(|| self.rtt.deadline(now));
        }
        true
    }
    fn update_window(&mut self, una: u64, info: &AckInfo<'_>) {
        let newer = info.seq > self.window_seq || una > self.snd_una;
        if newer || (info.seq == self.window_seq && (info.window > self.window || info.window == 0)) {
            self.window_seq = info.seq;
            self.window = info.window;
            self.largest_window = self.largest_window.max(info.window);
            self.edge = una + info.window;
            if self.edge > self.snd_nxt {
                self.persist_at = None;
            }
        }
    }
    fn update_rtt(&mut self, now: Instant, out: &Delivered, echo: Option<u32>, clock: u32) {
        if let Some(rtt) = out.rtt(now) {
            self.rtt.on_sample(rtt, self.snd_una, self.snd_nxt);
        } else if let Some(echo) = echo {
            // A retransmission is among what was acknowledged: the timestamp tells which of the two arrived.
            let ms = clock.wrapping_sub(echo);
            if ms < u32::MAX / 2 {
                let rtt = Duration::from_millis(u64::from(ms.max(1)));
                self.rtt.on_coarse_sample(rtt, self.snd_una, self.snd_nxt);
            }
        }
    }
    fn detect_losses(&mut self, advanced: bool, out: &mut Delivered) {
        if self.sack {
            self.board.detect_losses(self.mss, self.rtt.min_rtt(), out);
            return;
        }
        let three = self.board.duplicate_bytes() >= 3 * u64::from(self.mss);
        match self.recovery.phase() {
            Phase::Open if three => self.board.mark_first_lost(out),
            // A partial ACK: the next hole begins where it ends (RFC 6582 §3.2).
            Phase::Fast if advanced && !self.recovery.would_end(self.snd_una) => {
                self.board.mark_first_lost(out);
            }
            _ => {}
        }
    }
    fn change_phase(&mut self, now: Instant, echo: Option<u32>, out: &Delivered, stats: &mut Stats) {
        let in_flight = Bytes(self.board.in_flight());
        if self.recovery.proves_spurious(echo) {
            self.board.unmark_lost();
            self.control.on_congestion(now, CongestionEvent::Undo, in_flight);
            self.recovery.leave(false);
            stats.undone_reductions += 1;
            return;
        }
        if self.recovery.try_end(self.snd_una, self.board.has_resent()) == Some(Phase::Fast) {
            self.control.on_congestion(now, CongestionEvent::RecoveryEnd, in_flight);
        }
        self.rates.on_lost(out.lost);
        if self.recovery.phase() != Phase::Open || out.lost == 0 {
            return;
        }
        stats.fast_recoveries += 1;
        if self.control.restarts_on_loss() {
            self.mark_all_lost();
            self.control.on_congestion(now, CongestionEvent::FastRecovery, Bytes(self.board.in_flight()));
            self.recovery.enter_timeout(self.snd_nxt);
        } else {
            let prior_cwnd = self.control.cwnd().0;
            self.control.on_congestion(now, CongestionEvent::FastRecovery, in_flight);
            self.recovery.enter_fast(self.snd_nxt, prior_cwnd, self.control.ssthresh().0);
        }
    }
    fn mark_all_lost(&mut self) {
        let mut out = Delivered::default();
        self.board.mark_all_lost(&mut out);
        self.rates.on_lost(out.lost);
    }
    fn report(&mut self, now: Instant, out: &Delivered, prior_in_flight: u64, advanced: bool) {
        let in_flight = self.board.in_flight();
        self.recovery.on_ack(out.bytes, in_flight, self.mss, advanced && out.lost == 0);
        let min_rtt = self.rtt.min_rtt();
        let sample = AckSample {
            acked: Bytes(out.bytes),
            lost: Bytes(out.lost),
            advanced,
            rtt: out.newest_rtt(now),
            srtt: self.rtt.srtt(),
            min_rtt,
            prior_in_flight: Bytes(prior_in_flight),
            in_flight: Bytes(in_flight),
            cwnd_limited: self.cwnd_limited(),
            in_recovery: self.recovery.phase() == Phase::Fast,
            in_loss: self.recovery.phase() == Phase::Timeout,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            delivered: Bytes(self.rates.delivered()),
            lost_total: Bytes(self.rates.lost()),
            ce_bytes: Bytes::ZERO,
            rate: self.rates.take(now, min_rtt),
            loss: out.newest_lost.map(|stamp| self.rates.loss_sample(stamp)),
        };
        self.control.on_ack(now, &sample);
        if self.control.limits_itself() {
            self.rates.on_app_limited(in_flight);
        }
    }

    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant, stats: &mut Stats) {
        if self.persist_at.is_some_and(|at| at <= now) {
            self.probe = true;
            self.persist_backoff = (self.persist_backoff + 1).min(16);
            let wait = (self.rtt.rto() * (1 << self.persist_backoff)).min(crate::rtt::MAX_RTO);
            self.persist_at = Some(now + wait);
            stats.window_probes_sent += 1;
        }
        if self.rto_at.is_none_or(|at| at > now) {
            return;
        }
        self.rto_at = None;
        if self.board.is_empty() {
            return;
        }
        let reduced = self.recovery.reduced_already(self.snd_una, self.rtt.backed_off());
        let event = if reduced { CongestionEvent::RepeatedTimeout } else { CongestionEvent::Timeout };
        self.mark_all_lost();
        self.control.on_congestion(now, event, Bytes(self.board.in_flight()));
        self.recovery.enter_timeout(self.snd_nxt);
        self.rtt.on_timeout();
        self.rto_at = Some(self.rtt.deadline(now));
        self.paced_until = self.paced_until.min(now);
        stats.timeouts += 1;
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
