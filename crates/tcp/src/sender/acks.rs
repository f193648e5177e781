//! Processing of an acknowledgment: window, scoreboard, round-trip time, losses, timers, and the report to
//! the congestion control (RFC 5681, RFC 6582, RFC 6675, RFC 8985).

use super::recovery::{AckContext, Phase, ProbeAck, ProbeVerdict, ScoreboardUpdate};
use super::state::{AckInfo, AckSummary, Dsack, Sender};
use crate::cc::{AckSample, CongestionControl, CongestionEvent};
use crate::options::NewRenoTimer;
use crate::stats::Stats;
use crate::timestamps::since_echo;
use paceline_net::{Bytes, Instant, SeqNumber};

impl Sender {
    /// Processes an acknowledgment; false if it acknowledges data that was never sent, or is older than any
    /// in the network can be (RFC 5961 §5.2). `clock` is the timestamp of now.
    pub fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>, clock: u32, stats: &mut Stats) -> bool {
        let acked_to = self.offset(info.ack);
        if acked_to > self.snd_nxt as i64 {
            return false;
        }
        if acked_to < self.snd_una as i64 {
            return self.on_old_ack(now, info, acked_to, stats);
        }
        let una = acked_to as u64;
        let dsack = self.dsack(info, acked_to);
        let blocks = self.sack_blocks(info, acked_to);
        let same_window = info.window == self.window.size();
        self.update_window(una, info);
        if self.only_acknowledges() && !info.ece {
            self.persist.on_ack(false); // no data can have arrived or be lost
            return true;
        }
        let advanced = una > self.snd_una;
        let prior_in_flight = self.scoreboard.in_flight();
        let context = self.ack_context(now, info.echo);
        let mut update = ScoreboardUpdate::default();
        for block in blocks.into_iter().filter(|block| block.0 < block.1) {
            self.scoreboard.sack(block, &context, &mut self.rates, &mut update);
        }
        if advanced {
            self.advance(una, &context, &mut update, stats);
        }
        self.persist.on_ack(advanced);
        let mut duplicate = update.sacked > 0;
        let is_candidate = !advanced && !info.has_data && !self.scoreboard.is_empty();
        if is_candidate && (same_window || !info.sack.is_empty()) {
            stats.duplicate_acks_received += 1;
            duplicate = true;
            self.dup_acks += 1;
            if !self.uses_sack {
                self.scoreboard.on_duplicate_ack(self.mss, &mut update);
            }
        }
        if self.uses_sack {
            self.scoreboard.record_reordering(&context, self.mss, &update);
        }
        let head_sent_at = self.scoreboard.first_sent_at();
        let rtt = update.rtt(now);
        if let Some(rtt) = rtt {
            stats.rtt_samples += 1;
            stats.rtt_ns += rtt.as_nanos();
        }
        if update.bytes > 0 {
            self.limits.on_progress(now);
        }
        let echo = info.echo.filter(|_| advanced);
        self.update_rtt(now, &update, echo, clock);
        let ack = AckSummary { advanced, duplicate, dsack, echo, ece: self.ecn.accepts_echo(info.ece) };
        self.update_tail_probe(now, &ack, &update, same_window && !info.has_data);
        let reordering_wait = self.update_recovery(now, &ack, &mut update, stats);
        // A SACK of a segment that was sent before the last transmission of the first outstanding one
        // restarts the timer (Linux `tcp_clean_rtx_queue`). One of a later segment does not: the timer would
        // never expire while SACKs arrive.
        let sacked_before_head =
            update.sacked > 0 && rtt.zip(head_sent_at).is_some_and(|(rtt, head)| rtt > now.since(head));
        let keeps_timer = advanced && self.keeps_timer_running();
        self.recovery.partial_ack_seen |= advanced && self.recovery.phase() == Phase::Fast;
        if let Some(wait) = reordering_wait {
            self.start_reordering_timer(now, wait);
        } else if (advanced && !keeps_timer) || (sacked_before_head && !advanced) {
            self.restart_timer_after_ack(now);
        }
        self.report(now, &ack, &update, prior_in_flight);
        if advanced && self.is_complete() {
            self.limits.end(now);
        }
        true
    }
    /// Processes an acknowledgment below SND.UNA, which newer ones have overtaken: it may report arrivals
    /// that they do not (Linux `tcp_ack`, `old_ack`). False if it is older than the largest window.
    #[cold]
    fn on_old_ack(&mut self, now: Instant, info: &AckInfo<'_>, acked_to: i64, stats: &mut Stats) -> bool {
        // The SYN counts one; before it nothing was sent that the peer could have acknowledged.
        let acknowledged = self.snd_una + 1;
        if acked_to < self.snd_una as i64 - self.window.largest().min(acknowledged) as i64 {
            return false;
        }
        if !self.uses_sack || info.sack.is_empty() || self.only_acknowledges() {
            return true;
        }
        let context = self.ack_context(now, info.echo);
        let mut update = ScoreboardUpdate::default();
        for block in self.sack_blocks(info, self.snd_una as i64).into_iter().filter(|block| block.0 < block.1)
        {
            self.scoreboard.sack(block, &context, &mut self.rates, &mut update);
        }
        self.scoreboard.record_reordering(&context, self.mss, &update);
        if update.bytes > 0 {
            self.limits.on_progress(now);
        }
        let dsack = self.dsack(info, acked_to);
        self.record_dsack(dsack);
        let ack = AckSummary { advanced: false, duplicate: update.sacked > 0, dsack, echo: None, ece: false };
        if let Some(wait) = self.update_recovery(now, &ack, &mut update, stats) {
            self.start_reordering_timer(now, wait);
        }
        true
    }
    fn ack_context(&self, now: Instant, echo: Option<u32>) -> AckContext {
        AckContext {
            now,
            min_rtt: self.rtt.min_rtt(),
            echo,
            recovery_end: self.recovery.end(),
            highest: self.scoreboard.highest_sacked(self.snd_una),
        }
    }
    /// The offset of a sequence number, near SND.UNA; negative for one before the first byte.
    fn offset(&self, seq: SeqNumber) -> i64 {
        self.snd_una as i64 + i64::from(seq.distance(self.seq_una()))
    }
    /// The SACK blocks that lie between `from` and SND.NXT; `(0, 0)` in place of others.
    fn sack_blocks(&self, info: &AckInfo<'_>, from: i64) -> [(u64, u64); 4] {
        let mut blocks = [(0, 0); 4];
        for (slot, (left, right)) in blocks.iter_mut().zip(info.sack.as_slice()) {
            let (left, right) = (self.offset(*left).max(from), self.offset(*right));
            if self.uses_sack && left < right && right <= self.snd_nxt as i64 {
                *slot = (left as u64, right as u64);
            }
        }
        blocks
    }
    /// The DSACK of an acknowledgment: its first block, if that lies below the ACK or inside the second block
    /// (RFC 2883 §4).
    #[inline]
    fn dsack(&self, info: &AckInfo<'_>, acked_to: i64) -> Option<Dsack> {
        let blocks = info.sack.as_slice();
        let (left, right) = blocks.first().map(|(left, right)| (self.offset(*left), self.offset(*right)))?;
        let inside = |(l, r): &(SeqNumber, SeqNumber)| self.offset(*l) <= left && right <= self.offset(*r);
        let is_one = self.uses_sack && left < right && (left < acked_to || blocks.get(1).is_some_and(inside));
        let len = (right - left) as u64;
        if !is_one || right < 0 || len > self.window.largest().max(u64::from(self.mss)) {
            return None;
        }
        Some(Dsack { end: right as u64, segments: len.div_ceil(u64::from(self.mss)) as u32 })
    }
    /// Moves SND.UNA forward.
    fn advance(&mut self, una: u64, context: &AckContext, update: &mut ScoreboardUpdate, stats: &mut Stats) {
        self.scoreboard.acknowledge(una, context, &mut self.rates, update);
        let end = self.stream_end();
        stats.bytes_acked += una.min(end) - self.snd_una.min(end);
        self.snd_una = una;
        self.dup_acks = 0;
        self.retries.on_progress();
    }
    /// Updates SND.WND (RFC 9293 §3.10.7.4).
    fn update_window(&mut self, una: u64, info: &AckInfo<'_>) {
        let taken = self.window.update(info.seq, una, info.window, una > self.snd_una);
        if taken && self.window.end() > self.snd_nxt {
            self.persist.stop();
        }
    }
    fn update_rtt(&mut self, now: Instant, update: &ScoreboardUpdate, echo: Option<u32>, clock: u32) {
        if let Some(rtt) = update.rtt(now) {
            self.rtt.on_sample(rtt, self.snd_una, self.snd_nxt);
        } else if let Some(rtt) = echo.and_then(|echo| since_echo(echo, clock)) {
            // A segment sent twice was acknowledged: the echo shows which transmission arrived (RFC 7323
            // §4.1).
            self.rtt.on_coarse_sample(rtt, self.snd_una, self.snd_nxt);
        }
    }
    /// Whether a partial ACK leaves the retransmission timer running, because an earlier one has restarted it
    /// (RFC 6582 §4, impatient variant).
    pub(super) fn keeps_timer_running(&self) -> bool {
        let impatient = self.rules.newreno_timer == NewRenoTimer::Impatient && !self.uses_sack;
        impatient && self.recovery.phase() == Phase::Fast && self.recovery.partial_ack_seen
    }
    /// Concludes from an acknowledgment about a tail loss probe (RFC 8985 §7.4). `plain` if the segment
    /// carries no data and the same window.
    fn update_tail_probe(&mut self, now: Instant, ack: &AckSummary, update: &ScoreboardUpdate, plain: bool) {
        let probe_end = self.tail_probe.retransmission_end();
        self.record_dsack(ack.dsack);
        if !self.tail_probe.is_outstanding() {
            return;
        }
        let dsack = ack.dsack.is_some_and(|dsack| probe_end == Some(dsack.end));
        let eventful = ack.advanced || update.sacked > 0 || !plain;
        let verdict = self.tail_probe.on_ack(&ProbeAck { una: self.snd_una, dsack, eventful });
        if verdict == ProbeVerdict::Repaired && self.recovery.phase() == Phase::Open {
            let in_flight = Bytes(self.scoreboard.in_flight());
            self.control.on_congestion(now, CongestionEvent::FastRecovery, in_flight);
            self.control.on_congestion(now, CongestionEvent::RecoveryEnd, in_flight);
            self.ecn.on_reduced();
        }
    }
    /// Widens the reordering window for a duplicate that is not a tail loss probe's (RFC 8985 §6.2 step 4).
    fn record_dsack(&mut self, dsack: Option<Dsack>) {
        let probe_end = self.tail_probe.retransmission_end();
        if dsack.is_some_and(|dsack| dsack.segments != 1 || probe_end != Some(dsack.end)) {
            self.scoreboard.on_dsack();
        }
    }
    /// Reports the acknowledgment to PRR and to the congestion control.
    fn report(&mut self, now: Instant, ack: &AckSummary, update: &ScoreboardUpdate, prior_in_flight: u64) {
        let in_flight = self.scoreboard.in_flight();
        self.recovery.on_ack(update.bytes, in_flight, self.mss, ack.advanced && update.lost == 0);
        let min_rtt = self.rtt.min_rtt();
        let rate = self.rates.take(now, min_rtt);
        if update.bytes > 0 {
            self.scoreboard.update_reordering_window(rate.prior_delivered.0, self.rates.delivered());
        }
        let rtt = update.newest_rtt(now);
        let clean = self.pacer.on_ack(now, rtt, update.lost > 0);
        // A control with a rate of its own models the path from round-trip times as they are.
        let shown = if self.control.pacing_rate().is_some() { rtt } else { clean };
        let sample = AckSample {
            acked: Bytes(update.bytes),
            acked_again: Bytes(update.again),
            lost: Bytes(update.lost),
            advanced: ack.advanced,
            rtt: shown,
            srtt: self.rtt.srtt(),
            min_rtt,
            prior_in_flight: Bytes(prior_in_flight),
            in_flight: Bytes(in_flight),
            cwnd_limited: self.is_cwnd_limited(),
            in_recovery: matches!(self.recovery.phase(), Phase::Fast | Phase::Cwr),
            in_loss: self.recovery.phase() == Phase::Timeout,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            delivered: Bytes(self.rates.delivered()),
            lost_total: Bytes(self.rates.lost()),
            ce_bytes: if ack.ece { Bytes(update.bytes) } else { Bytes::ZERO },
            rate,
            loss: update.newest_lost.map(|stamp| self.rates.loss_sample(stamp)),
        };
        self.control.on_ack(now, &sample);
        if self.control.limits_itself() {
            self.rates.on_app_limited(in_flight);
        }
    }
}
