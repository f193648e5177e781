//! The default rate control: what the path delivers is measured, and what is on its way is bounded by it.
//!
//! **Delivery rate**: the highest of the last few stretches (`stretches`) of at least a round trip, several TDD periods and one
//! and a half pauses of the radio.
//!
//! **Window**: rate x (minimum round trip + `budget`), the queue that the radio draws from until the first ACK tells of a
//! higher capacity. While the queue stays short the capacity is not known, and the window grows up to twofold each round
//! trip: a hundredfold jump takes eight or nine. After a drop the estimate follows with the stretches, and nothing is sent
//! until the excess has drained.
//!
//! **Minimum round trip**: that of the path at its load, found by windows that are small now and then (`floor`).
//!
//! **Delay that grows with the load** is no queue, though it looks like one. On a radio that fades that search takes a while:
//! whether the rate follows a larger window is tried as well (`response`), and while it does the window goes on growing.
//!
//! **Loss** does not lower the rate, nor do the silences of a radio that fades (`fading`): they are in no stretch. A buffer
//! shorter than the budget is found by trying (`shallow`), which shortens the queue and leaves the path full. After round
//! trips that lost more than radios lose, what is sent goes out evenly: a buffer of a few packets loses bursts alone.
//! What was lost while the buffer had room (`held`) was lost by a radio that fades in part, without a silence.
//!
//! Left out: ECN.

use crate::accelerator::rate::AckSample;
use crate::accelerator::rate::buffer_high_water::Held;
use crate::accelerator::rate::delivery_rate::{Circumstances, Stretches};
use crate::accelerator::rate::fading::LEAST_SILENCE;
use crate::accelerator::rate::in_order_stalls::LEAST_MISSED;
use crate::accelerator::rate::load_delay::Response;
use crate::accelerator::rate::min_rtt::Floor;
use crate::accelerator::rate::short_buffer::{Round, Shallow, is_lossy};
use crate::accelerator::rate::target_delay::{Budget, LONGEST_PAUSE, Silence};
use paceline_net::{Duration, Instant, Rate};
use std::hint::black_box;

/// Parameters that need no knowledge of the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveParameters {
    /// Shortest queueing delay to keep.
    pub least_budget: Duration,
    /// Longest queueing delay to keep, on links that serve in bursts; one and a half round trips, or pauses of the radio,
    /// where that is more.
    pub most_budget: Duration,
    /// Share of round trips that may find the queue empty, 0 to 1. Two fifths of it where the radio fades: a fade
    /// itself leaves the link idle, which no queue prevents.
    pub starvation: f64,
}

impl Default for AdaptiveParameters {
    fn default() -> Self {
        Self {
            least_budget: Duration::from_millis(15),
            most_budget: Duration::from_millis(100),
            starvation: 0.04,
        }
    }
}

