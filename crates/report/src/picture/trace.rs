//! A trace as a picture: its rate over time, the autocorrelation of the rate, and the lengths of its outages.

use super::chart::{Chart, Kind, Mark, Series, Style};
use super::distribution::steps;
use super::layout::below_one_another;
use paceline_sim::link::{OPPORTUNITY_BYTES, Trace};

/// Points of the rate over time. Chosen: one for every two pixels of a chart's width.
const RATE_POINTS: u64 = 240;
/// Step in which the rate is correlated with itself. Chosen: short against the coherence of fading under a
/// scheduler, and long enough for some opportunities at 1 Mb/s.
const STEP_MS: u64 = 20;
/// Largest lag of the autocorrelation, steps. Chosen: 5 s, some of the longest changes of cellular links.
const MAX_LAG: usize = 250;
/// Shortest pause that counts as an outage. Chosen: longer than any round of a scheduler.
const OUTAGE_MS: u64 = 50;

/// The picture; `name` is the trace's.
pub fn trace_picture(name: &str, trace: &Trace) -> String {
    below_one_another(name, &[rate(trace), correlation(trace), outages(trace)])
}

fn chart(title: &str, x: &str, y: &str, style: Style, marks: Vec<Mark>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        categories: Vec::new(),
        series: vec![Series { name: title.to_owned(), marks, kind: Kind::Ours }],
        style,
        most: if style == Style::Steps { 100.0 } else { f64::INFINITY },
        from_zero: true,
        counts_from: None,
    }
}

/// Opportunities in each whole step of the trace.
fn per_step(trace: &Trace, step_ms: u64) -> Vec<f64> {
    let mut counts = vec![0.0; (trace.length_ms() / step_ms) as usize];
    for (at_ms, count) in trace.per_time() {
        // An opportunity at the end of a step is the step's.
        let step = u64::from(at_ms).saturating_sub(1) / step_ms;
        if let Some(own) = counts.get_mut(step as usize) {
            *own += f64::from(count);
        }
    }
    counts
}

fn rate(trace: &Trace) -> Chart {
    let step_ms = (trace.length_ms() / RATE_POINTS).max(1);
    let mbps = OPPORTUNITY_BYTES as f64 * 8.0 / (step_ms as f64 * 1000.0);
    let marks = per_step(trace, step_ms).into_iter().enumerate().map(|(step, count)| Mark {
        x: (step as f64 + 0.5) * step_ms as f64 / 1000.0,
        y: count * mbps,
        half: None,
    });
    let title = format!("Rate in steps of {step_ms} ms");
    chart(&title, "time, s", &format!("rate in steps of {step_ms} ms, Mb/s"), Style::Lines, marks.collect())
}

fn correlation(trace: &Trace) -> Chart {
    let marks = autocorrelation(&per_step(trace, STEP_MS)).into_iter().enumerate().map(|(lag, y)| Mark {
        x: lag as f64 * STEP_MS as f64 / 1000.0,
        y,
        half: None,
    });
    let y = format!("autocorrelation of the rate in steps of {STEP_MS} ms");
    chart("Autocorrelation of the rate", "lag, s", &y, Style::Lines, marks.collect())
}

/// Autocorrelation at each lag up to a third of the values; empty for a constant.
fn autocorrelation(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let product = |lag: usize| -> f64 {
        values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n
    };
    let lags = MAX_LAG.min(values.len() / 3);
    if lags == 0 || product(0) <= 0.0 {
        return Vec::new();
    }
    (0..=lags).map(|lag| product(lag) / product(0)).collect()
}

fn outages(trace: &Trace) -> Chart {
    let times: Vec<u64> = trace.per_time().map(|(at_ms, _)| u64::from(at_ms)).collect();
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]).chain(times.first().copied());
    let lengths: Vec<f64> = pauses.filter(|ms| *ms >= OUTAGE_MS).map(|ms| ms as f64).collect();
    let y = format!("outages at or below, % of {} pauses of {OUTAGE_MS} ms or more", lengths.len());
    chart("Lengths of outages", "length, ms", &y, Style::Steps, steps(lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternating_rate_is_anticorrelated_at_its_half_period_and_a_constant_has_none() {
        // 40 ms of one opportunity per ms, then 40 ms of silence.
        let times = (0..50u32).flat_map(|round| (1..=40).map(move |ms| 80 * round + ms)).chain([4000]);
        let trace = Trace::new(times).unwrap();
        let of = autocorrelation(&per_step(&trace, STEP_MS));
        assert!((of[0] - 1.0).abs() < 1e-9 && of[2] < -0.9 && of[4] > 0.9, "{of:?}");
        assert!(autocorrelation(&[3.0; 30]).is_empty() && autocorrelation(&[]).is_empty());
        assert_eq!(per_step(&trace, 40)[..3], [40.0, 0.0, 40.0]);
    }

    #[test]
    fn the_picture_of_any_trace_is_svg_with_three_parts() {
        for times in [vec![1], vec![1, 2, 3], (1..=3000).filter(|ms| ms % 500 > 90).collect()] {
            let svg = trace_picture("a <b>", &Trace::new(times).unwrap());
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            let charts = svg.matches("<svg").count() - 1 + svg.matches(": none<").count();
            assert_eq!(charts, 3, "{svg}");
            assert!(svg.contains("a &lt;b&gt;") && !svg.contains("NaN"), "{svg}");
        }
    }
}
