//! The proxy between the hops of the core network and the access: key `core.proxy`, and the tables
//! `[accelerator]` and `[split_tcp]` with its parameters.

use super::PacingPattern;
use super::limits::{self, Limit, Problem, Section, at_least, key, numbers, quantities, rates, relation};
use paceline_net::pacing::Hint;
use paceline_net::{Bytes, Duration, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_pep::accelerator::{AdaptiveParameters, Pacing, PaperParameters, RateControl};
use paceline_tcp::Variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The proxy between servers and stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proxy {
    /// No proxy.
    #[default]
    None,
    /// A TCP proxy (RFC 3135 §2.4): `[split_tcp]`.
    SplitTcp,
    /// The mobile accelerator: `[accelerator]`.
    Accelerator,
}

/// Rate control of the accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorProfile {
    /// By measured delivery rate and round-trip time.
    Adaptive,
    /// As published, with the operator's parameters.
    Paper,
}

/// Spacing of the accelerator's packets towards a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorPacing {
    /// At the rate of the rate control.
    #[default]
    Control,
    /// As much as the rate control's window allows at once.
    None,
    /// Linux's rate: 200% of the window per round trip until a queue is seen, then 120%.
    LinuxPerSegment,
    /// As `linux-per-segment`, for a TDD cell: no packet waits longer than the period; where slots are known
    /// and the queue is shallow, packets meet downlink slots.
    Tdd,
    /// Spread over the time to a TDD cell's next bunch of ACKs.
    TddPublished,
}

impl AcceleratorPacing {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<AcceleratorPacing> for Pacing {
    fn from(pacing: AcceleratorPacing) -> Self {
        match pacing {
            AcceleratorPacing::Control => Self::Control,
            AcceleratorPacing::None => Self::None,
            AcceleratorPacing::LinuxPerSegment => Self::LinuxPerSegment,
            AcceleratorPacing::Tdd => Self::Tdd,
            AcceleratorPacing::TddPublished => Self::TddPublished,
        }
    }
}

/// Table `[accelerator]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Accelerator {
    /// Rate control.
    pub profile: AcceleratorProfile,
    /// Profile `adaptive`: smallest target of the queueing delay at the radio. The target grows where the
    /// queue becomes empty.
    #[serde(alias = "least_budget")]
    pub min_target_delay: Duration,
    /// Profile `adaptive`: largest target.
    #[serde(alias = "most_budget")]
    pub max_target_delay: Duration,
    /// Spacing of packets towards a device.
    #[serde(skip_serializing_if = "AcceleratorPacing::is_default")]
    #[schemars(extend("default" = AcceleratorPacing::default()))]
    pub pacing: AcceleratorPacing,
    /// The cell's TDD pattern for `pacing`; `cell` is for simulations alone, and a gateway uses only the
    /// period of slots. With `learned`, `paceline gateway flows` has the period for all values of `pacing`.
    /// Default: `tdd` and `tdd-published` learn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_pattern: Option<PacingPattern>,
    /// Send time, modulo the period, of a packet that reaches the cell at the start of `pacing_pattern`; for
    /// simulations alone. Default: from the delays of the hops behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_phase: Option<Duration>,
    /// Profile `paper`: ACKs of a bandwidth sample.
    pub k: u32,
    /// Profile `paper`: weight of a new bandwidth sample.
    pub lambda: f64,
    /// Profile `paper`: round-trip time below which the rate grows.
    pub alpha: Duration,
    /// Profile `paper`: round-trip time above which the rate falls to the measured rate.
    pub beta: Duration,
    /// Profile `paper`: weight of the old rate when the rate grows.
    pub mu: f64,
    /// Profile `paper`: the rate towards which the rate grows; published: 5.6 Mb/s on 3G, 100 Mb/s on LTE.
    pub r_cap: Rate,
    /// Memory for the data of all connections: at most half for data acknowledged to servers and not yet by
    /// clients, for one device at most a quarter of the memory that others leave. Default: 1 GiB; on a
    /// gateway, a quarter of the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Longest time for which data are stored ahead of the radio. Default: a round trip to the server and its
    /// reaction; with profile `paper`, the published 2 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_stored: Option<Duration>,
    /// Buffer of a connection: the largest window that its server sees.
    pub flow_buffer: Bytes,
    /// Most bytes of a connection that are acknowledged to the server and not yet by the client.
    pub exposure: Bytes,
    /// Buffers of all connections of a device together.
    pub device_buffer: Bytes,
    /// Whether to send past the client's window. Profile `adaptive` does so where the window grows and the
    /// device took a first such segment, until a drop or a reset; profile `paper`, as published, until the
    /// window is empty, which wastes radio time where receivers drop such segments (Linux from 6.17 on).
    pub overshoot: bool,
    /// Time without acknowledgment after which a connection is reset at both ends, or left to them if all
    /// data were sent on. Default: Linux's limit with 15 `tcp_retries2`.
    pub give_up: Duration,
}

