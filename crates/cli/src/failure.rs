//! Errors of a command, by exit code: bad input (2) and failures (1).

use paceline_gateway::service::log::{self, Level};
use paceline_sim::ScenarioError;
use paceline_study::InputError;
use std::process::ExitCode;

#[derive(Debug)]
pub enum Failure {
    /// Bad usage or input: the user has to change it. Exit code 2.
    Input(anyhow::Error),
    /// Any other failure. Exit code 1.
    Failed(anyhow::Error),
}

/// Result of a command; the exit code if it succeeded.
pub type Outcome<T = ExitCode> = Result<T, Failure>;

impl Failure {
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(anyhow::Error::msg(message.into()))
    }
    /// Prints the message to stderr; gives the exit code.
    pub fn report(self) -> ExitCode {
        let (error, code) = match self {
            Self::Input(error) => (error, 2),
            Self::Failed(error) => (error, 1),
        };
        log::message(Level::Error, &format!("{error:#}"), &[("PACELINE_EVENT", "failed")]);
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error.into())
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::Input(error.into())
    }
}
