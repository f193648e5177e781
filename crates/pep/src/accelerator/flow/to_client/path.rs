//! The path to the client's device: the rate control and the bytes in flight, which all connections of the
//! device share.

use crate::accelerator::rate::RateController;
use paceline_net::Duration;

/// Bytes that may be sent into an empty path whatever the window. Chosen: the largest packet.
const LONE_SEGMENT_BYTES: u64 = 1 << 16;

#[derive(Clone, Copy)]
pub(in crate::accelerator) struct DevicePath<'a> {
    pub control: &'a RateController,
    /// Bytes in flight to the device, of all its connections.
    pub in_flight: u64,
}

impl DevicePath<'_> {
    /// Bytes that may be sent within the rate control's window.
    pub fn room(&self) -> u64 {
        self.room_in(self.control.window())
    }
    /// Bytes that may be sent within as much as the path delivers in `time`.
    pub fn room_for(&self, time: Duration) -> u64 {
        self.room_in(self.control.capacity_in(time))
    }
    fn room_in(&self, window: u64) -> u64 {
        let least = if self.in_flight == 0 { LONE_SEGMENT_BYTES } else { 0 };
        window.saturating_sub(self.in_flight).max(least)
    }
    /// Payload bytes of a burst of length `tick` at the paced rate, one segment at least.
    pub fn burst(&self, tick: Duration, segment: u32) -> u32 {
        let bytes = u128::from(self.control.rate().0) * u128::from(tick.as_nanos()) / 8_000_000_000;
        u32::try_from(bytes).unwrap_or(u32::MAX).max(segment)
    }
}
