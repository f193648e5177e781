//! Keep-alive probes of an idle connection (RFC 9293 §3.8.4).

use crate::options::Keepalive;
use paceline_net::Instant;

/// The keep-alive timer of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepaliveTimer {
    rule: Keepalive,
    at: Instant,
    unanswered: u32,
    probe_due: bool,
}

/// The result of a timer that was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    /// The timer has not expired, or data is outstanding whose retransmission shows whether the peer is
    /// reachable.
    None,
    /// A probe is due.
    Probe,
    /// The peer has not answered the configured number of probes.
    Unreachable,
}

impl KeepaliveTimer {
    /// A timer that starts with the first segment of the peer.
    pub fn new(rule: Keepalive) -> Self {
        Self { rule, at: Instant::MAX, unanswered: 0, probe_due: false }
    }
    /// A segment of the peer arrived.
    pub fn on_segment(&mut self, now: Instant) {
        (self.at, self.unanswered) = (now + self.rule.idle, 0);
    }
    pub fn deadline(&self) -> Instant {
        self.at
    }
    pub fn is_probe_due(&self) -> bool {
        self.probe_due
    }
    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe_due)
    }
    /// Handles the timer if it has expired; `idle` if no data is outstanding or waiting.
    pub fn on_timer(&mut self, now: Instant, idle: bool) -> Expiry {
        if self.at > now {
            return Expiry::None;
        }
        if !idle {
            self.at = now + self.rule.idle;
            return Expiry::None;
        }
        if self.unanswered >= self.rule.probes {
            return Expiry::Unreachable;
        }
        self.unanswered += 1;
        self.probe_due = true;
        self.at = now + self.rule.interval;
        Expiry::Probe
    }
}
