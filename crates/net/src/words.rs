//! Figures as words of a sentence: shares, times, sizes and rates.

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    let decimals = if share < 0.01 && share > 0.0 { 2 } else { 0 };
    format!("{:.decimals$}%", 100.0 * share)
}

/// A time in milliseconds.
pub fn ms(ms: f64) -> String {
    let decimals = usize::from(ms < 10.0);
    format!("{ms:.decimals$} ms")
}

/// A number of bytes.
pub fn bytes(count: f64) -> String {
    scaled(count, 1000.0, ["B", "kB", "MB", "GB"])
}

/// A rate in bits per second.
pub fn bit_rate(rate: f64) -> String {
    scaled(rate, 1000.0, ["b/s", "kb/s", "Mb/s", "Gb/s"])
}

/// A value with the largest unit in which it is at least 1; `step` is the ratio of the units.
fn scaled(value: f64, step: f64, units: [&str; 4]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= step && unit < 3 {
        value /= step;
        unit += 1;
    }
    let decimals = usize::from(value < 10.0 && unit > 0);
    format!("{value:.decimals$} {}", units[unit])
}
