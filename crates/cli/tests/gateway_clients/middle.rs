//! What stands in the box: the kernel's bridge alone, or the gateway on it.

use crate::common::PACELINE;
use crate::common::outer::{Program, until};
use crate::town::Town;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Both interfaces of the box.
const INTERFACES: &str = "server = \"c0\"\nmobile = \"m0\"\n";

/// What the packets pass.
pub enum Middle {
    /// The kernel's bridge: what a test shows without a gateway.
    Bridge,
    /// The gateway.
    Gateway(Program),
}

impl Middle {
    /// The gateway, with these settings beside its interfaces; the bridge alone where `PACELINE_MIDDLE=bridge`, to see
    /// what a test itself does.
    pub fn start(town: &Town, settings: &str) -> Self {
        Self::start_in(town, "", settings)
    }
    /// The gateway without transparent huge pages: with them, memory in use grows by 2 MB at a time in every place
    /// where a byte is touched, when the kernel has one free, and does not say what the gateway holds.
    pub fn start_in_small_pages(town: &Town, settings: &str) -> Self {
        Self::start_in(town, "MIMALLOC_ALLOW_THP=0", settings)
    }
    fn start_in(town: &Town, environment: &str, settings: &str) -> Self {
        if std::env::var("PACELINE_MIDDLE").is_ok_and(|middle| middle == "bridge") {
            return Self::Bridge;
        }
        town.place.write("gateway.toml", format!("{INTERFACES}{settings}"));
        // A namespace's own devices in `/sys`, as `ip netns exec` has them.
        let script =
            format!("mount -t sysfs sysfs /sys && exec env {environment} \"$0\" gateway --json gateway.toml");
        let argv = ["unshare", "-m", "sh", "-c", &script, PACELINE];
        let mut gateway = town.start("box", "gateway", &argv);
        until("the gateway", || gateway.so_far().stderr.contains("accelerating").then_some(()));
        Self::Gateway(gateway)
    }
    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        if let Self::Gateway(gateway) = self {
            gateway.signal(name);
        }
    }
    /// Its memory in use, in MB.
    pub fn memory(&self) -> f64 {
        let Self::Gateway(gateway) = self else { return 0.0 };
        let status = fs::read_to_string(format!("/proc/{}/status", gateway.id())).expect("the gateway runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of the kernel");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kB") / 1e3
    }
    /// Ends it in order, and says what it counted.
    pub fn stop(mut self) -> Counters {
        self.signal("TERM");
        self.ended(Duration::from_secs(40))
    }
    /// What it counted, after the end that it has been asked for.
    pub fn ended(&mut self, limit: Duration) -> Counters {
        let Self::Gateway(gateway) = self else { return Counters(None) };
        let said = gateway.finish(limit);
        assert_eq!(said.code, 0, "{said:?}");
        Counters(Some(serde_json::from_str(&said.stdout).expect("JSON")))
    }
}

/// What a gateway counted.
pub struct Counters(Option<Value>);

impl Counters {
    /// One of its counters; none without a gateway.
    pub fn get(&self, name: &str) -> Option<u64> {
        let counters = self.0.as_ref()?;
        let value = counters.get(name).and_then(Value::as_u64);
        Some(value.unwrap_or_else(|| panic!("no counter {name}: {counters:#}")))
    }
    /// Fails where a gateway counted nothing of this.
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
