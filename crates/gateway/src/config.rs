//! The gateway's configuration: a TOML file. docs/gateway.md describes its keys.

use super::datapath::layout;
use super::interfaces::mss_clamp::MssClamp;
use super::policy::{Action, FORMER_RELAY, Policy};
use crate::service::privileges;
use nix::unistd::Group;
use paceline_linux::memory::Available;
use paceline_net::{Bytes, Duration, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_pep::ack_filter::Comparison;
use paceline_scenario::{Accelerator, PacingPattern};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Most workers: a limit of the kernel program. Same as `MAX_WORKERS` of bpf/shared.h.
pub const MAX_WORKERS: usize = layout::MAX_WORKERS as usize;
/// Most prefixes: the size of the kernel program's map. Same as `MAX_PREFIXES` of bpf/shared.h, less the rule
/// for all of IPv4.
const MAX_POLICIES: usize = layout::MAX_PREFIXES as usize - 1;
/// Longest name of an interface, in bytes. Same as IFNAMSIZ of Linux, less the final zero.
const MAX_NAME_BYTES: usize = 15;
/// Most payload bytes of a super-packet. Derived from the 16-bit length of a datagram, less headers.
const SUPER_PACKET: Bytes = Bytes(65_400);

/// The default of `accelerator.memory`: the available memory divided by this. Chosen: see [`default_memory`].
const HOST_MEMORY_DIVISOR: u64 = 4;
/// Smallest default of `accelerator.memory`, where half of the available memory is more. Chosen: enough for
/// some dozen devices of 2 MiB each.
const MIN_DEFAULT_MEMORY_BYTES: u64 = 64 << 20;
/// Folder of the control sockets whose configuration names no other place.
pub const CONTROL_FOLDER: &str = "/run/paceline";
/// Keys that a running gateway takes over at a reload.
const CHANGEABLE: [&str; 6] = ["tick", "drain", "mss_clamp", "policy", "limits", "accelerator"];
/// Longest path of a Unix socket, in bytes (man unix(7)).
const MAX_PATH_BYTES: usize = 107;

/// How the kernel forwards between the interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They are ports of a bridge, and need no addresses.
    #[default]
    Bridge,
    /// This machine routes between them.
    Routed,
}

/// The source of the two sides: which interface is towards the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// In the configuration.
    #[default]
    Configured,
    /// Nowhere: the gateway detects from which side connections are opened, and exchanges `server` and
    /// `mobile` if necessary.
    Learned,
}

/// The gateway's configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// How the kernel forwards between the interfaces: `bridge` or `routed`.
    #[serde(default)]
    pub mode: Mode,
    /// Interface towards the servers.
    pub server: String,
    /// Interface towards the mobile devices.
    pub mobile: String,
    /// Whether `server` and `mobile` are as configured, or detected first: `configured` or `learned`.
    #[serde(default)]
    pub sides: Sides,
    /// Name of the bridge that is made if the interfaces are in none; it stays at the end. With `routed`,
    /// name of the veth device by which the gateway's packets enter the kernel's routing; its other end has
    /// an `r` appended.
    #[serde(default = "default_bridge")]
    pub bridge: String,
    /// Worker threads. All connections of a device are in one of them.
    #[serde(default = "default_workers")]
    pub workers: usize,
    /// Shortest time in which packets are batched under load.
    #[serde(default = "default_tick")]
    pub tick: Duration,
    /// Time for connections to be delivered all acknowledged data when the gateway stops.
    #[serde(default = "default_drain")]
    pub drain: Duration,
    /// Highest segment size that SYNs may announce; if absent, SYNs are not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_clamp: Option<MssClamp>,
    /// Control socket; if absent, `/run/paceline/SERVER-MOBILE.sock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// Group whose members may use the control socket; if absent, only the gateway's user and root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<String>,
    /// Group whose members may look at the control socket's state and change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_group: Option<String>,
    /// User as whom the gateway continues after its set-up, if root starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Address of the HTTP server for Prometheus' metrics; if absent, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// Names of this machine by which the HTTP server may be asked, beside its addresses, `localhost` and its
    /// own host name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics_hosts: Vec<String>,
    /// File in which an experiment outlives the gateway; if absent, beside the control socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<PathBuf>,
    /// CSV file with a line for each transfer to a device; if absent, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<PathBuf>,
    /// Actions by prefix of a mobile device's address; the longest matching prefix decides.
    #[serde(default)]
    pub policy: Vec<Policy>,
    /// The ACK filter.
    #[serde(default)]
    pub filter: Filter,
    /// Limits of memory and tables.
    #[serde(default)]
    pub limits: Limits,
    /// The accelerator, with the keys of a scenario's table of this name.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// Notes for the operator: former names that the file uses.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// `control` is from the command line, and a reload keeps it.
    #[serde(skip)]
    control_named: bool,
    /// The memory that this process may use, when the configuration was read.
    #[serde(skip)]
    available: Available,
}

