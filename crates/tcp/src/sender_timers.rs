//! The timers of the sending half: one for retransmission (RFC 6298 §5), tail loss probe and reordering, as in Linux,
//! of which the one that is due first is set; one for zero-window probes (RFC 9293 §3.8.6.1).

use crate::cc::{CongestionControl, CongestionEvent};
use crate::config::Stats;
use crate::options::{LossRecovery, Nagle};
use crate::recovery::Phase;
use crate::rtt::MAX_RTO;
use crate::scoreboard::{Delivered, Sent};
use crate::sender::{Segment, Sender};
use crate::tlp::{GRACE, TailProbe, left};
use paceline_net::{Bytes, Duration, Instant};

/// What the timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    Retransmit,
    TailProbe,
    Reordering,
}

/// The time that `retries` timeouts take which double from `first` up to the largest (`tcp_model_timeout`).
pub(crate) fn give_up_after(retries: u32, first: Duration) -> Duration {
    (0..=retries).fold(Duration::ZERO, |sum, doubled| sum + (first * (1 << doubled.min(16))).min(MAX_RTO))
}

/// Setting the timer.
impl Sender {
    fn set(&mut self, timer: Timer, now: Instant, wait: Duration) {
        self.timer = Some((timer, now + wait));
    }
    /// Starts the retransmission timer; after one of the other two, what has passed since the first segment was sent
    /// counts.
    fn rearm_rto(&mut self, now: Instant) {
        let Some(sent_at) = self.board.first_sent_at() else {
            self.timer = None;
            return;
        };
        let rto = self.rtt.rto();
        let wait = match self.timer {
            Some((Timer::TailProbe | Timer::Reordering, _)) => {
                left(rto, sent_at, now).unwrap_or(Duration::from_nanos(1))
            }
            _ => rto,
        };
        self.set(Timer::Retransmit, now, wait);
    }
    /// Sets the timer for a probe, if one may be needed; `advancing` tells that the retransmission timer would start
    /// anew.
    fn schedule_probe(&mut self, now: Instant, advancing: bool) -> bool {
        let rules = &self.rules;
        let applies = rules.tail_loss_probe && rules.recovery == LossRecovery::Rack && self.sack;
        let calm = matches!(self.recovery.phase(), Phase::Open | Phase::Cwr) && self.board.is_orderly();
        if !applies || !calm || self.board.is_empty() {
            return false;
        }
        let rto = self.rtt.rto();
        let initial = self.rtt.initial();
        let wait = TailProbe::timeout(self.rtt.srtt(), self.board.len() == 1, rules.min_rto, initial);
        let until_rto = match self.board.first_sent_at() {
            Some(sent_at) if !advancing => left(rto, sent_at, now),
            _ => Some(rto),
        };
        self.set(Timer::TailProbe, now, until_rto.map_or(wait, |until| until.min(wait)));
        true
    }
    /// A new segment left; `first` tells that nothing was outstanding before.
    pub(crate) fn arm_after_new(&mut self, now: Instant, first: bool) {
        if first || matches!(self.timer, None | Some((Timer::TailProbe, _))) {
            self.rearm_rto(now);
        }
        self.schedule_probe(now, false);
    }
    /// An acknowledgment delivered something that the timer depends on.
    pub(crate) fn arm_after_ack(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = None;
        } else if !self.schedule_probe(now, true) {
            self.timer = None;
            self.rearm_rto(now);
        }
    }
    /// Waits for what may only be reordered.
    pub(crate) fn arm_reordering(&mut self, now: Instant, wait: Duration) {
        self.set(Timer::Reordering, now, wait + GRACE);
    }
    /// A segment was sent again.
    pub(crate) fn on_resent(&mut self, now: Instant, sent: &Sent, clock: u32, stats: &mut Stats) {
        self.recovery.on_sent(sent.len(), Some(clock));
        self.stalled_at.get_or_insert(now);
        stats.retransmitted_segments += 1;
        let reordering = matches!(self.timer, Some((Timer::Reordering, _)));
        // The first segment's retransmission is given a full timeout, but for an impatient sender's second hole.
        let first = sent.start <= self.snd_una && !reordering && !self.leaves_timer();
        if self.timer.is_none() || first {
            let rto = self.rtt.rto();
            self.set(Timer::Retransmit, now, rto);
        }
    }
    /// The tail loss probe: a new segment whatever the congestion window says, or else the last one again.
    pub(crate) fn send_tail_probe(&mut self, now: Instant, clock: u32, stats: &mut Stats) -> Option<Segment> {
        stats.tail_loss_probes += 1;
        self.timer = None;
        let segment = if let Some((payload, fin)) = self.next_new(Nagle::Off) {
            let segment = self.send_new(now, payload, fin, None, stats);
            self.tail.on_sent(self.snd_nxt, false);
            Some(segment)
        } else {
            let stamp = self.rates.on_send(self.board.in_flight(), 0);
            self.board.resend_last(now, stamp).map(|last| {
                self.tail.on_sent(self.snd_nxt, true);
                self.on_resent(now, &last, clock, stats);
                let segment = self.segment(last.start, last.payload(), last.fin, false);
                self.sent(now, segment, None, stats)
            })
        };
        self.timer = None;
        self.rearm_rto(now);
        segment
    }
}

