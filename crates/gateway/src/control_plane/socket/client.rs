//! A client of the control socket, as the command line program uses it.

use super::protocol::{ExperimentRequest, Request, Response, StopReport};
use crate::config::CONTROL_FOLDER;
use crate::control_plane::status::{DeviceStatus, FlowStatus, Status};
use crate::experiment::ExperimentStatus;
use anyhow::{Context, anyhow, bail};
use paceline_net::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A connection to a running gateway, for one request.
pub struct Client {
    lines: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the gateway at `path`, or to the only one in the default folder.
    pub fn find(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path {
            let stream = UnixStream::connect(path);
            let stream = stream.with_context(|| format!("no gateway listens at {}", path.display()))?;
            return Ok(Self { lines: BufReader::new(stream) });
        }
        let entries = fs::read_dir(CONTROL_FOLDER).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "sock"));
        paths.sort();
        let open = |path: &PathBuf| Some((path.clone(), UnixStream::connect(path).ok()?));
        let mut found: Vec<(PathBuf, UnixStream)> = paths.iter().filter_map(open).collect();
        match (found.len(), paths.first()) {
            (0, None) => {
                bail!("no gateway runs here: there is no socket in {CONTROL_FOLDER}; --control names another")
            }
            (0, Some(path)) => {
                bail!("no gateway runs here that this user may ask: nobody answers at {}", path.display())
            }
            (1, _) => Ok(Self { lines: BufReader::new(found.remove(0).1) }),
            _ => {
                let names: Vec<String> = found.iter().map(|(path, _)| path.display().to_string()).collect();
                bail!("several gateways run here: choose by --control one of {}", names.join(", "))
            }
        }
    }
    /// Sends the request.
    pub fn send(&mut self, request: &Request) -> anyhow::Result<()> {
        let line = serde_json::to_string(request).context("the request is no JSON")?;
        let sent = writeln!(self.lines.get_mut(), "{line}").context("the gateway does not listen");
        // A gateway that refuses the connection has closed it, and its answer has the reason.
        sent.map_err(|error| self.refusal().unwrap_or(error))
    }
    fn refusal(&mut self) -> Option<anyhow::Error> {
        let mut line = String::new();
        self.lines.read_line(&mut line).ok()?;
        match serde_json::from_str(&line).ok()? {
            Response::Error(problem) => Some(anyhow!("{problem}")),
            _ => None,
        }
    }
    /// The next response. An error of the gateway is an error here.
    pub fn receive(&mut self) -> anyhow::Result<Response> {
        let mut line = String::new();
        if self.lines.read_line(&mut line).context("the gateway does not answer")? == 0 {
            bail!("the gateway ended without an answer");
        }
        match serde_json::from_str(&line).context("the gateway is of another version")? {
            Response::Error(problem) => bail!("{problem}"),
            response => Ok(response),
        }
    }
    /// State and counters of the gateway.
    pub fn status(&mut self) -> anyhow::Result<Status> {
        self.send(&Request::Status)?;
        match self.receive()? {
            Response::Status(status) => Ok(*status),
            other => unexpected(&other),
        }
    }
    /// All accelerated connections.
    pub fn flows(&mut self) -> anyhow::Result<Vec<FlowStatus>> {
        self.send(&Request::Flows)?;
        let mut all = Vec::new();
        loop {
            match self.receive()? {
                Response::Flows(flows) => all.extend(flows),
                Response::End => return Ok(all),
                other => return unexpected(&other),
            }
        }
    }
    /// The devices that have acknowledged most.
    pub fn devices(&mut self) -> anyhow::Result<Vec<DeviceStatus>> {
        self.send(&Request::Devices)?;
        match self.receive()? {
            Response::Devices(devices) => Ok(devices),
            other => unexpected(&other),
        }
    }
    /// Sends a request about the experiment; its state, if there was one.
    pub fn experiment(&mut self, request: ExperimentRequest) -> anyhow::Result<Option<ExperimentStatus>> {
        self.send(&Request::Experiment(request))?;
        match self.receive()? {
            Response::Experiment(status) => Ok(status.map(|status| *status)),
            other => unexpected(&other),
        }
    }
    /// Stops the gateway, and waits until it has ended.
    pub fn stop(&mut self, limit: Option<Duration>) -> anyhow::Result<StopReport> {
        self.send(&Request::Stop { limit })?;
        self.receive()?;
        match self.receive().context("the gateway has died while it was being stopped")? {
            Response::Ended(report) => Ok(report),
            other => unexpected(&other),
        }
    }
    /// Starts the capture of a [`Request::Capture`], and returns its pcapng stream.
    pub fn capture(&mut self, request: Request) -> anyhow::Result<&mut impl Read> {
        self.send(&request)?;
        match self.receive()? {
            Response::Capturing => Ok(&mut self.lines),
            other => unexpected(&other),
        }
    }
}

fn unexpected<T>(response: &Response) -> anyhow::Result<T> {
    bail!("the gateway's answer is not what was asked for: {response:?}")
}
