//! The period of scheduling requests: packets that meet an idle uplink leave at one phase of it, whenever
//! they came.

use super::{Confidence, Estimate, quantile};

/// Periods, ns: those of LTE (TS 36.213 Table 10.1.5-1), and in NR multiples of slots up to 1 ms (TS 38.331
/// SchedulingRequestResourceConfig).
const PERIODS: [f64; 13] = [0.5e6, 1e6, 2e6, 2.5e6, 4e6, 5e6, 8e6, 10e6, 16e6, 20e6, 40e6, 80e6, 160e6];
/// Share of the round trips whose phases count: the shortest ones, of which HARQ repeated few.
const SHORTEST: f64 = 0.4;
/// Share of these that must be at one phase: others were repeated by HARQ, or met a grant.
const MOST: f64 = 0.5;
/// Share of those at one phase of half of the period that must be at one phase of it: at twice the true
/// period, they are at two. Chosen: of 28 packets, by chance one case in 1000.
const UNDIVIDED: f64 = 0.8;
/// Arc of the period, and least and largest time, that counts as one phase. Chosen: captures are exact to a
/// tenth of a millisecond.
const NARROW: f64 = 0.08;
const NARROW_NS: [f64; 2] = [0.15e6, 1.2e6];
/// Least arc of the times at which half of them came, of all and of the fastest. Chosen: about half of those
/// of spread ones, 0.5 and 0.2, which the fastest are before the occasion.
const SPREAD: f64 = 0.3;
const SPREAD_FAST: f64 = 0.1;
/// Least range of the round trips, from the 10th to the 90th percentile, as a share of the period. Chosen:
/// half of the range of waits that are spread over it, 0.8.
const WAITING: f64 = 0.4;
/// Packets for a claim, and for high confidence. Chosen: of the fastest eight of twenty, four are within 8%
/// of a period by chance in one of 300 cases.
const FEW: usize = 20;
const MANY: usize = 50;

/// Phases of a period in order, as shares of it.
fn phases(times: &[u64], period: f64) -> Vec<f64> {
    let mut phases: Vec<f64> = times.iter().map(|at| (*at as f64 / period).fract()).collect();
    phases.sort_by(f64::total_cmp);
    phases
}

/// The smallest arc with half of the phases, as a share of the period.
fn arc(times: &[u64], period: f64) -> f64 {
    let phases = phases(times, period);
    let count = phases.len();
    let take = count.div_ceil(2).max(2);
    let of = |index: usize| {
        let end = index + take - 1;
        if end < count { phases[end] - phases[index] } else { 1.0 + phases[end - count] - phases[index] }
    };
    (0..count).map(of).fold(1.0, f64::min)
}

/// The largest share of the times that is at one phase of the period.
fn mass(times: &[u64], period: f64) -> f64 {
    let phases = phases(times, period);
    let width = (NARROW * period).clamp(NARROW_NS[0], NARROW_NS[1]) / period;
    let of = |first: &f64| phases.iter().filter(|phase| (**phase - first).rem_euclid(1.0) <= width).count();
    phases.iter().map(of).max().unwrap_or(0) as f64 / phases.len().max(1) as f64
}

/// Finds the period from pairs: the time at which a packet came, by its cause at the capture point, and the
/// time at which it had passed the uplink. `pattern_ms` is the period of the TDD pattern, if known.
pub fn find(pairs: &[(u64, u64)], pattern_ms: Option<f64>) -> Option<Estimate<f64>> {
    if pairs.len() < FEW {
        return None;
    }
    let start = pairs.iter().map(|(came, _)| *came).min()?;
    let came: Vec<u64> = pairs.iter().map(|(came, _)| came - start).collect();
    let mut fastest = pairs.to_vec();
    fastest.sort_unstable_by_key(|(came, left)| left - came);
    fastest.truncate((SHORTEST * pairs.len() as f64).ceil() as usize);
    let [fast, left] = [0, 1]
        .map(|of| -> Vec<u64> { fastest.iter().map(|(came, left)| [*came, *left][of] - start).collect() });
    // Packets wait for up to a period; on a link without requests, they do not.
    let waits: Vec<f64> = pairs.iter().map(|(came, left)| (left - came) as f64).collect();
    let range = quantile(&waits, 0.9)? - quantile(&waits, 0.1)?;
    let is_narrow = |period: f64| {
        let own = mass(&left, period);
        range >= WAITING * period && own >= MOST && own >= UNDIVIDED * mass(&left, period / 2.0)
    };
    let is_told = |period: f64| arc(&came, period) >= SPREAD && arc(&fast, period) >= SPREAD_FAST;
    let found = PERIODS.into_iter().rev().find(|period| is_told(*period) && is_narrow(*period))?;
    // Longer periods that are not excluded, because the packets came at one phase of them.
    let open = PERIODS
        .into_iter()
        .filter(|period| *period > found && !is_told(*period) && is_narrow(*period))
        .count();
    let by_slots = pattern_ms.is_some_and(|pattern| found / 1e6 <= pattern + 1e-9);
    let confidence = match pairs.len() {
        _ if by_slots || open > 0 => Confidence::Low,
        MANY.. => Confidence::High,
        _ => Confidence::Medium,
    };
    let mut from = format!(
        "{} packets on an idle uplink: {:.0}% of the fastest {:.0}% at one phase",
        pairs.len(),
        100.0 * mass(&left, found),
        100.0 * SHORTEST,
    );
    if by_slots {
        from += "; no longer than the pattern, whose slots have the same effect";
    }
    if open > 0 {
        from += "; all came at one phase of a longer period, which is not excluded";
    }
    Some(Estimate::new(found / 1e6, confidence, from))
}
