//! The middlebox: the kernel's bridge alone, or the gateway on it.

use crate::common::namespace::Program;
use crate::common::testbed::wait_for_message;
use crate::common::{PACELINE, parse_json};
use crate::gateway_clients::network::{MIDDLEBOX, Network};
use serde_json::Value;
use std::fs;

const INTERFACES: &str = "server = \"c0\"\nmobile = \"m0\"\n";

pub enum Middlebox {
    /// The kernel's bridge alone, to tell faults of a test from faults of the gateway.
    Bridge,
    Gateway(Program),
}

impl Middlebox {
    /// Starts the gateway with more settings; only the bridge where `PACELINE_MIDDLE=bridge` is set.
    pub fn start(network: &Network, settings: &str) -> Self {
        Self::start_in(network, "", settings)
    }
    /// Starts the gateway without transparent huge pages. With them, resident memory grows by 2 MB wherever a
    /// byte is written and a huge page is free, so that it would not be a measure of the gateway's use.
    pub fn start_in_small_pages(network: &Network, settings: &str) -> Self {
        Self::start_in(network, "MIMALLOC_ALLOW_THP=0", settings)
    }
    fn start_in(network: &Network, environment: &str, settings: &str) -> Self {
        if std::env::var("PACELINE_MIDDLE").is_ok_and(|value| value == "bridge") {
            return Self::Bridge;
        }
        network.dir.write("gateway.toml", format!("{INTERFACES}{settings}"));
        // `/sys` of the namespace, as `ip netns exec` mounts it: it lists the namespace's devices.
        let script =
            format!("mount -t sysfs sysfs /sys && exec env {environment} \"$0\" gateway --json gateway.toml");
        let argv = ["unshare", "-m", "sh", "-c", &script, PACELINE];
        let mut gateway = network.start(MIDDLEBOX, "gateway", &argv);
        wait_for_message(&mut gateway, "accelerating");
        Self::Gateway(gateway)
    }
    pub fn signal(&self, name: &str) {
        if let Self::Gateway(gateway) = self {
            gateway.signal(name);
        }
    }
    /// Its resident memory in MB; 0 without a gateway.
    pub fn memory(&self) -> f64 {
        let Self::Gateway(gateway) = self else { return 0.0 };
        let status = fs::read_to_string(format!("/proc/{}/status", gateway.id())).expect("the gateway runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of the kernel");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kB") / 1e3
    }
    /// Ends the gateway by SIGTERM; gives its counters.
    pub fn stop(mut self) -> Counters {
        self.signal("TERM");
        self.ended()
    }
    /// Waits until the gateway has ended; gives its counters.
    pub fn ended(&mut self) -> Counters {
        let Self::Gateway(gateway) = self else { return Counters(None) };
        let output = gateway.finish();
        assert_eq!(output.code, 0, "{output:?}");
        Counters(Some(parse_json(&output.stdout)))
    }
}

/// Counters of a gateway; empty without one.
pub struct Counters(Option<Value>);

impl Counters {
    /// One counter; none without a gateway.
    pub fn get(&self, name: &str) -> Option<u64> {
        let counters = self.0.as_ref()?;
        let value = counters.get(name).and_then(Value::as_u64);
        Some(value.unwrap_or_else(|| panic!("no counter {name}: {counters:#}")))
    }
    /// Fails if a gateway has run and the counter is 0.
    pub fn assert_some(&self, name: &str) {
        assert_ne!(self.get(name), Some(0), "{name}: {:#}", self.0.as_ref().unwrap_or_default());
    }
}

impl std::fmt::Display for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters = self.0.as_ref().and_then(Value::as_object).into_iter().flatten();
        counters.filter(|(_, value)| **value != 0).try_for_each(|(name, value)| write!(f, "{name} {value}, "))
    }
}
