//! What the sending half waits for, told whenever nothing may leave.

use crate::limits::Limit;
use crate::recovery::Phase;
use crate::sender::Sender;
use paceline_net::Instant;

impl Sender {
    /// The account begins with the handshake, for a side that has something to send.
    pub fn begin_account(&mut self, opened_at: Instant) {
        if self.end() > 0 {
            self.limits.set(opened_at, Limit::Handshake);
        }
    }
    /// Nothing more may leave at `now`: `found` is what was met first.
    pub(crate) fn wait(&mut self, now: Instant, found: Limit) {
        if self.end() == 0 || self.complete() {
            return;
        }
        let limit = match self.recovery.phase() {
            Phase::Fast => Limit::Recovery,
            Phase::Timeout => Limit::Timeout,
            Phase::Open | Phase::Cwr => self.limit(found),
        };
        self.limits.set(now, limit);
    }
    /// Pacing counts only where a segment could leave otherwise; where there is no segment, the reason is sought.
    fn limit(&self, found: Limit) -> Limit {
        if found == Limit::CongestionWindow {
            return found;
        }
        match self.next_new(self.rules.nagle) {
            Some((payload, _)) if !self.fits(payload) => Limit::CongestionWindow,
            Some(_) => found,
            None => self.why_nothing(),
        }
    }
    /// Why there is no new segment.
    fn why_nothing(&self) -> Limit {
        let written = self.app.written();
        let buffered = self.buffered();
        let len = buffered.saturating_sub(self.snd_nxt).min(u64::from(self.mss));
        let usable = self.edge.saturating_sub(self.snd_nxt);
        if len > 0 && usable < len {
            // Both windows may be used up: the smaller one counts.
            let window = self.edge - self.snd_una.min(self.edge);
            let by_congestion = !self.fits(len as u32) && self.cwnd() < window;
            return if by_congestion { Limit::CongestionWindow } else { Limit::ReceiveWindow };
        }
        if buffered < written { Limit::SendBuffer } else { Limit::Application }
    }
}
