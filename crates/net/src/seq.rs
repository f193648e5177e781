//! TCP sequence numbers: 32-bit serial arithmetic (RFC 9293 §3.4, RFC 1982).

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A TCP sequence or acknowledgment number. Comparison is serial: valid for numbers less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Signed distance from `other` to `self` in bytes.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
    /// The later of the two.
    pub fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
    /// The earlier of the two.
    pub fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

impl PartialOrd for SeqNumber {
    // Serial order is not total over all 2^32 numbers, so there is no `Ord`.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.distance(*other).cmp(&0))
    }
}
impl Add<u32> for SeqNumber {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}
impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}
impl Sub for SeqNumber {
    type Output = u32;
    /// Bytes from `other` to `self`; `self` must not be before `other`.
    fn sub(self, other: Self) -> u32 {
        debug_assert!(self >= other, "sequence {} is before {}", self.0, other.0);
        self.0.wrapping_sub(other.0)
    }
}
impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let before = SeqNumber(u32::MAX - 9);
        let after = before + 20;
        assert_eq!(after, SeqNumber(10));
        assert!(before < after);
        assert!(after > before);
        assert_eq!(after - before, 20);
        assert_eq!(before.distance(after), -20);
        assert_eq!(before.max(after), after);
        assert_eq!(before.min(after), before);
    }
}
