//! Round-trip time of the mobile segment and the retransmission timeout (RFC 6298).

use crate::accelerator::flow::to_client::scoreboard::Patience;
use paceline_net::{Duration, Instant};

/// Floor of the timeout: a handover takes tens of milliseconds and is no loss.
const MIN_RTO: Duration = Duration::from_millis(200);
/// Ceiling of the timeout, backoff included.
const MAX_RTO: Duration = Duration::from_secs(30);
/// Silence that is not even looked at: radio schedulers and delayed ACKs.
const LEAST_ALLOWANCE: Duration = Duration::from_millis(20);
const INITIAL_RTO: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Rtt {
    seen: Option<Seen>,
    backoff: u8,
}

/// What samples have told: smoothed, its variation, and the shortest.
#[derive(Clone, Copy, Debug)]
struct Seen {
    srtt: Duration,
    var: Duration,
    min: Duration,
}

impl Rtt {
    /// Begins with what the handshake took, if it was seen.
    pub fn of(handshake: Option<Duration>) -> Self {
        let mut rtt = Self::default();
        handshake.into_iter().for_each(|sample| rtt.on_sample(sample));
        rtt
    }
    pub fn on_sample(&mut self, rtt: Duration) {
        self.backoff = 0;
        let Some(Seen { srtt, var, min }) = self.seen else {
            self.seen = Some(Seen { srtt: rtt, var: rtt / 2, min: rtt });
            return;
        };
        let error = rtt.saturating_sub(srtt) + srtt.saturating_sub(rtt);
        self.seen =
            Some(Seen { srtt: srtt * 7 / 8 + rtt / 8, var: var * 3 / 4 + error / 4, min: min.min(rtt) });
    }
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }
    pub fn on_progress(&mut self) {
        self.backoff = 0;
    }
    pub fn backoff(&self) -> u8 {
        self.backoff
    }
    /// The shortest sample; zero before the first.
    pub fn min(&self) -> Duration {
        self.seen.map_or(Duration::ZERO, |seen| seen.min)
    }
    /// The shortest and the smoothed, for loss detection.
    pub fn spread(&self) -> (Duration, Duration) {
        (self.min(), self.srtt().unwrap_or_default())
    }
    pub fn srtt(&self) -> Option<Duration> {
        self.seen.map(|seen| seen.srtt)
    }
    pub fn rto(&self) -> Duration {
        (self.base() * (1 << self.backoff)).min(MAX_RTO)
    }
    /// How long an answer is waited for on radios that fade, nothing having been heard since `heard_at`.
    pub fn patience(&self, heard_at: Instant) -> Patience {
        let var = self.seen.map_or(Duration::ZERO, |seen| seen.var);
        let allowance = (var * 2).max(LEAST_ALLOWANCE);
        Patience { age: self.srtt().unwrap_or(INITIAL_RTO) + allowance, from: heard_at + allowance }
    }
    /// The timeout without backoff.
    pub fn base(&self) -> Duration {
        self.seen.map_or(INITIAL_RTO, |seen| seen.srtt + (seen.var * 4).max(MIN_RTO)).min(MAX_RTO)
    }
}
