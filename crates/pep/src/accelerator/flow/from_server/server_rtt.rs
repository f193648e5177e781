//! Round-trip time of the wired segment. The handshake measures it first. Then the server's segments show how
//! long a timestamp of the client took to come back (RFC 7323, section 4): each such time contains the round
//! trip, and the time until the server had something to send. The least of some of them is the round trip.
//! Whether the server uses all of its window is seen a round trip after the window was advertised.

use paceline_net::{Duration, Instant};

/// Samples of which the least is taken; the two latest such groups count. Chosen: a few round trips, in which
/// a server that sends much answers at once.
const GROUP: u8 = 8;

#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct ServerRtt {
    /// The least of the last whole group, and of the present one, in microseconds. [`u32::MAX`]: unknown.
    before_us: u32,
    lowest_us: u32,
    count: u8,
    /// Whether the echo of a timestamp is awaited; the timestamp, and when the client sent it.
    awaits: bool,
    timestamp: u32,
    since: Instant,
    /// Arrival of the server's last segment.
    last_at: Instant,
}

impl ServerRtt {
    pub fn new(handshake: Option<Duration>) -> Self {
        Self {
            before_us: handshake.map_or(u32::MAX, micros),
            lowest_us: u32::MAX,
            count: 0,
            awaits: false,
            timestamp: 0,
            since: Instant::ZERO,
            last_at: Instant::ZERO,
        }
    }
    /// The round-trip time, if it is known.
    pub fn get(&self) -> Option<Duration> {
        let us = self.before_us.min(self.lowest_us);
        (us > 0 && us < u32::MAX).then(|| Duration::from_micros(u64::from(us)))
    }
    /// A segment of the client has this TSval.
    pub fn on_client(&mut self, now: Instant, timestamp: u32) {
        if !self.awaits && timestamp != self.timestamp {
            (self.awaits, self.timestamp, self.since) = (true, timestamp, now);
        }
    }
    /// A segment of the server echoes this timestamp.
    pub fn on_server(&mut self, now: Instant, echo: u32) {
        let pause = now.since(std::mem::replace(&mut self.last_at, now));
        if !self.awaits || (echo.wrapping_sub(self.timestamp) as i32) < 0 {
            return;
        }
        self.awaits = false;
        // A server that paused had nothing to send.
        if self.get().is_some_and(|rtt| pause > rtt) {
            return;
        }
        self.lowest_us = self.lowest_us.min(micros(now.since(self.since)));
        self.count += 1;
        if self.count == GROUP {
            (self.before_us, self.lowest_us, self.count) = (self.lowest_us, u32::MAX, 0);
        }
    }
}

/// Tells whether the server waits for its window.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::accelerator) struct WindowUse {
    /// The advertised edge at `at`, and a round trip or more before.
    edge: u64,
    before: u64,
    at: Instant,
    full: bool,
}

impl WindowUse {
    /// Data up to `end` arrived; the server has used what it knew of the window if that was `segment` bytes
    /// from the edge that was advertised a round trip ago.
    pub fn on_data(&mut self, now: Instant, rtt: Duration, edge: u64, (end, segment): (u64, u64)) {
        if now.since(self.at) >= rtt {
            (self.before, self.edge, self.at) = (self.edge, edge, now);
        }
        self.full = end + segment > self.before;
    }
    /// Whether the server's last data was all that its window allowed.
    pub fn is_full(&self) -> bool {
        self.full
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client sends a segment each millisecond; the server answers after `rtt_ms`, in every `every`th one.
    fn run(rtt: &mut ServerRtt, from: u64, until: u64, rtt_ms: u64, every: u64) {
        for ms in from..until {
            let now = Instant::from_millis(ms);
            rtt.on_client(now, ms as u32);
            if ms % every == 0 {
                rtt.on_server(now, (ms - rtt_ms) as u32);
            }
        }
    }

    #[test]
    fn the_round_trip_follows_the_path_and_not_the_pauses_of_a_server() {
        let mut rtt = ServerRtt::new(Some(Duration::from_millis(10)));
        let mut from = 100;
        for (rtt_ms, every) in [(10, 2), (50, 2), (8, 1), (8, 700)] {
            run(&mut rtt, from, from + 10_000, rtt_ms, every);
            from += 10_000;
            let known = rtt.get().map_or(0.0, Duration::as_millis_f64);
            assert!((0.0..2.5).contains(&(known - rtt_ms as f64)), "{rtt_ms} ms: {known} ms");
        }
        assert_eq!(ServerRtt::new(None).get(), None);
    }
}
