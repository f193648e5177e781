//! The sending half of a connection: the send window and what to send next (RFC 9293 §3.8, RFC 5681). What an
//! acknowledgment does is in `sender_acks`, what the timers do in `sender_timers`.
//!
//! Inside, bytes are counted from the first byte of data in 64 bits; FIN counts one. Windows count bytes, not
//! segments as in Linux: small segments take less of them.

use crate::app::Writer;
use crate::cc::{CongestionControl, Controller};
use crate::config::{EndpointConfig, Source, Stats};
use crate::ecn::EcnState;
use crate::limits::{Account, Limit};
use crate::options::{LossRecovery, Nagle, NewRenoTimer, PrrMode};
use crate::pacing::{Flow, Pacer};
use crate::rate::RateSampler;
use crate::recovery::{Phase, Recovery};
use crate::rtt::{RttEstimator, since_echo, timestamp};
use crate::scoreboard::Scoreboard;
use crate::sender_timers::Timer;
use crate::tlp::TailProbe;
use paceline_net::{Bytes, Duration, Instant, Rate, SackBlocks, SeqNumber};

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub seq: SeqNumber,
    pub payload: u32,
    pub fin: bool,
    /// Last one of the data at hand.
    pub push: bool,
    /// The ECN codepoint of its IP header.
    pub ecn: u8,
    pub cwr: bool,
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
    /// ECN-Echo.
    pub ece: bool,
}

/// How much of the window the sender used (RFC 7661 and RFC 2861 as Linux does them).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Usage {
    pub limited: bool,
    pub most_outstanding: u64,
    until: u64,
    /// Most bytes outstanding since the window was last filled, and when it was.
    used: u64,
    filled_at: Instant,
}

/// The rules of [`EndpointConfig`] that the sender goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub recovery: LossRecovery,
    pub newreno_timer: NewRenoTimer,
    pub newreno_careful: bool,
    pub prr: PrrMode,
    pub tail_loss_probe: bool,
    pub frto: bool,
    pub undo: bool,
    pub limited_transmit: bool,
    pub idle_restart: bool,
    pub nagle: Nagle,
    pub retries: u32,
    pub min_rto: Duration,
    pub initial_window: u32,
}

/// The sending half.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) rules: Rules,
    pub(crate) first_seq: SeqNumber,
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    /// First byte that the peer does not accept, the largest window seen, and the segment that told last.
    pub(crate) edge: u64,
    pub(crate) largest_window: u64,
    pub(crate) window_seq: SeqNumber,
    pub(crate) window: u64,
    pub(crate) app: Writer,
    close: bool,
    send_buffer: u64,
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) control: Controller,
    pub(crate) ecn: EcnState,
    pub(crate) rtt: RttEstimator,
    pub(crate) rates: RateSampler,
    /// Duplicate ACKs since the last one that advanced.
    pub(crate) dup_acks: u32,
    pub(crate) tail: TailProbe,
    pub(crate) pacer: Pacer,
    pub(crate) usage: Usage,
    sent_since_check: bool,
    /// End of the last small segment sent (Minshall).
    small_end: u64,
    last_sent_at: Option<Instant>,
    /// Retransmission, tail loss probe or reordering: one timer, as in Linux.
    pub(crate) timer: Option<(Timer, Instant)>,
    pub(crate) persist_at: Option<Instant>,
    pub(crate) persist_backoff: u32,
    pub(crate) probes_unanswered: u32,
    /// A zero-window probe, or a segment below the usual size, is due.
    pub(crate) probe: bool,
    /// Timeouts without progress, and the time of the first retransmission.
    pub(crate) timeouts_in_row: u32,
    pub(crate) stalled_at: Option<Instant>,
    pub(crate) failed: bool,
    /// What it waits for.
    pub(crate) limits: Account,
}

