//! Overshoot: sending past the client's advertised window ("opportunistic transmission", Liu and Lee 2011).
//!
//! The window seen here is older than the ACK's delay: a client that reads at once has advertised more
//! since. The overshoot relies on ACKs in flight, not on free memory. Where that fails, segments are lost:
//! Linux from 6.17 on drops every segment that ends past the edge that it last advertised, and so do
//! firewalls that track windows. A router that translates addresses resets the connection. Hence the rule:
//!
//! - **Evidence.** A *device* has to show that it takes such data: first, one segment is sent that begins
//!   at or before the edge and ends past it, and has to be delivered ([`PastWindow`]). Middleboxes of the
//!   kind of Linux's conntrack judge the start of a segment, so that this one passes.
//! - **Growth.** Only windows that grow are overshot: the client then reads at once and its buffer is being
//!   tuned. A fixed window, however small, is kept. The overshoot grows by the acknowledged bytes, up to one
//!   window and to the useful window. It is zero again after a round trip without growth, and after a loss.
//! - **End.** At the first reset or drop that follows data past the edge it ends for the device for good.

use paceline_net::{Duration, Instant};

/// A window that is larger than ever before by its size over this grows. Chosen: tuned buffers double in a
/// round trip, while roundings change a window by less. Windows that shrink and open do not grow.
const GROWTH_DIVISOR: u32 = 8;

/// Whether a device takes data past its window, as far as its ACKs have shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) enum PastWindow {
    /// Nothing: a probe may be sent.
    #[default]
    Unknown,
    /// A segment past the window was delivered.
    Taken,
    /// Such data was dropped, or a reset followed it: no more is sent.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Overshoot {
    /// Bytes beyond the advertised edge that may be sent.
    extra: u32,
    /// Largest window before this round trip, and in it.
    before: u32,
    largest: u32,
    /// The round trip ends when this offset is acknowledged; its lower 32 bits.
    round_until: u32,
    /// When data past the edge was last sent, in milliseconds modulo 2^32; 0 for never.
    last_sent_ms: u32,
    /// The window has grown in this round trip, and in the last one.
    grows: bool,
    grew: bool,
}

/// The client's state at an ACK that advances.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Progress {
    /// Offsets up to which data is acknowledged and sent.
    pub una: u64,
    pub nxt: u64,
    /// Bytes acknowledged.
    pub acked: u64,
    /// The client's window, and the window beyond which more does not raise the throughput.
    pub window: u64,
    pub useful: u64,
}

impl Overshoot {
    pub fn new(window: u64) -> Self {
        let window = narrow(window);
        Self {
            extra: 0,
            before: window,
            largest: window,
            round_until: 0,
            last_sent_ms: 0,
            grows: false,
            grew: false,
        }
    }
    /// Whether the client's window, which is now `window`, grows.
    pub fn is_growing(&self, window: u64) -> bool {
        (self.grows || self.grew) && 4 * window >= 3 * u64::from(self.largest)
    }
    /// Bytes beyond the advertised edge that may be sent now to a device that takes them.
    pub fn extra(&self, window: u64) -> u64 {
        if self.is_growing(window) { u64::from(self.extra) } else { 0 }
    }
    /// An ACK advanced. `known`: the device takes data past its window.
    pub fn on_progress(&mut self, known: bool, progress: Progress) {
        let Progress { una, nxt, acked, window, useful } = progress;
        self.largest = self.largest.max(narrow(window));
        self.grows |= self.largest > self.before + self.before / GROWTH_DIVISOR;
        if (una as u32).wrapping_sub(self.round_until) as i32 > 0 {
            (self.grew, self.grows) = (self.grows, false);
            (self.before, self.largest) = (self.before.max(self.largest), narrow(window));
            self.round_until = nxt as u32;
        }
        let most =
            if known && self.is_growing(window) { useful.saturating_sub(window).min(window) } else { 0 };
        self.extra = narrow((u64::from(self.extra) + acked).min(most));
    }
    /// A segment was lost while data was past the edge: until the window grows anew, it is kept.
    pub fn stop(&mut self) {
        (self.extra, self.grows, self.grew) = (0, false, false);
        self.before = self.before.max(self.largest);
    }
    /// Data past the edge was sent.
    pub fn on_sent(&mut self, now: Instant) {
        self.last_sent_ms = (now.as_millis() as u32).max(1);
    }
    /// Whether data past the edge was sent within `time`.
    pub fn was_used(&self, now: Instant, time: Duration) -> bool {
        let ago = (now.as_millis() as u32).wrapping_sub(self.last_sent_ms);
        self.last_sent_ms > 0 && u64::from(ago) <= time.as_millis()
    }
}