impl Default for Accelerator {
    fn default() -> Self {
        let (config, paper) = (AcceleratorConfig::default(), PaperParameters::default());
        Self {
            profile: AcceleratorProfile::Adaptive,
            min_target_delay: AdaptiveParameters::default().min_target_delay,
            max_target_delay: AdaptiveParameters::default().max_target_delay,
            pacing: AcceleratorPacing::default(),
            pacing_pattern: None,
            pacing_phase: None,
            k: paper.k,
            lambda: paper.lambda,
            alpha: paper.alpha,
            beta: paper.beta,
            mu: paper.mu,
            r_cap: paper.r_cap,
            memory: None,
            most_stored: None,
            flow_buffer: config.flow_buffer,
            exposure: config.exposure,
            device_buffer: config.device_buffer,
            overshoot: config.overshoot,
            give_up: config.give_up,
        }
    }
}

impl Section for Accelerator {
    fn limits() -> Vec<Limit<Self>> {
        let span = || quantities("1 ms", "10 s");
        vec![
            key!(min_target_delay, span()),
            relation!(max_target_delay, "accelerator.min_target_delay to 10 s", |table| {
                table.max_target_delay >= table.min_target_delay
                    && table.max_target_delay <= Duration::from_secs(10)
            }),
            key!(pacing_phase?, quantities("0 s", "20 ms")),
            key!(k, numbers(1..=65_536).unit("ACKs")),
            key!(lambda, numbers(0.0..=1.0)),
            key!(mu, numbers(0.0..=1.0)),
            key!(alpha, span()),
            relation!(beta, "accelerator.alpha to 10 s", |table| {
                table.beta >= table.alpha && table.beta <= Duration::from_secs(10)
            }),
            key!(r_cap, rates()),
            key!(memory?, quantities("1 MiB", "16384 GiB")),
            key!(most_stored?, quantities("1 ms", "60 s")),
            key!(flow_buffer, quantities("16 KiB", "512 MiB")),
            key!(exposure, quantities("0 B", "512 MiB")),
            key!(device_buffer, at_least("16 KiB")),
            key!(give_up, quantities("10 s", "86400 s")),
        ]
    }
}

impl Accelerator {
    /// Checks the values. The error names key, value and allowed values.
    pub fn check(&self) -> Result<(), String> {
        let text = |problem: Problem| format!("{} = {}: {}", problem.key, problem.value, problem.message());
        limits::check("accelerator", self).map_err(text)
    }
    /// The configuration of the accelerator. `seed` is the key of its hash tables.
    pub fn config(&self, seed: u64) -> AcceleratorConfig {
        let Self { k, lambda, alpha, beta, mu, r_cap, .. } = *self;
        AcceleratorConfig {
            control: match self.profile {
                AcceleratorProfile::Paper => {
                    RateControl::Paper(PaperParameters { k, lambda, alpha, beta, mu, r_cap })
                }
                AcceleratorProfile::Adaptive => RateControl::Adaptive(AdaptiveParameters {
                    min_target_delay: self.min_target_delay,
                    max_target_delay: self.max_target_delay,
                    ..AdaptiveParameters::default()
                }),
            },
            pacing: self.pacing.into(),
            pacing_hint: match &self.pacing_pattern {
                Some(PacingPattern::Slots(_, slots)) => Hint::Period(slots.period()),
                _ => Hint::None,
            },
            learns_pattern: self.pacing_pattern == Some(PacingPattern::Learned),
            memory: self.memory.unwrap_or(AcceleratorConfig::default().memory),
            most_stored: self.most_stored,
            flow_buffer: self.flow_buffer,
            exposure: self.exposure,
            device_buffer: self.device_buffer,
            overshoot: self.overshoot,
            give_up: self.give_up,
            seed,
            ..AcceleratorConfig::default()
        }
    }
}

/// Table `[split_tcp]`. The segment size is that of the station's TCP; all other parameters are those of
/// Linux.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct SplitTcp {
    /// Congestion control towards the stations. Default: that of each station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<Variant>,
    /// Buffer of the proxy for each connection and direction.
    pub buffer: Bytes,
}

impl Default for SplitTcp {
    fn default() -> Self {
        Self { congestion_control: None, buffer: Bytes(2 << 20) }
    }
}

impl Section for SplitTcp {
    fn limits() -> Vec<Limit<Self>> {
        vec![key!(buffer, quantities("16 KiB", "512 MiB"))]
    }
}
