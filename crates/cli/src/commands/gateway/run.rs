//! Runs a gateway until a signal or the control socket stops it, and the guardian.

use super::options::{GuardArgs, RunArgs};
use crate::failure::{Failure, Outcome};
use crate::output;
use paceline_live::gateway::{ControlPlane, Gateway, GatewayConfig, Setup, Sides, Snapshot};
use paceline_live::stop::{OperatorSignal, OperatorSignals};
use paceline_live::{gateway, probe};
use paceline_net::Duration;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};

/// Time for draining when a worker has ended by itself. Chosen: short, since an interface may be gone.
const DRAIN_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Polls for signals between two checks of the interfaces. Chosen: with 20 ms for a poll, a check every
/// second.
const POLLS_PER_CHECK: u64 = 50;

pub fn run(args: &RunArgs) -> Outcome {
    let file = args.config.display().to_string();
    let text =
        std::fs::read_to_string(&args.config).map_err(|error| Failure::input(format!("{file}: {error}")))?;
    let config = GatewayConfig::parse(&file, &text).map_err(Failure::input)?;
    for note in &config.notes {
        output::message(&format!("paceline: {note}\n"));
    }
    if args.check {
        let wrong = |error: anyhow::Error| Failure::input(format!("{file}: {error:#}"));
        gateway::check_interfaces(&config).map_err(wrong)?;
        output::print(&config.resolved())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(problem) = probe::gateway() {
        return Err(Failure::Failed(anyhow::anyhow!("gateway: {problem}")));
    }
    let mut signals = OperatorSignals::register()?;
    if config.sides == Sides::Learned {
        output::message(&format!(
            "paceline: looking whether connections are opened from {} or from {}; the kernel forwards meanwhile\n",
            config.mobile, config.server
        ));
    }
    let Some(config) = gateway::detect_sides(config, || !signals.wait().contains(&OperatorSignal::Stop))?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut guardian = Command::new("/proc/self/exe");
    guardian.args(["gateway", "guard"]);
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("PACELINE_COMMIT"));
    let file = Some(std::path::absolute(&args.config).unwrap_or_else(|_| args.config.clone()));
    let setup = Setup { guardian: Some(guardian), control: true, file, version };
    let gateway = Gateway::start(config, setup)?;
    let config = gateway.control_plane().config();
    if let Some(problem) = gateway.problem() {
        output::message(&format!("paceline: {problem}\n"));
    }
    output::message(&format!("paceline: accelerating from {} to {}\n", config.server, config.mobile));
    let stopped = operate(&gateway, &mut signals);
    let end = gateway.join()?;
    if args.json {
        output::print(&json(&end))?;
    }
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Handles signals and requests until all workers have ended. False if they ended by themselves.
fn operate(gateway: &Gateway, signals: &mut OperatorSignals) -> bool {
    let control_plane = gateway.control_plane();
    let (mut stopping, mut failed, mut polls, mut problem) = (false, false, 0u64, None);
    while !gateway.has_finished() {
        polls += 1;
        if polls.is_multiple_of(POLLS_PER_CHECK) {
            check_interfaces(control_plane, &mut problem);
        }
        check_filter(control_plane);
        let mut stop = control_plane.take_requested_stop();
        for signal in signals.wait() {
            match signal {
                OperatorSignal::Stop if stopping || stop.is_some() => {
                    output::message("paceline: ending now; exposed connections are reset\n");
                    control_plane.abort();
                }
                OperatorSignal::Stop => stop = Some(control_plane.config().drain),
                OperatorSignal::Reload => output::message(&match control_plane.reload() {
                    Ok(()) => "paceline: the configuration was read again\n".to_owned(),
                    Err(problem) => format!("paceline: the configuration stays as it was: {problem}\n"),
                }),
            }
        }
        if let Some(limit) = stop {
            if !stopping {
                output::message(&format!("paceline: stopping; up to {limit} to deliver acknowledged data\n"));
            }
            stopping = true;
            control_plane.drain(limit); // of several limits the shortest applies
        }
        if !stopping && !failed && gateway.any_worker_finished() {
            failed = true;
            control_plane.drain(control_plane.config().drain.min(DRAIN_AFTER_FAILURE));
        }
    }
    stopping
}

/// Checks interfaces, bridge and routes around the gateway. A problem is reported when it appears and when it
/// is gone.
fn check_interfaces(control_plane: &ControlPlane, problem: &mut Option<String>) {
    let found = control_plane.check_interfaces().err().map(|error| format!("{error:#}"));
    if found == *problem {
        return;
    }
    let aside = if control_plane.is_aside() { "; the kernel forwards meanwhile" } else { "" };
    output::message(&match &found {
        Some(problem) => format!("paceline: {problem}{aside}\n"),
        None => "paceline: the problem is gone; accelerating again\n".to_owned(),
    });
    *problem = found;
}

/// Checks whether the ACK filter does harm. Errors are ignored: the check is repeated every second.
fn check_filter(control_plane: &ControlPlane) {
    if let Ok(Some(finding)) = control_plane.compare_filter() {
        output::message(&format!(
            "paceline: the ACK filter is stopped until the configuration is read again: {finding}\n"
        ));
    }
}

fn json(snapshot: &Snapshot) -> String {
    format!("{:#}\n", serde_json::json!(snapshot.counters.by_name()))
}

/// The guardian of a gateway: its standard input ends with the gateway, its standard output is the journal.
pub fn guard(args: &GuardArgs) -> Outcome {
    let own = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map_err(anyhow::Error::from);
    let (lifeline, journal) = (own(&io::stdin())?, own(&io::stdout())?);
    let rescue = gateway::guard(lifeline, journal, (args.server, args.mobile, args.exit))?;
    if rescue.exposed > 0 {
        output::message(&format!(
            "paceline: the gateway left {} exposed connections: {} go on and {} were reset\n",
            rescue.exposed, rescue.whole, rescue.reset
        ));
    }
    Ok(ExitCode::SUCCESS)
}
