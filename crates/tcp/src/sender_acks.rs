//! What an acknowledgment does to the sending half: scoreboard, round-trip time, losses, the phases of recovery, and
//! the report to the congestion control (RFC 5681, RFC 6582, RFC 6675, RFC 8985).

use crate::cc::{AckSample, CongestionControl, CongestionEvent};
use crate::config::Stats;
use crate::options::{LossRecovery, NewRenoTimer, PrrMode};
use crate::prr::Prr;
use crate::rack::Judge;
use crate::recovery::{FrtoVerdict, Phase};
use crate::rtt::since_echo;
use crate::scoreboard::{Context, Delivered};
use crate::sender::{AckInfo, Sender};
use crate::tlp::{ProbeAck, ProbeVerdict};
use paceline_net::{Bytes, Duration, Instant, SeqNumber};

/// A duplicate that the peer reports (RFC 2883).
#[derive(Clone, Copy, Debug)]
struct Dsack {
    end: u64,
    segments: u32,
}

/// What the phases of recovery need to know of an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct News {
    advanced: bool,
    /// RFC 5681 §2, or it sacked something.
    duplicate: bool,
    dsack: Option<Dsack>,
    echo: Option<u32>,
    ece: bool,
}

impl Sender {
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
        let dsack = self.dsack(info, acked_to);
        let mut blocks = [(0, 0); 4];
        for (slot, (left, right)) in blocks.iter_mut().zip(info.sack.as_slice()) {
            let (left, right) = (offset(*left).max(acked_to), offset(*right));
            if self.sack && left < right && right <= self.snd_nxt as i64 {
                *slot = (left as u64, right as u64);
            }
        }
        let same_window = info.window == self.window;
        self.update_window(una, info);
        if self.is_silent() && !info.ece {
            self.probes_unanswered = 0; // nothing can have arrived or be lost
            return true;
        }
        let advanced = una > self.snd_una;
        let prior_in_flight = self.board.in_flight();
        let context = Context {
            now,
            min_rtt: self.rtt.min_rtt(),
            echo: info.echo,
            recovery_end: self.recovery.end(),
            highest: self.board.highest_sacked(self.snd_una),
        };
        let mut out = Delivered::default();
        for block in blocks.into_iter().filter(|block| block.0 < block.1) {
            self.board.sack(block, &context, &mut self.rates, &mut out);
        }
        if advanced {
            self.board.acknowledge(una, &context, &mut self.rates, &mut out);
            let end = self.app.total();
            stats.bytes_acked += una.min(end) - self.snd_una.min(end);
            self.snd_una = una;
            (self.timeouts_in_row, self.stalled_at, self.dup_acks) = (0, None, 0);
            self.persist_backoff = 0;
        }
        self.probes_unanswered = 0;
        let mut duplicate = out.sacked > 0;
        if !advanced && !info.has_data && !self.board.is_empty() && (same_window || !info.sack.is_empty()) {
            stats.duplicate_acks_received += 1;
            duplicate = true;
            self.dup_acks += 1;
            if !self.sack {
                self.board.on_duplicate_ack(self.mss, &mut out);
            }
        }
        if self.sack {
            self.board.note_reordering(&context, self.mss, &out);
        }
        let head_sent_at = self.board.first_sent_at();
        let sack_rtt = out.rtt(now);
        if let Some(rtt) = sack_rtt {
            stats.rtt_samples += 1;
            stats.rtt_ns += rtt.as_nanos();
        }
        if out.bytes > 0 {
            self.limits.on_progress(now);
        }
        self.update_rtt(now, &out, advanced.then_some(info.echo).flatten(), clock);
        let news = News {
            advanced,
            duplicate,
            dsack,
            echo: info.echo.filter(|_| advanced),
            ece: self.ecn.believes(info.ece),
        };
        self.on_probe_ack(now, &news, &out, same_window && !info.has_data);
        let waiting = self.recover(now, &news, &mut out, stats);
        // A SACK of something sent after the first segment lets the timer start anew as well.
        let newer =
            out.sacked > 0 && sack_rtt.zip(head_sent_at).is_some_and(|(rtt, head)| now.since(head) > rtt);
        let hold = self.impatient(advanced);
        if let Some(wait) = waiting {
            self.arm_reordering(now, wait);
        } else if (advanced && !hold) || (newer && !advanced) {
            self.arm_after_ack(now);
        }
        self.report(now, &news, &out, prior_in_flight);
        if advanced && self.complete() {
            self.limits.end(now);
        }
        true
    }
    /// Whether this partial ACK leaves the timer alone (RFC 6582 §4).
    fn impatient(&mut self, advanced: bool) -> bool {
        let leaves = advanced && self.leaves_timer();
        self.recovery.partial_seen |= advanced && self.recovery.phase() == Phase::Fast;
        leaves
    }
    /// Whether a partial ACK has restarted the timer already and no other may.
    pub(crate) fn leaves_timer(&self) -> bool {
        let counts = self.rules.newreno_timer == NewRenoTimer::Impatient && !self.sack;
        counts && self.recovery.phase() == Phase::Fast && self.recovery.partial_seen
    }
    /// The first block, if it lies below the ACK or inside the second.
    fn dsack(&self, info: &AckInfo<'_>, acked_to: i64) -> Option<Dsack> {
        let offset = |seq: SeqNumber| self.snd_una as i64 + i64::from(seq.distance(self.seq_una()));
        let blocks = info.sack.as_slice();
        let (left, right) = blocks.first().map(|(left, right)| (offset(*left), offset(*right)))?;
        let inside = |(l, r): &(SeqNumber, SeqNumber)| offset(*l) <= left && right <= offset(*r);
        let is_one = self.sack && left < right && (left < acked_to || blocks.get(1).is_some_and(inside));
        let len = (right - left) as u64;
        if !is_one || right < 0 || len > self.largest_window.max(u64::from(self.mss)) {
            return None;
        }
        Some(Dsack { end: right as u64, segments: len.div_ceil(u64::from(self.mss)) as u32 })
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
            if let Some(rtt) = since_echo(echo, clock) {
                self.rtt.on_coarse_sample(rtt, self.snd_una, self.snd_nxt);
            }
        }
    }
    fn on_probe_ack(&mut self, now: Instant, news: &News, out: &Delivered, plain: bool) {
        if let Some(dsack) = news.dsack {
            let probe = dsack.segments == 1 && self.tail.resent_end() == Some(dsack.end);
            if !probe {
                self.board.rack.on_dsack();
            }
        }
        if !self.tail.is_out() {
            return;
        }
        let dsack = news.dsack.is_some_and(|dsack| self.tail.resent_end() == Some(dsack.end));
        let eventful = news.advanced || out.sacked > 0 || !plain;
        let verdict = self.tail.on_ack(&ProbeAck { una: self.snd_una, dsack, eventful });
        if verdict == ProbeVerdict::Repaired && self.recovery.phase() == Phase::Open {
            let in_flight = Bytes(self.board.in_flight());
            self.control.on_congestion(now, CongestionEvent::FastRecovery, in_flight);
            self.control.on_congestion(now, CongestionEvent::RecoveryEnd, in_flight);
            self.ecn.on_reduced();
        }
    }
}

