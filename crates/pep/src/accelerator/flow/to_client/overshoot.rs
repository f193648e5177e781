//! Overshoot: sending past the client's advertised window ("opportunistic transmission", Liu and Lee 2011).
//!
//! The window seen here is older than the ACK's delay: a client that reads at once has advertised more since.
//! The overshoot relies on ACKs in flight, not on free memory: Linux from 6.17 on drops every segment that
//! ends past the edge that it last advertised. The overshoot grows by the acknowledged bytes, one window each
//! round trip, up to the useful window, while the window is near its largest. At a sign of a drop it ends;
//! everything sent past the edge is sent again, and the next attempt comes after a pause. The pause doubles
//! with each drop and is reset after a long time without one, since a radio outage may look like a drop.
//!
//! **Credit.** A client whose first missing byte is lost on the way cannot move its edge, and drops what is
//! past it: a quarter of the data, with a window of megabytes on a path that loses a packet each second. The
//! bytes past the edge are therefore at most a small share of the bytes delivered, the credit. Dropped bytes
//! are taken from it.

use paceline_net::{Duration, Instant};

/// Pause after the first drop, in milliseconds. Chosen: several round trips.
const FIRST_PAUSE_MS: u32 = 1_000;
/// Longest pause, in milliseconds. Chosen: a client that always drops costs one flight in five minutes.
const MAX_PAUSE_MS: u32 = 300_000;
/// Divisor of the growth after a drop. Chosen: the next drop costs an eighth.
const CAUTION_DIVISOR: u64 = 8;
/// Multiple of the last pause without a drop after which the pause is reset. Chosen: real drops recur sooner.
const RESET_PAUSES: u64 = 30;
/// Divisor of the decay of the largest window at each ACK that advances. Chosen: a client that has halved its
/// buffer is sent past its window again after about a hundred ACKs.
const MAX_WINDOW_DECAY: u32 = 256;
/// Bytes delivered for a byte that may be dropped. Chosen: 1.6% of the data is sent again at most, less than
/// the gain of a percent or more that the overshoot has where a client's window binds.
const CREDIT_DIVISOR: u64 = 64;
/// A window below the bandwidth-delay product divided by this is small: the credit does not apply. Chosen:
/// without an overshoot such a client gets a quarter of the rate, so dropping a quarter costs less. The
/// useful window is no measure of that, since it contains the target delay.
const SMALL_WINDOW_DIVISOR: u64 = 4;
/// Credit at the start, and the largest one, in bytes. Chosen: a small window costs most at the start of a
/// transfer; the largest holds the path of 1 Gb/s and 80 ms beyond a window of 6 MiB.
const INITIAL_CREDIT: u32 = 1 << 20;
const MAX_CREDIT: u32 = 16 << 20;
/// Credit that always remains, in bytes. Chosen: the windows of old clients, for which the pauses suffice.
const LEAST_CREDIT: u32 = 64 << 10;

/// Part of the overshoot that a loss while it is in use takes, as a divisor. Chosen: the queue then has room
/// for the variation of the round trip.
const LOSS_DIVISOR: u32 = 4;
/// Divisor of the growth for a while after such a loss. Chosen: a quarter of some megabytes is regained in
/// tens of round trips, so that a loss, which costs one, is rare.
const SLOW_DIVISOR: u64 = 256;
/// How long the growth is slow. Chosen: several such cycles.
const SLOW_FOR: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Overshoot {
    /// Bytes beyond the advertised edge that may be sent.
    extra: u32,
    paused_until: Instant,
    /// Length of the last pause, in milliseconds.
    pause_ms: u32,
    /// Largest window seen.
    max_window: u32,
    /// Bytes that may be dropped.
    credit: u32,
    /// The growth is slow until then.
    slow_until: Instant,
}

impl Overshoot {
    /// The first flight may exceed the window by half: a new client has no unread data.
    pub fn new(window: u64) -> Self {
        Self {
            extra: narrow(window / 2),
            paused_until: Instant::ZERO,
            pause_ms: 0,
            max_window: narrow(window),
            credit: INITIAL_CREDIT,
            slow_until: Instant::ZERO,
        }
    }
    fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms.into())
    }
    /// Whether a drop was seen recently.
    pub fn is_paused(&self, now: Instant) -> bool {
        now < self.paused_until
    }
    /// Bytes beyond the advertised edge that may be sent now.
    pub fn extra(&self, now: Instant, window: u64) -> u64 {
        let open = window > 0 && 4 * window >= 3 * u64::from(self.max_window);
        if open && now >= self.paused_until { u64::from(self.extra) } else { 0 }
    }
    /// An ACK advanced by `acked` bytes and advertises `window` bytes. `useful` is the useful window, and
    /// `small` whether the client's window is small beside the path.
    pub fn on_progress(&mut self, now: Instant, window: u64, acked: u64, useful: u64, small: bool) {
        let decayed = self.max_window - self.max_window / MAX_WINDOW_DECAY;
        self.max_window = decayed.max(narrow(window));
        self.credit = self.credit.saturating_add(narrow(acked / CREDIT_DIVISOR)).min(MAX_CREDIT);
        if now >= self.paused_until + self.pause() * RESET_PAUSES {
            self.pause_ms = 0;
        }
        if now >= self.paused_until {
            let grown = if now < self.slow_until {
                acked / SLOW_DIVISOR
            } else if self.pause_ms == 0 {
                acked
            } else {
                acked / CAUTION_DIVISOR
            };
            self.extra = narrow((u64::from(self.extra) + grown).min(useful.saturating_sub(window)));
            if !small {
                self.extra = self.extra.min(self.credit.max(LEAST_CREDIT));
            }
        }
    }
    /// Bytes past the client's window were lost, probably dropped by the client.
    pub fn charge(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_sub(narrow(bytes));
        self.extra = self.extra.min(self.credit.max(LEAST_CREDIT));
    }
    /// A segment was lost while the overshoot was in use, as a queue that it fills loses one. Once in a round
    /// trip.
    pub fn on_loss(&mut self, now: Instant, round_trip: Duration) {
        if now + SLOW_FOR >= self.slow_until + round_trip {
            self.extra -= self.extra / LOSS_DIVISOR;
            self.slow_until = now + SLOW_FOR;
        }
    }
    /// The client dropped segments past its window.
    pub fn on_drop(&mut self, now: Instant) {
        self.extra = 0;
        self.pause_ms = (self.pause_ms * 2).clamp(FIRST_PAUSE_MS, MAX_PAUSE_MS);
        self.paused_until = now + self.pause();
    }
}

