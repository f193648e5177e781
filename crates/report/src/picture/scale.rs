//! Axes: linear or logarithmic, with round numbers or the data's own values as labels.

/// Ratio of the largest to the smallest value from which on an axis is logarithmic. Chosen: values such as
/// 1, 2, 5, 10, 20 are evenly spaced then, and a linear axis would crowd the small ones.
const LOG_RATIO: f64 = 20.0;

/// An axis: range, places and decimals of its labels.
#[derive(Clone, Debug)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    pub log: bool,
    pub at: Vec<f64>,
    pub decimals: usize,
}

impl Scale {
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
        Self { low, high: low + span, log: false, at, decimals: decimals(step) }
    }
    /// A logarithmic axis with labels at 1, 2 and 5 times powers of ten; `low` is above zero.
    pub fn logarithmic(low: f64, high: f64) -> Self {
        let powers = libm::log10(low).floor() as i32..=libm::log10(high).ceil() as i32;
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * libm::pow(10.0, f64::from(power))));
        let at: Vec<f64> = all.filter(|at| (low * 0.999..=high * 1.001).contains(at)).collect();
        Self { low, high, log: true, at, decimals: 0 }
    }
    /// An axis for quantities at these places, ascending: logarithmic if they span decades, with a margin at
    /// both ends. Up to a dozen places are labelled themselves.
    pub fn of_places(places: &[f64]) -> Self {
        let (low, high) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
        let mut scale = if low > 0.0 && high / low >= LOG_RATIO {
            let margin = libm::pow(high / low, 0.04);
            let mut scale = Self::logarithmic(low, high);
            (scale.low, scale.high) = (low / margin, high * margin);
            scale
        } else if low == high {
            let mut scale = Self::nice(low - 1.0, low + 1.0);
            (scale.low, scale.high) = (low - 1.0, low + 1.0);
            scale
        } else {
            let mut scale = Self::nice(low, high);
            let margin = 0.04 * (high - low);
            (scale.low, scale.high) = (low - margin, high + margin);
            scale
        };
        if places.len() <= 12 {
            scale.at = places.to_vec();
        }
        scale.at.retain(|at| *at >= scale.low && *at <= scale.high);
        scale.decimals = scale.at.iter().map(|at| decimals(*at)).max().unwrap_or(0);
        scale
    }
    /// The place of a value between the ends of the axis, 0 to 1; beyond them for values out of range.
    pub fn share(&self, value: f64) -> f64 {
        if self.log {
            return libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low);
        }
        (value - self.low) / (self.high - self.low)
    }
    /// The label of a place.
    pub fn label(&self, at: f64) -> String {
        let decimals = if self.log { decimals(at) } else { self.decimals };
        thousands(&format!("{at:.decimals$}"))
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

/// A number without trailing zeros, in groups of three digits.
pub fn plain(number: f64) -> String {
    let decimals = decimals(number).min(4);
    thousands(&format!("{number:.decimals$}"))
}

/// A number with three significant digits or more, in groups of three digits.
pub fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        0.0 => 0,
        _ => 5,
    };
    thousands(&format!("{number:.decimals$}"))
}

/// Groups of three digits, separated by thin spaces; numbers below 10,000 stay together.
pub fn thousands(number: &str) -> String {
    let (integer, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = integer.trim_start_matches('-').len();
    let mut text = String::new();
    let mut remaining = digits;
    for c in integer.chars() {
        if c != '-' {
            if remaining != digits && remaining % 3 == 0 && digits > 4 {
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
        let scale = Scale::nice(0.0, 31.3);
        assert_eq!(scale.at, [0.0, 10.0, 20.0, 30.0, 40.0]);
        let scale = Scale::nice(0.85, 0.99);
        assert_eq!(scale.decimals, 2);
        assert!(scale.at[0] <= 0.85 + 1e-9 && *scale.at.last().unwrap() >= 0.99 - 1e-9, "{:?}", scale.at);
        assert!(Scale::nice(0.0, 0.0).at.len() >= 2);
    }

    #[test]
    fn quantities_that_span_decades_have_a_logarithmic_axis() {
        let scale = Scale::of_places(&[1.0, 10.0, 100.0]);
        assert!(scale.log);
        assert!((scale.share(10.0) - 0.5).abs() < 1e-9, "{}", scale.share(10.0));
        assert!(!Scale::of_places(&[10.0, 20.0, 60.0]).log);
        assert!(!Scale::of_places(&[0.0, 1.0, 100.0]).log, "zero has no place on a logarithmic axis");
        let ticks = Scale::logarithmic(0.02, 30.0).at;
        assert_eq!((ticks[0], ticks.len()), (0.02, 10));
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(thousands("1234567.8"), "1\u{2009}234\u{2009}567.8");
        assert_eq!(thousands("1500"), "1500");
        assert_eq!(thousands("-100"), "-100");
    }
}
