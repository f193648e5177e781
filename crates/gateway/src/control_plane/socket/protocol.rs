//! The control protocol: one request, then its responses, each a JSON value on a line, over a Unix stream
//! socket. The gateway closes the connection after the last response.
//!
//! | request | responses |
//! |---|---|
//! | `"status"` | `{"status":{...}}`, a [`Status`] |
//! | `"flows"` | lines `{"flows":[...]}` of [`FlowStatus`], then `"end"` |
//! | `"devices"` | `{"devices":[...]}` of [`DeviceStatus`]: the devices that have acknowledged most |
//! | `"reload"` | `"reloaded"` |
//! | `{"stop":{"limit":"10 s"}}` | `"stopping"`; at the end `{"ended":{"detached":N,"reset":N}}` |
//! | `{"experiment":...}` of an [`ExperimentRequest`] | `{"experiment":...}`, an [`ExperimentStatus`] |
//! | `{"capture":{...}}` of [`Request::Capture`] | `"capturing"`, then a pcapng stream |
//!
//! The limit of a stop may be left out: `{"stop":{}}`. A request that is malformed or fails is answered by
//! `{"error":"..."}`, and so is a connection while 32 others are open.

use crate::control_plane::status::{DeviceStatus, FlowStatus, Status};
use crate::experiment::ExperimentStatus;
use paceline_experiment::Design;
use paceline_net::Duration;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::SocketAddr;

/// A client's request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Report the gateway's state and counters.
    Status,
    /// List the accelerated connections.
    Flows,
    /// List the devices that have acknowledged most.
    Devices,
    /// Read the configuration file again.
    Reload,
    /// Stop the gateway without harm to connections.
    Stop {
        /// Time for connections to be delivered what was acknowledged for them; the configuration's `drain`
        /// if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Duration>,
    },
    /// Begin an experiment, end it, or report it.
    Experiment(ExperimentRequest),
    /// Copy the packets of one connection.
    Capture {
        /// Address and port of the server.
        server: SocketAddr,
        /// Address and port of the mobile device.
        mobile: SocketAddr,
        /// The capture ends after this many packets.
        packets: u64,
        /// The capture ends after this time.
        time: Duration,
    },
}

/// A request about the experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ExperimentRequest {
    /// Begin one: the share of devices that are accelerated, the time, the seed of the choice, which is
    /// random if absent, and how shares change over time.
    Start {
        /// From 0.05 to 0.95; of no effect in a switchback.
        share: f64,
        /// How long transfers are compared.
        duration: Duration,
        /// Seed of the choice of devices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u32>,
        /// `parallel` if absent.
        #[serde(default)]
        design: Design,
        /// Smallest change that matters, from 0 to 0.5; 0.05 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        practical: Option<f64>,
    },
    /// End the running one.
    Stop,
    /// Report the last one.
    Report,
}

/// A response of the gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The gateway's state and counters.
    Status(Box<Status>),
    /// Some of the accelerated connections.
    Flows(Vec<FlowStatus>),
    /// The list of connections is complete.
    End,
    /// The devices that have acknowledged most.
    Devices(Vec<DeviceStatus>),
    /// The new configuration is in force.
    Reloaded,
    /// The gateway is being stopped.
    Stopping,
    /// The gateway has stopped.
    Ended(StopReport),
    /// The experiment; None if there was none.
    Experiment(Option<Box<ExperimentStatus>>),
    /// A pcapng stream follows.
    Capturing,
    /// The request failed: the reason.
    Error(String),
}

impl Response {
    /// Writes the response's line, in one piece: each piece is a system call.
    pub fn write_line(&self, stream: &mut impl Write) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        stream.write_all(&line).map_err(Into::into)
    }
}

/// Connections at the end of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StopReport {
    /// Connections that went on end to end.
    pub detached: u64,
    /// Connections that were reset.
    pub reset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_those_of_the_documentation() {
        let line = |request: &Request| serde_json::to_string(request).unwrap();
        assert_eq!(line(&Request::Status), r#""status""#);
        assert_eq!(line(&Request::Stop { limit: None }), r#"{"stop":{}}"#);
        let limit = Some(Duration::from_secs(10));
        assert_eq!(line(&Request::Stop { limit }), r#"{"stop":{"limit":"10 s"}}"#);
        let capture = Request::Capture {
            server: "10.0.0.1:443".parse().unwrap(),
            mobile: "[fd00::2]:50000".parse().unwrap(),
            packets: 7,
            time: Duration::from_millis(1500),
        };
        let text = line(&capture);
        assert_eq!(
            text,
            r#"{"capture":{"server":"10.0.0.1:443","mobile":"[fd00::2]:50000","packets":7,"time":"1500 ms"}}"#
        );
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), capture);
        let response = |response: &Response| serde_json::to_string(response).unwrap();
        assert_eq!(
            response(&Response::Ended(StopReport { detached: 1, reset: 2 })),
            r#"{"ended":{"detached":1,"reset":2}}"#
        );
        assert_eq!(response(&Response::Error("no".into())), r#"{"error":"no"}"#);
    }
}
