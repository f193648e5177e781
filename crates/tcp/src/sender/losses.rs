//! Losses and the phase of recovery: detection, the begin and end of a recovery, and the undoing of a
//! spurious reduction (RFC 5681 §3.2, RFC 6582, RFC 6675 §5, RFC 8985).

use super::recovery::{FrtoVerdict, Phase, Prr, RackContext, ScoreboardUpdate};
use super::state::{AckSummary, Sender};
use crate::cc::{CongestionControl, CongestionEvent};
use crate::options::{LossRecovery, PrrMode};
use crate::stats::Stats;
use paceline_net::{Bytes, Duration, Instant};

/// Duplicate ACKs that indicate a loss without SACK (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;

impl Sender {
    pub(super) fn rack_context(&self, now: Instant) -> RackContext {
        RackContext {
            now,
            min_rtt: self.rtt.min_rtt(),
            srtt: self.rtt.srtt(),
            recovering: matches!(self.recovery.phase(), Phase::Fast | Phase::Timeout),
        }
    }
    /// Detects losses and changes the phase. Returns the wait for segments that may only be reordered.
    #[inline]
    pub(super) fn update_recovery(
        &mut self,
        now: Instant,
        ack: &AckSummary,
        update: &mut ScoreboardUpdate,
        stats: &mut Stats,
    ) -> Option<Duration> {
        if self.undo_if_spurious(now, ack, update, stats) {
            return None;
        }
        let ended = self.end_phase(now, ack.advanced);
        let reordering_wait = self.detect_losses(now, ack.advanced, ended, update);
        self.rates.on_lost(update.lost);
        let begins = match self.recovery.phase() {
            // A loss above the end of the last recovery begins another one, even if it was sent again.
            Phase::Open | Phase::Cwr if self.uses_sack => self.scoreboard.lost_bytes() > 0,
            Phase::Open | Phase::Cwr => update.lost > 0,
            // A lost retransmission after a timeout, as in Linux.
            Phase::Timeout => {
                update.retransmission_lost && self.rules.recovery == LossRecovery::Rack && self.uses_sack
            }
            Phase::Fast => false,
        };
        if begins {
            self.enter_fast_recovery(now, stats);
        } else if ack.ece && self.recovery.phase() == Phase::Open {
            self.enter_cwr(now, stats);
        }
        reordering_wait
    }
    /// Undoes the last reduction if this acknowledgment proves it spurious; returns whether that ended a
    /// recovery.
    fn undo_if_spurious(
        &mut self,
        now: Instant,
        ack: &AckSummary,
        update: &ScoreboardUpdate,
        stats: &mut Stats,
    ) -> bool {
        let can_send_new = self.writer.written() > self.snd_nxt && self.window.end() > self.snd_nxt;
        let frto = self.recovery.frto_on_ack(
            ack.advanced,
            update.original && (self.uses_sack || !update.ambiguous),
            ack.duplicate,
            (self.snd_una, self.snd_nxt),
            can_send_new,
        );
        let by_frto = frto == FrtoVerdict::Spurious;
        let by_dsack =
            ack.dsack.is_some_and(|dsack| self.recovery.on_dsack(dsack.end, self.snd_una, dsack.segments));
        let by_echo = self.recovery.is_spurious_by_echo(ack.echo);
        if !by_frto && !(self.rules.undo && (by_dsack || by_echo)) {
            return false;
        }
        let phase = self.recovery.phase();
        self.recovery.clear_undo();
        self.ecn.on_undone();
        if by_dsack && phase == Phase::Open {
            self.control.on_congestion(now, CongestionEvent::Undo, Bytes(self.scoreboard.in_flight()));
            stats.undone_reductions += 1;
            return false;
        }
        self.scoreboard.unmark_lost();
        self.control.on_congestion(now, CongestionEvent::Undo, Bytes(self.scoreboard.in_flight()));
        self.recovery.leave(false);
        if by_frto {
            self.rtt.end_backoff();
            stats.spurious_timeouts += 1;
        }
        self.retries.on_undone();
        stats.undone_reductions += 1;
        true
    }
    /// Ends the phase if everything sent before it is acknowledged; returns the phase that ended.
    fn end_phase(&mut self, now: Instant, advanced: bool) -> Option<Phase> {
        let phase = self.recovery.phase();
        let una = match phase {
            Phase::Cwr => self.snd_una.saturating_sub(1), // CWR was on a segment above the end
            _ => self.snd_una,
        };
        // Without partial ACKs, fast recovery ends when new data is acknowledged (RFC 5681 §3.2 step 6).
        let reno = phase == Phase::Fast && self.rules.recovery == LossRecovery::Reno && advanced;
        let ended = match self.recovery.try_end(una, self.scoreboard.has_resent()) {
            None if reno => {
                self.recovery.leave(self.scoreboard.has_resent());
                Some(Phase::Fast)
            }
            ended => ended,
        };
        if ended == Some(Phase::Fast) {
            self.scoreboard.on_recovery_end();
            self.control.on_congestion(now, CongestionEvent::RecoveryEnd, Bytes(self.scoreboard.in_flight()));
        }
        ended
    }
    fn detect_losses(
        &mut self,
        now: Instant,
        advanced: bool,
        ended: Option<Phase>,
        update: &mut ScoreboardUpdate,
    ) -> Option<Duration> {
        if self.uses_sack && self.rules.recovery == LossRecovery::Rack {
            if !self.scoreboard.take_rack_advanced() {
                return None;
            }
            return self.scoreboard.detect_by_time(&self.rack_context(now), update);
        }
        if self.uses_sack {
            self.scoreboard.detect_by_count(self.mss, update);
            return None;
        }
        // Duplicate ACKs may be caused by unnecessary retransmissions (RFC 6582 §3.2 step 2): Tahoe sends
        // everything again, and would take the duplicate ACKs that follow for new losses (Floyd 1995,
        // successive fast retransmits).
        let reno = self.rules.recovery == LossRecovery::Reno;
        let (una, end) = (self.snd_una, self.recovery.end());
        let above_end = una > end || (una == end && !self.rules.newreno_careful);
        let indicates_loss = self.dup_acks >= DUP_THRESH && (reno || end == 0 || above_end);
        match self.recovery.phase() {
            Phase::Open | Phase::Cwr if indicates_loss && ended.is_none() => {
                self.scoreboard.mark_first_lost(update);
            }
            // A partial ACK: the next hole begins at its end (RFC 6582 §3.2 step 3).
            Phase::Fast if advanced => self.scoreboard.mark_first_lost(update),
            _ => {}
        }
        None
    }
    /// Begins a fast recovery, or with Tahoe a slow start from one segment.
    pub(super) fn enter_fast_recovery(&mut self, now: Instant, stats: &mut Stats) {
        stats.fast_recoveries += 1;
        if self.control.restarts_on_loss() || self.rules.recovery == LossRecovery::Tahoe {
            let event = match self.control.restarts_on_loss() {
                true => CongestionEvent::FastRecovery,
                false => CongestionEvent::Timeout,
            };
            self.mark_all_lost(None);
            self.control.on_congestion(now, event, Bytes(self.scoreboard.in_flight()));
            self.recovery.enter_timeout(self.snd_una, self.snd_nxt, false);
            return;
        }
        let in_network = self.scoreboard.resent_segments(self.mss);
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
        // After an ECN echo, the control has reduced its window already.
        if self.recovery.phase() != Phase::Cwr {
            self.control.on_congestion(now, event, Bytes(self.scoreboard.in_flight()));
        }
        let recover_fs = match self.rules.prr {
            PrrMode::Rfc9937 | PrrMode::Off => prior_cwnd,
            PrrMode::Rfc6937Crb | PrrMode::Rfc6937Ssrb => self.scoreboard.outstanding(),
        };
        self.ecn.on_reduced();
        self.tail_probe.cancel();
        Prr::new(self.rules.prr, recover_fs, self.control.ssthresh().0)
    }
}
