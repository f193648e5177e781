//! Estimates of single quantities, each with its confidence and its source.

pub mod buffer;
pub mod capacity;
pub mod delays;
pub mod log;
pub mod pattern;
pub mod profile;
pub mod sr;

use serde::Serialize;

/// How far an estimate can be relied upon. `High` and `Medium` are claims, which must be right on simulated
/// cells; `Low` is none, and used where the scenario needs a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// No claim.
    Low,
    /// A claim from few observations.
    Medium,
    /// A claim from many observations that agree.
    High,
}

impl Confidence {
    /// Whether the value is claimed.
    pub fn is_claim(self) -> bool {
        self >= Self::Medium
    }
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A value with its confidence and its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate<T> {
    /// The value, in the unit of its name.
    pub value: T,
    /// Confidence.
    pub confidence: Confidence,
    /// The observations that it comes from.
    pub from: String,
}

impl<T> Estimate<T> {
    /// An estimate.
    pub fn new(value: T, confidence: Confidence, from: impl Into<String>) -> Self {
        Self { value, confidence, from: from.into() }
    }
}

/// The value below which a share of the values lies; none without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(values[((last as f64 * share) + 0.5) as usize])
}
