//! The division of a sender's lifetime among the causes.
//!
//! Between two segments the state is that of the sender when the later one left: an ACK that has passed the
//! capture point reaches the sender half a round trip later, and its answer takes the other half back. The
//! view holds ACKs back for this time, so that a capture near the receiver has the sender's bytes in flight
//! too. The cause of a silence is known at its end: until then its time is pending.

use super::counts::Repair;
use super::state::Sender;
use crate::causes::{Cause, CauseTimes};
use crate::halves::Half;
use paceline_net::{Duration, Instant};

/// Least round trips without an ACK that make a pause of the path. Chosen: delayed ACKs and HARQ stay far
/// below; with 3 or 6 instead the largest causes of the tests are the same.
const PAUSE_RTTS: u64 = 4;
/// Smoothed round trips likewise, in which a queue passes. Chosen: a burst into the queue waits for one.
const QUEUED_RTTS: u64 = 2;
/// Least pause, ns. Chosen: the largest least value of the delayed-ACK timers in use, 200 ms (Linux and
/// Windows).
const LEAST_PAUSE_NS: u64 = 200_000_000;
/// Part of the window that may be free where the bytes in flight are estimated from afar. Chosen: the half
/// round trip varies by about as much.
const WINDOW_PARTS: u64 = 8;
/// Part of the round trip below which the half towards the sender counts as near. Same as that of the
/// capture point.
pub const NEAR_PARTS: u64 = 8;
/// Samples of a half that is measured while data flow. Chosen: more than the handshake and a request have.
const LEAST_SAMPLES: u64 = 8;
/// Parts of the bytes in flight: a sender whose last segment had PSH has no more data where more than one
/// part is acknowledged and not answered. Chosen: Linux sets PSH in each burst, and an ACK-clocked sender
/// answers each ACK; with a halved window it answers half of them.
const UNANSWERED: u64 = 2;

/// The state of a sender between two segments.
enum State {
    Known(Cause),
    Hole,
    Flowing,
}

