//! The configuration file of `paceline police apply`: a table `[[policer]]` for each policer, with the keys
//! that docs/police.md describes. The values are those of the options of `attach`.

use super::attach_args::{AttachArgs, Direction, ModeName, PolicyArgs, rate};
use crate::failure::{Failure, Outcome};
use anyhow::{Context, anyhow};
use ipnet::IpNet;
use paceline_live::police::Policy;
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
    drop_share: Option<f64>,
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
}

fn default_max_segments() -> u32 {
    Policy::MAX_SEGMENTS
}

/// The policers of a file, as `attach` takes them.
pub fn read(path: &Path) -> Outcome<Vec<AttachArgs>> {
    let name = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{name}: cannot be read")).map_err(Failure::Input)?;
    let file: File = toml::from_str(&text).map_err(|error| Failure::Input(anyhow!("{name}: {error}")))?;
    let args = |(index, policer): (usize, Policer)| {
        let refuse = |reason: String| Failure::Input(anyhow!("{name}: policer.{index}.{reason}"));
        policer.check().map_err(refuse)?;
        policer.args().map_err(refuse)
    };
    file.policer.into_iter().enumerate().map(args).collect()
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
        if let Some(share) = self.drop_share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("drop_share = {share}: allowed: 0 to 1"));
        }
        if let Some(count) = self.acks_per_rtt.filter(|count| !(1..=1000).contains(count)) {
            return Err(format!("acks_per_rtt = {count}: allowed: 1 to 1000"));
        }
        if !(1..=32).contains(&self.max_segments) {
            return Err(format!("max_segments = {}: allowed: 1 to 32", self.max_segments));
        }
        Ok(())
    }
    fn args(self) -> Result<AttachArgs, String> {
        let network = |text: &String| {
            text.parse::<IpNet>()
                .map_err(|_| format!("exempt = {text}: allowed: networks such as 10.0.0.0/8"))
        };
        let policy = PolicyArgs {
            exempt: self.exempt.iter().map(network).collect::<Result<_, _>>()?,
            cir: self.cir.map(|text| rate(&text).map_err(|error| format!("cir = {error}"))).transpose()?,
            cbs: self.cbs,
            drop_share: self.drop_share,
            acks_per_rtt: self.acks_per_rtt,
            mode: self.mode,
            max_segments: self.max_segments,
            per_flow: self.per_flow == Some(true),
            aggregate: self.per_flow == Some(false),
            gtp: self.gtp,
        };
        Ok(AttachArgs { device: self.device, direction: self.direction, policy, pin: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policers_are_read_or_refused_by_key() {
        let read = |text: &str| -> Result<AttachArgs, String> {
            let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
            let policer = file.policer.into_iter().next().unwrap();
            policer.check()?;
            policer.args()
        };
        let with = |keys: &str| format!("[[policer]]\ndevice = \"eth1\"\ndirection = \"ingress\"\n{keys}\n");
        let args =
            read(&with("cir = \"1mbit\"\ncbs = 6000\nexempt = [\"10.0.0.0/8\"]\nmode = \"published\""));
        let args = args.unwrap().policy;
        assert_eq!(
            (args.cir, args.cbs, args.exempt.len(), args.aggregate),
            (Some(125_000), Some(6000), 1, false)
        );
        for (keys, part) in [
            ("", "exactly one of"),
            ("drop_share = 0.8\ncir = \"1mbit\"", "exactly one of"),
            ("drop_share = 1.8", "drop_share = 1.8: allowed: 0 to 1"),
            ("drop_share = 0.8\ncbs = 5", "cbs: allowed only beside cir"),
            ("drop_share = 0.8\nmax_segments = 99", "max_segments = 99"),
            ("cir = \"5 parsec\"", "cir = 5 parsec"),
            ("drop_share = 0.8\nexempt = [\"x\"]", "exempt = x"),
            ("drop_share = 0.8\nspeed = 1", "unknown field `speed`"),
            ("drop_share = 0.8\nmode = \"fast\"", "fast"),
        ] {
            let error = read(&with(keys)).err().unwrap();
            assert!(error.contains(part), "{keys}: {error}");
        }
    }
}
