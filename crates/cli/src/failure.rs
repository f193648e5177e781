//! How a command ends badly: bad input (2) or failed work (1).

use crate::output;
use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The user must change something.
    Input(anyhow::Error),
    /// The work failed.
    Failed(anyhow::Error),
}

/// The end of a command.
pub type Outcome<T = ExitCode> = Result<T, Failure>;

impl Failure {
    /// Bad input, said in a message.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(anyhow::Error::msg(message.into()))
    }
    /// Prints the message and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (error, code) = match self {
            Self::Input(error) => (error, 2),
            Self::Failed(error) => (error, 1),
        };
        output::message(&format!("paceline: {error:#}\n"));
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
