//! What `paceline gateway` reads: a TOML file.

use super::datapath::layout;
use super::policy::{Action, FORMER_RELAY, Policy};
use paceline_net::{Bytes, Duration, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_pep::ack_filter::Comparison;
use paceline_sim::scenario::Accelerator;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Most workers: a limit of the kernel program. Same as `MAX_WORKERS` of bpf/shared.h.
pub const MAX_WORKERS: usize = layout::MAX_WORKERS as usize;
/// Most prefixes: the size of the kernel program's map. Same as `MAX_PREFIXES` of bpf/shared.h, less the rule for all of
/// IPv4.
const MAX_POLICIES: usize = layout::MAX_PREFIXES as usize - 1;
/// An interface's name has at most so many bytes (Linux: IFNAMSIZ).
const MAX_NAME: usize = 15;
/// Payload bytes of a super-packet at most, so that with headers it has a 16-bit length.
const SUPER_PACKET: Bytes = Bytes(65_400);

/// Keys that a running gateway takes over.
const CHANGEABLE: [&str; 5] = ["tick", "drain", "policy", "limits", "accelerator"];
/// A socket's path has at most so many bytes (unix(7)).
const MAX_PATH: usize = 107;

/// How the interfaces are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As ports of a bridge: no addresses are needed.
    #[default]
    Bridge,
    /// As interfaces of a router, which this machine is.
    Routed,
}

/// How it is known which interface is towards what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// As the configuration says.
    #[default]
    Configured,
    /// By connections, which are opened from the mobile side: `server` and `mobile` may be the wrong way round.
    Learned,
}

/// The gateway's configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// How the interfaces are joined: `bridge` or `routed`.
    #[serde(default)]
    pub mode: Mode,
    /// Interface towards the servers.
    pub server: String,
    /// Interface towards the mobile devices.
    pub mobile: String,
    /// Whether these two are so, or to be found out first: `configured` or `learned`.
    #[serde(default)]
    pub sides: Sides,
    /// Bridge that is made where the interfaces are in none; they stay in it afterwards. With `routed`, a pair of
    /// devices by which packets go back to the kernel: this name, and with an `r` behind it.
    #[serde(default = "default_bridge")]
    pub bridge: String,
    /// Threads; a device's connections are in one.
    #[serde(default = "default_workers")]
    pub workers: usize,
    /// How long packets are gathered while there is much traffic.
    #[serde(default = "default_tick")]
    pub tick: Duration,
    /// At the end, connections may take so long to be delivered what was acknowledged for them.
    #[serde(default = "default_drain")]
    pub drain: Duration,
    /// Control socket; if absent, `/run/paceline/SERVER-MOBILE.sock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// Where Prometheus' metrics are served by HTTP; if absent, nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// What is done for whom; the longest prefix of a mobile device's address counts.
    #[serde(default)]
    pub policy: Vec<Policy>,
    /// The line towards the servers, for devices whose ACKs are filtered.
    #[serde(default)]
    pub filter: Filter,
    /// Memory and tables, shared by the workers.
    #[serde(default)]
    pub limits: Limits,
    /// The accelerator, with the keys of a scenario's table of this name.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// Notes for the operator: former names that the file uses.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Table `[filter]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Rate of the line, which the workers share: an ACK filter needs a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bytes of the queue, of each worker.
    pub queue: Bytes,
    /// Share of the connections that are not filtered, so that the others can be compared with them; 0 compares nothing.
    pub holdout: f64,
    /// How long connections are compared before they are dealt anew.
    pub period: Duration,
}

impl Default for Filter {
    fn default() -> Self {
        Self { rate: None, queue: Bytes(1 << 20), holdout: 0.1, period: Comparison::PERIOD }
    }
}

/// Table `[limits]`: of all workers together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes held at most.
    pub total_buffer: Bytes,
    /// Connections accelerated at once; more go through the kernel.
    pub max_flows: usize,
    /// Connections of one device accelerated at once.
    pub max_flows_per_device: usize,
    /// Handshakes and connections without data that are remembered.
    pub max_openings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let AcceleratorConfig { total_buffer, max_flows, max_flows_per_device, max_openings, .. } =
            AcceleratorConfig::default();
        Self { total_buffer, max_flows, max_flows_per_device, max_openings }
    }
}

fn default_bridge() -> String {
    "paceline0".into()
}
fn default_workers() -> usize {
    1
}
fn default_tick() -> Duration {
    Duration::from_micros(100)
}
fn default_drain() -> Duration {
    Duration::from_secs(30)
}