/// Recovery.
impl Sender {
    pub(crate) fn judge(&self, now: Instant) -> Judge {
        Judge {
            now,
            min_rtt: self.rtt.min_rtt(),
            srtt: self.rtt.srtt(),
            recovering: matches!(self.recovery.phase(), Phase::Fast | Phase::Timeout),
        }
    }
    /// Finds losses and changes phase; returns how long to wait for what may only be reordered.
    fn recover(
        &mut self,
        now: Instant,
        news: &News,
        out: &mut Delivered,
        stats: &mut Stats,
    ) -> Option<Duration> {
        if self.undo_if_spurious(now, news, out, stats) {
            return None;
        }
        let ended = self.end_phase(now, news.advanced);
        let waiting = self.detect_losses(now, news.advanced, ended, out);
        self.rates.on_lost(out.lost);
        let begins = match self.recovery.phase() {
            // What was lost during the last recovery, behind its end, begins another, even if it was sent again.
            Phase::Open | Phase::Cwr => {
                if self.sack {
                    self.board.lost_bytes() > 0
                } else {
                    out.lost > 0
                }
            }
            // A lost retransmission after a timeout, as in Linux.
            Phase::Timeout => {
                out.retransmission_lost && self.rules.recovery == LossRecovery::Rack && self.sack
            }
            Phase::Fast => false,
        };
        if begins {
            self.enter_fast(now, stats);
        } else if news.ece && self.recovery.phase() == Phase::Open {
            self.enter_cwr(now, stats);
        }
        waiting
    }
    /// Takes the last reduction back if this acknowledgment proves that it was needless.
    fn undo_if_spurious(&mut self, now: Instant, news: &News, out: &Delivered, stats: &mut Stats) -> bool {
        let can_send_new = self.app.written() > self.snd_nxt && self.edge > self.snd_nxt;
        let frto = self.recovery.frto_on_ack(
            news.advanced,
            out.original && (self.sack || !out.ambiguous),
            news.duplicate,
            (self.snd_una, self.snd_nxt),
            can_send_new,
        );
        let by_frto = frto == FrtoVerdict::Spurious;
        let by_dsack =
            news.dsack.is_some_and(|dsack| self.recovery.on_dsack(dsack.end, self.snd_una, dsack.segments));
        let proven = by_frto || (self.rules.undo && (by_dsack || self.recovery.proves_spurious(news.echo)));
        if !proven {
            return false;
        }
        let was = self.recovery.phase();
        self.recovery.forget_undo();
        if by_dsack && was == Phase::Open {
            self.control.on_congestion(now, CongestionEvent::Undo, Bytes(self.board.in_flight()));
            stats.undone_reductions += 1;
            return false;
        }
        self.board.unmark_lost();
        self.control.on_congestion(now, CongestionEvent::Undo, Bytes(self.board.in_flight()));
        self.recovery.leave(false);
        if by_frto {
            self.rtt.end_backoff();
            stats.spurious_timeouts += 1;
        }
        self.timeouts_in_row = 0;
        stats.undone_reductions += 1;
        true
    }
    /// Ends the phase if everything sent before it was acknowledged; tells the one that ended.
    fn end_phase(&mut self, now: Instant, advanced: bool) -> Option<Phase> {
        let phase = self.recovery.phase();
        let at = match phase {
            Phase::Cwr => self.snd_una.saturating_sub(1), // CWR has reached the receiver with what is above the end
            _ => self.snd_una,
        };
        // Without partial ACKs, fast recovery ends when anything new is acknowledged.
        let reno = phase == Phase::Fast && self.rules.recovery == LossRecovery::Reno && advanced;
        let ended = match self.recovery.try_end(at, self.board.has_resent()) {
            None if reno => {
                self.recovery.leave(self.board.has_resent());
                Some(Phase::Fast)
            }
            ended => ended,
        };
        if ended == Some(Phase::Fast) {
            self.board.rack.on_recovery_end();
            self.board.forget_duplicates();
            self.control.on_congestion(now, CongestionEvent::RecoveryEnd, Bytes(self.board.in_flight()));
        }
        ended
    }
    fn detect_losses(
        &mut self,
        now: Instant,
        advanced: bool,
        ended: Option<Phase>,
        out: &mut Delivered,
    ) -> Option<Duration> {
        if self.sack && self.rules.recovery == LossRecovery::Rack {
            if !self.board.rack.take_advanced() {
                return None;
            }
            return self.board.detect_by_time(&self.judge(now), out);
        }
        if self.sack {
            self.board.detect_by_count(self.mss, out);
            return None;
        }
        let three = self.dup_acks >= 3;
        // The duplicates may be of what was sent again needlessly (RFC 6582 §3.2 step 2): Tahoe sends everything
        // again, and would take the duplicates that follow for new losses (Floyd 1995, successive fast retransmits).
        let reno = self.rules.recovery == LossRecovery::Reno;
        let end = self.recovery.end();
        let believed =
            reno || end == 0 || self.snd_una > end || (self.snd_una == end && !self.rules.newreno_careful);
        match self.recovery.phase() {
            Phase::Open | Phase::Cwr if three && believed && ended.is_none() => {
                self.board.mark_first_lost(out)
            }
            // A partial ACK: the next hole begins where it ends (RFC 6582 §3.2 step 3).
            Phase::Fast if advanced => self.board.mark_first_lost(out),
            _ => {}
        }
        None
    }
    /// Begins a fast recovery, or what takes its place.
    pub(crate) fn enter_fast(&mut self, now: Instant, stats: &mut Stats) {
        stats.fast_recoveries += 1;
        if self.control.restarts_on_loss() || self.rules.recovery == LossRecovery::Tahoe {
            let event = match self.control.restarts_on_loss() {
                true => CongestionEvent::FastRecovery,
                false => CongestionEvent::Timeout,
            };
            self.mark_all_lost(None);
            self.control.on_congestion(now, event, Bytes(self.board.in_flight()));
            self.recovery.enter_timeout(self.snd_una, self.snd_nxt, false);
            return;
        }
        let in_network = self.board.resent_segments(self.mss);
        let prr = self.reduce(now, CongestionEvent::FastRecovery);
        self.recovery.enter_fast(self.snd_una, self.snd_nxt, prr, in_network);
    }
    fn enter_cwr(&mut self, now: Instant, stats: &mut Stats) {
        stats.ecn_reductions += 1;
        let prr = self.reduce(now, CongestionEvent::Ecn);
        self.recovery.enter_cwr(self.snd_nxt, prr);
    }
    fn reduce(&mut self, now: Instant, event: CongestionEvent) -> Prr {
        let prior_cwnd = self.control.cwnd().0;
        // During a reduction for an echo of congestion, the control has reduced already.
        if self.recovery.phase() != Phase::Cwr {
            self.control.on_congestion(now, event, Bytes(self.board.in_flight()));
        }
        let prior = match self.rules.prr {
            PrrMode::Rfc9937 | PrrMode::Off => prior_cwnd,
            PrrMode::Rfc6937Crb | PrrMode::Rfc6937Ssrb => self.board.outstanding(),
        };
        self.ecn.on_reduced();
        self.tail.forget();
        Prr::new(self.rules.prr, prior, self.control.ssthresh().0)
    }
    fn report(&mut self, now: Instant, news: &News, out: &Delivered, prior_in_flight: u64) {
        let in_flight = self.board.in_flight();
        self.recovery.on_ack(out.bytes, in_flight, self.mss, news.advanced && out.lost == 0);
        let min_rtt = self.rtt.min_rtt();
        let rate = self.rates.take(now, min_rtt);
        if out.bytes > 0 {
            self.board.rack.update_window(rate.prior_delivered.0, self.rates.delivered());
        }
        let sample = AckSample {
            acked: Bytes(out.bytes),
            lost: Bytes(out.lost),
            advanced: news.advanced,
            rtt: out.newest_rtt(now),
            srtt: self.rtt.srtt(),
            min_rtt,
            prior_in_flight: Bytes(prior_in_flight),
            in_flight: Bytes(in_flight),
            cwnd_limited: self.cwnd_limited(),
            in_recovery: matches!(self.recovery.phase(), Phase::Fast | Phase::Cwr),
            in_loss: self.recovery.phase() == Phase::Timeout,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            delivered: Bytes(self.rates.delivered()),
            lost_total: Bytes(self.rates.lost()),
            ce_bytes: if news.ece { Bytes(out.bytes) } else { Bytes::ZERO },
            rate,
            loss: out.newest_lost.map(|stamp| self.rates.loss_sample(stamp)),
        };
        self.control.on_ack(now, &sample);
        if self.control.limits_itself() {
            self.rates.on_app_limited(in_flight);
        }
    }
}
