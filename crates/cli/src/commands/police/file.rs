//! The configuration file of `paceline police apply`: a table `[[policer]]` for each policer, with the keys
//! that docs/police.md describes. The values are those of the options of `attach`.

use super::attach_args::{AttachArgs, Direction, ModeName, PolicyArgs, ViaName, rate, share};
use crate::failure::{Failure, Outcome};
use anyhow::{Context, anyhow};
use ipnet::IpNet;
use paceline_police::{PoliceConfig, Policy};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policer: Vec<Policer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policer {
    device: String,
    direction: Direction,
    cir: Option<String>,
    cbs: Option<u64>,
    drop_share: Option<toml::Value>,
    acks_per_rtt: Option<u32>,
    #[serde(default)]
    mode: ModeName,
    #[serde(default = "default_max_segments")]
    max_segments: u32,
    per_flow: Option<bool>,
    #[serde(default)]
    exempt: Vec<String>,
    #[serde(default)]
    gtp: bool,
    #[serde(default)]
    via: ViaName,
}

fn default_max_segments() -> u32 {
    Policy::MAX_SEGMENTS
}

/// The policers of a file, with their devices.
pub fn read(path: &Path) -> Outcome<Vec<(String, PoliceConfig)>> {
    let name = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{name}: cannot be read")).map_err(Failure::Input)?;
    configs(&text).map_err(|error| Failure::Input(anyhow!("{name}: {error}")))
}

fn configs(text: &str) -> Result<Vec<(String, PoliceConfig)>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.policer.is_empty() {
        return Err("policer = []: allowed: one table [[policer]] or more".into());
    }
    let mut configs: Vec<(String, PoliceConfig)> = Vec::new();
    for (index, policer) in file.policer.into_iter().enumerate() {
        let config = || {
            if let Some(first) = configs.iter().position(|(device, _)| *device == policer.device) {
                let device = &policer.device;
                return Err(format!(
                    "device = {device}: policer.{first} has it; allowed: one policer for a device"
                ));
            }
            policer.check()?;
            let args = policer.args()?;
            Ok((args.device.clone(), args.config()?))
        };
        let config = config().map_err(|reason| format!("policer.{index}.{reason}"))?;
        configs.push(config);
    }
    Ok(configs)
}

impl Policer {
    fn check(&self) -> Result<(), String> {
        let given = [self.cir.is_some(), self.drop_share.is_some(), self.acks_per_rtt.is_some()];
        if given.iter().filter(|is| **is).count() != 1 {
            return Err("cir: allowed: exactly one of cir, drop_share and acks_per_rtt".into());
        }
        if self.cbs.is_some() && self.cir.is_none() {
            return Err("cbs: allowed only beside cir".into());
        }
        if let Some(count) = self.acks_per_rtt.filter(|count| !(1..=1000).contains(count)) {
            return Err(format!("acks_per_rtt = {count}: allowed: 1 to 1000"));
        }
        if !(1..=32).contains(&self.max_segments) {
            return Err(format!("max_segments = {}: allowed: 1 to 32", self.max_segments));
        }
        Ok(())
    }
    fn drop_share(&self) -> Result<Option<f64>, String> {
        let Some(value) = &self.drop_share else { return Ok(None) };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let share =
            share(&text).map_err(|_| format!("drop_share = {value}: allowed: 0 to 1, or \"0%\" to \"100%\""));
        share.map(Some)
    }
    fn args(&self) -> Result<AttachArgs, String> {
        let network = |text: &String| {
            text.parse::<IpNet>()
                .map_err(|_| format!("exempt = {text}: allowed: networks such as 10.0.0.0/8"))
        };
        let policy = PolicyArgs {
            exempt: self.exempt.iter().map(network).collect::<Result<_, _>>()?,
            cir: self
                .cir
                .as_ref()
                .map(|text| rate(text).map_err(|error| format!("cir = {error}")))
                .transpose()?,
            cbs: self.cbs,
            drop_share: self.drop_share()?,
            acks_per_rtt: self.acks_per_rtt,
            mode: self.mode,
            max_segments: self.max_segments,
            per_flow: self.per_flow == Some(true),
            aggregate: self.per_flow == Some(false),
            gtp: self.gtp,
        };
        let device = self.device.clone();
        Ok(AttachArgs { device, direction: self.direction, policy, pin: false, via: self.via })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_police::Limit;

    fn table(device: &str, keys: &str) -> String {
        format!("[[policer]]\ndevice = \"{device}\"\ndirection = \"ingress\"\n{keys}\n")
    }

    #[test]
    fn policers_are_read() {
        let keys = "cir = \"1mbit\"\ncbs = 6000\nexempt = [\"10.0.0.0/8\"]\nmode = \"published\"";
        let read = configs(&table("eth1", keys)).unwrap();
        let (device, config) = &read[0];
        let limit = Limit::Rate { bytes_per_s: 125_000, burst: 6000 };
        assert_eq!((device.as_str(), config.policy.limit, config.exempt.len()), ("eth1", limit, 1));
        for share in ["0.8", "\"0.8\"", "\"80%\""] {
            let read = configs(&table("eth1", &format!("drop_share = {share}"))).unwrap();
            assert_eq!(read[0].1.policy.limit, Limit::share(0.8), "{share}");
        }
        assert_eq!(configs(&table("eth1", "drop_share = 1")).unwrap()[0].1.policy.limit, Limit::share(1.0));
    }

    #[test]
    fn mistakes_are_refused_by_policer_and_key() {
        let many: Vec<String> =
            (0..1025).map(|at| format!("\"10.{}.{}.0/24\"", at / 256, at % 256)).collect();
        for (keys, part) in [
            ("", "policer.0.cir: allowed: exactly one of"),
            ("drop_share = 0.8\ncir = \"1mbit\"", "exactly one of"),
            ("drop_share = 1.8", "policer.0.drop_share = 1.8: allowed: 0 to 1"),
            ("drop_share = \"180%\"", "drop_share = \"180%\": allowed: 0 to 1"),
            ("drop_share = true", "drop_share = true: allowed: 0 to 1"),
            ("drop_share = 0.8\ncbs = 5", "cbs: allowed only beside cir"),
            ("cir = \"1mbit\"\ncbs = 5", "policer.0.cbs: 5 bytes: a burst is 52"),
            ("drop_share = 0.8\nmax_segments = 99", "max_segments = 99"),
            ("cir = \"5 parsec\"", "cir = 5 parsec"),
            ("drop_share = 0.8\nexempt = [\"x\"]", "exempt = x"),
            ("drop_share = 0.8\nspeed = 1", "unknown field `speed`"),
            ("drop_share = 0.8\nmode = \"fast\"", "fast"),
            ("drop_share = 0.8\nvia = \"xdp\"", "xdp"),
            (
                &format!("drop_share = 0.8\nexempt = [{}]", many.join(",")),
                "policer.0.exempt: 1025 networks; allowed: at most 1024",
            ),
        ] {
            let error = configs(&table("eth1", keys)).unwrap_err();
            assert!(error.contains(part), "{keys}: {error}");
        }
        let one = |device: &str| table(device, "drop_share = 0.8");
        let again = one("eth1").replace("ingress", "egress");
        let error = configs(&[one("eth1"), one("eth2"), again].concat()).unwrap_err();
        assert!(error.contains("policer.2.device = eth1: policer.0 has it; allowed: one"), "{error}");
        assert!(configs("policer = []").unwrap_err().contains("allowed: one table [[policer]] or more"));
        assert!(configs("").unwrap_err().contains("missing field `policer`"));
    }
}