impl GatewayConfig {
    /// Reads and checks a configuration. The error names file, key, value and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut config: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        config.notes = former_names(file, text);
        config.check().map_err(|problem| format!("{file}: {problem}"))?;
        Ok(config)
    }

    /// Takes the interfaces the other way round.
    pub fn swap_sides(&mut self) {
        std::mem::swap(&mut self.server, &mut self.mobile);
    }
    /// What was found out for this configuration holds for a new one.
    pub fn orient(&self, new: &mut Self) {
        if self.sides == Sides::Learned && (&self.server, &self.mobile) == (&new.mobile, &new.server) {
            new.swap_sides();
        }
    }

    /// Keys that differ and cannot be changed while the gateway runs.
    pub fn fixed_changes(&self, new: &Self) -> Vec<String> {
        let table = |config: &Self| toml::Table::try_from(config).unwrap_or_default();
        let (old, new) = (table(self), table(new));
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let fixed = keys.into_iter().filter(|key| !CHANGEABLE.contains(&key.as_str()));
        fixed.filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
    }

    fn check(&self) -> Result<(), String> {
        for (key, name) in [("server", &self.server), ("mobile", &self.mobile), ("bridge", &self.bridge)] {
            let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
                return Err(format!("{key} = {name:?}: allowed: the name of a network interface"));
            }
        }
        if self.mode == Mode::Routed && self.bridge.len() == MAX_NAME {
            return Err(format!(
                "bridge = {:?}: allowed: {} characters with mode = \"routed\"",
                self.bridge,
                MAX_NAME - 1
            ));
        }
        if self.server == self.mobile {
            return Err(format!("mobile = {:?}: allowed: another interface than server's", self.mobile));
        }
        if let Some(path) = &self.control
            && !(path.is_absolute() && path.as_os_str().len() <= MAX_PATH)
        {
            return Err(format!("control = {path:?}: allowed: an absolute path of up to {MAX_PATH} bytes"));
        }
        range("workers", self.workers, 1, MAX_WORKERS)?;
        range("tick", self.tick, Duration::from_micros(10), Duration::from_millis(5))?;
        range("drain", self.drain, Duration::ZERO, Duration::from_secs(3600))?;
        let limits = &self.limits;
        range("limits.total_buffer", limits.total_buffer, Bytes(1 << 20), Bytes(1 << 44))?;
        range("limits.max_flows", limits.max_flows, self.workers, 1 << 24)?;
        range("limits.max_flows_per_device", limits.max_flows_per_device, 1, 1 << 24)?;
        range("limits.max_openings", limits.max_openings, self.workers, 1 << 24)?;
        if let Some(rate) = self.filter.rate {
            range("filter.rate", rate, Rate(1_000), Rate(1_000_000_000_000))?;
        } else if self.policy.iter().any(|policy| policy.action == Action::Filter) {
            return Err(
                "policy.action = \"filter\": allowed with filter.rate, the rate of the line towards the \
                        servers: an ACK filter acts on a queue"
                    .into(),
            );
        }
        range("filter.holdout", self.filter.holdout, 0.0, 0.5)?;
        range("filter.period", self.filter.period, Duration::from_millis(100), Duration::from_secs(600))?;
        range("filter.queue", self.filter.queue, Bytes(9000), Bytes(1 << 32))?;
        range("number of policies", self.policy.len(), 0, MAX_POLICIES)?;
        self.policy.iter().try_for_each(Policy::check)?;
        let mut prefixes = BTreeSet::new();
        if let Some(twice) = self.policy.iter().find(|policy| !prefixes.insert(policy.mapped_network())) {
            return Err(format!("policy.prefix = {:?}: allowed: each prefix once", twice.prefix));
        }
        self.accelerator.check()
    }

    /// What a worker's accelerator is built from.
    pub fn accelerator(&self, seed: u64) -> AcceleratorConfig {
        let share = self.workers.max(1);
        AcceleratorConfig {
            total_buffer: Bytes(self.limits.total_buffer.0 / share as u64),
            max_flows: self.limits.max_flows / share,
            max_flows_per_device: self.limits.max_flows_per_device,
            max_openings: self.limits.max_openings / share,
            super_packet: SUPER_PACKET,
            partial_checksums: true,
            gather: true,
            tick: self.tick.max(Duration::from_micros(250)),
            ..self.accelerator.config(seed)
        }
    }
}

/// A note for each former name of a value that the configuration uses.
fn former_names(file: &str, text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let policies = table.get("policy").and_then(toml::Value::as_array).into_iter().flatten();
    let former =
        policies.filter(|policy| policy.get("action").and_then(toml::Value::as_str) == Some(FORMER_RELAY));
    former
        .map(|policy| {
            let prefix = policy.get("prefix").and_then(toml::Value::as_str).unwrap_or("");
            format!(
                "{file}: policy.action = \"{FORMER_RELAY}\" of {prefix} is now called \"relay\"; the next release does not \
                 accept the former name"
            )
        })
        .collect()
}