/// Table `[filter]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Rate of the line towards the servers, which the workers share. The filter acts on the queue ahead of
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bytes of the queue of each worker.
    pub queue: Bytes,
    /// Share of connections whose ACKs are not filtered, for comparison; 0 switches the comparison off.
    pub holdout: f64,
    /// Time after which new groups of connections are drawn for the comparison.
    pub period: Duration,
}

impl Default for Filter {
    fn default() -> Self {
        Self { rate: None, queue: Bytes(1 << 20), holdout: 0.1, period: Comparison::PERIOD }
    }
}

/// Table `[limits]`: limits of all workers together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most buffered bytes, where that is less than `accelerator.memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_buffer: Option<Bytes>,
    /// Most accelerated connections; further ones stay in the kernel.
    pub max_flows: usize,
    /// Most accelerated connections of one device.
    pub max_flows_per_device: usize,
    /// Most handshakes and connections without data in the table.
    pub max_openings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let AcceleratorConfig { max_flows, max_flows_per_device, max_openings, .. } =
            AcceleratorConfig::default();
        Self { total_buffer: None, max_flows, max_flows_per_device, max_openings }
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
/// A quarter of the available memory, 64 MiB at least if that is no more than half. Chosen: the rest is for
/// the kernel's buffers, which count in a control group as well, and for other programs.
fn default_memory(available: u64) -> Bytes {
    Bytes((available / HOST_MEMORY_DIVISOR).max(MIN_DEFAULT_MEMORY_BYTES.min(available / 2)))
}
fn default_drain() -> Duration {
    Duration::from_secs(30)
}

