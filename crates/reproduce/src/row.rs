//! A published quantity beside ours: both values and their difference, whether the published statement holds,
//! and the counters that explain it.

use crate::Value;
use paceline_sim::results::mean_and_half;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::borrow::Cow;

/// A published quantity and ours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    /// Number of the row.
    pub id: Cow<'static, str>,
    /// The quantity, in words.
    pub quantity: String,
    /// The published statement, in words; empty if nothing was published.
    pub published: Cow<'static, str>,
    /// Name and unit of the axis of the row's picture; none for a picture of bars.
    pub axis: Option<Cow<'static, str>>,
    /// Published and measured values.
    pub values: Vec<Value>,
    /// Whether the published statement holds for our means; false if nothing was published.
    #[serde(deserialize_with = "null_as_false")]
    pub holds: bool,
    /// Whether the published statement holds in the whole of our 95% confidence intervals.
    #[serde(deserialize_with = "null_as_false")]
    pub holds_in_ci95: bool,
    /// Measurements that explain the row, in words.
    pub why: String,
}

/// Mean over seeds and the half width of its 95% confidence interval. Both are none without a finite value,
/// the half width also with a single one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Estimate {
    /// Mean.
    #[serde(rename = "ours")]
    pub mean: Option<f64>,
    /// Half width.
    #[serde(rename = "ci95")]
    pub half: Option<f64>,
}

impl Estimate {
    /// Estimate from one value per seed. Values that are not finite, such as ratios to zero, are left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return Self::default();
        }
        let (mean, half) = mean_and_half(&values);
        Self { mean: Some(mean), half }
    }
    /// Whether the mean meets a condition; false without a mean.
    pub fn mean_meets(&self, condition: impl Fn(f64) -> bool) -> bool {
        self.mean.is_some_and(condition)
    }
    /// Whether the whole confidence interval meets a condition that is true on one side of a bound, or
    /// between two bounds; false without an interval.
    pub fn interval_meets(&self, condition: impl Fn(f64) -> bool) -> bool {
        let (Some(mean), Some(half)) = (self.mean, self.half) else { return false };
        condition(mean - half) && condition(mean + half)
    }
}

impl Row {
    /// A row without a verdict, picture or explanation.
    pub(crate) fn of(id: &'static str, quantity: &str, published: &'static str, values: Vec<Value>) -> Self {
        Self {
            id: id.into(),
            quantity: quantity.to_owned(),
            published: published.into(),
            axis: None,
            values,
            holds: false,
            holds_in_ci95: false,
            why: String::new(),
        }
    }
    /// Whether the published statement holds for our means, and in the whole of the confidence intervals;
    /// none if nothing was published, or nothing was run.
    pub fn verdict(&self) -> Option<(bool, bool)> {
        let run = self.values.is_empty() || self.values.iter().any(|value| value.ours.mean.is_some());
        (run && !self.published.is_empty()).then_some((self.holds, self.holds_in_ci95))
    }
    /// The row as in `summary.json`.
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "id": self.id,
            "quantity": self.quantity,
            "published": self.published,
            "axis": self.axis,
            "values": self.values.iter().map(Value::to_json).collect::<Vec<_>>(),
            "holds": self.verdict().map(|(holds, _)| holds),
            "holds_in_ci95": self.verdict().map(|(_, in_ci95)| in_ci95),
            "why": self.why,
        })
    }
}

fn null_as_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<bool>::deserialize(deserializer).map(Option::unwrap_or_default)
}
