//! ACKs to the server that are held back while data waits for the radio.
//!
//! When a transfer ends, its FIN and the packet before it wait for the client's acknowledgment. If nothing
//! else were left to acknowledge, the server's probe and timeouts (RFC 8985, section 7; RFC 6298) would
//! expire before that. So the last packets of a backlog are not acknowledged at once. When no more data come,
//! they are acknowledged one by one: each such ACK restarts the server's timers, and shows the server a
//! longer round trip.

use paceline_net::{Duration, Instant};

/// Packets held back at most. Chosen: with a wired round trip of 2 ms they last for 10 s.
const MAX_SEGMENTS: u8 = 32;
/// Least part of a connection's share of the buffer to hold back. Chosen: it takes little of the window.
const SHARE_DIVISOR: u64 = 16;

/// Added to the round trip in the first wait. Chosen: half of the least time until a probe in Linux beside
/// the round trips (TCP_TIMEOUT_MIN, two ticks), where a tick is 1 ms. Where the round trip is a part of
/// this, ACKs one by one would cost more than the data.
const MARGIN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct AckHold {
    /// When the acknowledged offset last advanced.
    since: Instant,
    /// Round-trip time of the wired segment in microseconds; 0 if it is not known: nothing is held back.
    server_rtt_us: u32,
    /// Packets to hold back.
    segments: u8,
    /// ACKs that the timer has released, less the packets that have come sooner than the first wait since.
    steps: u8,
}

impl AckHold {
    pub fn new(server_rtt: Option<Duration>) -> Self {
        let us = server_rtt.map_or(0, |rtt| u32::try_from(rtt.as_nanos() / 1000).unwrap_or(0));
        Self { server_rtt_us: us, ..Self::default() }
    }
    pub fn is_active(&self) -> bool {
        self.segments > 0
    }
    /// Bytes to hold back.
    pub fn bytes(&self, segment: u32) -> u64 {
        u64::from(self.segments) * u64::from(segment)
    }
    /// A packet with new data arrived for a connection with this share of the buffer; `unsent` bytes wait for
    /// the radio. Packets that come at intervals of a round trip, as the window opens, leave the wait as it
    /// is: a shorter one would release more packets than arrive.
    /// `late` is the time until the client's acknowledgment, if it is known: no more is held back than lasts
    /// that long.
    pub fn on_data(&mut self, now: Instant, unsent: u64, share: u64, segment: u32, late: Option<Duration>) {
        let most = (share / SHARE_DIVISOR / u64::from(segment)).min(u64::from(MAX_SEGMENTS));
        let enough = late.map_or(most, |late| 1 + late.as_nanos() / self.first_wait().as_nanos());
        let segments = most.min(enough) as u8;
        let waits = unsent >= u64::from(segments) * u64::from(segment) && self.server_rtt_us > 0;
        self.segments = if waits { segments } else { 0 };
        if now.since(self.since) < self.first_wait() {
            self.steps = self.steps.saturating_sub(1);
        }
    }
    fn first_wait(&self) -> Duration {
        Duration::from_micros(u64::from(self.server_rtt_us)) + MARGIN
    }
    /// The server has sent again what was held back.
    pub fn end(&mut self) {
        self.segments = 0;
    }
    pub fn on_ack(&mut self, now: Instant) {
        self.since = now;
    }
    /// When the next packet is to be acknowledged: a round trip and [`MARGIN`] after the last ACK at first,
    /// half of the server's time until a probe. As the server's smoothed round-trip time (RFC 6298, section
    /// 2.3) takes in the time for which packets were held back, each wait may be a quarter longer than the
    /// one before.
    pub fn deadline(&self) -> Instant {
        self.since + (0..self.steps).fold(self.first_wait(), |wait, _| wait * 5 / 4)
    }
    /// The next packet of `unacknowledged` bytes is to be acknowledged.
    pub fn on_timer(&mut self, now: Instant, unacknowledged: u64, segment: u32) {
        let held = unacknowledged.div_ceil(u64::from(segment)).min(u64::from(self.segments));
        (self.segments, self.steps, self.since) =
            (held.saturating_sub(1) as u8, (self.steps + 1).min(MAX_SEGMENTS), now);
    }
}
