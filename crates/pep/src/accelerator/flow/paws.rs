//! PAWS, the rejection of old segments by their timestamps (RFC 7323, section 5).
//!
//! A recorded timestamp expires after about half an hour: an end whose clock ticks every microsecond (Linux
//! allows it) may have advanced by half of the number space since. RFC 7323, section 5.5, has 24 days, for
//! milliseconds.

use paceline_net::{Instant, Timestamps};

/// Length of an epoch in seconds. Chosen: 16-bit epoch numbers wrap after half a year.
const EPOCH_SECONDS: u64 = 256;
/// Epochs after which a timestamp is expired, 1792 s to 2048 s. Linux has 2147 s (`TCP_PAWS_WRAP`).
const EXPIRY_EPOCHS: u16 = 8;
/// Timestamp units by which a segment of the client may be older than the newest one. Chosen: reordered
/// segments of the client differ by much less, old duplicates by more.
const REORDERED_TICKS: u32 = 1 << 16;

/// When a timestamp was recorded, in epochs of the machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Epoch(u16);

impl Epoch {
    /// The epoch of `now`.
    pub fn at(now: Instant) -> Self {
        Self((now.as_millis() / 1000 / EPOCH_SECONDS) as u16)
    }
    /// Whether a timestamp that was recorded in this epoch has expired.
    pub fn is_expired(self, now: Instant) -> bool {
        Self::at(now).0.wrapping_sub(self.0) >= EXPIRY_EPOCHS
    }
}

/// Whether the TSval is at or after `recent`.
pub(in crate::accelerator) fn is_current(timestamps: Timestamps, recent: u32) -> bool {
    timestamps.val.wrapping_sub(recent) as i32 >= 0
}

/// Whether the TSval is older than `recent` by no more than reordering explains.
pub(in crate::accelerator) fn is_reordered(timestamps: Timestamps, recent: u32) -> bool {
    recent.wrapping_sub(timestamps.val) < REORDERED_TICKS
}
