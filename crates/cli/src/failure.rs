//! Errors of a command, by exit code: bad input (2) and failures (1).

use paceline_gateway::service::log::{self, Level};
use paceline_sim::ScenarioError;
use paceline_study::InputError;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Bad usage or input: the user has to change it. Exit code 2.
    #[error("{0:#}")]
    Input(anyhow::Error),
    /// Any other failure. Exit code 1.
    #[error("{0:#}")]
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

impl From<Failure> for paceline_reproduce::Failure {
    fn from(failure: Failure) -> Self {
        Self::Ended(Box::new(failure))
    }
}

impl From<paceline_reproduce::Failure> for Failure {
    fn from(failure: paceline_reproduce::Failure) -> Self {
        match failure {
            paceline_reproduce::Failure::Input(error) => error.into(),
            paceline_reproduce::Failure::Ended(error) => match error.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(error) => Self::Failed(anyhow::anyhow!(error)),
            },
        }
    }
}
