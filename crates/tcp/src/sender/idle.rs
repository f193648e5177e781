//! The reaction of a sender to the lack of a segment that may leave: it attributes the wait to a [`Limit`],
//! records the use of the congestion window, and reduces a window that is not used (RFC 2861, RFC 5681 §4.1).

use super::recovery::Phase;
use super::state::Sender;
use crate::cc::CongestionControl;
use crate::limits::Limit;
use paceline_net::{Bytes, Instant};

impl Sender {
    /// No segment may leave although the congestion window has room.
    pub(super) fn on_nothing_to_send(&mut self, now: Instant) {
        let (in_flight, cwnd) = (self.scoreboard.in_flight(), self.cwnd());
        self.record_usage_after_burst(now);
        let wanted = self.writer.written().saturating_sub(self.snd_nxt).min(u64::from(self.mss));
        if wanted > 0 && self.window.end() < self.snd_nxt + wanted && self.scoreboard.is_empty() {
            self.persist.start(now + self.rtt.rto());
        } else if in_flight < cwnd && self.snd_nxt >= self.writer.written() {
            self.rates.on_app_limited(in_flight);
        }
    }
    /// Attributes the time from `now` on; `blocked_by` is the first obstacle found.
    pub(super) fn record_wait(&mut self, now: Instant, blocked_by: Limit) {
        if self.stream_end() == 0 || self.is_complete() {
            return;
        }
        let limit = match self.recovery.phase() {
            Phase::Fast => Limit::Recovery,
            Phase::Timeout => Limit::Timeout,
            Phase::Open | Phase::Cwr => self.limit(blocked_by),
        };
        self.limits.set(now, limit);
    }
    /// Pacing counts only where a segment could leave without it. Without a segment, the reason for that
    /// counts.
    fn limit(&self, blocked_by: Limit) -> Limit {
        if blocked_by == Limit::CongestionWindow {
            return blocked_by;
        }
        match self.next_new(self.rules.nagle) {
            Some((payload, _)) if !self.fits_cwnd(payload) => Limit::CongestionWindow,
            Some(_) => blocked_by,
            None => self.limit_without_segment(),
        }
    }
    fn limit_without_segment(&self) -> Limit {
        let written = self.writer.written();
        let buffered = self.buffered_end();
        let len = buffered.saturating_sub(self.snd_nxt).min(u64::from(self.mss));
        let usable = self.window.end().saturating_sub(self.snd_nxt);
        if len > 0 && usable < len {
            // Both windows may be used up: the smaller one counts.
            let window = self.window.end() - self.snd_una.min(self.window.end());
            let by_congestion = !self.fits_cwnd(len as u32) && self.cwnd() < window;
            return if by_congestion { Limit::CongestionWindow } else { Limit::ReceiveWindow };
        }
        if buffered < written { Limit::SendBuffer } else { Limit::Application }
    }
}

/// Use of the congestion window.
impl Sender {
    /// Records the use of the window after a burst, if one was sent.
    pub(super) fn record_usage_after_burst(&mut self, now: Instant) {
        if self.usage.sent_since_record() {
            self.record_usage(now, self.scoreboard.in_flight() >= self.cwnd());
        }
    }
    /// Records the use of the window; `limited` if it is full.
    pub(super) fn record_usage(&mut self, now: Instant, limited: bool) {
        let outstanding = self.scoreboard.outstanding();
        self.usage.record(limited, outstanding, self.snd_una, self.snd_nxt);
        if self.is_cwnd_limited() {
            self.usage.restart(now);
            return;
        }
        self.usage.record_not_full(outstanding);
        let app_limited = self.writer.written().saturating_sub(self.snd_una) < self.send_buffer;
        let long = self.usage.time_since_full(now) >= self.rtt.rto();
        if self.rules.idle_restart && app_limited && long && self.recovery.phase() == Phase::Open {
            self.reduce_unused_window(now);
        }
    }
    /// Reduces the window half way to its largest use within a timeout (RFC 2861 §3.1).
    fn reduce_unused_window(&mut self, now: Instant) {
        let initial = u64::from(self.rules.initial_window) * u64::from(self.mss);
        let (used, cwnd) = (self.usage.used().max(initial), self.control.cwnd().0);
        if used < cwnd && !self.control.owns_recovery_window() {
            self.control.on_idle(now, Bytes((cwnd + used) / 2));
        }
        self.usage.restart(now);
    }
    /// After an idle time longer than the timeout, halves the window for each timeout, down to the initial
    /// window (RFC 5681 §4.1, RFC 2861).
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
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
        self.usage.restart(now);
    }
}
