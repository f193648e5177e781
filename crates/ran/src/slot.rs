//! Radio time: slots, numbers of slots, and their exact times.
//!
//! Resources are scheduled per slot of `1 ms >> mu`, where mu is the numerology (TS 38.211 §4.2 and §4.3.2).
//! LTE is numerology 0: its "slot" here is the subframe or transmission time interval (TTI) of 1 ms, which TS
//! 36.211 §4.1 divides into two slots of 0.5 ms. Times in nanoseconds are computed from slot numbers and
//! never accumulated, so that they stay exact.

use paceline_net::{Duration, Instant};
use std::ops::{Add, AddAssign, Mul, Rem, Sub};

/// Length of a subframe in nanoseconds (TS 36.211 §4.1, TS 38.211 §4.3.1).
const SUBFRAME_NS: u64 = 1_000_000;
/// Subcarriers of a PRB (TS 36.211 §6.2.3, TS 38.211 §4.4.4.1).
const PRB_SUBCARRIERS: f64 = 12.0;
/// Subcarrier spacing of numerology 0 in Hz (TS 36.211 §6.2.3, TS 38.211 Table 4.2-1).
const SUBCARRIER_HZ: f64 = 15e3;

/// Numerology mu: subcarriers of 15 kHz << mu and slots of 1 ms >> mu (TS 38.211 Table 4.2-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Numerology(u8);

impl Numerology {
    /// That of LTE: subcarriers of 15 kHz (TS 36.211 §6.2.3).
    pub const LTE: Self = Self(0);
    /// Highest numerology of data channels (TS 38.211 Table 4.2-1): 120 kHz.
    pub const MAX: u8 = 3;

    /// The numerology mu; none above [`Numerology::MAX`].
    pub const fn new(mu: u8) -> Option<Self> {
        if mu <= Self::MAX { Some(Self(mu)) } else { None }
    }
    /// The number mu.
    pub const fn mu(self) -> u8 {
        self.0
    }
    /// Length of a slot in nanoseconds, without a remainder.
    pub const fn slot_ns(self) -> u64 {
        SUBFRAME_NS >> self.0
    }
    /// Length of a slot in seconds.
    pub fn slot_seconds(self) -> f64 {
        1e-3 / f64::from(1u32 << self.0)
    }
    /// Slots per second.
    pub fn slots_per_second(self) -> f64 {
        1000.0 * f64::from(1u32 << self.0)
    }
    /// Bandwidth of a PRB in Hz.
    pub fn prb_hz(self) -> f64 {
        PRB_SUBCARRIERS * SUBCARRIER_HZ * f64::from(1u32 << self.0)
    }
}

/// The number of a slot since the start of the run, without wrap-around. In LTE: `10 * SFN + subframe`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Slot(pub u64);

impl Slot {
    /// Number of slots since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> SlotSpan {
        SlotSpan(self.0.saturating_sub(earlier.0))
    }
    /// The number of the slot in a period that began with slot 0.
    pub const fn within(self, period: SlotSpan) -> SlotSpan {
        SlotSpan(self.0 % period.0)
    }
    /// The last slot at or before this one whose number is a multiple of `period`.
    pub const fn start_of(self, period: SlotSpan) -> Self {
        Self(self.0 - self.0 % period.0)
    }
}

/// A number of slots: the unit of the radio's timers and distances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct SlotSpan(pub u64);

impl Add<SlotSpan> for Slot {
    type Output = Self;
    fn add(self, span: SlotSpan) -> Self {
        Self(self.0 + span.0)
    }
}
impl Sub<SlotSpan> for Slot {
    type Output = Self;
    fn sub(self, span: SlotSpan) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl Add for SlotSpan {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for SlotSpan {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for SlotSpan {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Mul<u64> for SlotSpan {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}
impl Rem for SlotSpan {
    type Output = Self;
    fn rem(self, period: Self) -> Self {
        Self(self.0 % period.0)
    }
}
/// Conversion between the slots of a numerology and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotClock(Numerology);

impl SlotClock {
    /// The clock of a cell with this numerology.
    pub const fn new(numerology: Numerology) -> Self {
        Self(numerology)
    }
    /// The numerology of the slots.
    pub const fn numerology(self) -> Numerology {
        self.0
    }
    /// The time at which a slot begins.
    pub const fn start(self, slot: Slot) -> Instant {
        Instant::from_nanos(slot.0 * self.0.slot_ns())
    }
    /// The first slot that begins at or after `instant`.
    pub const fn at_or_after(self, instant: Instant) -> Slot {
        Slot(instant.as_nanos().div_ceil(self.0.slot_ns()))
    }
    /// The fewest slots that last at least `duration`.
    pub const fn span(self, duration: Duration) -> SlotSpan {
        SlotSpan(duration.as_nanos().div_ceil(self.0.slot_ns()))
    }
    /// The duration of so many slots.
    pub const fn duration(self, span: SlotSpan) -> Duration {
        Duration::from_nanos(span.0 * self.0.slot_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_every_numerology_begin_at_exact_times() {
        for mu in 0..=Numerology::MAX {
            let numerology = Numerology::new(mu).unwrap();
            let clock = SlotClock::new(numerology);
            let per_ms = 1 << mu;
            for ms in [0, 1, 7, 3_600_000_000] {
                let slot = Slot(ms * per_ms);
                assert_eq!(clock.start(slot), Instant::from_millis(ms), "mu {mu}");
                assert_eq!(clock.at_or_after(clock.start(slot)), slot);
                let after = Instant::from_nanos(clock.start(slot).as_nanos() + 1);
                assert_eq!(clock.at_or_after(after), slot + SlotSpan(1));
                assert_eq!(clock.duration(SlotSpan(ms * per_ms)), Duration::from_millis(ms));
            }
            assert_eq!(clock.span(Duration::from_millis(20)), SlotSpan(20 * per_ms));
            assert_eq!(clock.span(Duration::from_nanos(1)), SlotSpan(1), "a span is rounded up");
            assert_eq!(numerology.slot_seconds() * numerology.slots_per_second(), 1.0);
        }
        assert_eq!(Numerology::new(4), None);
    }

    #[test]
    fn a_prb_has_twelve_subcarriers() {
        let prb_khz = [0, 1, 2, 3].map(|mu| Numerology::new(mu).unwrap().prb_hz() / 1e3);
        assert_eq!(prb_khz, [180.0, 360.0, 720.0, 1440.0]);
    }

    #[test]
    fn differences_do_not_fall_below_zero() {
        assert_eq!((Slot(5).since(Slot(3)), Slot(3).since(Slot(5))), (SlotSpan(2), SlotSpan(0)));
        assert_eq!((Slot(5) - SlotSpan(7), SlotSpan(5) - SlotSpan(7)), (Slot(0), SlotSpan(0)));
        assert_eq!((Slot(27).within(SlotSpan(10)), Slot(27).start_of(SlotSpan(10))), (SlotSpan(7), Slot(20)));
    }
}
