//! The spacing of segments: the congestion control's own rate, one that the configuration names, or that of
//! Linux (`tcp_update_pacing_rate`), also for the period of a TDD cell. RFC 9293 has none.

use crate::config::EndpointConfig;
use crate::options::{DelaySignal, Pacing};
use paceline_net::pacing::{self, CatchUp, TddCell, window_rate};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Segments at the start that are not paced (Linux `tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u32 = 10;
/// Pacing rate in percent of window per round trip, in slow start (Linux `tcp_pacing_ss_ratio`).
const SLOW_START_PERCENT: u32 = 200;
/// The same in congestion avoidance (Linux `tcp_pacing_ca_ratio`).
const AVOIDANCE_PERCENT: u32 = 120;

/// Segments of one millisecond leave together (Linux `sk_pacing_shift` 10).
const CHUNKS_PER_SECOND: u64 = 1 << 10;
/// Fewest segments that leave together (Linux `tcp_min_tso_segs`).
const LEAST_CHUNK: u64 = 2;
/// Most bytes that leave together (Linux `GSO_LEGACY_MAX_SIZE`).
const MOST_CHUNK: u64 = 65_536;
/// Time of the least round trip by which the chunk of a short path halves, as a power of two in microseconds
/// (Linux `tcp_tso_rtt_log`).
const CHUNK_RTT_LOG: u32 = 9;

/// Decides when the next segment may leave.
#[derive(Clone, Debug)]
pub(in crate::sender) struct Pacer {
    mode: Pacing,
    spacing: pacing::Pacer,
    /// Segments sent, up to [`UNPACED_SEGMENTS`].
    sent: u32,
    /// The segments that leave together, with [`Pacing::Linux`].
    chunk: Chunk,
    tdd: Option<Box<TddCell>>,
}

/// Segments that leave at the same time and count as one for the spacing. Left out: waiting for more ACKs to
/// fill a chunk (Linux `tcp_tso_should_defer`).
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    at: Instant,
    /// The time until which the chunk waited.
    until: Instant,
    bytes: u64,
    /// Bytes that may still leave.
    left: u64,
}

/// The quantities from which Linux computes the rate; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct PacedFlow {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub outstanding: u64,
    pub in_flight: u64,
    pub srtt: Option<Duration>,
}

impl Pacer {
    pub fn new(config: &EndpointConfig) -> Self {
        let mode = config.pacing;
        let is_tdd = matches!(mode, Pacing::Tdd | Pacing::TddPublished);
        let linux = is_tdd || matches!(mode, Pacing::Linux | Pacing::LinuxPerSegment);
        let catch_up = if linux { CatchUp::HalfPacket } else { CatchUp::Never };
        let mut spacing = pacing::Pacer::new(catch_up);
        let cleans = match config.delay_signal {
            Some(signal) => signal == DelaySignal::Clean,
            None => mode == Pacing::Tdd,
        };
        let tdd = (is_tdd || cleans).then(|| Box::new(TddCell::new(&config.pacing_hint, cleans)));
        if is_tdd {
            spacing.set_hint(Instant::ZERO, config.pacing_hint.clone());
        }
        Self { mode, spacing, sent: 0, chunk: Chunk::default(), tdd }
    }
    /// The rate in force; `None` without pacing. `own` is the control's rate, which has priority.
    pub fn rate(&self, now: Instant, own: Option<Rate>, flow: impl FnOnce() -> PacedFlow) -> Option<Rate> {
        own.or_else(|| match self.mode {
            Pacing::None => None,
            Pacing::External(rate) => Some(rate),
            _ if self.sent < UNPACED_SEGMENTS => None,
            Pacing::Linux | Pacing::LinuxPerSegment | Pacing::Tdd => linux_rate(&flow()),
            Pacing::TddPublished => {
                let flow = flow();
                self.spread_rate(now, &flow).or_else(|| linux_rate(&flow))
            }
        })
    }
    /// The period of the TDD cell on the path, if it is known.
    pub fn period(&self) -> Option<Duration> {
        self.tdd.as_deref()?.period()
    }
    /// Whether segments wait, if a rate is in force.
    pub fn waits(&self, now: Instant) -> bool {
        now < self.spacing.until() && !self.is_in_chunk(now)
    }
    /// The time until which segments wait, if a rate is in force.
    pub fn until(&self) -> Instant {
        self.spacing.until()
    }
    fn is_in_chunk(&self, now: Instant) -> bool {
        self.chunk.left > 0 && self.chunk.at == now
    }
    /// An ACK arrived; `rtt` is that of the newest segment that it delivers. With `has_lost`, segments were
    /// marked as lost. Returns the round-trip time for controls that watch delay.
    pub fn on_ack(&mut self, now: Instant, rtt: Option<Duration>, has_lost: bool) -> Option<Duration> {
        let Some(tdd) = self.tdd.as_deref_mut() else { return rtt };
        let shown = tdd.on_ack(now, rtt);
        if matches!(self.mode, Pacing::Tdd | Pacing::TddPublished) {
            if let Some(hint) = tdd.take_change() {
                self.spacing.set_hint(now, hint);
            }
            if has_lost {
                self.spacing.on_loss(now, tdd.queueing());
            }
        }
        shown
    }
    /// The rate that spreads the open window over the time to the next bunch of ACKs.
    fn spread_rate(&self, now: Instant, flow: &PacedFlow) -> Option<Rate> {
        let left = self.tdd.as_deref()?.next_bunch_at()?.since(now);
        window_rate(Bytes(flow.cwnd.saturating_sub(flow.in_flight)), left, 100)
    }
    /// A segment of `len` bytes left at the control's `own` rate; the pattern of the cell changes nothing.
    pub fn on_sent_at_own_rate(&mut self, now: Instant, len: u64, own: Rate) {
        self.sent = (self.sent + 1).min(UNPACED_SEGMENTS);
        self.spacing.on_sent_evenly(now, Bytes(len), own);
    }
    /// A segment of `len` bytes left; `min_rtt` is the least round-trip time of the connection.
    pub fn on_sent(&mut self, now: Instant, len: u64, rate: Option<Rate>, min_rtt: Option<Duration>) {
        self.sent = (self.sent + 1).min(UNPACED_SEGMENTS);
        let Some(rate) = rate else { return };
        if self.mode != Pacing::Linux {
            self.spacing.on_sent(now, Bytes(len), rate);
            return;
        }
        if self.is_in_chunk(now) {
            self.spacing.take_back(self.chunk.until);
        } else {
            let most = chunk_bytes(rate, min_rtt).max(LEAST_CHUNK * len);
            self.chunk = Chunk { at: now, until: self.spacing.until(), bytes: 0, left: most };
        }
        self.chunk.bytes += len;
        let left = self.chunk.left.saturating_sub(len);
        self.chunk.left = if left < len { 0 } else { left };
        self.spacing.on_sent(now, Bytes(self.chunk.bytes), rate);
    }
    /// The control's own rate has changed from `before` to `after`: the rest of the wait is that of the same
    /// bytes at the new rate.
    pub fn on_rate_change(&mut self, now: Instant, before: Rate, after: Rate) {
        let rest = self.spacing.until().since(now).as_nanos();
        let scaled = u128::from(rest) * u128::from(before.0) / u128::from(after.0.max(1));
        self.spacing.take_back(now + Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX >> 1)));
    }
    /// Lets the next segment leave from `now` on.
    pub fn release(&mut self, now: Instant) {
        self.spacing.release(now);
    }
}

/// Bytes that leave together (Linux `tcp_tso_autosize`): those of a millisecond, and more on short paths.
fn chunk_bytes(rate: Rate, min_rtt: Option<Duration>) -> u64 {
    let halvings = min_rtt.map_or(u64::MAX, |rtt| (rtt.as_nanos() / 1000) >> CHUNK_RTT_LOG);
    let near = if halvings < u64::from(u32::BITS) { MOST_CHUNK >> halvings } else { 0 };
    (rate.0 / 8 / CHUNKS_PER_SECOND + near).min(MOST_CHUNK)
}

/// The rate of Linux: 200% of a window per round trip while the window is below half of ssthresh, 120% above.
fn linux_rate(flow: &PacedFlow) -> Option<Rate> {
    let gain = if flow.cwnd < flow.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
    window_rate(Bytes(flow.cwnd.max(flow.outstanding)), flow.srtt?, gain)
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