/// Timers that expire.
impl Sender {
    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant, stats: &mut Stats) {
        self.app.on_timer(now);
        if self.persist_at.is_some_and(|at| at <= now) {
            self.on_persist(now, stats);
        }
        let Some((timer, _)) = self.timer.filter(|(_, at)| *at <= now) else { return };
        if self.board.is_empty() {
            self.timer = None;
            return;
        }
        match timer {
            Timer::Retransmit => self.on_retransmit_timer(now, stats),
            Timer::Reordering => self.on_reordering_timer(now, stats),
            Timer::TailProbe if self.tail.is_out() => self.rearm_rto(now),
            Timer::TailProbe => {
                self.tail.set_due();
                self.rearm_rto(now); // until the probe leaves
            }
        }
        debug_assert!(self.timer.is_none_or(|(_, at)| at > now), "a timer is set for the future");
    }
    fn on_persist(&mut self, now: Instant, stats: &mut Stats) {
        if self.probes_unanswered >= self.rules.retries {
            (self.failed, self.persist_at) = (true, None);
            return;
        }
        self.probe = true;
        self.probes_unanswered += 1;
        self.persist_backoff = (self.persist_backoff + 1).min(16);
        let wait = (self.rtt.rto() * (1 << self.persist_backoff)).min(MAX_RTO);
        self.persist_at = Some(now + wait);
        stats.window_probes_sent += 1;
    }
    fn on_reordering_timer(&mut self, now: Instant, stats: &mut Stats) {
        let mut out = Delivered::default();
        let wait = self.board.detect_by_time(&self.judge(now), &mut out);
        self.rates.on_lost(out.lost);
        if out.lost > 0 && !matches!(self.recovery.phase(), Phase::Fast) {
            self.enter_fast(now, stats);
            // As if a segment had been delivered: its place is taken by the first retransmission.
            self.recovery.on_ack(u64::from(self.mss), self.board.in_flight(), self.mss, false);
        }
        match wait {
            Some(wait) => self.arm_reordering(now, wait),
            None => self.rearm_rto(now),
        }
    }
    fn on_retransmit_timer(&mut self, now: Instant, stats: &mut Stats) {
        let limit = give_up_after(self.rules.retries, self.rules.min_rto);
        if self.timeouts_in_row > 0 && self.stalled_at.is_some_and(|at| now.since(at) >= limit) {
            (self.failed, self.timer) = (true, None);
            return;
        }
        self.limits.on_timeout(now);
        let phase = self.recovery.phase();
        let fresh = matches!(phase, Phase::Open | Phase::Cwr);
        let reduced = self.recovery.reduced_already(self.snd_una, self.rtt.backed_off());
        let event = if reduced { CongestionEvent::RepeatedTimeout } else { CongestionEvent::Timeout };
        if fresh {
            self.board.rack.on_timeout(self.board.sacked_segments);
        }
        self.mark_all_lost(Some(now));
        self.control.on_congestion(now, event, Bytes(self.board.in_flight()));
        let frto = self.rules.frto && (fresh || self.timeouts_in_row > 0);
        self.recovery.enter_timeout(self.snd_una, self.snd_nxt, frto);
        self.tail.forget();
        self.ecn.on_reduced();
        self.rtt.on_timeout();
        self.timeouts_in_row += 1;
        let rto = self.rtt.rto();
        self.set(Timer::Retransmit, now, rto);
        self.pacer.release(now);
        stats.timeouts += 1;
    }
    /// Marks everything lost; at a timeout, RACK spares what was sent a moment ago.
    pub(crate) fn mark_all_lost(&mut self, timeout_at: Option<Instant>) {
        let mut out = Delivered::default();
        let by_time = self.sack && self.rules.recovery == LossRecovery::Rack;
        self.board.mark_all_lost(timeout_at.filter(|_| by_time), &mut out);
        self.rates.on_lost(out.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_retries_take_as_long_as_in_linux() {
        // 0.2 s doubled ten times, then 120 s six times: 924.6 s (tcp_retries2).
        assert_eq!(give_up_after(15, Duration::from_millis(200)), Duration::from_millis(924_600));
        assert_eq!(give_up_after(3, Duration::from_secs(1)), Duration::from_secs(15));
    }
}
