//! The period of scheduling requests: packets that meet an idle uplink leave at one phase of it, whenever
//! they came.

use super::{Confidence, Estimate};

/// Periods, ns: those of LTE (TS 36.213 Table 10.1.5-1), and in NR multiples of slots up to 1 ms (TS 38.331
/// SchedulingRequestResourceConfig).
const PERIODS: [f64; 13] = [0.5e6, 1e6, 2e6, 2.5e6, 4e6, 5e6, 8e6, 10e6, 16e6, 20e6, 40e6, 80e6, 160e6];
/// Share of the round trips whose phases count: the shortest ones, of which HARQ repeated few.
const SHORTEST: f64 = 0.4;
/// Share of these that must be within the arc: others were repeated by HARQ, or met a grant.
const MOST: f64 = 0.75;
/// Largest arc of the period, and least and largest time, that they take. Chosen: spread ones take 60%, and
/// captures are exact to a tenth of a millisecond.
const NARROW: f64 = 0.08;
const NARROW_NS: [f64; 2] = [0.15e6, 1.2e6];
/// Least arc of the times at which all came. Chosen: half of that of spread ones.
const SPREAD: f64 = 0.3;
/// Packets for a claim, and for high confidence. Chosen: of eight, the fastest of twenty, six are at one of
/// the two phases of twice the period by chance in one of seven cases, of twenty fifteen in one of 50.
const FEW: usize = 20;
const MANY: usize = 50;

/// The smallest arc with [`MOST`] of the phases, as a share of the period.
fn arc(times: &[u64], period: f64) -> f64 {
    let mut phases: Vec<f64> = times.iter().map(|at| (*at as f64 / period).fract()).collect();
    phases.sort_by(f64::total_cmp);
    let count = phases.len();
    let take = ((MOST * count as f64).ceil() as usize).max(2);
    (0..count)
        .map(|index| {
            let end = index + take - 1;
            if end < count { phases[end] - phases[index] } else { 1.0 + phases[end - count] - phases[index] }
        })
        .fold(1.0, f64::min)
}

/// Finds the period from pairs: the time at which a packet came, by its cause at the capture point, and the
/// time at which it had passed the uplink. `pattern_ms` is the period of the TDD pattern, if known.
pub fn find(pairs: &[(u64, u64)], pattern_ms: Option<f64>) -> Option<Estimate<f64>> {
    if pairs.len() < FEW {
        return None;
    }
    let start = pairs.iter().map(|(came, _)| *came).min()?;
    let came: Vec<u64> = pairs.iter().map(|(came, _)| came - start).collect();
    let mut shortest: Vec<(u64, u64)> =
        pairs.iter().map(|(came, left)| (left - came, left - start)).collect();
    shortest.sort_unstable();
    shortest.truncate((SHORTEST * pairs.len() as f64).ceil() as usize);
    let left: Vec<u64> = shortest.into_iter().map(|(_, left)| left).collect();
    let is_narrow =
        |period: f64| arc(&left, period) * period <= (NARROW * period).clamp(NARROW_NS[0], NARROW_NS[1]);
    let is_told = |period: f64| arc(&came, period) >= SPREAD;
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
        "{} packets on an idle uplink: {:.0}% of the fastest {:.0}% within {:.2} ms of the period",
        pairs.len(),
        100.0 * MOST,
        100.0 * SHORTEST,
        arc(&left, found) * found / 1e6
    );
    if by_slots {
        from += "; no longer than the pattern, whose slots have the same effect";
    }
    if open > 0 {
        from += "; all came at one phase of a longer period, which is not excluded";
    }
    Some(Estimate::new(found / 1e6, confidence, from))
}
