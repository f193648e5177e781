//! The state of a gateway, its connections and its devices, as JSON. The keys are an interface: they do not
//! change.

use super::history::Trouble;
use crate::experiment::ExperimentStatus;
use paceline_net::event_trace::AcceleratorMetrics;
use paceline_net::pacing::Learned;
use paceline_net::{Duration, FlowKey};
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// One connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Address and port of the mobile device.
    pub mobile: SocketAddr,
    /// Bytes acknowledged to the server that the device has not acknowledged.
    pub exposure: u64,
    /// Bytes buffered, with their bookkeeping.
    pub held: u64,
    /// Bytes sent to the device and not yet acknowledged.
    pub in_flight: u64,
    /// Payload bytes that the device has acknowledged.
    pub delivered: u64,
    /// Smoothed round-trip time between gateway and device, in ms.
    pub rtt_ms: Option<f64>,
    /// Smoothed less minimum round-trip time, in ms: the queueing delay.
    pub queue_ms: Option<f64>,
    /// How long the data sent last had been stored, in ms.
    #[serde(default)]
    pub stored_ms: f64,
    /// Measured: payload that the device has acknowledged of this connection, in b/s.
    pub rate: u64,
    /// Sending rate towards the device that its connections share, by the rate control, in b/s.
    #[serde(default)]
    pub allowed: u64,
    /// Limit of `in_flight`, in bytes.
    pub window: u64,
    /// Estimated capacity of the device's path, in b/s.
    #[serde(default)]
    pub capacity: u64,
    /// Queueing delay that the rate control keeps, in ms.
    #[serde(default)]
    pub target_ms: f64,
    /// State of the rate control, as `ControlState::name`.
    #[serde(default)]
    pub control: String,
    /// Why the device is sent no more at this moment: `server`, `memory`, `client-window` or `radio`.
    pub limit: String,
    /// The TDD period that the device's ACKs show; absent while none is known, or none is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternStatus>,
}

/// A learned TDD period.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PatternStatus {
    /// The period, in ms: of a pattern, or of scheduling requests.
    pub period_ms: f64,
    /// Common logarithm of the probability that noise looks so, at least -300.
    pub log10_chance: f64,
    /// Send time of the least round trip on the gateway's monotonic clock, modulo the period, in ms.
    pub phase_ms: Option<f64>,
    /// Standard deviation of `phase_ms`, in ms.
    pub phase_error_ms: Option<f64>,
}

impl From<Learned> for PatternStatus {
    fn from(learned: Learned) -> Self {
        Self {
            period_ms: learned.period.as_millis_f64(),
            log10_chance: learned.log10_chance,
            phase_ms: learned.phase.map(Duration::as_millis_f64),
            phase_error_ms: learned.phase.map(|_| learned.error.as_millis_f64()),
        }
    }
}

/// One device with connections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Its address; of IPv6 the /64.
    pub address: IpAddr,
    /// Connections being accelerated.
    pub flows: usize,
    /// Bytes buffered for it, with their bookkeeping.
    pub held: u64,
    /// Bytes sent to the device and not yet acknowledged.
    pub in_flight: u64,
    /// Payload bytes that it has acknowledged since its oldest present connection was accelerated.
    pub delivered: u64,
    /// Measured: payload that it has acknowledged, in b/s.
    pub rate: u64,
    /// Sending rate towards it, by the rate control, in b/s.
    #[serde(default)]
    pub allowed: u64,
    /// State of the rate control, as `ControlState::name`.
    #[serde(default)]
    pub control: String,
    /// Whether it was found to share a queue with others, and yields to them.
    #[serde(default)]
    pub shares_queue: bool,
}

