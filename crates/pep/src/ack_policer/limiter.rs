//! How many ACKs are to be dropped: a token bucket, a share, or a number of kept ACKs per round trip.

/// Nanoseconds of a second. By definition.
const NS_PER_S: u64 = 1_000_000_000;

/// How many ACKs are to be dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A token bucket (RFC 2697's committed rate and burst): ACKs above it are dropped.
    Rate {
        /// Committed information rate in bytes of IP datagrams per second; at least 1.
        bytes_per_s: u64,
        /// Committed burst size in bytes.
        burst: u64,
    },
    /// A share of the ACKs, evenly spread, in parts of 65,536.
    Share(u32),
    /// ACKs that are kept in a round trip; with an unknown round trip one in [`UNKNOWN_RTT_GAP_NS`].
    PerRtt(u32),
}

/// Rule 15: longest gap between kept ACKs where the round trip is unknown. Chosen: the rule's value.
pub const UNKNOWN_RTT_GAP_NS: u64 = 10_000_000;
/// One, as a share.
const ONE: u32 = 65_536;
/// Drops that may be made up for after protected ACKs, in shares of [`ONE`]. Chosen: enough to reach the
/// share behind a run of protected ACKs, few enough to leave no run of drops longer than the rules' floor.
const MAX_DEBT: u32 = 8 * ONE;

/// Burst of a rate that is given without one, in bytes: the published policer's.
const DEFAULT_BURST: u64 = 5_000;
/// Shortest burst in bytes: one ACK, IPv4 and TCP headers of 20 bytes each with timestamps of 12 (RFC 7323).
const LEAST_BURST: u64 = 52;
/// Longest time in s in which a bucket fills. Chosen: keeps the bucket's arithmetic within 64 bits.
const MAX_BURST_S: u64 = 10;

impl Limit {
    /// A token bucket; without a burst, that of the published policer, or ten seconds of a lower rate.
    pub fn rate(bytes_per_s: u64, burst: Option<u64>) -> Self {
        let longest = bytes_per_s.saturating_mul(MAX_BURST_S).max(LEAST_BURST);
        Self::Rate { bytes_per_s, burst: burst.unwrap_or(DEFAULT_BURST.min(longest)) }
    }
    /// A share of the ACKs from 0 to 1.
    pub fn share(share: f64) -> Self {
        Self::Share((share * f64::from(ONE)).round() as u32)
    }
    /// Checks what the types allow and the bucket does not.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self::Rate { bytes_per_s, burst } = *self else { return Ok(()) };
        if bytes_per_s == 0 {
            return Err("cir: 0: the rate is more than 0".into());
        }
        let longest = bytes_per_s.saturating_mul(MAX_BURST_S).max(LEAST_BURST);
        if !(LEAST_BURST..=longest).contains(&burst) {
            return Err(format!(
                "cbs: {burst} bytes: a burst is {LEAST_BURST} bytes (one ACK) to {longest} bytes ({MAX_BURST_S} s of the rate)"
            ));
        }
        Ok(())
    }
}

/// State of a limit: of one connection, or of all together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limiter {
    /// Token bucket as a virtual schedule: the time at which the bucket will be full (ATM Forum's GCRA, ITU-T
    /// I.371), in ns.
    pub full_at: u64,
    /// Share: drops that are due, in parts of 65,536.
    pub due: u32,
}

impl Limiter {
    /// Whether an ACK of `bytes` is to be dropped at `now`. `kept_at`: when the connection's last ACK was
    /// kept; `rtt`: its round trip in ns, 0 if unknown.
    pub fn is_over(&mut self, limit: &Limit, now: u64, bytes: u32, kept_at: u64, rtt: u64) -> bool {
        match *limit {
            Limit::Rate { bytes_per_s, burst } => {
                let rate = bytes_per_s.max(1);
                let cost = u64::from(bytes) * NS_PER_S / rate;
                let depth = burst.saturating_mul(NS_PER_S) / rate;
                let full_at = self.full_at.max(now);
                if full_at - now + cost > depth {
                    return true;
                }
                self.full_at = full_at + cost;
                false
            }
            Limit::Share(share) => {
                self.due = (self.due + share.min(ONE)).min(MAX_DEBT);
                self.due >= ONE
            }
            Limit::PerRtt(count) => {
                let gap = if rtt == 0 { UNKNOWN_RTT_GAP_NS } else { rtt / u64::from(count.max(1)) };
                now.saturating_sub(kept_at) < gap
            }
        }
    }

    /// An ACK that the limit asked for was dropped.
    pub fn on_drop(&mut self, limit: &Limit) {
        if let Limit::Share(_) = limit {
            self.due = self.due.saturating_sub(ONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_bucket_passes_its_burst_and_then_its_rate() {
        let limit = Limit::Rate { bytes_per_s: 10_000, burst: 5_000 };
        let mut limiter = Limiter::default();
        let start = 1_000 * NS_PER_S;
        let burst = (0..200).filter(|_| !limiter.is_over(&limit, start, 52, 0, 0)).count();
        assert_eq!(burst, 96, "5000 / 52");
        let mut passed = 0;
        for ms in 1..=10_000u64 {
            passed += u32::from(!limiter.is_over(&limit, start + ms * 1_000_000, 52, 0, 0));
        }
        assert!((1_921..=1_924).contains(&passed), "10 s at 10 kB/s are 1923 ACKs of 52 bytes: {passed}");
    }

    #[test]
    fn a_share_is_exact_and_evenly_spread() {
        let limit = Limit::Share(ONE * 4 / 5);
        let (mut limiter, mut dropped, mut run) = (Limiter::default(), 0, 0);
        for ack in 0..10_000 {
            if limiter.is_over(&limit, ack, 52, 0, 0) {
                limiter.on_drop(&limit);
                dropped += 1;
                run += 1;
                assert!(run <= 5, "a run of {run} drops");
            } else {
                run = 0;
            }
        }
        assert!((7_998..=8_000).contains(&dropped), "{dropped}");
    }

    #[test]
    fn a_share_of_all_drops_all_and_of_none_none() {
        let (mut all, mut none) = (Limiter::default(), Limiter::default());
        for ack in 0..100 {
            assert!(all.is_over(&Limit::Share(ONE), ack, 52, 0, 0));
            all.on_drop(&Limit::Share(ONE));
            assert!(!none.is_over(&Limit::Share(0), ack, 52, 0, 0));
        }
    }
}
