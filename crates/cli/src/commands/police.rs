//! `paceline police`: the ACK policer in the kernel, at an interface in front of a router (docs/police.md).

use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use ipnet::IpNet;
use paceline_live::police::{self, FlowReport, Limit, Mode, Police, PoliceConfig, Policy, Reason, Report};
use paceline_live::stop::StopSignals;
use paceline_live::tcx::Hook;

use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// Connections that `show` lists without `--all`. Chosen: a screen.
const SHOWN_FLOWS: usize = 20;
/// Burst of `--cir` without `--cbs`, in bytes: the published policer's.
const DEFAULT_BURST: u64 = 5000;
/// One, as a share of ACKs.
const ONE: f64 = 65_536.0;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Police the ACKs that pass an interface, until the command ends (or --pin)
    Attach(AttachArgs),
    /// Take a policer from an interface
    Detach(DeviceArgs),
    /// Show what a policer has seen, dropped and kept
    Show(ShowArgs),
}

#[derive(clap::Args)]
struct DeviceArgs {
    /// Network device
    device: String,
}

#[derive(clap::Args)]
struct ShowArgs {
    /// Network device
    device: String,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// List all connections
    #[arg(long)]
    all: bool,
    /// Show it again every second, until the command is interrupted
    #[arg(long)]
    watch: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Direction {
    Ingress,
    Egress,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ModeName {
    Safe,
    Published,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("limit").required(true))]
struct AttachArgs {
    /// Network device
    device: String,
    /// The direction in which ACKs are dropped: as they arrive, or as they leave
    #[arg(long)]
    direction: Direction,
    /// Rate of ACKs that pass, such as 100kbit, 2mbit or 20kB/s; above it they are dropped
    #[arg(long, value_name = "RATE", group = "limit", value_parser = rate)]
    cir: Option<u64>,
    /// Burst above the rate, in bytes
    #[arg(long, value_name = "BYTES", requires = "cir")]
    cbs: Option<u64>,
    /// Share of the ACKs to drop, such as 0.8 or 80%
    #[arg(long, value_name = "SHARE", group = "limit", value_parser = share)]
    drop_share: Option<f64>,
    /// ACKs of a connection that pass in a round trip
    #[arg(long, value_name = "NUMBER", group = "limit", value_parser = clap::value_parser!(u32).range(1..=1000))]
    acks_per_rtt: Option<u32>,
    /// ACKs that may be dropped: those that no rule protects, or all pure ACKs, blindly
    #[arg(long, default_value = "safe")]
    mode: ModeName,
    /// Segments that one kept ACK may newly acknowledge (mode safe)
    #[arg(long, value_name = "NUMBER", default_value_t = Policy::MAX_SEGMENTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=32))]
    max_segments: u32,
    /// One limit for each connection (the default with a share or with ACKs per round trip)
    #[arg(long, conflicts_with = "aggregate")]
    per_flow: bool,
    /// One limit for all connections together (the default with a rate)
    #[arg(long)]
    aggregate: bool,
    /// Networks whose packets pass untouched
    #[arg(long, value_name = "PREFIX")]
    exempt: Vec<IpNet>,
    /// Look into GTP-U tunnels (UDP port 2152)
    #[arg(long)]
    gtp: bool,
    /// Keep the programs in the kernel when the command ends, until `detach`
    #[arg(long)]
    pin: bool,
}

pub fn run(args: &Args) -> Outcome {
    match &args.action {
        Action::Attach(args) => attach(args),
        Action::Detach(args) => detach(args),
        Action::Show(args) => show(args),
    }
}

fn attach(args: &AttachArgs) -> Outcome {
    let config = args.config()?;
    require()?;
    police::interface(&args.device).map_err(Failure::Input)?;
    let stop = StopSignals::register()?;
    let police = Police::attach(&args.device, &config)?;
    if args.pin {
        police.pin(&args.device)?;
        output::message(&format!("attached to {} and pinned; it stays until detach\n", args.device));
        return Ok(ExitCode::SUCCESS);
    }
    output::message(&format!("attached to {}; Ctrl-C ends it\n", args.device));
    while !stop.stopped() && police.is_attached() {
        for _ in 0..25 {
            if !stop.stopped() {
                stop.wait();
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl AttachArgs {
    fn config(&self) -> Outcome<PoliceConfig> {
        let limit = match (self.cir, self.drop_share, self.acks_per_rtt) {
            (Some(rate), _, _) => Limit::Rate {
                bytes_per_s: rate,
                burst: self.cbs.unwrap_or(DEFAULT_BURST.min(rate * 10).max(52)),
            },
            (_, Some(share), _) => Limit::Share((share * ONE).round() as u32),
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
            direction: match self.direction {
                Direction::Ingress => Hook::Ingress,
                Direction::Egress => Hook::Egress,
            },
            gtp: self.gtp,
            exempt: self.exempt.clone(),
        };
        config.check().map_err(Failure::input)?;
        Ok(config)
    }
}

fn detach(args: &DeviceArgs) -> Outcome {
    for found in find(&args.device)? {
        found.detach(&args.device)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The policers at a device; fails without one.
fn find(device: &str) -> Outcome<Vec<police::Found>> {
    require()?;
    let found = police::find(police::interface(device).map_err(Failure::Input)?)?;
    if found.is_empty() {
        return Err(Failure::Failed(anyhow::anyhow!("{device}: no policer is attached")));
    }
    Ok(found)
}

fn require() -> Outcome<()> {
    match paceline_live::probe::police() {
        Some(problem) => Err(Failure::Failed(anyhow::anyhow!("police {problem}"))),
        None => Ok(()),
    }
}

fn show(args: &ShowArgs) -> Outcome {
    let stop = StopSignals::register()?;
    loop {
        let reports: Vec<_> =
            find(&args.device)?.iter().map(police::Found::report).collect::<anyhow::Result<_>>()?;
        let shown = if args.all { usize::MAX } else { SHOWN_FLOWS };
        let text = if args.json {
            let reports: Vec<_> = reports.iter().map(|report| as_json(report, shown)).collect();
            serde_json::to_string(&json!({"device": args.device, "policers": reports}))
                .context("a report is no JSON")?
                + "\n"
        } else {
            reports.iter().map(|report| as_text(report, shown)).collect()
        };
        output::print(&text)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        for _ in 0..50 {
            if stop.stopped() {
                return Ok(ExitCode::SUCCESS);
            }
            stop.wait();
        }
    }
}

fn limit_text(report: &Report) -> String {
    let scope = if report.per_flow { "of each connection" } else { "of all connections" };
    match report.policy.limit {
        Limit::Rate { bytes_per_s, burst } => {
            format!("{} {scope}, burst {burst} bytes", crate::quantity::bits(8.0 * bytes_per_s as f64))
        }
        Limit::Share(share) => format!("drops {:.1}% {scope}", 100.0 * f64::from(share) / ONE),
        Limit::PerRtt(count) => format!("{count} ACKs per round trip {scope}"),
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Safe => "safe",
        Mode::Published => "published",
    }
}

fn direction_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Ingress => "ingress",
        Hook::Egress => "egress",
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn as_text(report: &Report, shown: usize) -> String {
    let (dropped, acks) = (report.dropped(), report.acks);
    let mut text = format!(
        "{}, mode {}: {}\n{} packets, {} of them pure ACKs; {} dropped ({:.1}%); {} data packets\n",
        direction_name(report.direction),
        mode_name(report.policy.mode),
        limit_text(report),
        report.packets,
        acks,
        dropped,
        percent(dropped, acks),
        report.data_packets
    );
    for (reason, count) in report.decisions.iter().filter(|(reason, _)| *reason != Reason::Dropped) {
        let _ = writeln!(text, "  kept {:<17} {count:>12}  {:>5.1}%", reason.name(), percent(*count, acks));
    }
    for flow in report.flows.iter().take(shown) {
        let _ = writeln!(
            text,
            "  {} > {}: {} ACKs, {} dropped ({:.1}%)",
            flow.receiver,
            flow.sender,
            flow.seen(),
            flow.dropped(),
            percent(flow.dropped(), flow.seen())
        );
    }
    if report.flows.len() > shown {
        let _ = writeln!(text, "  and {} more connections (--all)", report.flows.len() - shown);
    }
    text
}

fn kept(decisions: &[(Reason, u64)]) -> Value {
    let kept = decisions.iter().filter(|(reason, _)| *reason != Reason::Dropped);
    kept.map(|(reason, count)| (reason.name().to_owned(), json!(count))).collect()
}

fn as_json(report: &Report, shown: usize) -> Value {
    let flow = |flow: &FlowReport| {
        json!({
            "receiver": flow.receiver.to_string(), "sender": flow.sender.to_string(), "vlan": flow.vlan,
            "rtt_ms": flow.rtt_ns as f64 / 1e6, "acks": flow.seen(), "dropped": flow.dropped(),
            "kept": kept(&flow.acks),
        })
    };
    json!({
        "direction": direction_name(report.direction),
        "mode": mode_name(report.policy.mode),
        "limit": limit_text(report),
        "packets": report.packets,
        "data_packets": report.data_packets,
        "acks": report.acks,
        "dropped": report.dropped(),
        "kept": kept(&report.decisions),
        "connections": report.flows.len(),
        "flows": report.flows.iter().take(shown).map(flow).collect::<Value>(),
    })
}

/// A rate in bytes per second: `100kbit`, `2mbit`, `1gbit`, `2Mb/s`, `20kB/s`.
fn rate(text: &str) -> Result<u64, String> {
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
fn share(text: &str) -> Result<f64, String> {
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
