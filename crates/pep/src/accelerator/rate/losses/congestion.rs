//! A queue that several devices share, and the window of a device that yields to the others.
//!
//! Alone in its queue, a device learns from a few overflows how much fits (`flight_cap`, `short_buffer`), and
//! loses little. Where two devices of the accelerator lose more at the same time, either they fill one queue,
//! or their radios lose packets whatever is sent. A trial tells: the window becomes that of CUBIC (RFC 9438),
//! for all connections of the device together. If about as much is lost as before, the radio loses it, and
//! the trial ends; the next one waits twice as long. Else the device goes on so: behind a queue that others
//! share, with or without the accelerator, it has the share of one connection (RFC 2914). Without losses for
//! a while it is alone again. A CE mark is a queue's own word (RFC 3168): the device yields without a trial.
//! Left out: HyStart and slow start, since the window before is that of the estimates; devices of other
//! workers.

use crate::accelerator::rate::state::ControlState;
use paceline_net::{Duration, Instant, Rate};

/// Share of the bytes whose loss is too much. Measured: CUBIC's own losses in a shared queue are 0.1 to 0.8%
/// (eight and 32 connections at 100 Mb/s). With 0.2% the rows of `crates/sim/tests/shared_bottleneck.rs` are
/// the same; with BBRv3's 2% five connections of CUBIC beside five devices had 3.4 Mb/s each in place of 10.
const TOO_MUCH: f64 = 0.005;
/// A window of time over which the share is taken: eight round trips of the path without a queue, and at
/// least 200 ms. So many windows in a row with too many losses begin a trial. Chosen: two tell a burst from a
/// state; three delay the finding by 0.3 s.
const WINDOW_ROUND_TRIPS: u64 = 8;
const LEAST_WINDOW: Duration = Duration::from_millis(200);
const WINDOWS: u8 = 2;
/// Time at the beginning of a trial that does not count. Derived: other devices behind the queue begin theirs
/// within two windows, 0.64 s at a round trip of 40 ms.
const SETTLING: Duration = Duration::from_secs(1);
/// Segments whose loss is expected in a trial, if it were the radio's, until it is judged. Derived: none at
/// all then has a probability of 0.03% (Poisson).
const EXPECTED: f64 = 8.0;
/// Share lost in a trial, as a part of that before, from which the radio loses it. Measured: CUBIC's losses
/// in a shared queue are a tenth of those before or less, a radio's stay: any part between divides the two.
const SAME_SHARE: f64 = 0.4;
/// Time until the next trial after one that found the radio; it doubles up to the limit. Derived: a trial of
/// two seconds at 0.7 of the window costs 2% of the goodput at first, and 0.1% at the limit.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Time without a loss after which the device is alone: at least this time, and so many times that in which
/// CUBIC's window returns to the one at the last loss, where it meets the others again (RFC 9438 4.2).
const QUIET: Duration = Duration::from_secs(10);
const RETURNS: f64 = 3.0;
/// Factor of the window at a loss (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// The same at a CE mark (RFC 8511, section 4.1): a queue that marks is short.
const BETA_MARK: f64 = 0.85;
/// Growth of the cubic function in segments/s^3 (RFC 9438, section 5).
const C: f64 = 0.4;
/// Growth in segments per window of the estimate of Reno's window (RFC 9438, section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Bytes of a segment: of an MTU of 1500. Results depend on it as on the unit of C: by its cube root.
const SEGMENT: f64 = 1460.0;
/// Segments below the window from which too few data limit the sender. ACKs for two segments, of a sender
/// that is paced, leave up to three.
const LIMITED: f64 = 4.0;
/// Smallest window in segments (RFC 9438, section 4.6, has 2). Four let a client with delayed ACKs
/// acknowledge at once.
const LEAST: f64 = 4.0;
/// Pacing rate as a factor of the window in a round trip, as in Linux (tcp_pacing_ca_ratio).
const PACING_GAIN: f64 = 1.2;

/// Bytes delivered and lost.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    delivered: f64,
    lost: f64,
}

impl Share {
    fn add(&mut self, signs: &Signs) {
        self.delivered += signs.delivered as f64;
        self.lost += signs.lost as f64;
    }
    fn of_lost(self) -> f64 {
        if self.lost > 0.0 { self.lost / (self.lost + self.delivered) } else { 0.0 }
    }
}

