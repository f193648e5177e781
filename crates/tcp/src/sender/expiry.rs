//! The reaction to timers that expire: retransmission (RFC 6298 §5.4-§5.6), tail loss probe, reordering,
//! zero-window probe.

use super::recovery::{Phase, ScoreboardUpdate};
use super::state::Sender;
use super::timers::{TIMEOUT_MIN, TimerKind, give_up_after};
use crate::cc::{CongestionControl, CongestionEvent};
use crate::options::LossRecovery;
use crate::stats::Stats;
use paceline_net::{Bytes, Duration, Instant};

impl Sender {
    /// Handles every timer that has expired.
    pub fn on_timer(&mut self, now: Instant, stats: &mut Stats) {
        self.writer.on_timer(now);
        if self.persist.deadline().is_some_and(|at| at <= now) {
            self.on_persist_timer(now, stats);
        }
        let Some(kind) = self.loss_timer.expired(now) else { return };
        if self.scoreboard.is_empty() {
            self.loss_timer.stop();
            return;
        }
        match kind {
            TimerKind::Retransmission => self.on_retransmission_timer(now, stats),
            TimerKind::Reordering => self.on_reordering_timer(now, stats),
            TimerKind::TailProbe if self.tail_probe.is_outstanding() => self.restart_rto(now),
            TimerKind::TailProbe => {
                self.tail_probe.set_due();
                self.restart_rto(now); // until the probe leaves
            }
        }
        debug_assert!(self.loss_timer.deadline().is_none_or(|at| at > now), "a timer is set for the future");
    }
    fn on_persist_timer(&mut self, now: Instant, stats: &mut Stats) {
        if self.persist.on_expiry(now, self.rtt.rto(), self.rules.retries) {
            stats.window_probes_sent += 1;
        } else {
            self.retries.give_up();
        }
    }
    /// Waits `wait` for segments that may only be reordered.
    pub(super) fn start_reordering_timer(&mut self, now: Instant, wait: Duration) {
        self.loss_timer.set(TimerKind::Reordering, now + wait + TIMEOUT_MIN);
    }
    fn on_reordering_timer(&mut self, now: Instant, stats: &mut Stats) {
        let mut update = ScoreboardUpdate::default();
        let wait = self.scoreboard.detect_by_time(&self.rack_context(now), &mut update);
        self.rates.on_lost(update.lost);
        if update.lost > 0 && !matches!(self.recovery.phase(), Phase::Fast) {
            self.enter_fast_recovery(now, stats);
            // As if one segment had been delivered: the first retransmission takes its place.
            self.recovery.on_ack(u64::from(self.mss), self.scoreboard.in_flight(), self.mss, false);
        }
        match wait {
            Some(wait) => self.start_reordering_timer(now, wait),
            None => self.restart_rto(now),
        }
    }
    fn on_retransmission_timer(&mut self, now: Instant, stats: &mut Stats) {
        let limit = give_up_after(self.rules.retries, self.rules.min_rto);
        if self.retries.check(now, limit) {
            self.loss_timer.stop();
            return;
        }
        self.limits.on_timeout(now);
        let phase = self.recovery.phase();
        let first = matches!(phase, Phase::Open | Phase::Cwr);
        let reduced = self.recovery.is_already_reduced(self.snd_una, self.rtt.is_backed_off());
        let event = if reduced { CongestionEvent::RepeatedTimeout } else { CongestionEvent::Timeout };
        if first {
            self.scoreboard.on_timeout();
        }
        self.mark_all_lost(Some(now));
        self.control.on_congestion(now, event, Bytes(self.scoreboard.in_flight()));
        let frto = self.rules.frto && (first || self.retries.timeouts() > 0);
        self.recovery.enter_timeout(self.snd_una, self.snd_nxt, frto);
        self.tail_probe.cancel();
        self.ecn.on_reduced();
        self.rtt.on_timeout();
        self.retries.on_timeout();
        self.loss_timer.set(TimerKind::Retransmission, now + self.rtt.rto());
        self.pacer.release(now);
        stats.timeouts += 1;
    }
    /// Marks everything outstanding as lost. With RACK, a timeout at `timeout_at` excepts segments sent
    /// within the last round-trip time (RFC 8985 §6.3).
    pub(super) fn mark_all_lost(&mut self, timeout_at: Option<Instant>) {
        let mut update = ScoreboardUpdate::default();
        let by_time = self.uses_sack && self.rules.recovery == LossRecovery::Rack;
        self.scoreboard.mark_all_lost(timeout_at.filter(|_| by_time), &mut update);
        self.rates.on_lost(update.lost);
    }
}
