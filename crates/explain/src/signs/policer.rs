//! A policer: a token bucket that drops what exceeds its rate. Its losses come while the delay is flat, after
//! an initial burst, and at times at which the bucket is empty (Flach et al., "An Internet-Wide Analysis of
//! Traffic Policing", SIGCOMM 2016, §3.1).
//!
//! The paper takes the rate from the first to the last loss. Here it is that between the losses of one
//! episode, while the bucket stays empty, so that a sender that uses less than the rate between episodes does
//! not lower it; and the bucket is followed copy by copy, without a record of the connection.

use crate::quantiles::Quantiles;
use paceline_net::Instant;

/// Losses that show a policer at least. Chosen: fewer may lie at the times of an empty bucket by chance; §3.1
/// of the paper has a least number too.
const LEAST_LOSSES: u64 = 15;
/// Fewest episodes of losses behind the first one: two may find the bucket empty by chance.
const LEAST_EPISODES: u64 = 3;
/// Least initial burst in round trips at the policer's rate. A smaller bucket drops like a short queue, whose
/// slow start passes less than a round trip's bytes beyond the mean rate: they are not told apart.
const LEAST_BURST: f64 = 1.0;
/// Share of the burst within which the bucket counts as empty. With an eighth or a half instead the captures
/// of the tests have the same policers.
const EMPTY: f64 = 0.25;
/// Share of the episodes of losses that find the bucket empty at least: losses elsewhere are the rest.
const AT_EMPTY: f64 = 0.75;

/// A policer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Rate at which its bucket fills, b/s of payload.
    pub rate: f64,
    /// Bytes beyond the rate that passed ahead of the first loss: the bucket's size.
    pub burst_bytes: f64,
}

/// Time in ns, and bytes that had passed by then.
type Sample = (u64, u64);

/// The losses of a sender beside the bytes that passed, and the bucket that they would have emptied.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    start: Option<Instant>,
    first: Option<Sample>,
    last: Option<Sample>,
    count: u64,
    /// Times and bytes between the losses of one episode.
    within: Sample,
    /// Tokens in the bucket at the last copy, bytes.
    tokens: f64,
    at: Sample,
    /// Episodes behind the first one, and those that found the bucket empty.
    episodes: u64,
    empty: u64,
    /// Round trips at the first losses of episodes, ns: repairs delay the ACKs of those behind.
    rtt: Quantiles,
}

impl Losses {
    /// A copy that was sent at a time, after so many bytes had passed; `lost` has the round trip if it did
    /// not arrive.
    pub fn add(&mut self, at: Instant, passed: u64, lost: Option<u64>) {
        let start = *self.start.get_or_insert(at);
        let now = (at.since(start).as_nanos(), passed);
        if now.0 < self.at.0 || now.1 < self.at.1 {
            return; // a hole that was filled late
        }
        if let Some(bucket) = self.bucket() {
            let filled =
                (self.tokens + bucket.rate / 8e9 * (now.0 - self.at.0) as f64).min(bucket.burst_bytes);
            self.tokens = filled - (now.1 - self.at.1) as f64;
        }
        self.at = now;
        if let Some(rtt_ns) = lost {
            self.on_loss(now, rtt_ns);
        }
    }
    fn on_loss(&mut self, now: Sample, rtt_ns: u64) {
        self.count += 1;
        self.first.get_or_insert(now);
        let last = self.last.replace(now).unwrap_or(now);
        let is_within = self.count > 1 && now.0 - last.0 < rtt_ns;
        if !is_within {
            self.rtt.add(rtt_ns);
        }
        if is_within {
            self.within = (self.within.0 + now.0 - last.0, self.within.1 + now.1 - last.1);
        } else if let Some(bucket) = self.bucket() {
            self.episodes += 1;
            self.empty += u64::from(self.tokens.abs() <= EMPTY * bucket.burst_bytes);
        }
        self.tokens = 0.0;
    }
    /// The bucket that the losses so far have, if it is one.
    fn bucket(&self) -> Option<Policer> {
        let ((ns, bytes), (at, passed)) = (self.within, self.first?);
        let per_ns = bytes as f64 / ns as f64;
        let burst_bytes = passed as f64 - per_ns * at as f64;
        (ns > 0 && bytes > 0 && burst_bytes > 0.0).then_some(Policer { rate: per_ns * 8e9, burst_bytes })
    }
    /// The policer, if the losses show one. `flat_ns` is the longest round trip of an empty path.
    pub fn policer(&self, least_rtt_ns: u64, flat_ns: f64) -> Option<Policer> {
        let bucket = self.bucket()?;
        let is_flat = self.rtt.quantile(0.5)? <= flat_ns;
        let is_burst = bucket.burst_bytes >= LEAST_BURST * bucket.rate / 8e9 * least_rtt_ns as f64;
        let is_empty =
            self.episodes >= LEAST_EPISODES && self.empty as f64 >= AT_EMPTY * self.episodes as f64;
        (self.count >= LEAST_LOSSES && is_flat && is_burst && is_empty).then_some(bucket)
    }
}
