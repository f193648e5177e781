//! The timers of the sending side: loss detection, tail probes (RFC 8985, section 7), retransmission timeouts
//! (RFC 6298) and probes of a closed window (RFC 9293, section 3.8.6.1).

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::to_client::ToClient;
use crate::accelerator::flow::to_client::sack_check::Change;
use crate::accelerator::flow::views::ServerState;
use paceline_net::{Duration, Instant};

/// Allowance of a tail probe for a client that delays the ACK of a lone segment (TLP.max_ack_delay, RFC 8985,
/// section 7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Shortest wait for a tail probe. Chosen: radio schedulers and delayed ACKs of 40 ms exceed a short round
/// trip.
const MIN_PROBE_WAIT: Duration = Duration::from_millis(50);
/// Ambiguous ACKs in a row after which retransmissions count as needed. Chosen: a radio whose ACKs never
/// answer the first copy would else repair only one segment each round trip.
const MAX_AMBIGUOUS_ACKS: u8 = 16;
/// Time without a segment of the client, in timeouts without backoff, after which a client that has left a
/// probe unanswered counts as unresponsive. Any segment, a duplicate ACK as well, makes it responsive.
/// Chosen: one timeout may be a delay.
const UNRESPONSIVE_TIMEOUTS: u64 = 2;
/// The same on a fading radio, where outages exceed two timeouts at times. If an outage ends with nothing in
/// flight, the radio is idle until the next probe, and these come ever later.
const UNRESPONSIVE_TIMEOUTS_FADING: u64 = 8;
/// Unanswered timeouts above which the client may have discarded SACKed data. Chosen: two retransmissions
/// may be lost.
const RENEGING_TIMEOUTS: u8 = 2;
/// Time for which a SACKed first segment may stay unacknowledged: the least of Linux's
/// `tcp_check_sack_reneging`, and a part of the round-trip time.
const MIN_RENEGING_DELAY: Duration = Duration::from_millis(10);
const RENEGING_RTT_DIVISOR: u64 = 16;
/// Unanswered window probes above which a client may be given up. Chosen: single probes may be lost.
const MIN_LOST_WINDOW_PROBES: u8 = 2;

impl ToClient {
    /// Whether only the client's window prevents sending.
    fn is_persisting(&self, stream_end: u64) -> bool {
        !self.has_outstanding() && self.nxt < stream_end
            || self.window.is_closed() && self.has_outstanding() && self.has_lost()
    }
    /// When a tail probe is due: one for each tail (RFC 8985, section 7.3). Outages of fading radios exceed a
    /// round trip: there, further probes follow while they are unanswered.
    fn tail_probe_at(&self) -> Option<Instant> {
        let may =
            self.uses_sack() && !self.unresponsive && !self.has_lost() && self.scoreboard.in_flight() > 0;
        let srtt = self.rtt.srtt().filter(|_| may)?;
        let lone = self.nxt - self.una <= u64::from(self.segment);
        let allowance = if lone { MAX_ACK_DELAY } else { Duration::ZERO };
        let first = self.timer_base + (srtt * 2 + allowance).max(MIN_PROBE_WAIT);
        if self.last_probe_at < self.timer_base {
            return Some(first);
        }
        // A segment that comes sooner than the shortest round trip answers an earlier packet.
        let answered = self.last_response_at >= self.last_probe_at + self.rtt.min();
        let again = self.last_probe_at + (srtt * 3 / 2).max(MIN_PROBE_WAIT);
        (self.fading && !answered && !self.is_stalled(again)).then_some(again)
    }
    /// Whether there has been no progress for longer than the outages of a fading radio: then repetitions
    /// back off there as well.
    fn is_stalled(&self, at: Instant) -> bool {
        at.since(self.progress_at) >= self.rtt.base_rto() * UNRESPONSIVE_TIMEOUTS_FADING
    }
    fn timeout_at(&self) -> Instant {
        // Not before the last probe can be answered: the answers to two probes in a round trip cannot be told
        // apart.
        let answered_by = self.last_probe_at + self.rtt.srtt().unwrap_or_default() * 3 / 2;
        (self.timer_base + self.rtt.rto()).max(answered_by)
    }
    /// The next tail probe or timeout.
    fn probe_or_timeout_at(&self) -> Instant {
        let timeout = self.timeout_at();
        self.tail_probe_at().map_or(timeout, |at| at.min(timeout))
    }

