//! `paceline police`: the ACK policer in the kernel, at an interface in front of a router (docs/police.md).

mod attach_args;
mod file;

use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use attach_args::AttachArgs;
use paceline_live::police::{self, FlowReport, Limit, Mode, Police, PoliceConfig, Reason, Report};
use paceline_live::stop::StopSignals;
use paceline_live::tcx::Hook;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Connections that `show` lists without `--all`. Chosen: a screen.
const SHOWN_FLOWS: usize = 20;
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
    /// Police the ACKs at the interfaces that a file names, until the command ends
    Apply(ApplyArgs),
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
struct ApplyArgs {
    /// Configuration file, with a table [[policer]] for each policer
    file: PathBuf,
    /// Check the file only
    #[arg(long)]
    check: bool,
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

pub fn run(args: &Args) -> Outcome {
    match &args.action {
        Action::Attach(args) => attach(args),
        Action::Apply(args) => apply(args),
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
    wait_while(&stop, || police.is_attached());
    Ok(ExitCode::SUCCESS)
}

/// Attaches the policers of a file, all or none.
fn apply(args: &ApplyArgs) -> Outcome {
    let policers = file::read(&args.file)?;
    let configs = policers.iter().map(AttachArgs::config).collect::<Outcome<Vec<_>>>()?;
    if args.check {
        return Ok(ExitCode::SUCCESS);
    }
    require()?;
    for policer in &policers {
        police::interface(&policer.device).map_err(Failure::Input)?;
    }
    let stop = StopSignals::register()?;
    let attach = |(policer, config): (&AttachArgs, &PoliceConfig)| Police::attach(&policer.device, config);
    let attached: Vec<Police> = policers.iter().zip(&configs).map(attach).collect::<anyhow::Result<_>>()?;
    let devices: Vec<&str> = policers.iter().map(|policer| policer.device.as_str()).collect();
    output::message(&format!("attached to {}; Ctrl-C ends it\n", devices.join(", ")));
    wait_while(&stop, || attached.iter().any(Police::is_attached));
    Ok(ExitCode::SUCCESS)
}

/// Waits for a signal to stop, or until a condition, read every half second, no longer holds.
fn wait_while(stop: &StopSignals, holds: impl Fn() -> bool) {
    while !stop.stopped() && holds() {
        for _ in 0..25 {
            if !stop.stopped() {
                stop.wait();
            }
        }
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
