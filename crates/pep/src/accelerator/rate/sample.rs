//! Measurements from one acknowledgment of a client, for the rate control and the fade detector.

use paceline_net::{Duration, Instant};

/// An acknowledgment that newly delivered at least one byte, for the rate control of the client's device.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct AckSample {
    /// Bytes newly delivered, cumulatively or by SACK.
    pub delivered: u64,
    /// Bytes marked lost since the previous sample that were inside the client's window.
    pub lost: u64,
    /// Bytes marked lost since then that were past it: the client may have dropped them.
    pub lost_beyond_window: u64,
    /// Bytes by which this acknowledgment moved the right edge of the client's window forward, and the size
    /// of that window.
    pub opened: u64,
    pub client_window: u64,
    /// Round-trip time of the newest segment delivered; `None` if that segment was retransmitted.
    pub rtt: Option<Duration>,
    /// When that segment was sent.
    pub sent_at: Option<Instant>,
    /// Bytes in flight to the device after this acknowledgment.
    pub in_flight: u64,
    /// The sender had too little data to fill the window, so the sample may be below the path's capacity.
    pub app_limited: bool,
    /// The device's radio loses the packets that are sent while it is silent (`fading`).
    pub fading: bool,
    /// The client does not use SACK: losses of several round trips are found at once.
    pub without_sack: bool,
    /// Several other devices were found to share a queue.
    pub others_share: bool,
    /// The client reports a CE mark, for the first time in its flight (RFC 3168).
    pub marked: bool,
    /// Another device has lost much lately.
    pub others_lose: bool,
}

/// The losses that one acknowledgment reveals, for the fade detector of the client's device. All in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct LossSample {
    /// Newly delivered.
    pub delivered: u64,
    /// Marked lost, within the client's advertised window at the time they were sent.
    pub lost: u64,
    /// Marked lost and sent past the client's window: the client itself may have dropped them.
    pub lost_beyond_window: u64,
    /// Of `lost`, those in long runs of consecutive segments.
    pub lost_in_runs: u64,
    /// Retransmitted although the first transmission had arrived.
    pub spurious: u64,
    /// Missing between the highest byte delivered before and the newest segment; `None` if that segment was
    /// retransmitted.
    pub skipped: Option<u64>,
}