fn range<T: PartialOrd + std::fmt::Display>(key: &str, value: T, least: T, most: T) -> Result<(), String> {
    if (&least..=&most).contains(&&value) {
        return Ok(());
    }
    Err(format!("{key} = {value}: allowed: {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "server = \"eth0\"\nmobile = \"eth1\"\n";
    const TWICE: &str = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n\
                         [[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"relay\"";

    #[test]
    fn two_interfaces_are_enough() {
        let config = GatewayConfig::parse("box.toml", LEAST).unwrap();
        assert_eq!((config.mode, config.workers, config.bridge.as_str()), (Mode::Bridge, 1, "paceline0"));
    }

    #[test]
    fn bad_values_are_refused_with_key_value_and_what_is_allowed() {
        for (line, key, allowed) in [
            ("workers = 0", "workers = 0", "1 to 64"),
            ("tick = \"1 s\"", "tick = 1 s", "10 us to 5 ms"),
            ("bridge = \"a/b\"", "bridge = \"a/b\"", "the name of a network interface"),
            ("mode = \"switch\"", "switch", "bridge"),
            ("sides = \"guessed\"", "guessed", "learned"),
            ("control = \"box.sock\"", "control = \"box.sock\"", "an absolute path"),
            ("metrics = \"9464\"", "9464", "socket address"),
            ("colour = 1", "colour", "expected"),
            ("[limits]\nmax_flows = 0", "limits.max_flows = 0", "1 to 16777216"),
            ("[[policy]]\nprefix = \"10.0.0.0/40\"\naction = \"leave\"", "10.0.0.0/40", "0 to 32"),
            ("[[policy]]\nprefix = \"10.0.0.1/8\"\naction = \"leave\"", "10.0.0.1/8", "10.0.0.0/8"),
            ("[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"stop\"", "stop", "leave"),
            ("[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"filter\"", "\"filter\"", "filter.rate"),
            ("[filter]\nholdout = 0.6", "filter.holdout = 0.6", "0 to 0.5"),
            ("[filter]\nperiod = \"1 ms\"", "filter.period = 1 ms", "100 ms to 600 s"),
            ("[filter]\nqueue = \"1 kB\"", "filter.queue = 1 kB", "9 kB to 4 GiB"),
            ("[accelerator]\nk = 0", "accelerator.k = 0", "1 to 65536"),
            ("[accelerator]\ndevice_buffer = \"0 B\"", "accelerator.device_buffer = 0 B", "at least 16 KiB"),
            (
                "[accelerator]\nmost_budget = \"1 ms\"",
                "accelerator.most_budget = 1 ms",
                "accelerator.least_budget",
            ),
            (TWICE, "policy.prefix = \"10.0.0.0/8\"", "each prefix once"),
        ] {
            let error = GatewayConfig::parse("box.toml", &format!("{LEAST}{line}")).unwrap_err();
            assert!(
                error.starts_with("box.toml: ") && error.contains(key) && error.contains(allowed),
                "{error}"
            );
        }
        let error = GatewayConfig::parse("box.toml", "server = \"a\"\nmobile = \"a\"").unwrap_err();
        assert!(error.contains("mobile = \"a\""), "{error}");
    }

    #[test]
    fn the_former_name_of_relay_is_accepted_with_a_note() {
        let parse = |action: &str| {
            let rule = format!("[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"{action}\"\n");
            GatewayConfig::parse("box.toml", &format!("{LEAST}{rule}")).unwrap()
        };
        let (former, now) = (parse("pace"), parse("relay"));
        assert_eq!((former.policy[0].action, now.policy[0].action), (Action::Relay, Action::Relay));
        assert!(former.notes[0].contains("\"relay\""), "{:?}", former.notes);
        assert_eq!((former.notes.len(), now.notes.len()), (1, 0));
        assert_eq!(former.fixed_changes(&now), [""; 0]);
        assert!(toml::to_string(&former).unwrap().contains("\"relay\""));
    }

    #[test]
    fn what_a_running_gateway_cannot_take_over_is_named() {
        let parse = |more: &str| GatewayConfig::parse("box.toml", &format!("{LEAST}{more}")).unwrap();
        let old = parse("");
        let easy = parse(
            "tick = \"1 ms\"\ndrain = \"1 s\"\n[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n\
             [limits]\nmax_flows = 9\n[accelerator]\novershoot = false",
        );
        assert_eq!(old.fixed_changes(&easy), [""; 0]);
        let hard =
            parse("workers = 2\nbridge = \"br9\"\nmetrics = \"127.0.0.1:9464\"\n[filter]\nqueue = \"9 kB\"");
        assert_eq!(old.fixed_changes(&hard), ["bridge", "filter", "metrics", "workers"]);
        assert_eq!(hard.fixed_changes(&hard), [""; 0]);
    }
}