impl Sender {
    pub fn new(config: &EndpointConfig, source: Source, mss: u32, sack: bool) -> Self {
        let rules = Rules {
            recovery: config.loss_recovery,
            newreno_timer: config.newreno_timer,
            newreno_careful: config.newreno_careful,
            prr: config.prr,
            tail_loss_probe: config.tail_loss_probe,
            frto: config.frto,
            undo: config.undo,
            limited_transmit: config.limited_transmit,
            idle_restart: config.idle_restart,
            nagle: config.nagle,
            retries: config.retries,
            min_rto: config.min_rto,
            initial_window: config.initial_window,
        };
        let sack = sack && config.loss_recovery.uses_sack();
        Self {
            rules,
            first_seq: config.isn + 1,
            mss,
            sack,
            snd_una: 0,
            snd_nxt: 0,
            edge: 0,
            largest_window: 0,
            window_seq: SeqNumber(0),
            window: 0,
            app: Writer::new(source, config.request),
            close: source.closes_first(),
            send_buffer: config.send_buffer.0.max(u64::from(mss)),
            board: Scoreboard::default(),
            recovery: Recovery::new(),
            control: Controller::new(config, mss, sack),
            ecn: EcnState::default(),
            rtt: RttEstimator::new(config),
            rates: RateSampler::default(),
            dup_acks: 0,
            tail: TailProbe::default(),
            pacer: Pacer::new(config.pacing),
            usage: Usage::default(),
            sent_since_check: false,
            small_end: 0,
            last_sent_at: None,
            timer: None,
            persist_at: None,
            persist_backoff: 0,
            probes_unanswered: 0,
            probe: false,
            timeouts_in_row: 0,
            stalled_at: None,
            failed: false,
            limits: Account::default(),
        }
    }
    /// The window of the peer's SYN or of the ACK that ended the handshake.
    pub fn set_window(&mut self, seq: SeqNumber, window: u64) {
        self.window_seq = seq;
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        self.edge = self.snd_una + window;
    }
    /// The handshake is done; it took `rtt` if the SYN was not repeated, and else the echo may tell.
    pub fn on_established(&mut self, now: Instant, rtt: Option<Duration>, echo: Option<u32>) {
        match (rtt, echo.and_then(|echo| since_echo(echo, timestamp(now)))) {
            (Some(rtt), _) => self.rtt.on_sample(rtt, 0, 0),
            (None, Some(rtt)) => self.rtt.on_coarse_sample(rtt, 0, 0),
            (None, None) => self.rtt.on_lost_syn(),
        }
        self.app.start(now);
        self.control.on_established(now, rtt);
    }
    /// Closes after the last byte; on a source without end it does nothing.
    pub fn close(&mut self) {
        self.close = true;
    }
    /// End of the data; `u64::MAX` for a source without end.
    pub fn end(&self) -> u64 {
        self.app.total()
    }
    pub fn seq_next(&self) -> SeqNumber {
        self.first_seq + self.snd_nxt as u32
    }
    pub fn seq_una(&self) -> SeqNumber {
        self.first_seq + self.snd_una as u32
    }
    pub fn fin_sent(&self) -> bool {
        self.end() != u64::MAX && self.snd_nxt > self.end()
    }
    pub fn fin_acked(&self) -> bool {
        self.end() != u64::MAX && self.snd_una > self.end()
    }
    /// Whether every byte of a finite source was acknowledged.
    pub fn complete(&self) -> bool {
        self.snd_una >= self.end()
    }
    /// Whether nothing is outstanding and nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.board.is_empty() && self.snd_nxt >= self.app.written()
    }
    /// Whether the peer did not answer for so long that the connection is over.
    pub fn failed(&self) -> bool {
        self.failed
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
    fn flow(&self) -> Flow {
        Flow {
            cwnd: self.control.cwnd().0,
            ssthresh: self.control.ssthresh().0,
            outstanding: self.board.outstanding(),
            srtt: self.rtt.srtt(),
        }
    }
    /// When [`Self::on_timer`] has something to do, or a paced segment may leave.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let until = self.pacer.until();
        let paced = (until > now && self.wants_to_send()).then_some(until);
        let timer = self.timer.map(|(_, at)| at);
        Instant::earliest([timer, self.persist_at, self.app.deadline(), paced])
    }
    fn wants_to_send(&self) -> bool {
        self.board.in_flight() < self.cwnd() && (self.snd_nxt < self.app.written() || !self.board.is_empty())
    }

    /// Whether this side has no data and has sent none: it only acknowledges.
    pub(crate) fn is_silent(&self) -> bool {
        self.snd_nxt == 0 && self.end() == 0 && !self.close && !self.probe
    }

    /// The next segment that may leave now, recorded as sent. `clock` is the timestamp it will carry.
    pub fn poll_segment(&mut self, now: Instant, clock: u32, stats: &mut Stats) -> Option<Segment> {
        if self.is_silent() {
            self.rates.on_app_limited(0);
            return None;
        }
        if self.tail.take_due()
            && let Some(segment) = self.send_tail_probe(now, clock, stats)
        {
            return Some(segment);
        }
        let rate = self.pacer.rate(self.control.pacing_rate(), || self.flow());
        if rate.is_some() && now < self.pacer.until() {
            if self.sent_since_check {
                self.check_usage(now, self.board.in_flight() >= self.cwnd());
            }
            self.wait(now, Limit::Pacing);
            return None;
        }
        let new = self.next_new(self.rules.nagle);
        if self.recovery.frto_holds_back() && new.is_none() && self.snd_nxt <= self.recovery.end() {
            self.recovery.frto_give_up();
        }
        let lost = if self.recovery.frto_holds_back() { None } else { self.board.next_lost() };
        if let Some(lost) = lost {
            if !self.recovery.owes_first() && !self.fits(lost.payload()) {
                self.check_usage(now, true);
                self.wait(now, Limit::CongestionWindow);
                return None;
            }
            let stamp = self.rates.on_send(self.board.in_flight(), lost.len());
            self.board.resend(now, stamp);
            self.on_resent(now, &lost, clock, stats);
            let segment = self.segment(lost.start, lost.payload(), lost.fin, false);
            return Some(self.sent(now, segment, rate, stats));
        }
        let Some((payload, fin)) = new else {
            self.on_idle(now);
            self.wait(now, Limit::Application);
            return None;
        };
        if !self.fits(payload) {
            self.check_usage(now, true);
            self.wait(now, Limit::CongestionWindow);
            return None;
        }
        Some(self.send_new(now, payload, fin, rate, stats))
    }
    /// Whether so much more may be in flight.
    pub(crate) fn fits(&self, payload: u32) -> bool {
        // Without limited transmit, the first duplicate ACKs make no room (RFC 3042 §1).
        let arrived = if !self.rules.limited_transmit && self.recovery.phase() == Phase::Open {
            self.board.arrived_bytes()
        } else {
            0
        };
        let in_flight = self.board.in_flight() + arrived;
        in_flight == 0 || in_flight + u64::from(payload) <= self.cwnd()
    }
    pub(crate) fn send_new(
        &mut self,
        now: Instant,
        payload: u32,
        fin: bool,
        rate: Option<Rate>,
        stats: &mut Stats,
    ) -> Segment {
        let (start, len) = (self.snd_nxt, u64::from(payload) + u64::from(fin));
        let first = self.board.is_empty();
        if first {
            self.limits.on_progress(now);
            self.restart_after_idle(now);
            self.rates.on_transmit_start(now);
            self.control.on_transmit_start(now, self.rates.app_limited());
        }
        let stamp = self.rates.on_send(self.board.in_flight(), len);
        self.board.push(start, start + len, fin, now, stamp);
        self.snd_nxt += len;
        if payload < self.mss {
            self.small_end = self.snd_nxt;
        }
        self.recovery.on_sent(len, None);
        self.persist_at = None;
        self.probe = false;
        self.arm_after_new(now, first);
        let segment = self.segment(start, payload, fin, true);
        self.sent(now, segment, rate, stats)
    }
    pub(crate) fn segment(&mut self, start: u64, payload: u32, fin: bool, new: bool) -> Segment {
        let push = start + u64::from(payload) >= self.app.written();
        let cwr = new && payload > 0 && self.ecn.take_cwr();
        let ecn = if payload > 0 { self.ecn.codepoint(new) } else { self.ecn.codepoint(false) };
        Segment { seq: self.first_seq + start as u32, payload, fin, push: push || fin, ecn, cwr }
    }
    /// Completes the sending of a segment that is on the scoreboard.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        segment: Segment,
        rate: Option<Rate>,
        stats: &mut Stats,
    ) -> Segment {
        let len = u64::from(segment.payload) + u64::from(segment.fin);
        self.sent_since_check = true;
        self.last_sent_at = Some(now);
        self.control.on_sent(now, Bytes(len), Bytes(self.board.in_flight()));
        self.pacer.on_sent(now, len, rate);
        if segment.payload > 0 {
            stats.segments_sent += 1;
            stats.bytes_sent += u64::from(segment.payload);
        }
        segment
    }
    /// End of what the application has written and the send buffer holds.
    pub(crate) fn buffered(&self) -> u64 {
        self.app.written().min(self.snd_una.saturating_add(self.send_buffer))
    }
    /// Size of the next new segment and whether it carries FIN, as the data and the peer's window allow.
    pub(crate) fn next_new(&self, nagle: Nagle) -> Option<(u32, bool)> {
        if self.fin_sent() {
            return None;
        }
        let mss = u64::from(self.mss);
        let buffered = self.buffered();
        let len = buffered.saturating_sub(self.snd_nxt).min(mss);
        let last = self.snd_nxt + len == self.end();
        if len == 0 {
            return (last && self.close).then_some((0, true));
        }
        if len < mss && !(last && self.close) && !self.board.is_empty() {
            let waits = match nagle {
                _ if buffered < self.app.written() => true, // the send buffer will have room for a full segment
                Nagle::Off => false,
                Nagle::Rfc896 => true,
                Nagle::Minshall => self.small_end > self.snd_una,
            };
            if waits {
                return None;
            }
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
    fn on_idle(&mut self, now: Instant) {
        let (in_flight, cwnd) = (self.board.in_flight(), self.cwnd());
        if self.sent_since_check {
            self.check_usage(now, in_flight >= cwnd);
        }
        let wanted = self.app.written().saturating_sub(self.snd_nxt).min(u64::from(self.mss));
        if wanted > 0 && self.edge < self.snd_nxt + wanted && self.board.is_empty() {
            self.persist_at.get_or_insert(self.rtt.deadline(now));
        } else if in_flight < cwnd && self.snd_nxt >= self.app.written() {
            self.rates.on_app_limited(in_flight);
        }
    }
    /// Takes note of how much of the window is in use, after a burst.
    fn check_usage(&mut self, now: Instant, limited: bool) {
        self.sent_since_check = false;
        let outstanding = self.board.outstanding();
        let more = !self.usage.limited && outstanding > self.usage.most_outstanding;
        if self.snd_una >= self.usage.until || limited || more {
            self.usage = Usage { limited, most_outstanding: outstanding, until: self.snd_nxt, ..self.usage };
        }
        if self.cwnd_limited() {
            (self.usage.used, self.usage.filled_at) = (0, now);
            return;
        }
        self.usage.used = self.usage.used.max(outstanding);
        let starving = self.app.written().saturating_sub(self.snd_una) < self.send_buffer;
        let long = now.since(self.usage.filled_at) >= self.rtt.rto();
        if self.rules.idle_restart && starving && long && self.recovery.phase() == Phase::Open {
            self.shrink_unused(now);
        }
    }
    /// Half way down to what was used within a timeout (RFC 2861 §3.1).
    fn shrink_unused(&mut self, now: Instant) {
        let initial = u64::from(self.rules.initial_window) * u64::from(self.mss);
        let (used, cwnd) = (self.usage.used.max(initial), self.control.cwnd().0);
        if used < cwnd && !self.control.owns_recovery_window() {
            self.control.on_idle(now, Bytes((cwnd + used) / 2));
        }
        (self.usage.used, self.usage.filled_at) = (0, now);
    }
    /// After a pause longer than the timeout, the window halves for each timeout, down to the initial one
    /// (RFC 5681 §4.1, RFC 2861).
    fn restart_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_sent_at.filter(|_| self.rules.idle_restart) else { return };
        let (rto, mut idle) = (self.rtt.rto(), now.since(last));
        if idle <= rto || rto.is_zero() || self.control.owns_recovery_window() {
            return;
        }
        let mut cwnd = self.control.cwnd().0;
        let restart = (u64::from(self.rules.initial_window) * u64::from(self.mss)).min(cwnd);
        while idle > rto && cwnd > restart {
            idle = idle - rto;
            cwnd /= 2;
        }
        self.control.on_idle(now, Bytes(cwnd.max(restart)));
        (self.usage.used, self.usage.filled_at) = (0, now);
    }
    pub(crate) fn cwnd_limited(&self) -> bool {
        let (cwnd, ssthresh) = (self.control.cwnd().0, self.control.ssthresh().0);
        self.usage.limited || (cwnd < ssthresh && cwnd < 2 * self.usage.most_outstanding)
    }
    /// Whether a zero-window probe should leave; it is then taken as sent.
    pub fn poll_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
