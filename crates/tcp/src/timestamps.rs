//! The clock of the timestamps option (RFC 7323 §5.4), in milliseconds.

use paceline_net::{Duration, Instant};

/// TSval at a time. The clock begins at 1, since some hosts take an echo of 0 for no echo.
pub(crate) fn timestamp(at: Instant) -> u32 {
    (at.as_millis() as u32).wrapping_add(1)
}

/// Time from the sending of the timestamp `echo` until the clock shows `clock`, at least one tick; `None` for
/// an echo of 0 or of a later time.
pub(crate) fn since_echo(echo: u32, clock: u32) -> Option<Duration> {
    let ms = clock.wrapping_sub(echo);
    (echo != 0 && ms < u32::MAX / 2).then(|| Duration::from_millis(u64::from(ms.max(1))))
}

/// Whether timestamp `a` is older than `b`, modulo 2^32 (RFC 7323 §5.2).
pub(crate) fn is_older(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
