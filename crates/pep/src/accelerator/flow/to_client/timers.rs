//! The times from which the timers of the sending side follow: tail probes (RFC 8985, section 7),
//! retransmission timeouts (RFC 6298), probes of a closed window (RFC 9293, section 3.8.6.1), and when a
//! client counts as unresponsive.

use crate::accelerator::flow::to_client::rtt::{AckDeadline, Rtt};
use paceline_net::{Duration, Instant};

/// Allowance of a tail probe for a client that delays the ACK of a lone segment (TLP.max_ack_delay, RFC 8985,
/// section 7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Shortest wait for a tail probe. Chosen: radio schedulers and delayed ACKs of 40 ms exceed a short round
/// trip.
const MIN_PROBE_WAIT: Duration = Duration::from_millis(50);
/// Time without a segment of the client, in timeouts without backoff, after which a client that has left a
/// probe unanswered counts as unresponsive. Any segment, a duplicate ACK as well, makes it responsive.
/// Chosen: one timeout may be a delay.
const UNRESPONSIVE_TIMEOUTS: u64 = 2;
/// The same on a fading radio, where outages exceed two timeouts at times. If an outage ends with nothing in
/// flight, the radio is idle until the next probe, and these come ever later.
const UNRESPONSIVE_TIMEOUTS_FADING: u64 = 8;
/// Unanswered window probes above which a client may be given up. Chosen: single probes may be lost.
const MIN_LOST_WINDOW_PROBES: u8 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Start of the retransmission timer, or of the persist timer.
    base: Instant,
    /// Arrival of the client's last segment, or when the first outstanding segment was sent.
    last_response_at: Instant,
    /// The last time that data was delivered or the client's window opened, or when the first outstanding
    /// segment was sent.
    progress_at: Instant,
    /// When the last probe was sent: a tail probe, a timeout's retransmission, or an empty segment.
    last_probe_at: Instant,
    /// Probes of a zero window since the client's last segment.
    window_probes: u8,
    /// The client has not responded for several timeouts.
    unresponsive: bool,
}

impl Timers {
    pub fn new(now: Instant) -> Self {
        Self {
            base: now,
            last_response_at: now,
            progress_at: now,
            last_probe_at: Instant::ZERO,
            window_probes: 0,
            unresponsive: false,
        }
    }
    /// The retransmission timer, or the persist timer, starts anew.
    pub fn restart(&mut self, now: Instant) {
        self.base = now;
    }
    /// The first outstanding segment is sent.
    pub fn on_first_sent(&mut self, now: Instant) {
        (self.base, self.last_response_at, self.progress_at) = (now, now, now);
    }
    /// Data was delivered, or the client's window has opened.
    pub fn on_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }
    /// A plausible segment of the client arrived. Returns whether the client was unresponsive before.
    pub fn on_response(&mut self, now: Instant) -> bool {
        self.last_response_at = now;
        self.window_probes = 0;
        std::mem::take(&mut self.unresponsive)
    }
    /// A probe is sent.
    pub fn on_probe(&mut self, now: Instant) {
        self.last_probe_at = now;
    }
    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self, now: Instant) {
        (self.base, self.last_probe_at) = (now, now);
    }
    /// The persist timer has expired.
    pub fn on_window_probe(&mut self, now: Instant) {
        self.window_probes = self.window_probes.saturating_add(1);
        self.base = now;
    }

    /// Whether the client is sent probes only.
    pub fn is_unresponsive(&self) -> bool {
        self.unresponsive
    }
    /// Examines whether the client has left a probe unanswered for too long.
    pub fn check_response(&mut self, now: Instant, rtt: &Rtt, fading: bool) {
        let timeouts = if fading { UNRESPONSIVE_TIMEOUTS_FADING } else { UNRESPONSIVE_TIMEOUTS };
        let silence = now.since(self.last_response_at);
        self.unresponsive |= self.is_probed() && silence >= rtt.base_rto() * timeouts;
    }
    /// Whether the client may be given up after this time of silence; while its window is closed, after some
    /// unanswered probes only.
    pub fn gives_up(&self, now: Instant, after: Duration, persisting: bool) -> bool {
        now.since(self.last_response_at) > after
            && (!persisting || self.window_probes > MIN_LOST_WINDOW_PROBES)
    }
    /// Time without a segment of the client.
    pub fn silence(&self, now: Instant) -> Duration {
        now.since(self.last_response_at)
    }
    /// Whether the last probe came after the client's last segment.
    pub fn is_probed(&self) -> bool {
        self.last_probe_at > self.last_response_at
    }
    /// Whether a probe was sent since the client's last segment.
    pub fn awaits_probe_response(&self) -> bool {
        self.is_probed() || self.window_probes > 0
    }
    pub fn last_probe_at(&self) -> Instant {
        self.last_probe_at
    }
    /// How long an ACK may take on a fading radio.
    pub fn ack_deadline(&self, rtt: &Rtt) -> AckDeadline {
        rtt.ack_deadline(self.last_response_at)
    }
    /// Whether there has been no progress for longer than the outages of a fading radio: then repetitions
    /// back off there as well.
    pub fn is_stalled(&self, at: Instant, rtt: &Rtt) -> bool {
        at.since(self.progress_at) >= rtt.base_rto() * UNRESPONSIVE_TIMEOUTS_FADING
    }

    /// When the persist timer expires.
    pub fn persist_at(&self, rtt: &Rtt) -> Instant {
        self.base + rtt.rto()
    }
    /// When a tail probe is due: one for each tail (RFC 8985, section 7.3). Outages of fading radios exceed a
    /// round trip: there, further probes follow while they are unanswered. `lone`: one segment is
    /// outstanding.
    pub fn tail_probe_at(&self, rtt: &Rtt, lone: bool, fading: bool) -> Option<Instant> {
        let srtt = rtt.srtt()?;
        let allowance = if lone { MAX_ACK_DELAY } else { Duration::ZERO };
        let first = self.base + (srtt * 2 + allowance).max(MIN_PROBE_WAIT);
        if self.last_probe_at < self.base {
            return Some(first);
        }
        // A segment that comes sooner than the shortest round trip answers an earlier packet.
        let answered = self.last_response_at >= self.last_probe_at + rtt.min();
        let again = self.last_probe_at + (srtt * 3 / 2).max(MIN_PROBE_WAIT);
        (fading && !answered && !self.is_stalled(again, rtt)).then_some(again)
    }
    /// When the retransmission timer expires.
    pub fn timeout_at(&self, rtt: &Rtt) -> Instant {
        // Not before the last probe can be answered: the answers to two probes in a round trip cannot be told
        // apart.
        let answered_by = self.last_probe_at + rtt.srtt().unwrap_or_default() * 3 / 2;
        (self.base + rtt.rto()).max(answered_by)
    }
}
