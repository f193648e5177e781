//! Estimates from the series of logs.

use super::{Confidence, Estimate, quantile};
use crate::log::{Format, Rate, Series};

/// Answers of pings for a claim, and for high confidence. Chosen: one of five can be the least, twenty show
/// that others are near it.
const FEW: usize = 5;
const MANY: usize = 20;
/// Pings from which a share of losses is claimed. Chosen: losses of 1% are some among them.
const PINGS_FOR_LOSS: u64 = 300;
/// Inflation of the round trip from which a transfer has filled a queue. Must match that of `paceline
/// explain`.
const INFLATED: f64 = 1.3;
/// Intervals of a report for a claim. Chosen: the first one or two have the slow start.
const INTERVALS: usize = 5;
/// Bytes of a datagram over those of its payload: 1448 bytes with TCP's timestamps in 1500.
const HEADERS: f64 = 1500.0 / 1448.0;

/// The least round trip, ms.
pub fn base_rtt(series: &Series, name: &str) -> Option<Estimate<f64>> {
    if let Some(least) = series.least_rtt_ms {
        return Some(Estimate::new(least, Confidence::Medium, format!("the sender's least, in {name}")));
    }
    if series.rates.is_empty() {
        let least = series.pings.iter().map(|(_, rtt)| *rtt).reduce(f64::min)?;
        let limit = least + (0.05 * least).max(1.0);
        let near = series.pings.iter().filter(|(_, rtt)| *rtt <= limit).count();
        let confidence = match series.pings.len() {
            MANY.. if near >= 3 => Confidence::High,
            FEW.. if near >= 2 => Confidence::Medium,
            _ => Confidence::Low,
        };
        let from = format!("the least of {} pings in {name}", series.pings.len());
        return Some(Estimate::new(least, confidence, from));
    }
    None
}

/// 95th percentile of pings above the least one, ms.
pub fn jitter(series: &Series, name: &str) -> Option<Estimate<f64>> {
    let rtts: Vec<f64> = series.pings.iter().map(|(_, rtt)| *rtt).collect();
    let value = quantile(&rtts, 0.95)? - quantile(&rtts, 0.0)?;
    let is_ping = series.rates.is_empty() && rtts.len() >= MANY;
    is_ping.then(|| Estimate::new(value, Confidence::Medium, format!("{} pings in {name}", rtts.len())))
}

/// Share of lost pings, percent.
pub fn loss(series: &Series, name: &str) -> Option<Estimate<f64>> {
    if !series.rates.is_empty() || series.pings.is_empty() {
        return None;
    }
    let sent = series.pings.len() as u64 + series.lost_pings;
    let confidence = if sent >= PINGS_FOR_LOSS { Confidence::Medium } else { Confidence::Low };
    let value = 100.0 * series.lost_pings as f64 / sent as f64;
    Some(Estimate::new(value, confidence, format!("{} of {sent} pings in {name}", series.lost_pings)))
}

/// Capacity, Mb/s of datagrams.
pub fn capacity(series: &Series, format: Format, name: &str) -> Option<Estimate<f64>> {
    let total: f64 = series.rates.iter().map(|rate| rate.span_s).sum();
    let mean = |rates: &[Rate]| {
        let seconds: f64 = rates.iter().map(|rate| rate.span_s).sum();
        rates.iter().map(|rate| rate.mbps * rate.span_s).sum::<f64>() / seconds.max(1e-9)
    };
    if total <= 0.0 {
        return None;
    }
    match format {
        Format::Trace => Some(Estimate::new(
            mean(&series.rates),
            Confidence::Medium,
            format!("the mean of {name}, taken as capacity"),
        )),
        Format::Iperf3 => {
            let rtts: Vec<f64> = series.pings.iter().map(|(_, rtt)| *rtt).collect();
            let inflation =
                quantile(&rtts, 0.5).zip(series.least_rtt_ms).map(|(median, least)| median / least);
            let is_full = inflation.is_some_and(|inflation| inflation >= INFLATED);
            // The slow start is in the first intervals.
            let skip = (series.rates.len() / 5).min(2);
            let rates = &series.rates[skip..];
            let confidence =
                if is_full && rates.len() >= INTERVALS { Confidence::Medium } else { Confidence::Low };
            let grown = inflation.map_or_else(
                || "no round trips that would show a queue".to_owned(),
                |inflation| format!("round trip {inflation:.1} times the least"),
            );
            Some(Estimate::new(
                mean(rates) * HEADERS,
                confidence,
                format!("{} intervals of {name}; {grown}", rates.len()),
            ))
        }
        _ => {
            let rates: Vec<f64> = series.rates.iter().map(|rate| rate.mbps).collect();
            let most = quantile(&rates, 0.95).filter(|most| *most > 0.0)?;
            Some(Estimate::new(
                most,
                Confidence::Low,
                format!("the highest rate of {name}, not known to be the capacity"),
            ))
        }
    }
}

/// Buffer by the smoothed round trips at times of loss, bytes.
pub fn buffer(series: &Series, name: &str) -> Option<Estimate<f64>> {
    let least = series.least_rtt_ms?;
    let queues: Vec<f64> =
        series.full.iter().map(|(rtt, mbps)| (rtt - least).max(0.0) * mbps * HEADERS * 1e3 / 8.0).collect();
    let value = quantile(&queues, 0.9).filter(|bytes| *bytes > 0.0)?;
    let from = format!("smoothed round trips in {} intervals with losses of {name}", queues.len());
    Some(Estimate::new(value, Confidence::Low, from))
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (!values.is_empty()).then(|| (mean, variance.sqrt()))
}

/// Mean and standard deviation of a quantity of the radio.
pub fn radio(values: &[f64], what: &str, name: &str) -> Option<[Estimate<f64>; 2]> {
    let (mean, deviation) = moments(values)?;
    let confidence = match values.len() {
        MANY.. => Confidence::High,
        FEW.. => Confidence::Medium,
        _ => Confidence::Low,
    };
    let from = format!("{} values of {what} in {name}", values.len());
    Some([Estimate::new(mean, confidence, from.clone()), Estimate::new(deviation, confidence, from)])
}
