//! The timers of a sender: one for retransmission (RFC 6298 §5), tail loss probe (RFC 8985 §7) and reordering
//! (RFC 8985 §6), of which Linux runs the one that is due first; and the persist timer (RFC 9293 §3.8.6.1).

use super::path::rtt::MAX_RTO;
use paceline_net::{Duration, Instant};

/// Delay added to two round-trip times before a tail loss probe, and to the reordering window (Linux
/// `TCP_TIMEOUT_MIN`, two ticks of a 1000 Hz kernel).
pub(super) const TIMEOUT_MIN: Duration = Duration::from_millis(2);
/// Largest exponent of the persist timer's backoff: with it every interval is [`MAX_RTO`] (RFC 9293
/// §3.8.6.1).
const MAX_PERSIST_BACKOFF: u32 = 16;

/// The purpose of a running [`LossTimer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimerKind {
    Retransmission,
    TailProbe,
    Reordering,
}

/// The timer of losses: it runs for one purpose at a time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LossTimer {
    running: Option<(TimerKind, Instant)>,
}

impl LossTimer {
    pub fn kind(&self) -> Option<TimerKind> {
        self.running.map(|(kind, _)| kind)
    }
    pub fn deadline(&self) -> Option<Instant> {
        self.running.map(|(_, at)| at)
    }
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }
    /// The purpose of the timer if it has expired.
    pub fn expired(&self, now: Instant) -> Option<TimerKind> {
        self.running.filter(|(_, at)| *at <= now).map(|(kind, _)| kind)
    }
    pub fn set(&mut self, kind: TimerKind, at: Instant) {
        self.running = Some((kind, at));
    }
    pub fn stop(&mut self) {
        self.running = None;
    }
    /// Starts the retransmission timer with a timeout of `rto`, or stops it without an outstanding segment.
    /// If a probe or reordering timer was running, the timeout counts from `head_sent_at`, when the first
    /// outstanding segment was sent.
    pub fn restart_rto(&mut self, now: Instant, rto: Duration, head_sent_at: Option<Instant>) {
        let Some(sent_at) = head_sent_at else {
            self.stop();
            return;
        };
        let wait = match self.kind() {
            Some(TimerKind::TailProbe | TimerKind::Reordering) => {
                remaining_timeout(rto, sent_at, now).unwrap_or(Duration::from_nanos(1))
            }
            _ => rto,
        };
        self.set(TimerKind::Retransmission, now + wait);
    }
}

/// The rest of a timeout of `rto` that began at `sent_at`; `None` if it is over.
pub(super) fn remaining_timeout(rto: Duration, sent_at: Instant, now: Instant) -> Option<Duration> {
    Some(rto.saturating_sub(now.since(sent_at))).filter(|left| !left.is_zero())
}

/// The timer of zero-window probes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PersistTimer {
    at: Option<Instant>,
    backoff: u32,
    unanswered: u32,
    probe_due: bool,
}

impl PersistTimer {
    pub fn deadline(&self) -> Option<Instant> {
        self.at
    }
    /// Starts the timer unless it runs.
    pub fn start(&mut self, at: Instant) {
        self.at.get_or_insert(at);
    }
    /// The peer's window is open.
    pub fn stop(&mut self) {
        self.at = None;
    }
    /// New data leaves: no probe is needed.
    pub fn on_data_sent(&mut self) {
        self.at = None;
        self.probe_due = false;
    }
    /// An acknowledgment arrived; `advanced` if it acknowledged new data.
    pub fn on_ack(&mut self, advanced: bool) {
        self.unanswered = 0;
        if advanced {
            self.backoff = 0;
        }
    }
    /// Whether a probe is due, or a segment smaller than the rules of silly window avoidance allow.
    pub fn is_probe_due(&self) -> bool {
        self.probe_due
    }
    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe_due)
    }
    /// The timer expired; false if `retries` probes are unanswered and the connection is to be given up.
    pub fn on_expiry(&mut self, now: Instant, rto: Duration, retries: u32) -> bool {
        if self.unanswered >= retries {
            self.at = None;
            return false;
        }
        self.probe_due = true;
        self.unanswered += 1;
        self.backoff = (self.backoff + 1).min(MAX_PERSIST_BACKOFF);
        self.at = Some(now + (rto * (1 << self.backoff)).min(MAX_RTO));
        true
    }
}

/// The time that `retries` timeouts take, the first one `first`, each next one twice as long up to
/// [`MAX_RTO`] (Linux `tcp_model_timeout`).
pub(super) fn give_up_after(retries: u32, first: Duration) -> Duration {
    (0..=retries).fold(Duration::ZERO, |sum, doubled| sum + (first * (1 << doubled.min(16))).min(MAX_RTO))
}

/// How long a peer has not answered retransmissions.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Retries {
    /// Timeouts since SND.UNA last advanced, or a reduction was undone.
    timeouts: u32,
    /// The first retransmission since SND.UNA last advanced.
    first_resent_at: Option<Instant>,
    gave_up: bool,
}

impl Retries {
    /// Timeouts in a row.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }
    /// Whether the peer has not answered for as long as the configuration allows.
    pub fn has_given_up(&self) -> bool {
        self.gave_up
    }
    /// SND.UNA has advanced.
    pub fn on_progress(&mut self) {
        (self.timeouts, self.first_resent_at) = (0, None);
    }
    /// A reduction was undone: the timeouts were spurious.
    pub fn on_undone(&mut self) {
        self.timeouts = 0;
    }
    pub fn on_resent(&mut self, now: Instant) {
        self.first_resent_at.get_or_insert(now);
    }
    pub fn on_timeout(&mut self) {
        self.timeouts += 1;
    }
    /// Gives up if retransmissions have gone unanswered for this long. Returns whether it does.
    pub fn check(&mut self, now: Instant, limit: Duration) -> bool {
        let too_long = self.first_resent_at.is_some_and(|at| now.since(at) >= limit);
        if self.timeouts > 0 && too_long {
            self.give_up();
        }
        self.timeouts > 0 && too_long
    }
    pub fn give_up(&mut self) {
        self.gave_up = true;
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