/// The content of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Signs {
    pub delivered: u64,
    pub lost: u64,
    /// The client reports a CE mark, for the first time in its flight.
    pub marked: bool,
    pub rtt: Option<Duration>,
    pub min_rtt: Duration,
    /// Bytes in flight ahead of the acknowledgment.
    pub in_flight: u64,
    /// Several other devices were found to share a queue.
    pub others_share: bool,
    /// Another one has lost much lately.
    pub others_lose: bool,
}

/// A sender that yields: CUBIC's state, in segments.
#[derive(Clone, Debug)]
struct Yielding {
    window: f64,
    /// The window at the last loss, and the one that Reno would have.
    largest: f64,
    reno: f64,
    /// When the present growth began, and seconds from then until `largest` is reached again.
    since: Instant,
    until_largest: f64,
    /// Losses until then belong to the flight that was answered already.
    answered_until: Instant,
    last_loss_at: Instant,
    begun_at: Instant,
    /// Before the trial, and in it.
    before: Share,
    during: Share,
    /// The trial is over, or none was needed: others share the queue, or a queue marked.
    judged: bool,
    by_mark: bool,
}

#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Congestion {
    rtt: Duration,
    /// The window under way, its end, and how many before it had lost too much.
    share: Share,
    window_end: Instant,
    lossy: Share,
    lossy_windows: u8,
    /// No trial until then, and the length of the next pause.
    pause_until: Instant,
    pause: Duration,
    yielding: Option<Box<Yielding>>,
}

impl Default for Congestion {
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            share: Share::default(),
            window_end: Instant::ZERO,
            lossy: Share::default(),
            lossy_windows: 0,
            pause_until: Instant::ZERO,
            pause: FIRST_PAUSE,
            yielding: None,
        }
    }
}

impl Congestion {
    pub fn on_ack(&mut self, now: Instant, signs: &Signs) {
        self.rtt = signs.rtt.unwrap_or(self.rtt);
        if let Some(yielding) = &mut self.yielding {
            yielding.on_ack(now, signs, self.rtt);
            if yielding.is_alone(now) {
                (self.yielding, self.pause) = (None, FIRST_PAUSE);
            } else if yielding.is_in_vain(now) {
                self.yielding = None;
                self.pause_until = now + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
            return;
        }
        if signs.marked || signs.others_share && signs.lost > 0 {
            let mut yielding = Yielding::new(now, signs, Share::default(), self.rtt);
            (yielding.judged, yielding.by_mark) = (true, signs.marked);
            self.yielding = Some(Box::new(yielding));
            return;
        }
        self.share.add(signs);
        if now < self.window_end {
            return;
        }
        let share = std::mem::take(&mut self.share);
        self.window_end = now + (signs.min_rtt * WINDOW_ROUND_TRIPS).max(LEAST_WINDOW);
        if share.of_lost() <= TOO_MUCH || now < self.pause_until {
            (self.lossy, self.lossy_windows) = (Share::default(), 0);
            return;
        }
        self.lossy.delivered += share.delivered;
        self.lossy.lost += share.lost;
        self.lossy_windows = self.lossy_windows.saturating_add(1);
        if self.lossy_windows >= WINDOWS && signs.others_lose {
            let before = std::mem::take(&mut self.lossy);
            self.lossy_windows = 0;
            self.yielding = Some(Box::new(Yielding::new(now, signs, before, self.rtt)));
        }
    }
    /// Its part in the control's state; none without congestion.
    pub fn state(&self) -> Option<ControlState> {
        let yielding = self.yielding.as_ref()?;
        Some(match (yielding.judged, yielding.by_mark) {
            (false, _) => ControlState::Trial,
            (true, false) => ControlState::SharedQueue,
            (true, true) => ControlState::Marked,
        })
    }
    /// Whether others share the queue, as far as is known.
    pub fn is_yielding(&self) -> bool {
        self.yielding.is_some()
    }
    /// Whether the last window had too many losses, or a trial is under way.
    pub fn loses_much(&self) -> bool {
        self.lossy_windows > 0 || self.yielding.is_some()
    }
    /// Whether the device goes on to yield: its window is CUBIC's alone.
    pub fn is_cubic(&self) -> bool {
        self.yielding.as_ref().is_some_and(|yielding| yielding.judged)
    }
    /// Whether it does so because losses showed others in its queue.
    pub fn shares_queue(&self) -> bool {
        self.yielding.as_ref().is_some_and(|yielding| yielding.judged && !yielding.by_mark)
    }
    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.yielding.as_ref().map_or(u64::MAX, |yielding| (yielding.window * SEGMENT) as u64)
    }
    /// Pacing rate.
    pub fn rate(&self) -> Rate {
        let Some(yielding) = &self.yielding else { return Rate(u64::MAX) };
        let seconds = self.rtt.as_secs_f64().max(1e-3);
        Rate((8.0 * PACING_GAIN * yielding.window * SEGMENT / seconds) as u64)
    }
}

