//! The state of RACK (RFC 8985 §6, with the details of Linux `tcp_recovery`): the latest transmission known
//! to have arrived, and the reordering window.
//!
//! A segment is lost if it was sent before one that arrived and is not acknowledged within the latest
//! round-trip time and the reordering window. The window is zero until reordering was seen, if a recovery is
//! under way or three segments are sacked; else a quarter of the smallest RTT, and a quarter more for each
//! round trip in which a DSACK reported an unnecessary retransmission, for 16 recoveries (RFC 8985 §6.2 step
//! 4).

use paceline_net::{Duration, Instant};

/// Recoveries for which a widened window lasts (RFC 8985 §6.2 step 4, RACK.reo_wnd_persist).
const REO_WND_PERSIST: u8 = 16;
/// Sacked segments that indicate a loss before any reordering was seen (RFC 5681 §3.2, DupThresh).
const DUP_THRESH: u32 = 3;
/// Largest degree of reordering in segments (Linux `tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// The state of one connection.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the latest transmission known to have arrived.
    latest: (Instant, u64),
    /// RACK.rtt: the round-trip time of that transmission.
    rtt: Duration,
    /// A delivery has been recorded since [`Self::take_advanced`].
    advanced: bool,
    reordering_seen: bool,
    /// Degree of reordering in segments (Linux `tp->reordering`).
    reordering: u32,
    /// RACK.reo_wnd_mult.
    window_quarters: u8,
    /// RACK.reo_wnd_persist.
    persist: u8,
    dsack_seen: bool,
    /// Bytes delivered when the window was last widened.
    widened_at: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            reordering: DUP_THRESH,
            window_quarters: 1,
            persist: 0,
            dsack_seen: false,
            widened_at: 0,
        }
    }
}

/// The state in which losses are detected.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct RackContext {
    pub now: Instant,
    pub min_rtt: Option<Duration>,
    pub srtt: Option<Duration>,
    /// Fast recovery or recovery after a timeout is under way.
    pub recovering: bool,
}

impl Rack {
    /// A transmission at `sent_at` of a segment that ends at `end` was delivered.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        sent_at: Instant,
        end: u64,
        resent: bool,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now.since(sent_at);
        // Shorter than the smallest RTT: an earlier transmission arrived (RFC 8985 §6.2 step 2).
        if resent && min_rtt.is_none_or(|min| rtt < min) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.latest = self.latest.max((sent_at, end));
    }
    /// A segment sent once arrived `distance` bytes below the highest byte that had arrived.
    pub fn on_reordering(&mut self, distance: u64, mss: u32) {
        self.reordering_seen = true;
        let segments = distance.div_ceil(u64::from(mss.max(1))).min(MAX_REORDERING) as u32;
        self.reordering = self.reordering.max(segments);
    }
    /// A DSACK reported an unnecessary retransmission; that of a tail loss probe does not count.
    pub fn on_dsack(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }
    /// Widens the window at most once per round trip, after an acknowledgment. Its newest segment was sent
    /// when `prior_delivered` bytes had been delivered, of the `delivered` bytes by now.
    pub fn update_window(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered < self.widened_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.window_quarters = self.window_quarters.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = REO_WND_PERSIST;
        } else if self.persist == 0 {
            self.window_quarters = 1;
        }
    }
    /// A recovery ended.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
    /// Whether a delivery was recorded since the last call.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }
    /// A timeout in spite of `sacked_segments`: the degree of reordering was overestimated (Linux
    /// `tcp_enter_loss`).
    pub fn on_timeout(&mut self, sacked_segments: u32) {
        if sacked_segments >= DUP_THRESH {
            self.reordering = self.reordering.min(DUP_THRESH);
        }
    }
    /// RACK.reo_wnd with this many segments sacked.
    pub fn reordering_window(&self, context: &RackContext, sacked_segments: u32) -> Duration {
        if !self.reordering_seen && (context.recovering || sacked_segments >= self.reordering) {
            return Duration::ZERO;
        }
        let quarter = context.min_rtt.unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.window_quarters)).min(context.srtt.unwrap_or(Duration::MAX))
    }
    /// Time until a segment sent at `sent_at` is lost; zero if it is.
    pub fn time_until_lost(&self, now: Instant, sent_at: Instant, window: Duration) -> Duration {
        (self.rtt + window).saturating_sub(now.since(sent_at))
    }
    /// Whether a transmission came before the latest one known to have arrived (RACK_sent_after).
    pub fn sent_before(&self, sent_at: Instant, end: u64) -> bool {
        (sent_at, end) < self.latest
    }
    pub fn latest_sent_at(&self) -> Instant {
        self.latest.0
    }
    pub fn latest_end(&self) -> u64 {
        self.latest.1
    }
}