/// Shortest stretch of a rate sample: several periods of any TDD frame structure.
const MIN_STRETCH: Duration = Duration::from_millis(40);
/// A round trip does not end with the first answer after a silence but this part of it later: what was held up comes at
/// once, and its last packets have hardly waited.
const ROUND_HELD: u64 = 16;
/// What may be on its way before anything is known: twice what RFC 6928 has for ends that do not know the path's first
/// hop, paced over the round trip that the handshake took; and at least.
const INITIAL_WINDOW: u64 = 29_200;
const MIN_WINDOW: u64 = 4 * 1460;
/// Largest growth of the window in a round trip, and how fast it is reached.
const MAX_GAIN: f64 = 2.0;
const GAIN_STEP: f64 = 1.3;
/// Pacing rate as a factor of the bandwidth: that is a mean over stretches, and what a radio takes and acknowledges comes
/// in bursts. What they make room for is sent soon; how much that is, the window says.
const PACING: f64 = 3.0;
/// The same where a burst would be lost: the radio fades, or a buffer is short.
const EVEN_PACING: f64 = 1.25;
/// For so many round trips it is so after one that lost more than radios lose; unless there was a silence in the last few,
/// in which a fade may have lost as much.
const EVEN_ROUNDS: u8 = 100;
const SILENT_LATELY: u64 = 3;
/// Round trips in which what was lost is sent again and acknowledged.
const REPAIR: u64 = 3;
/// A radio that has lost a part of what was sent is taken for one that does for so long: that of some fades.
const LEAKY: Duration = Duration::from_secs(10);
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Adaptive {
    acked_at: Instant,
    stretches: Stretches,
    floor: Floor,
    budget: Budget,
    /// The current round: when it began, its lowest round trip, and whether there was too little to send.
    round_at: Instant,
    /// It does not end before then.
    round_until: Instant,
    round_lowest: Duration,
    round_limited: bool,
    /// Bytes delivered and found lost in the round.
    round_bytes: (u64, u64),
    /// The last silence as long as a fade.
    silent_at: Instant,
    /// Round trips for which what is sent goes out evenly.
    even: u8,
    shallow: Shallow,
    held: Held,
    /// The radio has lost a part of what was sent, and is taken for one that does until then.
    leaky_until: Instant,
    response: Response,
    /// Factor of the bandwidth-delay product by which the window tries for more.
    gain: f64,
    /// No queue has been seen yet.
    starting: bool,
    /// It loses what is sent in its silences, or a part of it without any.
    fades: bool,
    /// The last that answered has no SACK.
    unselective: bool,
    /// Until then what such a client acknowledges may have been counted as it arrived.
    repaired_until: Instant,
    window: u64,
}

impl Adaptive {
    pub fn new(parameters: AdaptiveParameters) -> Self {
        let AdaptiveParameters { least_budget, most_budget, starvation } = parameters;
        Self {
            acked_at: Instant::ZERO,
            stretches: Stretches::default(),
            floor: Floor::default(),
            budget: Budget::new(least_budget, most_budget, starvation),
            round_at: Instant::ZERO,
            round_until: Instant::ZERO,
            round_lowest: Duration::MAX,
            round_limited: false,
            round_bytes: (0, 0),
            silent_at: Instant::ZERO,
            even: 0,
            shallow: Shallow::default(),
            held: Held::default(),
            leaky_until: Instant::ZERO,
            response: Response::default(),
            gain: MAX_GAIN,
            starting: true,
            fades: false,
            unselective: false,
            repaired_until: Instant::ZERO,
            window: INITIAL_WINDOW,
        }
    }
    fn min_rtt(&self) -> Duration {
        self.floor.rtt()
    }

    /// The path's own delay beyond the minimum, in seconds. Elsewhere `floor` finds it sooner than rates that vary by
    /// themselves tell; on a radio that fades its searches take a while.
    fn reach(&self) -> f64 {
        if self.fades { self.response.reach() } else { 0.0 }
    }
    /// Queueing delay to keep, in seconds.
    fn budget(&self) -> f64 {
        let budget = self.budget.seconds();
        self.shallow.cap().map_or(budget, |cap| cap.min(budget))
    }

    pub fn on_send(&mut self, now: Instant, after_idle: bool) {
        if after_idle {
            self.stretches.on_idle(now);
            self.held.on_idle();
            self.acked_at = now + self.min_rtt(); // not before then is an answer missing
        }
    }