impl GatewayConfig {
    /// Parses and checks a configuration. The error names file, key, value and the allowed values.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut config: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        config.notes = former_names(file, text);
        config.available = Available::read();
        config.check().map_err(|problem| format!("{file}: {problem}"))?;
        Ok(config)
    }

    /// The control socket, if the configuration names none: in the default folder under the interfaces'
    /// names.
    pub fn default_control(&self) -> PathBuf {
        Path::new(CONTROL_FOLDER).join(format!("{}-{}.sock", self.server, self.mobile))
    }
    /// The configuration with all defaults, as TOML. With learned sides the default control socket is not
    /// known yet.
    pub fn resolved(&self) -> String {
        let known = self.sides == Sides::Configured;
        let control = self.control.clone().or_else(|| known.then(|| self.default_control()));
        let accelerator = Accelerator { memory: Some(self.memory()), ..self.accelerator.clone() };
        toml::to_string(&Self { control, accelerator, ..self.clone() })
            .unwrap_or_else(|error| unreachable!("a checked configuration is TOML: {error}"))
    }
    /// Takes a control socket of the command line in place of the file's.
    pub fn name_control(&mut self, path: PathBuf) -> Result<(), String> {
        (self.control, self.control_named) = (Some(path), true);
        self.check()
    }
    /// Checks that user and group exist.
    pub fn check_accounts(&self) -> anyhow::Result<()> {
        self.user.as_deref().map(privileges::user).transpose()?;
        Self::group("control_group", self.control_group.as_ref())?;
        Self::group("view_group", self.view_group.as_ref())?;
        Ok(())
    }
    /// The group that is the value of a key.
    pub fn group(key: &str, name: Option<&String>) -> anyhow::Result<Option<Group>> {
        name.map(|name| privileges::group(key, name)).transpose()
    }
    /// Exchanges the two interfaces.
    pub fn swap_sides(&mut self) {
        std::mem::swap(&mut self.server, &mut self.mobile);
    }
    /// Gives to a new configuration what did not come from this one's file: exchanged interfaces, and the
    /// control socket of the command line.
    pub fn apply_start_to(&self, new: &mut Self) {
        if self.control_named {
            (new.control, new.control_named) = (self.control.clone(), true);
        }
        if self.sides == Sides::Learned && (&self.server, &self.mobile) == (&new.mobile, &new.server) {
            new.swap_sides();
        }
    }

    /// Changed keys that cannot change while the gateway runs.
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
            if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(plain) {
                return Err(format!("{key} = {name:?}: allowed: the name of a network interface"));
            }
        }
        if self.mode == Mode::Routed && self.bridge.len() == MAX_NAME_BYTES {
            return Err(format!(
                "bridge = {:?}: allowed: {} characters with mode = \"routed\"",
                self.bridge,
                MAX_NAME_BYTES - 1
            ));
        }
        if self.server == self.mobile {
            return Err(format!("mobile = {:?}: allowed: another interface than server's", self.mobile));
        }
        for (key, path) in [("experiment", &self.experiment), ("records", &self.records)] {
            if let Some(path) = path.as_ref().filter(|path| !path.is_absolute()) {
                return Err(format!("{key} = {path:?}: allowed: an absolute path"));
            }
        }
        if let Some(path) = &self.control
            && !(path.is_absolute() && path.as_os_str().len() <= MAX_PATH_BYTES)
        {
            return Err(format!(
                "control = {path:?}: allowed: an absolute path of up to {MAX_PATH_BYTES} bytes"
            ));
        }
        range("workers", self.workers, 1, MAX_WORKERS)?;
        range("tick", self.tick, Duration::from_micros(10), Duration::from_millis(5))?;
        range("drain", self.drain, Duration::ZERO, Duration::from_secs(3600))?;
        if self.accelerator.pacing_pattern == Some(PacingPattern::Cell) {
            return Err(
                "accelerator.pacing_pattern = \"cell\": allowed: learned, or slots such as DDDSU/30kHz"
                    .into(),
            );
        }
        if let Some(phase) = self.accelerator.pacing_phase {
            return Err(format!("accelerator.pacing_phase = {phase}: allowed: absent on a gateway"));
        }
        let limits = &self.limits;
        if let Some(most) = limits.total_buffer {
            range("limits.total_buffer", most, Bytes(1 << 20), Bytes(1 << 44))?;
        }
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

    /// Memory for the data of all connections, of all workers together.
    pub fn memory(&self) -> Bytes {
        let memory = self.accelerator.memory.unwrap_or_else(|| default_memory(self.available.bytes));
        memory.min(self.limits.total_buffer.unwrap_or(Bytes(u64::MAX)))
    }
    /// Where the memory comes from, for the operator.
    pub fn memory_source(&self) -> String {
        let memory = self.memory();
        let divided = default_memory(self.available.bytes);
        let source = match (self.limits.total_buffer, self.accelerator.memory) {
            (Some(most), _) if most == memory => "by limits.total_buffer".to_owned(),
            (_, Some(_)) => "as configured".to_owned(),
            (_, None) if divided.0 == self.available.bytes / HOST_MEMORY_DIVISOR => {
                format!("a quarter of {}", self.available)
            }
            _ => format!("the least default, of {}", self.available),
        };
        format!("memory for data: {memory}, {source}")
    }
    /// The configuration of a worker's accelerator: its share of the limits.
    pub fn accelerator(&self, seed: u64) -> AcceleratorConfig {
        let share = self.workers.max(1);
        AcceleratorConfig {
            memory: Bytes(self.memory().0 / share as u64),
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

/// A note for each former name of a key or value that the configuration uses.
fn former_names(file: &str, text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let accelerator = table.get("accelerator").and_then(toml::Value::as_table);
    let has = |key: &str| accelerator.is_some_and(|table| table.contains_key(key));
    let keys = [("least_budget", "min_target_delay"), ("most_budget", "max_target_delay")];
    let keys = keys.into_iter().filter(|(former, _)| has(former)).map(|(former, present)| {
        format!(
            "{file}: accelerator.{former} is called accelerator.{present} now; the next release does not accept the \
             former name"
        )
    });
    let policies = table.get("policy").and_then(toml::Value::as_array).into_iter().flatten();
    let former =
        policies.filter(|policy| policy.get("action").and_then(toml::Value::as_str) == Some(FORMER_RELAY));
    let former = former.map(|policy| {
            let prefix = policy.get("prefix").and_then(toml::Value::as_str).unwrap_or("");
            format!(
                "{file}: policy.action = \"{FORMER_RELAY}\" of {prefix} is now called \"relay\"; the next release does not \
                 accept the former name"
            )
        });
    keys.chain(former).collect()
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
    fn bad_values_are_refused_with_key_value_and_allowed_values() {
        for (line, key, allowed) in [
            ("workers = 0", "workers = 0", "1 to 64"),
            ("tick = \"1 s\"", "tick = 1 s", "10 us to 5 ms"),
            ("bridge = \"a/b\"", "bridge = \"a/b\"", "the name of a network interface"),
            ("mode = \"switch\"", "switch", "bridge"),
            ("sides = \"guessed\"", "guessed", "learned"),
            ("control = \"box.sock\"", "control = \"box.sock\"", "an absolute path"),
            ("metrics = \"9464\"", "9464", "socket address"),
            ("experiment = \"state.json\"", "experiment = \"state.json\"", "an absolute path"),
            ("mss_clamp = 535", "mss_clamp = 535", "536 to 65495 bytes, or \"auto\""),
            ("mss_clamp = -1", "mss_clamp = -1", "536 to 65495"),
            ("mss_clamp = \"1360\"", "mss_clamp = \"1360\"", "\"auto\""),
            ("mss_clamp = true", "mss_clamp", "536 to 65495"),
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
                "accelerator.max_target_delay = 1 ms",
                "accelerator.min_target_delay",
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
    fn memory_is_a_part_of_what_is_available_and_is_printed() {
        let mib = |mib: u64| Bytes(mib << 20);
        for (available, memory) in [(8192, 2048), (512, 128), (200, 64), (100, 50)] {
            assert_eq!(default_memory(available << 20), mib(memory), "{available}");
        }
        let config = GatewayConfig::parse("box.toml", LEAST).unwrap();
        let printed: toml::Table = config.resolved().parse().unwrap();
        let memory = printed["accelerator"]["memory"].as_str().unwrap().parse::<Bytes>().unwrap();
        assert_eq!(memory, config.memory());
        assert!(config.memory_source().contains("of the"), "{}", config.memory_source());
        let limited =
            GatewayConfig::parse("box.toml", &format!("{LEAST}[limits]\ntotal_buffer = \"2 MiB\"\n"));
        assert_eq!(limited.unwrap().memory(), mib(2));
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
    fn changed_keys_that_are_fixed_at_run_time_are_named() {
        let parse = |more: &str| GatewayConfig::parse("box.toml", &format!("{LEAST}{more}")).unwrap();
        let old = parse("");
        let allowed = parse(
            "tick = \"1 ms\"\nmss_clamp = 1360\ndrain = \"1 s\"\n[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n\
             [limits]\nmax_flows = 9\n[accelerator]\novershoot = false",
        );
        assert_eq!(old.fixed_changes(&allowed), [""; 0]);
        let refused =
            parse("workers = 2\nbridge = \"br9\"\nmetrics = \"127.0.0.1:9464\"\n[filter]\nqueue = \"9 kB\"");
        assert_eq!(old.fixed_changes(&refused), ["bridge", "filter", "metrics", "workers"]);
        assert_eq!(refused.fixed_changes(&refused), [""; 0]);
    }
}
