//! The description of a policer: options of `attach` and `estimate`, and keys of a file.

use ipnet::IpNet;
use paceline_linux::bpf::tcx::Hook;
use paceline_police::{Limit, Mode, PoliceConfig, Policy, Via};
use serde::Deserialize;

#[derive(Clone, Copy, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Ingress,
    Egress,
}

#[derive(Clone, Copy, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeName {
    #[default]
    Safe,
    Published,
}

/// How the programs are attached.
#[derive(Clone, Copy, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViaName {
    #[default]
    Auto,
    Tcx,
    Clsact,
}

/// Which ACKs a policer drops.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("limit").required(true))]
pub struct PolicyArgs {
    /// Rate of ACKs that pass, such as 100kbit, 2mbit or 20kB/s; above it they are dropped
    #[arg(long, value_name = "RATE", group = "limit", value_parser = rate)]
    pub cir: Option<u64>,
    /// Burst above the rate, in bytes
    #[arg(long, value_name = "BYTES", requires = "cir", conflicts_with_all = ["drop_share", "acks_per_rtt"])]
    pub cbs: Option<u64>,
    /// Share of the ACKs to drop, such as 0.8 or 80%
    #[arg(long, value_name = "SHARE", group = "limit", value_parser = share)]
    pub drop_share: Option<f64>,
    /// ACKs of a connection that pass in a round trip
    #[arg(long, value_name = "NUMBER", group = "limit", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub acks_per_rtt: Option<u32>,
    /// ACKs that may be dropped: those that no rule protects, or all pure ACKs, blindly
    #[arg(long, default_value = "safe")]
    pub mode: ModeName,
    /// Segments that one kept ACK may newly acknowledge (mode safe)
    #[arg(long, value_name = "NUMBER", default_value_t = Policy::MAX_SEGMENTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=32))]
    pub max_segments: u32,
    /// One limit for each connection (the default with a share or with ACKs per round trip)
    #[arg(long, conflicts_with = "aggregate")]
    pub per_flow: bool,
    /// One limit for all connections together (the default with a rate)
    #[arg(long)]
    pub aggregate: bool,
    /// Networks whose packets pass untouched
    #[arg(long, value_name = "PREFIX")]
    pub exempt: Vec<IpNet>,
    /// Look into GTP-U tunnels (UDP port 2152)
    #[arg(long)]
    pub gtp: bool,
}

#[derive(clap::Args)]
pub struct AttachArgs {
    /// Network device
    pub device: String,
    /// The direction in which ACKs are dropped: as they arrive, or as they leave
    #[arg(long)]
    pub direction: Direction,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Keep the programs in the kernel when the command ends, until `detach`
    #[arg(long)]
    pub pin: bool,
    /// Kernel interface: TCX (Linux 6.6), clsact before it
    #[arg(long, default_value = "auto")]
    pub via: ViaName,
}

impl AttachArgs {
    /// The policer that the options describe.
    pub fn config(&self) -> Result<PoliceConfig, String> {
        let via = match self.via {
            ViaName::Auto => Via::Auto,
            ViaName::Tcx => Via::Tcx,
            ViaName::Clsact => Via::Clsact,
        };
        Ok(PoliceConfig { via, ..self.policy.config(self.direction, false)? })
    }
}

impl PolicyArgs {
    /// The policer in a direction; with `dry_run` it decides and counts only.
    pub fn config(&self, direction: Direction, dry_run: bool) -> Result<PoliceConfig, String> {
        let limit = match (self.cir, self.drop_share, self.acks_per_rtt) {
            (Some(rate), _, _) => Limit::rate(rate, self.cbs),
            (_, Some(share), _) => Limit::share(share),
            (_, _, Some(count)) => Limit::PerRtt(count),
            _ => unreachable!("clap requires one of them"),
        };
        let mode = match self.mode {
            ModeName::Safe => Mode::Safe,
            ModeName::Published => Mode::Published,
        };
        let config = PoliceConfig {
            policy: Policy { mode, limit, max_segments: self.max_segments },
            per_flow: self.per_flow || !(self.aggregate || self.cir.is_some()),
            direction: match direction {
                Direction::Ingress => Hook::Ingress,
                Direction::Egress => Hook::Egress,
            },
            gtp: self.gtp,
            exempt: self.exempt.clone(),
            dry_run,
            via: Via::Auto,
        };
        config.check()?;
        Ok(config)
    }
}

/// A rate in bytes per second: `100kbit`, `2mbit`, `1gbit`, `2Mb/s`, `20kB/s`.
pub fn rate(text: &str) -> Result<u64, String> {
    let split = text.find(|at: char| at.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let number: f64 = number.parse().map_err(|_| format!("{text}: no rate, such as 100kbit or 20kB/s"))?;
    let bits = match unit {
        "bit" | "bit/s" | "b/s" => 1.0,
        "kbit" | "kbit/s" | "kb/s" => 1e3,
        "mbit" | "Mbit" | "Mbit/s" | "Mb/s" => 1e6,
        "gbit" | "Gbit" | "Gbit/s" | "Gb/s" => 1e9,
        "B/s" => 8.0,
        "kB/s" => 8e3,
        "MB/s" => 8e6,
        _ => return Err(format!("{text}: unit {unit:?}; allowed: bit, kbit, mbit, gbit, B/s, kB/s, MB/s")),
    };
    let bytes = (number * bits / 8.0).round();
    if (1.0..=1e12).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(format!("{text}: 8 bit/s to 8000 gbit"))
    }
}

/// A share: `0.8` or `80%`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share: f64 = number.trim().parse().map_err(|_| format!("{text}: no share, such as 0.8 or 80%"))?;
    let share = share / scale;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(format!("{text}: a share is 0 to 1, or 0% to 100%"))
    }
}

#[cfg(test)]
mod tests {
    use super::{rate, share};

    #[test]
    fn rates_and_shares_have_units_and_bounds() {
        assert_eq!(rate("100kbit"), Ok(12_500));
        assert_eq!(rate("2 Mb/s"), Ok(250_000));
        assert_eq!(rate("20kB/s"), Ok(20_000));
        assert_eq!(share("80%"), Ok(0.8));
        assert_eq!(share("0.8"), Ok(0.8));
        for bad in ["", "fast", "10", "-1kbit", "0bit", "1e30gbit", "nanbit"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        for bad in ["", "x", "1.1", "-5%", "101%", "nan"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