/// The gateway as a whole.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version and commit.
    pub version: String,
    /// Process id.
    pub process: u32,
    /// Interface towards the servers.
    pub server: String,
    /// Interface towards the mobile devices.
    pub mobile: String,
    /// Worker threads.
    pub workers: usize,
    /// Seconds since it started.
    pub uptime: f64,
    /// The gateway is being stopped.
    pub draining: bool,
    /// The gateway leaves everything to the kernel because it cannot work between its interfaces.
    #[serde(default)]
    pub paused: bool,
    /// A guardian process runs.
    pub guarded: bool,
    /// The finding for which the ACK filter was switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_stopped: Option<String>,
    /// Conditions that cost much without being errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// An experiment found harm, and acceleration is switched off.
    #[serde(default)]
    pub switched_off: bool,
    /// Connections being accelerated.
    pub flows: u64,
    /// Handshakes and connections without data that are remembered.
    pub openings: u64,
    /// Bytes acknowledged to servers that devices have not acknowledged.
    pub exposure: u64,
    /// Bytes buffered.
    pub held: u64,
    /// Devices that were found to share a queue with others.
    #[serde(default)]
    pub sharing_devices: u64,
    /// All counters, by name.
    pub counters: BTreeMap<String, u64>,
}

/// The content of the page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overview {
    /// The gateway as a whole.
    pub status: Status,
    /// Refusals, drops and resets within the last hour.
    pub troubles: Vec<Trouble>,
    /// The devices that have acknowledged most.
    pub devices: Vec<DeviceStatus>,
    /// The last experiment.
    pub experiment: Option<ExperimentStatus>,
}

/// The rate is not known: it follows from two looks.
impl From<FlowSnapshot> for FlowStatus {
    fn from(flow: FlowSnapshot) -> Self {
        let FlowKey { src, dst, src_port, dst_port } = flow.key;
        let queue = flow.srtt.map(|srtt| srtt.saturating_sub(flow.min_rtt));
        Self {
            server: SocketAddr::new(src, src_port),
            mobile: SocketAddr::new(dst, dst_port),
            exposure: flow.exposure,
            held: flow.held,
            in_flight: flow.in_flight,
            delivered: flow.delivered,
            rtt_ms: flow.srtt.map(Duration::as_millis_f64),
            queue_ms: queue.map(Duration::as_millis_f64),
            stored_ms: flow.age.as_millis_f64(),
            rate: 0,
            allowed: flow.control.rate.0,
            window: flow.control.window,
            capacity: flow.control.capacity.0,
            target_ms: flow.control.target_delay.as_millis_f64(),
            control: flow.control.state.name().to_owned(),
            limit: flow.limit.name().to_owned(),
            pattern: flow.pattern.map(PatternStatus::from),
        }
    }
}

impl From<&FlowStatus> for AcceleratorMetrics {
    fn from(flow: &FlowStatus) -> Self {
        Self {
            congestion_window: Some(flow.window).filter(|bytes| *bytes != u64::MAX),
            bytes_in_flight: flow.in_flight,
            smoothed_rtt: flow.rtt_ms,
            min_rtt: flow.rtt_ms.zip(flow.queue_ms).map(|(smoothed, queue)| smoothed - queue),
            pacing_rate: flow.allowed,
            capacity: flow.capacity,
            target_delay: flow.target_ms,
            exposure: flow.exposure,
            held: flow.held,
            delivered: flow.delivered,
            limit: flow.limit.clone(),
        }
    }
}

impl FlowStatus {
    /// The connection's name, as `paceline gateway capture` takes it.
    pub fn name(&self) -> String {
        format!("{}-{}", self.server, self.mobile)
    }
}

/// The rate is not known: it follows from two looks.
impl From<DeviceSnapshot> for DeviceStatus {
    fn from(device: DeviceSnapshot) -> Self {
        let DeviceSnapshot { address, flows, held, in_flight, delivered, control, shares_queue } = device;
        let (allowed, control) = (control.rate.0, control.state.name().to_owned());
        Self { address, flows, held, in_flight, delivered, rate: 0, allowed, control, shares_queue }
    }
}