    /// The next deadline of these timers; [`Instant::MAX`] for none.
    pub fn deadline(&self, stream_end: u64) -> Instant {
        let at = if self.is_persisting(stream_end) {
            self.timer_base + self.rtt.rto()
        } else if self.has_outstanding() {
            self.probe_or_timeout_at()
        } else {
            Instant::MAX
        };
        at.min(self.reorder_at).min(self.reneging_at)
    }

    /// Marks segments as lost and sets the timer of the next detection.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let has_deadline = self.fading && !self.unresponsive && !self.is_stalled(now);
        let deadline = has_deadline.then(|| self.rtt.ack_deadline(self.last_response_at));
        let again = self.scoreboard.detect_losses(now, self.rtt.min_and_srtt(), self.segment, deadline);
        if self.fading {
            self.scoreboard.lose_from(self.window.edge());
        }
        self.reorder_at = again.unwrap_or(Instant::MAX);
    }

    /// The first segment has changed. If the client has SACKed it, and does not acknowledge it, then the
    /// client has discarded SACKed data. A forged ACK may look like that, and to mark the data as lost takes
    /// time for each segment: so the mark waits for a timer, which expires once in a timeout at most.
    pub(super) fn check_reneging(&mut self, now: Instant) {
        if !self.scoreboard.has_reneged() {
            self.reneging_at = Instant::MAX;
        } else if self.sack_check.on_ack_inside_block(self.uses_sack()) == Change::ToNewReno {
            self.scoreboard.forget_sack();
            self.reneging_at = Instant::MAX;
        } else if self.reneging_at == Instant::MAX {
            let part = self.rtt.srtt().unwrap_or_default() / RENEGING_RTT_DIVISOR;
            let again = (self.reneged_at > Instant::ZERO).then(|| self.reneged_at + self.rtt.rto());
            self.reneging_at = (now + part.max(MIN_RENEGING_DELAY)).max(again.unwrap_or(now));
        }
    }
    fn on_reneging_timer(&mut self, now: Instant) {
        self.reneging_at = Instant::MAX;
        if self.scoreboard.has_reneged() {
            self.reneged_at = now;
            self.scoreboard.lose_sacked();
            self.on_reneging();
        }
    }

    /// Handles the timers that are due. Returns false if the client has been unresponsive for
    /// [`crate::accelerator::AcceleratorConfig::give_up`].
    pub fn on_timeout(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) -> bool {
        if self.reorder_at <= cx.now {
            self.detect_losses(cx.now);
        }
        if self.reneging_at <= cx.now {
            self.on_reneging_timer(cx.now);
        }
        if self.is_persisting(server.from_server.stream_end()) {
            return self.on_persist_timer(cx, server);
        }
        if !self.has_outstanding() || self.probe_or_timeout_at() > cx.now {
            return true;
        }
        let timeouts = if self.fading { UNRESPONSIVE_TIMEOUTS_FADING } else { UNRESPONSIVE_TIMEOUTS };
        let is_probed = self.last_probe_at > self.last_response_at;
        if is_probed && cx.now.since(self.last_response_at) >= self.rtt.base_rto() * timeouts {
            self.unresponsive = true;
        }
        if self.timeout_at() <= cx.now {
            if cx.now.since(self.last_response_at) > cx.config.give_up {
                return false;
            }
            self.on_retransmission_timeout(cx, server.from_server);
        } else {
            cx.stats.tail_probes += 1;
            self.send_probe(cx.now, server.from_server);
        }
        true
    }

    fn on_persist_timer(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) -> bool {
        if self.timer_base + self.rtt.rto() > cx.now {
            return true;
        }
        let silence = cx.now.since(self.last_response_at);
        if silence > cx.config.give_up && self.window_probes > MIN_LOST_WINDOW_PROBES {
            return false;
        }
        self.window_probes = self.window_probes.saturating_add(1);
        self.rtt.on_window_probe();
        self.timer_base = cx.now;
        cx.stats.window_probes += 1;
        self.emit_probe(cx, server);
        true
    }

    /// Probes the client's state with an empty segment, unless an earlier probe may still be answered. The
    /// server has sent beyond every window that was advertised here: either packets bypassed the machine or
    /// the segment was injected, and the client's acknowledgment shows which.
    pub fn query_client(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        let answered = self.last_response_at >= self.last_probe_at;
        if answered || cx.now.since(self.last_probe_at) > self.rtt.base_rto() {
            self.last_probe_at = cx.now;
            self.emit_probe(cx, server);
        }
    }

    /// Whether a reset may answer data past the client's window: such data was sent in the last two timeouts.
    pub fn was_past_window_used(&self, now: Instant) -> bool {
        self.overshoot.was_used(now, self.rtt.base_rto() * 2)
    }
    /// A reset may be a router's answer to data past the window, which then has not arrived. The client's
    /// answer to a probe shows that it is alive.
    pub fn on_doubtful_reset(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        self.overshoot.stop();
        self.scoreboard.lose_past_edge();
        self.emit_probe(cx, server);
    }

    /// A plausible segment of the client arrived. Returns whether the client was unresponsive before.
    pub fn on_response(&mut self, now: Instant) -> bool {
        self.last_response_at = now;
        self.window_probes = 0;
        self.rtt.on_response();
        std::mem::take(&mut self.unresponsive)
    }
    /// The client was unresponsive and has sent a segment: outstanding data is probed at once, and without
    /// backoff.
    pub fn probe_after_silence(&mut self, now: Instant, from_server: &FromServer) {
        if self.has_outstanding() {
            self.rtt.on_progress();
            self.timer_base = now;
            self.send_probe(now, from_server);
        }
    }

    /// Sends one segment at once, new data if possible: its ACK shows as much as that of a retransmission,
    /// and it is not spurious if nothing was lost.
    fn send_probe(&mut self, now: Instant, from_server: &FromServer) {
        self.send_now = true;
        self.last_probe_at = now;
        if !self.can_probe_with_new_data(from_server) {
            self.suspect_first(from_server);
        }
    }
    /// Marks the first segment as lost. If it was merely late, all others are late as well: new data after it
    /// shows which (F-RTO, RFC 5682), unless there is none.
    fn suspect_first(&mut self, from_server: &FromServer) {
        let most = if self.can_probe_with_new_data(from_server) { MAX_AMBIGUOUS_ACKS } else { 1 };
        let has_unsent = self.nxt < from_server.stream_end();
        let certain = self.fading || self.ambiguous_acks >= most || !has_unsent;
        self.scoreboard.lose_first(self.uses_sack() && !certain);
    }
    /// Whether there is new data within the client's window.
    fn can_probe_with_new_data(&self, from_server: &FromServer) -> bool {
        let cut = || from_server.store().cut(self.nxt, self.segment, self.segment, self.window.edge());
        !self.window.is_closed() && cut().is_some()
    }
    /// Whether retransmissions of this connection count as answered without ambiguity: F-RTO is not used.
    pub(super) fn is_frto_off(&self, has_unsent: bool) -> bool {
        self.fading || !self.uses_sack() || self.ambiguous_acks >= MAX_AMBIGUOUS_ACKS || !has_unsent
    }

    fn on_retransmission_timeout(&mut self, cx: &mut Context<'_>, from_server: &FromServer) {
        cx.stats.timeouts += 1;
        self.rtt.on_timeout();
        self.black_hole.on_timeout();
        (self.timer_base, self.last_probe_at) = (cx.now, cx.now);
        self.scoreboard.on_timeout();
        if self.scoreboard.front_past_edge_sent_at().is_some() {
            self.scoreboard.lose_past_edge();
            if !self.fading {
                self.on_past_window_drop(cx);
            }
        }
        let unanswered = self.rtt.unanswered() > RENEGING_TIMEOUTS && self.scoreboard.has_hole();
        if self.scoreboard.has_reneged() {
            self.on_reneging();
        } else if unanswered {
            self.scoreboard.lose_all();
        } else if self.fading || !self.scoreboard.lose_flight() {
            // On fading radios the rest of the flight has its ACK deadline.
            self.suspect_first(from_server);
        }
        self.send_now = true;
    }
}
