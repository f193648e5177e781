//! `paceline police`: the ACK policer in the kernel, at an interface in front of a router (docs/police.md).

mod attach_args;
mod captured;
mod estimate;
mod file;
mod host;
mod text;

use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use attach_args::AttachArgs;
use host::{require, wait_while};
use paceline_linux::stop::StopSignals;
use paceline_police::{Found, Police, State};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use text::{as_json, as_text};

/// Connections that `show` lists without `--all`. Chosen: a screen.
const SHOWN_FLOWS: usize = 20;

/// Message about a policer without a device.
const GONE: &str = "the network device is gone, and its policer with it";

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
    /// Count what a policer would drop, at an interface or in a capture, and drop nothing
    Estimate(estimate::EstimateArgs),
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
        Action::Estimate(args) => estimate::run(args),
    }
}

fn attach(args: &AttachArgs) -> Outcome {
    let config = args.config().map_err(Failure::input)?;
    require()?;
    paceline_police::interface(&args.device).map_err(Failure::Input)?;
    let stop = StopSignals::register()?;
    let mut police = Police::attach(&args.device, &config)?;
    if args.pin {
        police.pin()?;
        output::message(&format!("attached to {} and pinned; it stays until detach\n", args.device));
        return Ok(ExitCode::SUCCESS);
    }
    output::message(&format!("attached to {}; Ctrl-C ends it\n", args.device));
    watch(&stop, vec![(&args.device, police)])
}

/// Waits for a signal to stop, or until all policers are detached. Fails if a device has gone; the others
/// stay policed until then.
fn watch(stop: &StopSignals, mut attached: Vec<(&str, Police)>) -> Outcome {
    let mut gone = Vec::new();
    wait_while(stop, || {
        let before = gone.len();
        attached.retain(|(device, police)| {
            let state = police.state();
            if state == State::DeviceGone {
                gone.push(*device);
            }
            state == State::Attached
        });
        if !attached.is_empty() {
            gone[before..].iter().for_each(|device| output::message(&format!("{device}: {GONE}\n")));
        }
        !attached.is_empty()
    });
    if gone.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::Failed(anyhow::anyhow!("{}: {GONE}", gone.join(", "))))
}

/// Attaches the policers of a file, all or none.
fn apply(args: &ApplyArgs) -> Outcome {
    let policers = file::read(&args.file)?;
    if args.check {
        return Ok(ExitCode::SUCCESS);
    }
    require()?;
    for (device, _) in &policers {
        paceline_police::interface(device).map_err(Failure::Input)?;
    }
    let stop = StopSignals::register()?;
    let mut attached = Vec::new();
    for (device, config) in &policers {
        attached.push((device.as_str(), Police::attach(device, config)?));
    }
    let devices: Vec<&str> = attached.iter().map(|(device, _)| *device).collect();
    output::message(&format!("attached to {}; Ctrl-C ends it\n", devices.join(", ")));
    watch(&stop, attached)
}

fn detach(args: &DeviceArgs) -> Outcome {
    for found in find(&args.device)? {
        found.detach()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The policers at a device; fails without one.
fn find(device: &str) -> Outcome<Vec<Found>> {
    require()?;
    let found = paceline_police::find(paceline_police::interface(device).map_err(Failure::Input)?);
    let found = found.with_context(|| device.to_owned())?;
    if found.is_empty() {
        return Err(Failure::Failed(anyhow::anyhow!("{device}: no policer is attached")));
    }
    Ok(found)
}

fn show(args: &ShowArgs) -> Outcome {
    let stop = StopSignals::register()?;
    loop {
        let reports: Vec<_> = find(&args.device)?.iter().map(Found::report).collect::<anyhow::Result<_>>()?;
        let shown = if args.all { usize::MAX } else { SHOWN_FLOWS };
        let text = if args.json {
            let reports: Vec<_> = reports.iter().map(|report| as_json(report, shown)).collect();
            serde_json::to_string(&json!({"device": args.device, "policers": reports}))
                .context("a report is no JSON")?
                + "\n"
        } else {
            reports.iter().map(|report| as_text(report, shown)).collect()
        };
        if !output::print_to_reader(&text)? || !args.watch {
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
