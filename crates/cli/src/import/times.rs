//! One column of times: each is an opportunity of 1504 bytes, as in mahimahi's format, in any unit.

use super::deliveries::Deliveries;
use super::names::is_time;
use super::options::Options;
use super::table::Table;
use super::units::TimeUnit;
use paceline_sim::link::OPPORTUNITY_BYTES;

/// Mean rates in b/s and lengths in s of a trace whose unit is plausible. Chosen: from a bad 2G link to
/// 10 Gb/s, and from a second to an hour.
const RATES: std::ops::RangeInclusive<f64> = 1e5..=1.2e10;
const LENGTHS: std::ops::RangeInclusive<f64> = 1.0..=3600.0;
/// Share of equal neighbours above which whole numbers are milliseconds. Chosen: opportunities in one
/// microsecond are more than 12 Gb/s.
const EQUAL_SHARE: f64 = 0.01;

/// Whether a single column has times rather than rates: by its name or the options, or since the values never
/// decrease, and are not all equal.
pub fn are_times(values: &[f64], table: &Table, options: &Options) -> bool {
    if options.time.is_some() || options.time_unit.is_some() {
        return true;
    }
    if let Some(name) = table.names.first() {
        return TimeUnit::named(name).is_some() || is_time(name);
    }
    values.is_sorted() && (values.len() < 2 || values[0] < values[values.len() - 1])
}

/// Reads times.
pub fn read(values: &[f64], unit: Option<TimeUnit>, notes: &mut Vec<String>) -> Result<Deliveries, String> {
    if let Some(row) = values.windows(2).position(|pair| pair[1] < pair[0]) {
        let (was, is) = (values[row], values[row + 1]);
        return Err(format!("value {}: {is} after {was}: times must not decrease", row + 2));
    }
    if let Some(value) = values.iter().find(|value| **value < 0.0) {
        return Err(format!("{value}: times are not negative"));
    }
    let (first, last) = (values[0], values[values.len() - 1]);
    let (found, why) = match (unit, TimeUnit::since_1970(first)) {
        (Some(unit), _) => (unit, "as stated"),
        (None, Some(unit)) => (unit, "as times since 1970 are"),
        (None, None) => guess(values),
    };
    // Times of a clock that did not start with the trace: since 1970, or since the recorder's start.
    let is_absolute =
        TimeUnit::since_1970(first) == Some(found) || (first > 10.0 * (last - first) && first < last);
    notes.push(format!(
        "{} times in {found} ({why}; --time-unit changes it), each an opportunity of {OPPORTUNITY_BYTES} bytes",
        values.len()
    ));
    // One step before the first opportunity, so that the trace's rate is right.
    let step = (last - first) / (values.len() - 1).max(1) as f64;
    let origin = if is_absolute { first - step } else { 0.0 };
    if is_absolute {
        notes.push(format!("absolute times: {first} {found} is the begin"));
    }
    // A double holds seconds since 1970 to a quarter of a microsecond.
    let grain = if is_absolute { 10_000.0 } else { 1.0 };
    let ns = |value: f64| (((value - origin) * found.nanos() / grain).round() * grain).max(0.0) as u64;
    if found != TimeUnit::Millisecond || values.iter().any(|value| value.fract() != 0.0) {
        notes.push("times rounded up to whole milliseconds".into());
    }
    Ok(Deliveries::At(values.iter().map(|value| (ns(*value), OPPORTUNITY_BYTES)).collect()))
}

/// The unit by which length and mean rate are plausible; milliseconds before others, and if none is.
fn guess(values: &[f64]) -> (TimeUnit, &'static str) {
    let (first, last) = (values[0], values[values.len() - 1]);
    let span = if first > 10.0 * (last - first) { last - first } else { last };
    let whole = values.iter().all(|value| value.fract() == 0.0);
    let equal = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    if whole && equal as f64 > EQUAL_SHARE * values.len() as f64 {
        return (TimeUnit::Millisecond, "since times are equal");
    }
    let is_plausible = |unit: &TimeUnit| {
        let seconds = span * unit.nanos() / 1e9;
        let rate = values.len() as f64 * OPPORTUNITY_BYTES as f64 * 8.0 / seconds;
        LENGTHS.contains(&seconds) && RATES.contains(&rate)
    };
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match [Millisecond, Second, Microsecond, Nanosecond].into_iter().find(is_plausible) {
        Some(unit) => (unit, "by the rate that results"),
        None => (Millisecond, "as in mahimahi's format"),
    }
}
