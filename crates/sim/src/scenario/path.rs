//! What stands between the core's hops and the access: key `core.path`, and the tables `[accelerator]` and
//! `[split_tcp]` with the parameters of the two.

use super::Scenario;
use super::check::{Problem, RATE, range, rate_ok};
use paceline_net::{Bytes, Duration, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_pep::accelerator::{AdaptiveParameters, PaperParameters, RateControl};
use paceline_tcp::Variant;
use serde::{Deserialize, Serialize};

/// What the packets pass between the hops and the access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// Nothing.
    #[default]
    Direct,
    /// A proxy that ends every TCP connection and opens another (RFC 3135 §2.4).
    SplitTcp,
    /// The mobile accelerator.
    Accelerator,
}

/// How the accelerator finds the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorProfile {
    /// From measured delivery rate and round-trip time.
    Adaptive,
    /// As published, with an operator's numbers.
    Paper,
}

/// Table `[accelerator]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Accelerator {
    /// `adaptive` or `paper`.
    pub profile: AcceleratorProfile,
    /// Profile `adaptive`: least queueing delay to keep; the budget grows where the queue runs empty.
    pub least_budget: Duration,
    /// Profile `adaptive`: most queueing delay to keep.
    pub most_budget: Duration,
    /// Profile `paper`, as are the following ones: ACKs that a bandwidth sample spans.
    pub k: u32,
    /// Weight of a new sample.
    pub lambda: f64,
    /// Below this round-trip time the rate grows.
    pub alpha: Duration,
    /// Above this round-trip time the rate falls to the measured one.
    pub beta: Duration,
    /// Weight of the old rate when it grows.
    pub mu: f64,
    /// The rate to grow to: 5.6 Mb/s on 3G and 100 Mb/s on LTE, as published.
    pub r_cap: Rate,
    /// Bytes of a connection held at most: the window that its server sees.
    pub flow_buffer: Bytes,
    /// Bytes of a connection that may be acknowledged to the server and not yet by the client.
    pub exposure: Bytes,
    /// Bytes held at most for all connections of a device.
    pub device_buffer: Bytes,
    /// Whether to send past the client's advertised window: profile `adaptive` while the client takes it; `paper`, as
    /// published, until the window is empty, which wastes the radio's time where receivers drop it (Linux from 6.17 on).
    pub overshoot: bool,
}

impl Default for Accelerator {
    fn default() -> Self {
        let (config, paper) = (AcceleratorConfig::default(), PaperParameters::default());
        Self {
            profile: AcceleratorProfile::Adaptive,
            least_budget: AdaptiveParameters::default().min_target_delay,
            most_budget: AdaptiveParameters::default().max_target_delay,
            k: paper.k,
            lambda: paper.lambda,
            alpha: paper.alpha,
            beta: paper.beta,
            mu: paper.mu,
            r_cap: paper.r_cap,
            flow_buffer: config.flow_buffer,
            exposure: config.exposure,
            device_buffer: config.device_buffer,
            overshoot: config.overshoot,
        }
    }
}

impl Accelerator {
    /// Whether its values are allowed; the error names key, value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let said = |Problem { key, value, allowed }| format!("{key} = {value}: allowed: {allowed}");
        accelerator(self).map_err(said)
    }
    /// What the accelerator is built from.
    pub fn config(&self, seed: u64) -> AcceleratorConfig {
        let Self { k, lambda, alpha, beta, mu, r_cap, .. } = *self;
        AcceleratorConfig {
            control: match self.profile {
                AcceleratorProfile::Paper => {
                    RateControl::Paper(PaperParameters { k, lambda, alpha, beta, mu, r_cap })
                }
                AcceleratorProfile::Adaptive => RateControl::Adaptive(AdaptiveParameters {
                    min_target_delay: self.least_budget,
                    max_target_delay: self.most_budget,
                    ..AdaptiveParameters::default()
                }),
            },
            flow_buffer: self.flow_buffer,
            exposure: self.exposure,
            device_buffer: self.device_buffer,
            overshoot: self.overshoot,
            seed,
            ..AcceleratorConfig::default()
        }
    }
}

/// Table `[split_tcp]`. What it does not say is Linux's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SplitTcp {
    /// Congestion control towards the stations; that of `[tcp]` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<Variant>,
    /// Bytes of a connection and direction that the proxy holds at most.
    pub buffer: Bytes,
}

impl Default for SplitTcp {
    fn default() -> Self {
        Self { congestion_control: None, buffer: Bytes(2 << 20) }
    }
}

/// The values of the two tables.
pub(super) fn check(scenario: &Scenario) -> Result<(), Problem> {
    accelerator(&scenario.accelerator)?;
    let buffer = scenario.split_tcp.buffer;
    range("split_tcp.buffer", buffer, buffer_ok(buffer), BUFFER)
}

const BUFFER: &str = "16 KiB to 512 MiB";

fn buffer_ok(size: Bytes) -> bool {
    size >= Bytes(16 << 10) && size <= Bytes(1 << 29)
}

fn accelerator(of: &Accelerator) -> Result<(), Problem> {
    let span_ok = |span| span >= Duration::from_millis(1) && span <= Duration::from_secs(10);
    range("accelerator.least_budget", of.least_budget, span_ok(of.least_budget), "1 ms to 10 s")?;
    let ok = span_ok(of.most_budget) && of.most_budget >= of.least_budget;
    range("accelerator.most_budget", of.most_budget, ok, "accelerator.least_budget to 10 s")?;
    range("accelerator.k", of.k, (1..=65_536).contains(&of.k), "1 to 65536 ACKs")?;
    for (key, share) in [("accelerator.lambda", of.lambda), ("accelerator.mu", of.mu)] {
        range(key, share, (0.0..=1.0).contains(&share), "0 to 1")?;
    }
    range("accelerator.alpha", of.alpha, span_ok(of.alpha), "1 ms to 10 s")?;
    range("accelerator.beta", of.beta, span_ok(of.beta) && of.beta >= of.alpha, "accelerator.alpha to 10 s")?;
    range("accelerator.r_cap", of.r_cap, rate_ok(of.r_cap), RATE)?;
    range("accelerator.flow_buffer", of.flow_buffer, buffer_ok(of.flow_buffer), BUFFER)?;
    range("accelerator.exposure", of.exposure, of.exposure <= Bytes(1 << 29), "0 B to 512 MiB")?;
    range(
        "accelerator.device_buffer",
        of.device_buffer,
        of.device_buffer >= Bytes(16 << 10),
        "at least 16 KiB",
    )
}