/// Whether a window is so small that drops past it cost less than keeping to it.
pub(in crate::accelerator) fn is_small(window: u64, bandwidth_delay: u64) -> bool {
    window < bandwidth_delay / SMALL_WINDOW_DIVISOR
}

/// Bytes of a window in the memory of a connection. A client's window is below 2^30 (RFC 7323, section 2.3).
pub(in crate::accelerator) fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overshoot_grows_by_a_window_each_round_trip_up_to_the_useful_window() {
        let mut overshoot = Overshoot::new(0);
        let at = Instant::from_millis(1000);
        let mut seen = Vec::new();
        for _ in 0..4 {
            (0..10).for_each(|_| overshoot.on_progress(at, 17_000, 1_700, 60_000, false));
            seen.push(overshoot.extra(at, 17_000));
        }
        assert_eq!(seen, [17_000, 34_000, 43_000, 43_000]);
        assert_eq!(overshoot.extra(at, 12_000), 0, "the window has shrunk");
        overshoot.on_drop(at);
        assert_eq!(overshoot.extra(at, 17_000), 0);
        overshoot.on_progress(at + Duration::from_millis(900), 17_000, 1_700, 60_000, false);
        assert_eq!(overshoot.extra(at + Duration::from_millis(900), 17_000), 0, "paused");
        let later = at + Duration::from_millis(1100);
        overshoot.on_progress(later, 17_000, 1_700, 60_000, false);
        assert_eq!(overshoot.extra(later, 17_000), 1_700 / CAUTION_DIVISOR);
        let reset = later + Duration::from_millis(FIRST_PAUSE_MS.into()) * RESET_PAUSES;
        overshoot.on_progress(reset, 17_000, 1_700, 60_000, false);
        assert_eq!(overshoot.extra(reset, 17_000), 1_700 / CAUTION_DIVISOR + 1_700);
    }

    #[test]
    fn a_loss_takes_a_quarter_once_in_a_round_trip_and_the_growth_is_slow_for_a_while() {
        let mut overshoot = Overshoot::new(0);
        let (at, round_trip) = (Instant::from_millis(1000), Duration::from_millis(80));
        let grow = |overshoot: &mut Overshoot, at| overshoot.on_progress(at, 8_000, 40_000, 88_000, true);
        (0..4).for_each(|_| grow(&mut overshoot, at));
        assert_eq!(overshoot.extra(at, 8_000), 80_000);
        overshoot.on_loss(at, round_trip);
        overshoot.on_loss(at + Duration::from_millis(79), round_trip);
        assert_eq!(overshoot.extra(at, 8_000), 60_000);
        let later = at + round_trip;
        overshoot.on_loss(later, round_trip);
        grow(&mut overshoot, later);
        assert_eq!(overshoot.extra(later, 8_000), 45_000 + 40_000 / SLOW_DIVISOR);
        let over = later + SLOW_FOR;
        grow(&mut overshoot, over);
        assert_eq!(overshoot.extra(over, 8_000), 80_000);
    }

    #[test]
    fn dropped_bytes_are_a_small_share_of_those_delivered() {
        let (mut overshoot, at) = (Overshoot::new(6 << 20), Instant::from_millis(1000));
        let (window, useful) = (6 << 20, 16 << 20);
        let (mut delivered, mut dropped) = (0, 0);
        for flight in 0..1000 {
            for _ in 0..1000 {
                overshoot.on_progress(at, window, 6_000, useful, false);
                delivered += 6_000;
            }
            if flight % 10 == 9 {
                let past = overshoot.extra(at, window);
                overshoot.charge(past);
                dropped += past;
            }
        }
        assert!(dropped > delivered / 100, "{dropped} of {delivered}: the credit is used");
        assert!(
            dropped <= delivered / CREDIT_DIVISOR + u64::from(INITIAL_CREDIT),
            "{dropped} of {delivered}"
        );
        overshoot.charge(u64::MAX);
        assert_eq!(overshoot.extra(at, window), u64::from(LEAST_CREDIT));
    }

    #[test]
    fn the_credit_does_not_bound_a_client_whose_window_is_small() {
        let (window, at) = (64 << 10, Instant::from_millis(1000));
        assert!(is_small(window, 1 << 20) && !is_small(window, 256 << 10));
        let grown = |small: bool| {
            let mut overshoot = Overshoot::new(window);
            overshoot.charge(u64::MAX);
            (0..1000).for_each(|_| overshoot.on_progress(at, window, 6_000, 4 << 20, small));
            overshoot.extra(at, window)
        };
        assert_eq!(grown(true), (4 << 20) - window);
        assert!(grown(false) < 2 * u64::from(LEAST_CREDIT), "{}", grown(false));
    }
}
