//! Fits a scenario to a network: from captures and logs to delays, capacity, buffer, losses, slots and the
//! period of scheduling requests, and to a scenario that behaves alike.
//!
//! ```text
//! captures -> capture: data and acknowledgments of each connection at each point -> path: delays by side
//! logs     -> log: pings, rates, radio                                           -> series over time
//!          -> estimate: one quantity each, with confidence and source -> Fit -> scenario: TOML
//! ```
//!
//! Pure: no clock, sockets, threads or files; the same bytes give the same fit.
#![forbid(unsafe_code)]

pub mod capture;
pub mod estimate;
mod fit;
pub mod log;
mod path;
mod scenario;
mod simulated;
mod uplink;

use capture::Captures;
pub use estimate::{Confidence, Estimate};
pub use fit::{Fit, Position};
pub use scenario::{Fitted, TRACE};
pub use simulated::Simulated;
use std::io::{Read, Seek};

/// Inputs so far.
#[derive(Debug, Default)]
pub struct Fitter {
    captures: Captures,
    logs: Vec<(String, log::Format, log::Series)>,
    inputs: Vec<String>,
}

impl Fitter {
    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }
    /// Reads a capture; with `interfaces` these capture points alone. An error says that the file is no
    /// capture, or that there is no such interface.
    pub fn read_capture(&mut self, name: &str, file: impl Read, interfaces: &[String]) -> Result<(), String> {
        let before = self.captures.flows.len();
        self.captures.read(name, file, interfaces)?;
        let flows = self.captures.flows.len() - before;
        self.inputs.push(format!("{name}: capture, {flows} connections"));
        Ok(())
    }
    /// Whether a file is a capture, packed or not; the file is at its start again.
    pub fn is_capture(file: &mut (impl Read + Seek)) -> Result<bool, String> {
        let failed = |error: std::io::Error| format!("cannot be read: {error}");
        let is_capture = paceline_import::capture::stream::is_capture(&mut *file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        Ok(is_capture)
    }
    /// Reads a log in a format, or in that of its content.
    pub fn read_log(&mut self, name: &str, file: &[u8], format: Option<log::Format>) -> Result<(), String> {
        let (format, series) = log::read(file, format)?;
        self.inputs.push(format!("{name}: {}: {}", format.name(), series.notes.join("; ")));
        self.logs.push((name.to_owned(), format, series));
        Ok(())
    }
    /// The fit.
    pub fn finish(self) -> Fit {
        self.finish_with_captures().0
    }
    /// The fit, and the packets that it comes from.
    pub fn finish_with_captures(self) -> (Fit, Captures) {
        (Fit::of(&self.captures, &self.logs, self.inputs), self.captures)
    }
}
