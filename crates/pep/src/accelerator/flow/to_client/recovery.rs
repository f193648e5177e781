//! What is lost on the way to the client, and what a silent client gets: tail probes, timeouts, and empty segments where its
//! window is shut.

use crate::accelerator::flow::{Context, Flow};
use paceline_net::{Duration, Instant, SackBlocks, TcpFlags};

/// Allowance of a tail probe for a client that delays its ACK of a lone segment (RFC 8985, section 7.2).
const DELAYED_ACK: Duration = Duration::from_millis(200);
/// Radio schedulers and delayed ACKs of 40 ms take longer than a short round trip says.
const LEAST_PROBE_WAIT: Duration = Duration::from_millis(50);
/// Longest wait between probes of a zero window.
const MAX_PERSIST: Duration = Duration::from_secs(60);
/// Answers in a row to repetitions alone after which they are taken for what they seem.
pub(in crate::accelerator) const MOST_DOUBTS: u8 = 16;
/// Timeouts' time without any word of a client after which it gets nothing but probes, and takes no room of its
/// device's. A client that acknowledges anything, if only duplicates, is not silent.
const SILENT_TIMEOUTS: u64 = 2;
/// The same where the radio fades: fades outlast two timeouts now and then. When one ends with nothing on its way, the
/// radio waits for the next probe, and these come ever later.
const FADING_TIMEOUTS: u64 = 8;

impl Flow {
    /// Nothing may be sent because of the client's window alone.
    fn is_persisting(&self) -> bool {
        !self.is_waiting() && self.has_unsent()
            || self.client_window == 0 && self.is_waiting() && self.board.has_lost()
    }
    /// When a segment is sent because nothing was acknowledged for long: a tail probe (RFC 8985, section 7.2), and
    /// since radios fade for longer than a round trip, further ones until the client counts as silent.
    fn probe_at(&self) -> Option<Instant> {
        let may = self.agreed.sack && !self.silent && !self.board.has_lost() && self.board.in_flight() > 0;
        let srtt = self.rtt.srtt().filter(|_| may)?;
        let lone = self.nxt - self.una <= u64::from(self.agreed.segment);
        let allowance = if lone { DELAYED_ACK } else { Duration::ZERO };
        let first = self.timer_base + (srtt * 2 + allowance).max(LEAST_PROBE_WAIT);
        Some(if self.asked_at < self.timer_base {
            first
        } else {
            self.asked_at + (srtt * 3 / 2).max(LEAST_PROBE_WAIT)
        })
    }
    fn timeout_at(&self) -> Instant {
        // An answer to the last question is waited for: what is asked twice in a round trip cannot be told apart.
        (self.timer_base + self.rtt.rto()).max(self.asked_at + self.rtt.srtt().unwrap_or_default() * 3 / 2)
    }
    /// When the client is asked next for what it owes.
    fn ask_at(&self) -> Instant {
        let timeout = self.timeout_at();
        self.probe_at().map_or(timeout, |at| at.min(timeout))
    }
    fn persist_wait(&self) -> Duration {
        (self.rtt.rto() * (1 << self.window_probes.min(10))).min(MAX_PERSIST)
    }

    /// When this connection wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let mut at = self.reorder_at;
        let mut earlier = |other: Instant| at = at.min(other);
        if let Some(reset) = &self.reset {
            earlier(reset.until);
        }
        if self.is_persisting() {
            earlier(self.timer_base + self.persist_wait());
        } else if self.is_waiting() {
            earlier(self.ask_at());
        }
        (at < Instant::MAX).then_some(at)
    }

    /// Finds what is lost, and when to look again.
    pub fn judge(&mut self, now: Instant) {
        let patience = (self.fades && !self.silent).then(|| self.rtt.patience(self.heard_at));
        let again = self.board.detect(now, self.rtt.spread(), self.agreed.segment, patience);
        if self.fades {
            self.board.lose_from(self.client_edge);
        }
        self.reorder_at = again.unwrap_or(Instant::MAX);
    }

    /// Returns false if the client is given up.
    pub fn on_timeout(&mut self, cx: &mut Context<'_>) -> bool {
        if self.reorder_at <= cx.now {
            self.judge(cx.now);
        }
        if self.is_persisting() {
            if self.timer_base + self.persist_wait() <= cx.now {
                if cx.now.since(self.heard_at) > cx.config.give_up && self.window_probes > 2 {
                    return false;
                }
                self.window_probes = self.window_probes.saturating_add(1);
                self.timer_base = cx.now;
                cx.stats.window_probes += 1;
                self.emit_empty(cx, self.una - 1, TcpFlags::ACK, SackBlocks::default());
            }
            return true;
        }
        if !self.is_waiting() {
            return true;
        }
        if self.ask_at() > cx.now {
            return true;
        }
        let timeouts = if self.fades { FADING_TIMEOUTS } else { SILENT_TIMEOUTS };
        if cx.now.since(self.heard_at) >= self.rtt.base() * timeouts {
            self.silent = true;
        }
        if self.timeout_at() <= cx.now {
            if cx.now.since(self.heard_at) > cx.config.give_up {
                return false;
            }
            self.on_retransmission_timeout(cx);
        } else {
            cx.stats.tail_probes += 1;
            self.ask(cx.now);
        }
        true
    }

    /// One segment goes at once. New data tells as much as a repetition, and is not sent in vain if nothing was lost.
    pub fn ask(&mut self, now: Instant) {
        self.force = true;
        self.asked_at = now;
        if !self.can_ask_by_new() {
            self.suspect();
        }
    }
    /// The first segment is sent again. If it was only late, everything else is as well: what follows tells, unless
    /// nothing follows.
    fn suspect(&mut self) {
        let doubts = if self.can_ask_by_new() { MOST_DOUBTS } else { 1 };
        let known = self.fades || self.doubted >= doubts || !self.has_unsent();
        self.board.lose_first(self.agreed.sack && !known);
    }
    /// Whether there is new data that the client is sure to take, whatever it lacks.
    fn can_ask_by_new(&self) -> bool {
        let segment = self.agreed.segment;
        self.client_window > 0 && self.store.cut(self.nxt, segment, segment, self.client_edge).is_some()
    }

    fn on_retransmission_timeout(&mut self, cx: &mut Context<'_>) {
        cx.stats.timeouts += 1;
        self.rtt.on_timeout();
        self.black_hole.on_timeout();
        (self.timer_base, self.asked_at) = (cx.now, cx.now);
        self.board.on_timeout_without_sack();
        if self.board.first_beyond_sent_at().is_some() {
            self.board.lose_beyond();
        }
        let in_vain = self.rtt.backoff() > 2 && self.board.has_hole();
        if in_vain || self.board.has_reneged() {
            // The client may have thrown away what it had selectively acknowledged (RFC 2018, section 8).
            self.board.lose_all();
        } else if self.fades || !self.board.lose_flight() {
            self.suspect(); // where radios fade, patience with the flight ends by itself
        }
        self.force = true;
    }
}
