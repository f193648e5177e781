//! Published results beside results of our runs.
//!
//! `results -> Experiment -> rows`: a command runs the scenarios that an experiment names and hands their
//! [`RunResult`](crate::results::RunResult)s to its `Experiment`, which gives one [`Row`] per published
//! quantity: both values, whether the published statement holds, and the counters that explain it.

pub mod accelerator;
pub mod ack_filter;
pub mod calibration;

use crate::results::mean_and_half;
use serde_json::{Map, json};

/// A published quantity and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the row.
    pub id: &'static str,
    /// The quantity, in words.
    pub quantity: String,
    /// The published statement, in words.
    pub published: &'static str,
    /// Unit of the values; empty for a ratio.
    pub unit: &'static str,
    /// Published and measured values.
    pub values: Vec<Value>,
    /// Whether the published statement holds for our means.
    pub holds: bool,
    /// Whether the published statement holds in the whole of our 95% confidence intervals.
    pub holds_in_ci95: bool,
    /// Measurements that explain the row, in words.
    pub why: String,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Name of the value within the row.
    pub name: String,
    /// Published value; none if no number was published.
    pub published: Option<f64>,
    /// Measured value.
    pub ours: Estimate,
}

/// Mean over seeds and the half width of its 95% confidence interval. Both are none without a finite value,
/// the half width also with a single one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: Option<f64>,
    /// Half width.
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
    /// The row as in `summary.json`. `published_values`, `ours` and `ci95` have one entry per value.
    pub fn to_json(&self) -> serde_json::Value {
        let entries = |of: fn(&Value) -> Option<f64>| {
            self.values.iter().map(|v| (v.name.clone(), json!(of(v)))).collect::<Map<_, _>>()
        };
        json!({
            "id": self.id,
            "quantity": self.quantity,
            "published": self.published,
            "published_values": entries(|v| v.published),
            "ours": entries(|v| v.ours.mean),
            "ci95": entries(|v| v.ours.half),
            "unit": self.unit,
            "holds": self.holds,
            "holds_in_ci95": self.holds_in_ci95,
            "why": self.why,
        })
    }
}