    /// A first idea of the round trip.
    pub fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.floor.on_handshake(now, rtt);
    }

    pub fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        // What fades lose is no sign of a short buffer.
        let lost = if sample.fades { 0 } else { sample.lost };
        let sample = &AckSample { fades: sample.fades || now < self.leaky_until, ..*sample };
        let silent = now.since(self.acked_at);
        self.acked_at = now;
        let fades = silent > LEAST_SILENCE.max(self.min_rtt() / 4);
        self.fades = sample.fades;
        self.unselective = sample.unselective;
        if fades {
            self.silent_at = now;
        }
        if sample.fades && fades {
            self.stretches.on_fade();
            self.floor.on_fade(now);
        }
        self.note_pause(now, silent, sample.fades);
        self.stretches.on_ack(sample.bytes, lost, sample.sent_at, sample.app_limited);
        self.round_limited |= sample.app_limited;
        self.round_bytes.0 += sample.bytes;
        self.round_bytes.1 += lost;
        if sample.unselective && lost > 0 {
            self.repaired_until = now + self.min_rtt() * REPAIR;
        }
        if let Some(rtt) = sample.rtt {
            self.on_rtt(now, rtt, sample.app_limited);
        }
        let stretch = self.min_rtt().max(MIN_STRETCH).max(self.budget.stretch());
        if self.stretches.is_due(now, stretch) {
            self.measure(now);
        }
        if now.since(self.round_at) >= self.min_rtt() && now >= self.round_until {
            self.end_round(now);
        }
        let spoiled = sample.app_limited
            || self.gain > 1.0
            || self.floor.is_searching()
            || fades
            || self.shallow.cap().is_some();
        self.response.on_ack(now, sample.bytes, sample.rtt, spoiled);
        let slack = Duration::from_secs_f64(self.reach() + 2.0 * self.budget.seconds());
        let may_try = !sample.app_limited && !self.starting && self.shallow.cap().is_none();
        if let Some(rise) = self.floor.follow(now, sample, self.window, slack, may_try) {
            // The path's own delay is now in the minimum.
            self.response.shift(-rise);
        }
        self.update_window(if sample.app_limited { 0 } else { sample.bytes });
    }

    /// Nothing was acknowledged for so long.
    fn note_pause(&mut self, now: Instant, silent: Duration, fades: bool) {
        let missed = self.bandwidth() / 8.0 * silent.as_secs_f64();
        // Without SACK a hole that is filled looks like it.
        let counts = !self.unselective && (self.starting || missed > LEAST_MISSED);
        if silent > LEAST_SILENCE && silent <= LONGEST_PAUSE && counts && self.round_until <= self.round_at {
            self.round_until = now + silent / ROUND_HELD;
        }
        let silence = Silence {
            lasted: silent,
            delivered: self.stretches.delivered(),
            missed,
            // While it is not known what the path holds, too little was on its way.
            paused: !fades && !self.starting,
            selective: !self.unselective,
        };
        self.budget.on_ack(now, &silence);
    }

    fn on_rtt(&mut self, now: Instant, rtt: Duration, limited: bool) {
        self.stretches.on_rtt(rtt);
        let counts = self.floor.on_rtt(now, rtt, self.fades);
        if counts {
            self.round_lowest = self.round_lowest.min(rtt);
        }
        if counts && !limited && !self.floor.is_searching() {
            self.budget.on_queue(now, self.floor.is_near(rtt), self.min_rtt(), self.fades);
        } else {
            self.budget.on_other(now);
        }
        let waited = rtt.saturating_sub(self.min_rtt());
        self.held.on_queue(now, waited, self.stretches.delivered(), counts);
    }

    fn end_round(&mut self, now: Instant) {
        let known = self.round_lowest < Duration::MAX;
        let queue = known.then(|| self.round_lowest.saturating_sub(self.min_rtt()).as_secs_f64());
        let (delivered, lost) = self.round_bytes;
        let seconds = now.since(self.round_at).as_secs_f64();
        let silent_lately = now.since(self.silent_at) < self.min_rtt() * SILENT_LATELY;
        let lossy = is_lossy(delivered, lost);
        if !self.unselective && !silent_lately && lossy && self.held.had_much_room(now) {
            self.leaky_until = now + LEAKY;
        }
        let elsewhere = self.is_lost_elsewhere(now);
        self.held.on_round(now, lost, lossy);
        let lost = if elsewhere { 0 } else { lost };
        let unselective = self.unselective;
        let round = Round { delivered, lost, queue, seconds, bandwidth: self.bandwidth(), unselective };
        self.shallow.on_round(now, &round);
        if round.is_lossy() && !silent_lately {
            self.even = EVEN_ROUNDS;
        } else {
            self.even = self.even.saturating_sub(1);
        }
        if unselective && round.is_lossy() {
            self.gain = 1.0; // meanwhile no round trip tells of the queue
            self.starting = false;
        } else if let Some(queue) = queue {
            let short = queue < self.budget() / 2.0;
            if !self.round_limited && !self.floor.is_searching() {
                self.gain = if short { (self.gain * GAIN_STEP).min(MAX_GAIN) } else { 1.0 };
                self.starting &= short;
            } else if !short {
                self.gain = 1.0;
                self.starting = false;
            }
        }
        (self.round_at, self.round_lowest, self.round_limited) = (now, Duration::MAX, false);
        self.round_bytes = (0, 0);
    }

    /// Whether what is lost is not what the buffer had no room for. Without SACK it was lost at an unknown time.
    fn is_lost_elsewhere(&self, now: Instant) -> bool {
        now < self.leaky_until
            && !self.unselective
            && self.held.had_room(now)
            && self.stretches.is_reached(now)
    }

    fn measure(&mut self, now: Instant) {
        let before = self.bandwidth();
        let of = Circumstances {
            busy: self.min_rtt() + self.budget.least(),
            sparing: self.floor.is_searching(),
            lost_elsewhere: self.is_lost_elsewhere(now),
            repaired: now < self.repaired_until,
        };
        if let Some(rate) = self.stretches.measure(now, &of) {
            self.floor.loaded.on_rate(now, rate, before);
            self.floor.on_bandwidth(self.bandwidth());
        }
    }

    fn update_window(&mut self, acked: u64) {
        let min_rtt = self.min_rtt().as_secs_f64();
        let span = if let Some(span) = self.floor.span() {
            span
        } else {
            let own = min_rtt + self.reach();
            // In a short buffer there is no room to try for more.
            if self.shallow.cap().is_some() {
                own + self.budget()
            } else {
                (own + self.budget()).max(self.gain * min_rtt) * self.response.factor()
            }
        };
        let wanted = (self.bandwidth() / 8.0 * span) as u64;
        let least = if self.starting { INITIAL_WINDOW } else { MIN_WINDOW };
        // Slow start: what is acknowledged may be sent twice.
        let doubled = if self.starting && self.shallow.cap().is_none() { self.window + acked } else { 0 };
        self.window = wanted.max(least).max(doubled);
    }

    pub fn rate(&self) -> Rate {
        let trying = self.gain > 1.0 && self.even == 0;
        let bursts = !self.fades && self.even == 0 && self.shallow.cap().is_none();
        let pace = if trying || bursts { PACING } else { EVEN_PACING };
        let mut rate = pace * self.bandwidth();
        if trying {
            let rtt = self.min_rtt().as_secs_f64().max(1e-3);
            let initial = 8.0 * 2.0 * INITIAL_WINDOW as f64 / rtt;
            let filling = if self.starting { 12.0 * self.window as f64 / rtt } else { 0.0 };
            rate = rate.max(initial).max(filling);
        }
        Rate((rate as u64).max(64_000))
    }
    /// Reads each of its cache lines.
    pub fn look_at(&self) {
        self.floor.look_at();
        self.stretches.look_at();
        self.budget.look_at();
        self.held.look_at();
        black_box((self.shallow.cap(), self.response.reach()));
        black_box((self.acked_at, self.round_at, self.window));
    }
    /// In bit/s; zero before it was measured.
    pub fn bandwidth(&self) -> f64 {
        self.stretches.bandwidth()
    }
    /// Bytes that the path itself holds.
    pub fn bandwidth_delay(&self) -> u64 {
        (self.bandwidth() / 8.0 * (self.min_rtt().as_secs_f64() + self.reach())) as u64
    }
    pub fn window(&self) -> u64 {
        self.window
    }
    /// A little more than may be on its way: else a client's window that ends there counts as too little to send, and nothing
    /// is learned. In a short buffer there is nothing to be learned.
    pub fn useful_window(&self) -> u64 {
        if self.shallow.cap().is_some() { self.window } else { self.window / 8 * 9 }
    }
}

#[cfg(test)]
#[path = "adaptive_tests.rs"]
mod tests;
