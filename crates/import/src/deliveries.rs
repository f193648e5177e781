//! Deliveries over time, and the trace that they become.

use super::notes::Notes;
use paceline_net::trace::{OPPORTUNITY_BYTES, Trace};
use paceline_net::{Duration, Instant};

/// Highest rate of a row, b/s. Chosen: ten times that of the fastest radio links; above it the unit is wrong.
const HIGHEST_RATE: f64 = 1e11;
/// Silence before the first delivery that is stated, ns. Chosen: longer than the pauses of a working link.
const LONG_SILENCE_NS: u64 = 1_000_000_000;
/// Longest trace, ns. Must match the longest one of [`Trace`], a day.
const LONGEST_NS: u64 = 86_400_000_000_000;
/// Nanoseconds in a millisecond (SI), by definition.
const MS: u64 = 1_000_000;

/// Deliveries of a link as a file states them.
#[derive(Debug)]
pub enum Deliveries {
    /// Bytes at a time, ns, in order.
    At(Vec<(u64, u64)>),
    /// Rates in b/s from a time, ns, until the next; and the end. Times in order.
    Rates(Vec<(u64, f64)>, u64),
}

impl Deliveries {
    /// The trace, and statements about silence and resampling.
    pub fn into_trace(self, trim: bool, notes: &mut Notes) -> Result<Trace, String> {
        let (length, count) = match &self {
            Self::At(at) => (at.last().map_or(0, |(at, _)| *at), at.len()),
            Self::Rates(rates, end) => (*end, rates.len()),
        };
        if count == 0 {
            return Err("no delivery: a trace needs a time or a rate".into());
        }
        if length > LONGEST_NS {
            return Err("longer than a day: allowed: up to 86400 s; --time-unit states the unit".into());
        }
        if length == 0 {
            return Err("all deliveries are at one time, 0: a trace needs a time above 0".into());
        }
        let (silence, own_rate, step) = match &self {
            Self::At(at) => (at.first().map_or(0, |(at, _)| *at), None, None),
            Self::Rates(rates, end) => {
                if let Some((at, rate)) = rates.iter().find(|(_, rate)| *rate > HIGHEST_RATE) {
                    let (rate, at) = (rate / 1e6, *at as f64 / 1e9);
                    return Err(format!(
                        "{rate:.0} Mb/s at {at} s: allowed: up to 100 Gb/s; --rate-unit states the unit"
                    ));
                }
                if !rates.iter().any(|(_, rate)| *rate > 0.0) {
                    return Err("no rate is above 0".into());
                }
                let first = rates.iter().find(|(_, rate)| *rate > 0.0).map_or(0, |(at, _)| *at);
                (first, Some(mean(rates, *end)), rates.get(1).map(|(at, _)| *at - rates[0].0))
            }
        };
        let offset = if trim { silence } else { 0 };
        if silence >= LONG_SILENCE_NS {
            let seconds = silence as f64 / 1e9;
            notes.push(if trim {
                format!("silence of {seconds:.3} s before the first delivery left out")
            } else {
                format!("silence of {seconds:.3} s before the first delivery; --trim leaves it out")
            });
        }
        let trace = match self {
            Self::At(at) => {
                // A millisecond after a trim, so that the first delivery is not at time 0 of an empty trace.
                let start = if offset > 0 { (offset / MS * MS).saturating_sub(MS) } else { 0 };
                let length = at.last().map_or(0, |(at, _)| at - start);
                let deliveries = at.iter().map(|(at, bytes)| (Instant::from_nanos(at - start), *bytes));
                Trace::of_deliveries(deliveries, Duration::from_nanos(length))
            }
            Self::Rates(rates, end) => {
                let length = Duration::from_nanos(end.saturating_sub(offset));
                Trace::of_deliveries(per_millisecond(&rates, end, offset), length)
            }
        };
        let trace = trace.map_err(|error| error.message)?;
        if let Some(rate) = own_rate {
            let step = step.map_or(String::new(), |step| format!(" of {} ms", step as f64 / 1e6));
            notes.push(format!(
                "rates{step} resampled to opportunities of {OPPORTUNITY_BYTES} bytes at whole milliseconds: mean \
                 {:.3} Mb/s, in the file {:.3} Mb/s",
                trace.rate() / 1e6,
                rate / 1e6
            ));
        }
        Ok(trace)
    }
}

/// Mean rate, b/s.
fn mean(rates: &[(u64, f64)], end: u64) -> f64 {
    let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let bits: f64 = rates.iter().zip(ends).map(|((at, rate), end)| rate * (end - at) as f64 / 1e9).sum();
    bits * 1e9 / end.max(1) as f64
}

/// The bytes of each millisecond, at its end. A rest below one byte is carried over.
fn per_millisecond(rates: &[(u64, f64)], end: u64, offset: u64) -> impl Iterator<Item = (Instant, u64)> + '_ {
    let (mut index, mut carry) = (0, 0.0);
    let steps = end.saturating_sub(offset).div_ceil(MS);
    (0..steps).map(move |step| {
        let (from, to) = (offset + step * MS, (offset + (step + 1) * MS).min(end));
        let mut at = from;
        while at < to {
            while rates.get(index + 1).is_some_and(|(next, _)| *next <= at) {
                index += 1;
            }
            let until = rates.get(index + 1).map_or(to, |(next, _)| (*next).min(to));
            // Before the first row nothing is sent.
            let (begins, rate) = rates[index];
            let until = if at < begins { begins.min(to) } else { until };
            carry += if at < begins { 0.0 } else { rate * (until - at) as f64 / 8e9 };
            at = until;
        }
        let bytes = carry.floor();
        carry -= bytes;
        (Instant::from_nanos((step + 1) * MS), bytes as u64)
    })
}