/// Bytes of a window in the memory of a connection. A client's window is below 2^30 (RFC 7323, section 2.3).
pub(in crate::accelerator) fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USEFUL: u64 = 1 << 20;

    /// Acknowledges a flight of one window in ten ACKs, where the window becomes `window`.
    fn round(overshoot: &mut Overshoot, una: &mut u64, known: bool, window: u64) -> u64 {
        let nxt = *una + 2 * window;
        for _ in 0..10 {
            *una += window / 10;
            overshoot
                .on_progress(known, Progress { una: *una, nxt, acked: window / 10, window, useful: USEFUL });
        }
        *una = nxt;
        overshoot.extra(window)
    }

    #[test]
    fn a_growing_window_is_overshot_by_up_to_itself_and_the_useful_window() {
        let (mut overshoot, mut una) = (Overshoot::new(64_000), 1);
        assert_eq!(round(&mut overshoot, &mut una, true, 64_000), 0);
        let grown = [128_000, 256_000, 512_000].map(|window| round(&mut overshoot, &mut una, true, window));
        assert_eq!(grown[0], 128_000, "all acknowledged bytes of the round trip");
        assert!(grown[1] > 128_000 && grown[1] <= 256_000, "{grown:?}");
        assert_eq!(grown[2], 512_000, "not beyond one window");
        assert_eq!(round(&mut overshoot, &mut una, true, USEFUL), 0, "not beyond the useful window");
    }

    #[test]
    fn a_window_that_does_not_grow_is_kept_after_a_round_trip() {
        for window in [17_000, 64_000, 1 << 20] {
            let (mut overshoot, mut una) = (Overshoot::new(window), 1);
            for _ in 0..100 {
                assert_eq!(round(&mut overshoot, &mut una, true, window), 0);
                // A segment that was not read yet, and the rounding of the scale.
                assert_eq!(round(&mut overshoot, &mut una, true, window - 1_448), 0);
            }
            round(&mut overshoot, &mut una, true, window * 2);
            round(&mut overshoot, &mut una, true, window * 2);
            assert_eq!(round(&mut overshoot, &mut una, true, window * 2), 0, "the growth has ended");
        }
    }

    #[test]
    fn a_device_that_has_shown_nothing_and_a_loss_end_it() {
        let (mut overshoot, mut una) = (Overshoot::new(64_000), 1);
        assert_eq!(round(&mut overshoot, &mut una, false, 128_000), 0);
        assert!(overshoot.is_growing(128_000) && !overshoot.is_growing(90_000), "it may be probed");
        assert!(round(&mut overshoot, &mut una, true, 256_000) > 0);
        overshoot.stop();
        assert_eq!(overshoot.extra(256_000), 0);
        assert_eq!(round(&mut overshoot, &mut una, true, 256_000), 0);
        assert!(round(&mut overshoot, &mut una, true, 512_000) > 0, "it grows again");
    }

    #[test]
    fn a_use_is_remembered_for_a_while() {
        let (mut overshoot, at) = (Overshoot::new(64_000), Instant::from_millis(500));
        let second = Duration::from_secs(1);
        assert!(!overshoot.was_used(at, second));
        overshoot.on_sent(at);
        assert!(overshoot.was_used(at + second, second));
        assert!(!overshoot.was_used(at + second * 2, second));
    }
}
