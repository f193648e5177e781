//! One value of a published quantity beside ours, and the distance between both.

use crate::Estimate;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Value {
    /// Name of the value within the row.
    pub name: String,
    /// Unit; empty for a ratio.
    pub unit: Cow<'static, str>,
    /// Published value; none if no number was published.
    pub published: Option<f64>,
    /// Lowest value that the publication gives for this quantity; none if it gives no range.
    pub spread_low: Option<f64>,
    /// The highest one.
    pub spread_high: Option<f64>,
    /// Measured value.
    #[serde(flatten)]
    pub ours: Estimate,
    /// Place on the axis of the row's picture; none in rows without an axis.
    pub at: Option<f64>,
    /// Line of the row's picture that the value belongs to; empty if the row has one line.
    pub line: String,
}

impl Value {
    /// A value without a published range.
    pub fn new(name: impl Into<String>, unit: &'static str, published: Option<f64>, ours: Estimate) -> Self {
        let (name, unit, line) = (name.into(), unit.into(), String::new());
        Self { name, unit, published, spread_low: None, spread_high: None, ours, at: None, line }
    }
    /// The same value with the range that the publication gives.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { spread_low: Some(low), spread_high: Some(high), ..self }
    }
    /// The same value with its place on the axis of the row's picture, and the name of its line there.
    pub fn at(self, at: f64, line: &str) -> Self {
        Self { at: Some(at), line: line.to_owned(), ..self }
    }

    /// The published range; none if there is none.
    pub fn spread(&self) -> Option<(f64, f64)> {
        self.spread_low.zip(self.spread_high)
    }
    /// Our mean minus the published value, in the unit of the value. If only a range is published, the
    /// distance from its nearer end, and zero within it.
    pub fn difference(&self) -> Option<f64> {
        let ours = self.ours.mean?;
        match (self.published, self.spread()) {
            (Some(published), _) => Some(ours - published),
            (None, Some((low, high))) => Some(ours - ours.clamp(low, high)),
            (None, None) => None,
        }
    }
    /// The difference as a percentage of the published value. None in decibels, where a difference is a
    /// ratio already, and where zero is published.
    pub fn difference_percent(&self) -> Option<f64> {
        let (ours, difference) = (self.ours.mean?, self.difference()?);
        let reference = (ours - difference).abs();
        (self.unit != "dB" && reference > 0.0).then(|| 100.0 * difference / reference)
    }
    /// Whether our mean lies in the published range; none without a range or a mean.
    pub fn within_spread(&self) -> Option<bool> {
        let (low, high) = self.spread()?;
        self.ours.mean.map(|ours| (low..=high).contains(&ours))
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "unit": self.unit,
            "published": self.published,
            "ours": self.ours.mean,
            "ci95": self.ours.half,
            "difference": self.difference(),
            "difference_percent": self.difference_percent(),
            "spread_low": self.spread_low,
            "spread_high": self.spread_high,
            "within_spread": self.within_spread(),
            "at": self.at,
            "line": self.line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(unit: &'static str, published: Option<f64>, ours: f64) -> Value {
        Value::new("v", unit, published, Estimate { mean: Some(ours), half: None })
    }

    #[test]
    fn the_difference_from_a_published_value_is_in_its_unit_and_in_percent() {
        let loss = value("%", Some(-20.0), -25.0);
        assert_eq!((loss.difference(), loss.difference_percent()), (Some(-5.0), Some(-25.0)));
        let goodput = value("Mb/s", Some(4.0), 5.0);
        assert_eq!((goodput.difference(), goodput.difference_percent()), (Some(1.0), Some(25.0)));
        assert_eq!(goodput.within_spread(), None);
    }

    #[test]
    fn a_difference_in_decibels_or_from_zero_has_no_percentage() {
        let loss = value("dB", Some(100.0), 101.0);
        assert_eq!((loss.difference(), loss.difference_percent()), (Some(1.0), None));
        assert_eq!(value("%", Some(0.0), 3.0).difference_percent(), None);
    }

    #[test]
    fn the_difference_from_a_published_range_is_that_from_its_nearer_end() {
        let of = |ours: f64| value("Mb/s", None, ours).within(1.0, 2.0);
        assert_eq!((of(1.5).difference(), of(1.5).within_spread()), (Some(0.0), Some(true)));
        assert_eq!((of(3.0).difference(), of(3.0).within_spread()), (Some(1.0), Some(false)));
        assert_eq!(of(3.0).difference_percent(), Some(50.0));
        assert_eq!(of(0.75).difference_percent(), Some(-25.0));
    }

    #[test]
    fn without_a_measurement_nothing_is_compared() {
        let none = Value::new("v", "ms", Some(3.0), Estimate::default()).within(1.0, 4.0);
        assert_eq!((none.difference(), none.difference_percent(), none.within_spread()), (None, None, None));
    }
}