impl Yielding {
    fn new(now: Instant, signs: &Signs, before: Share, rtt: Duration) -> Self {
        let mut yielding = Self {
            window: signs.in_flight as f64 / SEGMENT,
            largest: 0.0,
            reno: 0.0,
            since: now,
            until_largest: 0.0,
            answered_until: Instant::ZERO,
            last_loss_at: now,
            begun_at: now,
            before,
            during: Share::default(),
            judged: false,
            by_mark: false,
        };
        yielding.reduce(now, signs, rtt);
        yielding
    }
    fn on_ack(&mut self, now: Instant, signs: &Signs, rtt: Duration) {
        if !self.judged && now.since(self.begun_at) >= SETTLING {
            self.during.add(signs);
        }
        let in_flight = signs.in_flight as f64 / SEGMENT;
        let congested = signs.marked || signs.lost > 0;
        if congested {
            self.last_loss_at = now;
        }
        if now < self.answered_until {
            return;
        }
        if congested {
            self.reduce(now, signs, rtt);
        } else if in_flight + LIMITED < self.window {
            // The growth waits with the data (RFC 9438, section 4.2).
            self.since = now;
        } else {
            self.grow(now, signs.delivered as f64 / SEGMENT, rtt);
        }
    }
    /// No losses come any more.
    fn is_alone(&self, now: Instant) -> bool {
        let growth = Duration::from_secs_f64(RETURNS * self.until_largest);
        now.since(self.last_loss_at) >= QUIET.max(growth)
    }
    /// The trial has shown that as much is lost with a smaller window.
    fn is_in_vain(&mut self, now: Instant) -> bool {
        let expected = self.before.of_lost() * (self.during.delivered + self.during.lost);
        if self.judged || expected < EXPECTED * SEGMENT || now.since(self.begun_at) < SETTLING * 2 {
            return false;
        }
        self.judged = true;
        self.during.of_lost() >= SAME_SHARE * self.before.of_lost()
    }
    fn reduce(&mut self, now: Instant, signs: &Signs, rtt: Duration) {
        let in_flight = signs.in_flight as f64 / SEGMENT;
        let beta = if signs.marked && signs.lost == 0 { BETA_MARK } else { BETA };
        let window = self.window.min(in_flight).max(LEAST);
        // Fast convergence (section 4.7): a window that did not reach the last one leaves room for others.
        let converging = window < self.largest;
        self.largest = if converging { window * (1.0 + BETA) / 2.0 } else { window };
        self.window = (window * beta).max(LEAST);
        self.reno = self.window;
        self.since = now;
        self.until_largest = libm::cbrt((self.largest - self.window).max(0.0) / C);
        self.answered_until = now + rtt;
    }
    fn grow(&mut self, now: Instant, delivered: f64, rtt: Duration) {
        let ahead = now.since(self.since).as_secs_f64() + rtt.as_secs_f64() - self.until_largest;
        let target = (C * ahead * ahead * ahead + self.largest).clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) * (delivered / self.window).min(1.0);
        let alpha = if self.reno < self.largest { ALPHA } else { 1.0 };
        self.reno += alpha * delivered / self.window;
        self.window = self.window.max(self.reno);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);
    const FLIGHT: u64 = 200 * 1460;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn signs(delivered: u64, lost: u64, others_lose: bool) -> Signs {
        let (rtt, in_flight) = (Some(RTT), FLIGHT);
        Signs {
            delivered,
            lost,
            marked: false,
            rtt,
            min_rtt: RTT,
            in_flight,
            others_share: false,
            others_lose,
        }
    }
    /// Seconds of ten ACKs a round trip, of which one reports losses: a share `before` the device yields, and
    /// `after`. Returns whether it yields, and shares the queue, at the end of each second.
    fn run(seconds: u64, [before, after]: [f64; 2], others_lose: bool) -> Vec<(bool, bool)> {
        let mut congestion = Congestion::default();
        let mut found = Vec::new();
        for n in 0..seconds * 250 {
            let share = if congestion.is_yielding() { after } else { before };
            let lost = if n % 10 == 0 { (share * FLIGHT as f64) as u64 } else { 0 };
            congestion.on_ack(at(1000 + 4 * n), &signs(FLIGHT / 10, lost, others_lose));
            if n % 250 == 249 {
                found.push((congestion.is_yielding(), congestion.shares_queue()));
            }
        }
        found
    }

    #[test]
    fn losses_that_a_smaller_window_ends_are_those_of_a_shared_queue() {
        let found = run(6, [0.05, 0.002], true);
        assert!(
            found[0] == (true, false) && found[3..].iter().all(|found| *found == (true, true)),
            "{found:?}"
        );
        let mut congestion = Congestion::default();
        congestion.on_ack(at(1000), &Signs { others_share: true, ..signs(1460, 1460, true) });
        // Three times the 5.3 s in which CUBIC's window returns.
        for (seconds, shares) in [(15, true), (17, false)] {
            congestion.on_ack(at(1000 + 1000 * seconds), &signs(1460, 0, true));
            assert_eq!(congestion.shares_queue(), shares, "{seconds} s");
        }
    }

    #[test]
    fn losses_that_stay_are_the_radios_and_those_of_a_device_alone_are_no_reason() {
        let found = run(20, [0.05, 0.05], true);
        assert!(found[0].0 && found[3..].iter().all(|found| *found == (false, false)), "{found:?}");
        for (share, others_lose) in [(0.05, false), (0.7, false), (0.003, true)] {
            assert!(run(20, [share; 2], others_lose).iter().all(|found| *found == (false, false)), "{share}");
        }
    }

    #[test]
    fn a_loss_lowers_the_window_once_a_round_trip_and_it_returns_along_the_cubic() {
        let mut congestion = Congestion::default();
        congestion.on_ack(at(1000), &Signs { others_share: true, ..signs(1460, 1460, true) });
        assert_eq!(congestion.window(), 140 * 1460);
        congestion.on_ack(at(1010), &signs(1460, 1460, true));
        assert_eq!(congestion.window(), 140 * 1460, "the same flight");
        // cbrt(60 / 0.4) = 5.3 s until the old window.
        let mut ms = 1040;
        while congestion.window() < 199 * 1460 {
            congestion.on_ack(at(ms), &signs(congestion.window() / 4, 0, true));
            ms += 10;
        }
        assert!((3500..6500).contains(&(ms - 1000)), "{ms}");
        congestion.on_ack(at(ms), &signs(1460, 1460, true));
        assert!((139 * 1460..=141 * 1460).contains(&congestion.window()), "{}", congestion.window());
    }

    #[test]
    fn a_mark_lowers_the_window_by_less_than_a_loss_and_needs_no_trial() {
        let mut congestion = Congestion::default();
        let marked = Signs { marked: true, ..signs(1460, 0, false) };
        congestion.on_ack(at(1000), &marked);
        assert_eq!((congestion.window(), congestion.is_cubic()), (170 * 1460, true));
        assert!(!congestion.shares_queue(), "each device may have a queue of its own");
        congestion.on_ack(at(1010), &marked);
        assert_eq!(congestion.window(), 170 * 1460, "the same flight");
        congestion.on_ack(at(1060), &Signs { in_flight: 170 * 1460, lost: 1460, ..marked });
        assert!(congestion.window().abs_diff(119 * 1460) <= 1, "{}", congestion.window());
    }
}
