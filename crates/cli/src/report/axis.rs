//! Axes with round numbers as labels.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// An axis: range, places and decimals of its labels.
#[derive(Clone, Debug)]
pub struct Ticks {
    pub low: f64,
    pub high: f64,
    pub at: Vec<f64>,
    pub decimals: usize,
}

impl Ranged for Ticks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.at.clone() }
    }
    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl Ticks {
    /// An axis from `low` to `high` with labels at multiples of 1, 2 or 5 times a power of ten, from the last
    /// one at or below `low` to the first one at or above `high`.
    pub fn nice(low: f64, high: f64) -> Self {
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let mut power = 1.0;
        while power * 10.0 <= span / 5.0 {
            power *= 10.0;
        }
        while power > span / 5.0 {
            power /= 10.0;
        }
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|s| *s >= span / 5.0);
        let step = step.unwrap_or(power * 10.0);
        let (first, last) = ((low / step).floor() as i64, ((low + span) / step - 1e-9).ceil() as i64);
        let at: Vec<f64> = (first..=last).map(|index| index as f64 * step).collect();
        Self { low, high: low + span, at, decimals: decimals(step) }
    }
}

/// Decimals of a number without trailing zeros, six at most.
pub fn decimals(number: f64) -> usize {
    let mut scaled = number.abs();
    for decimals in 0..6 {
        if (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-3) {
            return decimals;
        }
        scaled *= 10.0;
    }
    6
}

/// Groups of three digits, separated by thin spaces.
pub fn thousands(number: &str) -> String {
    let (integer, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = integer.trim_start_matches('-').len();
    let mut text = String::new();
    let mut remaining = digits;
    for c in integer.chars() {
        if c != '-' {
            if remaining != digits && remaining % 3 == 0 {
                text.push('\u{2009}');
            }
            remaining -= 1;
        }
        text.push(c);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round_numbers_around_the_data() {
        let ticks = Ticks::nice(0.0, 31.3);
        assert_eq!(ticks.at, [0.0, 10.0, 20.0, 30.0, 40.0]);
        let ticks = Ticks::nice(0.85, 0.99);
        assert_eq!(ticks.decimals, 2);
        assert!(ticks.at[0] <= 0.85 + 1e-9 && *ticks.at.last().unwrap() >= 0.99 - 1e-9, "{:?}", ticks.at);
        assert!(Ticks::nice(0.0, 0.0).at.len() >= 2);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(thousands("1234567.8"), "1\u{2009}234\u{2009}567.8");
        assert_eq!(thousands("-100"), "-100");
    }
}
