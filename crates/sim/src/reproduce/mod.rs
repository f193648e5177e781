//! Published results beside ours: rows of a comparison, each with what holds and why.

pub mod accelerator;
pub mod ack_filter;
pub mod calibration;

use crate::results::mean_and_half;
use serde_json::{Map, json};

/// One published quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its number.
    pub id: &'static str,
    /// What it is.
    pub quantity: String,
    /// What was published, in words.
    pub published: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// The values.
    pub values: Vec<Value>,
    /// Whether the published direction holds for our means.
    pub holds: bool,
    /// Whether it holds in the whole of our 95% confidence intervals.
    pub surely: bool,
    /// Why, in measured facts.
    pub why: String,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Which one.
    pub name: String,
    /// The published one, where it is a number.
    pub published: Option<f64>,
    /// Ours: mean over seeds, and the half width of its confidence interval.
    pub ours: Estimate,
}

/// A mean and the half width of its 95% confidence interval. Each is absent where too little was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: Option<f64>,
    /// Half width.
    pub half: Option<f64>,
}

impl Estimate {
    /// Of one value per seed; values that are not finite (nothing to compare with) are left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return Self::default();
        }
        let (mean, half) = mean_and_half(&values);
        Self { mean: Some(mean), half }
    }
    /// Whether the mean fulfils a condition; what was not measured does not.
    pub fn is(&self, condition: impl Fn(f64) -> bool) -> bool {
        self.mean.is_some_and(condition)
    }
    /// Whether the whole confidence interval fulfils a condition that holds on one side of a bound, or between two.
    pub fn surely(&self, condition: impl Fn(f64) -> bool) -> bool {
        let (Some(mean), Some(half)) = (self.mean, self.half) else { return false };
        condition(mean - half) && condition(mean + half)
    }
}

impl Row {
    /// As in `summary.json`. `published_values`, `ours` and `ci95` have an entry per value.
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
            "holds_in_ci95": self.surely,
            "why": self.why,
        })
    }
}