impl Sender {
    /// The handshake is complete, or was not captured.
    pub fn establish(&mut self) {
        self.view.has_handshake = true;
    }
    /// Divides the time until `at`.
    pub fn advance(&mut self, at: Instant, toward_sender: &Half) {
        let up = Duration::from_nanos(toward_sender.recent_ns());
        while let Some(&(seen, acked, edge)) = self.view.waiting.front().filter(|(seen, ..)| *seen + up <= at)
        {
            self.view.waiting.pop_front();
            self.account((seen + up).max(self.view.clock.unwrap_or(seen)), toward_sender);
            (self.view.acked, self.view.edge) = (acked, edge);
        }
        self.account(at, toward_sender);
    }
    fn account(&mut self, until: Instant, toward_sender: &Half) {
        let from = self.view.clock.unwrap_or(until);
        self.view.clock = Some(until.max(from));
        let ns = until.since(from).as_nanos();
        if ns == 0 {
            return;
        }
        let state = self.state(toward_sender);
        let waits = matches!(state, State::Known(Cause::Handshake | Cause::Application | Cause::Unknown));
        if !waits && self.has_acks() {
            self.flight.add_weighted(self.in_flight(), ns);
            if self.view.is_window_known {
                self.window.add_weighted(self.view.edge.saturating_sub(self.view.acked), ns);
            }
        }
        match state {
            State::Known(cause) => self.view.pending.add(cause, ns),
            State::Hole => self.view.hole_ns += ns,
            State::Flowing => self.view.flowing_ns += ns,
        }
    }
    fn in_flight(&self) -> u64 {
        self.space.next().saturating_sub(self.view.acked)
    }
    fn state(&self, toward_sender: &Half) -> State {
        let is_near = self.is_near(toward_sender);
        if !self.view.has_handshake {
            return State::Known(Cause::Handshake);
        }
        if let Some(episode) = &self.episode {
            return State::Known(episode.cause);
        }
        if self.data_span.is_none() && !self.has_acks() || self.finished {
            return State::Known(Cause::Application);
        }
        if self.space.has_holes() {
            return State::Hole;
        }
        if self.data_span.is_none() || self.acked.is_none() {
            return State::Known(Cause::Unknown);
        }
        let full = u64::from(self.full());
        let window = self.view.edge.saturating_sub(self.view.acked);
        let tolerance = if is_near { full } else { full.max(window / WINDOW_PARTS) };
        let in_flight = self.in_flight();
        if self.view.is_window_known && in_flight + tolerance > window {
            return State::Known(Cause::ReceiveWindow);
        }
        let unanswered = self.view.acked.saturating_sub(self.view.acked_at_send);
        let has_ended = self.short
            || self.pushed && (in_flight == 0 || UNANSWERED * unanswered > self.view.flight_at_send)
            || is_near && in_flight == 0;
        if has_ended { State::Known(Cause::Application) } else { State::Flowing }
    }
    /// Whether the capture point is near the sender.
    fn is_near(&self, toward_sender: &Half) -> bool {
        let is_measured = toward_sender.samples.count() > 0;
        toward_sender.is_here || is_measured && toward_sender.recent_ns() <= self.srtt_ns() / NEAR_PARTS
    }
    /// A segment shows that the pending time was no loss: its causes are final.
    pub(super) fn commit(&mut self, at: Instant, is_progress: bool) {
        let least_ns = self.rtt.least().unwrap_or(0);
        let limit = (PAUSE_RTTS * least_ns).max(QUEUED_RTTS * self.srtt_ns()).max(LEAST_PAUSE_NS);
        let last = self.last_sent.max(self.last_heard);
        let is_long = |since: Option<Instant>| since.is_some_and(|since| at.since(since).as_nanos() > limit);
        let is_pause = is_long(last) || is_progress && is_long(self.view.awaited);
        let (flowing_ns, hole_ns) =
            (std::mem::take(&mut self.view.flowing_ns), std::mem::take(&mut self.view.hole_ns));
        let pending = std::mem::take(&mut self.view.pending);
        if let Some(episode) = &mut self.episode {
            episode.spent_ns += pending.of(episode.cause);
        }
        self.times.merge(&pending);
        if is_pause {
            // A probe with new data does not end a pause.
            let paused_ns = flowing_ns + std::mem::take(&mut self.view.answerable_ns);
            self.times.add(Cause::Pause, paused_ns);
            if paused_ns > 0 {
                self.view.pauses = (self.view.pauses.0 + 1, self.view.pauses.1.max(paused_ns));
                self.view.resumed = Some(at);
            }
        } else {
            self.view.answerable_ns += flowing_ns;
        }
        self.view.open_hole_ns += hole_ns;
        if !self.space.has_holes() {
            let open_ns = std::mem::take(&mut self.view.open_hole_ns);
            self.flowing.add_time(self.srtt_ns(), open_ns);
        }
    }
    /// New data left. If the sender had been idle before that, with everything acknowledged, it had no more
    /// data since the last ones: it answered none of the ACKs.
    pub(super) fn commit_data(&mut self, at: Instant) {
        let idle_ns = self.view.pending.of(Cause::Application);
        self.commit(at, false);
        if !std::mem::take(&mut self.view.has_heard) {
            return;
        }
        let answerable_ns = std::mem::take(&mut self.view.answerable_ns);
        if idle_ns > self.srtt_ns() / NEAR_PARTS && idle_ns > 0 {
            self.times.add(Cause::Application, answerable_ns);
        } else {
            self.flowing.add_time(self.srtt_ns(), answerable_ns);
        }
    }
    /// A segment was sent again: the pending time belongs to the loss.
    pub(super) fn commit_repair(&mut self, at: Instant, repair: Repair, is_expiry: bool) {
        if is_expiry {
            let mut pending = std::mem::take(&mut self.view.pending);
            let handshake_ns = pending.take(Cause::Handshake);
            let window_ns = pending.take(Cause::ReceiveWindow);
            let silence = pending.total()
                + std::mem::take(&mut self.view.flowing_ns)
                + std::mem::take(&mut self.view.hole_ns);
            self.times.add(Cause::Handshake, handshake_ns);
            self.times.add(Cause::ReceiveWindow, window_ns);
            self.times.add(Cause::Timeout, silence);
            self.view.spent_ns += silence;
        }
        let cause = if repair == Repair::Timeout { Cause::Timeout } else { Cause::Recovery };
        let open_ns = std::mem::take(&mut self.view.open_hole_ns) + std::mem::take(&mut self.view.hole_ns);
        self.times.add(cause, open_ns);
        self.commit(at, false);
    }
    /// Whether the half towards the sender is long and not measured while data flow, as near the receiver
    /// without timestamps: a queue there is not seen.
    pub fn is_blind(&self, toward_sender: &Half) -> bool {
        let is_measured = toward_sender.has_echoes || toward_sender.samples.count() >= LEAST_SAMPLES;
        !self.is_near(toward_sender) && !is_measured
    }
    /// The lifetime by cause.
    pub fn causes(&self, toward_sender: &Half) -> CauseTimes {
        let mut times = self.times;
        times.merge(&self.view.pending);
        let mut flowing = self.flowing.clone();
        let view = &self.view;
        let open_ns = view.flowing_ns + view.hole_ns + view.open_hole_ns + view.answerable_ns;
        flowing.add_time(self.srtt_ns(), open_ns);
        let ack_path_ns = times.take(Cause::AckPath);
        times.merge(&flowing.divide(self.rtt.least().unwrap_or(0)));
        if self.is_blind(toward_sender) {
            times.shift(Cause::CongestionWindow, Cause::Unknown, u64::MAX);
        }
        if self.policer().is_some() {
            for cause in [Cause::Recovery, Cause::Timeout, Cause::CongestionWindow] {
                times.shift(cause, Cause::Policer, u64::MAX);
            }
        }
        for cause in [Cause::CongestionWindow, Cause::Queue] {
            let rest = ack_path_ns.saturating_sub(times.of(Cause::AckPath));
            times.shift(cause, Cause::AckPath, rest);
        }
        times
    }
}
