//! Bad input, for the user to change.

use paceline_sim::ScenarioError;

/// Bad input: a scenario with a mistake, or another problem in words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InputError {
    /// A mistake in a scenario.
    #[error("{0}")]
    Scenario(Box<ScenarioError>),
    /// A mistake in the scenario of a point of a grid.
    #[error("point {point}: {error}")]
    Point {
        /// Name of the point.
        point: String,
        /// The mistake.
        error: Box<ScenarioError>,
    },
    /// Another problem.
    #[error("{0}")]
    Text(String),
}

impl InputError {
    /// A problem in words.
    pub fn text(message: impl Into<String>) -> Self {
        Self::Text(message.into())
    }
}

impl From<ScenarioError> for InputError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error.into())
    }
}
