//! Runs a gateway until a signal or the control socket stops it, and the guardian.

use super::options::{GuardArgs, RunArgs};
use crate::failure::{Failure, Outcome};
use crate::output;
use paceline_gateway::service::log::{self, Level};
use paceline_gateway::service::notify::Manager;
use paceline_gateway::{ControlPlane, Counter, Gateway, GatewayConfig, Setup, Sides, Snapshot};
use paceline_linux::stop::{OperatorSignal, OperatorSignals};
use paceline_net::Duration;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};

/// Time for draining when a worker has ended by itself. Chosen: short, since an interface may be gone.
const DRAIN_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Polls for signals between two checks of the interfaces. Chosen: with 20 ms for a poll, a check every
/// second.
const POLLS_PER_CHECK: u64 = 50;

/// Polls for signals between two checks of whether acknowledgments leave. Chosen: 200 ms; two of these checks
/// pause the gateway.
const POLLS_PER_LEAVING_CHECK: u64 = 10;

pub fn run(args: &RunArgs) -> Outcome {
    let file = args.config.display().to_string();
    let text =
        std::fs::read_to_string(&args.config).map_err(|error| Failure::input(format!("{file}: {error}")))?;
    let mut config = GatewayConfig::parse(&file, &text).map_err(Failure::input)?;
    if let Some(control) = &args.control {
        config.name_control(control.clone()).map_err(|problem| Failure::input(format!("--{problem}")))?;
    }
    for note in &config.notes {
        say(Level::Warning, "note", note);
    }
    let wrong = |error: anyhow::Error| Failure::input(format!("{file}: {error:#}"));
    config.check_accounts().map_err(wrong)?;
    if args.check {
        paceline_gateway::check_interfaces(&config).map_err(wrong)?;
        let report = paceline_gateway::check(&config).map_err(wrong)?;
        let warn = |warning: &String| say(Level::Warning, "note", &format!("{file}: {warning}"));
        report.warnings.iter().for_each(warn);
        // The facts are comments of the printed configuration.
        let facts: String = report.facts.iter().map(|fact| format!("# {fact}\n")).collect();
        output::print(&format!("{}{facts}", config.resolved()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(problem) = paceline_gateway::problem() {
        return Err(Failure::Failed(anyhow::anyhow!("gateway: {problem}")));
    }
    let mut signals = OperatorSignals::register()?;
    let mut manager = Manager::from_environment();
    if config.sides == Sides::Learned {
        let text = format!(
            "looking whether connections are opened from {} or from {}; the kernel forwards meanwhile",
            config.mobile, config.server
        );
        say(Level::Notice, "detecting", &text);
        manager.ready(&text);
    }
    let detecting = || {
        manager.ping(|| true);
        !signals.wait().contains(&OperatorSignal::Stop)
    };
    let Some(config) = paceline_gateway::detect_sides(config, detecting)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut guardian = Command::new("/proc/self/exe");
    guardian.args(["gateway", "guard"]);
    let version = paceline_study::VERSION.to_owned();
    let file = Some(std::path::absolute(&args.config).unwrap_or_else(|_| args.config.clone()));
    let setup = Setup { guardian: Some(guardian), control: true, file, version };
    let gateway = Gateway::start(config, setup)?;
    let config = gateway.control_plane().config();
    if let Some(problem) = gateway.problem() {
        say(Level::Warning, "problem", problem);
    }
    if let Some(warning) = paceline_gateway::firewall_warning(&config) {
        say(Level::Warning, "note", &warning);
    }
    let status = format!("accelerating from {} to {}", config.server, config.mobile);
    let interfaces = [("PACELINE_SERVER", config.server.as_str()), ("PACELINE_MOBILE", &config.mobile)];
    log::message(Level::Notice, &status, &[&[("PACELINE_EVENT", "started")][..], &interfaces].concat());
    manager.ready(&status);
    let stopped = operate(&gateway, &mut signals, &mut manager, &status);
    let end = gateway.join()?;
    say_end(&end);
    if args.json {
        output::print(&json(&end))?;
    }
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Handles signals and requests until all workers have ended. False if they ended by themselves.
fn operate(gateway: &Gateway, signals: &mut OperatorSignals, manager: &mut Manager, status: &str) -> bool {
    let control_plane = gateway.control_plane();
    let (mut stopping, mut failed, mut polls, mut problem) = (false, false, 0u64, None);
    while !gateway.has_finished() {
        polls += 1;
        if control_plane.follow_interfaces() {
            check_interfaces(control_plane, &mut problem);
        }
        if polls.is_multiple_of(POLLS_PER_CHECK) {
            check_interfaces(control_plane, &mut problem);
            control_plane.check_notes().iter().for_each(|note| say(Level::Warning, "note", note));
        }
        if polls.is_multiple_of(POLLS_PER_LEAVING_CHECK) && control_plane.check_leaving() {
            check_interfaces(control_plane, &mut problem);
        }
        check_filter(control_plane);
        manager.ping(|| control_plane.workers_turn());
        if let Some((harmful, text)) = control_plane.check_experiment() {
            let (level, event) = match harmful {
                true => (Level::Error, "acceleration-stopped"),
                false => (Level::Notice, "experiment-complete"),
            };
            say(level, event, &text);
            check_interfaces(control_plane, &mut problem);
        }
        let mut stop = control_plane.take_requested_stop();
        for signal in signals.wait() {
            match signal {
                OperatorSignal::Stop if stopping || stop.is_some() => {
                    say(Level::Warning, "aborting", "ending now; exposed connections are reset");
                    control_plane.abort();
                }
                OperatorSignal::Stop => stop = Some(control_plane.config().drain),
                OperatorSignal::Reload => {
                    manager.reloading();
                    let _ = control_plane.reload(); // the log has the result
                    manager.ready(status);
                }
            }
        }
        if let Some(limit) = stop {
            if !stopping {
                let text = format!("stopping; up to {limit} to deliver acknowledged data");
                say(Level::Notice, "stopping", &text);
                manager.stopping(limit);
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
    let meanwhile = if control_plane.is_paused() { "; the kernel forwards meanwhile" } else { "" };
    match &found {
        Some(problem) => say(Level::Warning, "paused", &format!("{problem}{meanwhile}")),
        None => say(Level::Notice, "resumed", "the problem is gone; accelerating again"),
    }
    *problem = found;
}

/// Checks whether the ACK filter does harm. Errors are ignored: the check is repeated every second.
fn check_filter(control_plane: &ControlPlane) {
    if let Ok(Some(finding)) = control_plane.compare_filter() {
        let text = format!("the ACK filter is stopped until the configuration is read again: {finding}");
        say(Level::Warning, "filter-stopped", &text);
    }
}

/// A message about an event, by whose name the journal is searched.
fn say(level: Level, event: &str, text: &str) {
    log::message(level, text, &[("PACELINE_EVENT", event)]);
}

/// Reports how many connections go on and how many were reset.
fn say_end(end: &Snapshot) {
    let [detached, reset] = [Counter::FlowsDetachedAtEnd, Counter::FlowsResetAtEnd]
        .map(|counter| end.counters.get(counter).to_string());
    let text = format!("ended: {detached} connections go on without acceleration and {reset} were reset");
    let fields = [("PACELINE_EVENT", "ended"), ("PACELINE_DETACHED", &detached), ("PACELINE_RESET", &reset)];
    let level = if reset == "0" { Level::Notice } else { Level::Warning };
    log::message(level, &text, &fields);
}

fn json(snapshot: &Snapshot) -> String {
    format!("{:#}\n", serde_json::json!(snapshot.counters.by_name()))
}

/// The guardian of a gateway: its standard input ends with the gateway, its standard output is the journal.
pub fn guard(args: &GuardArgs) -> Outcome {
    let own = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map_err(anyhow::Error::from);
    let (lifeline, journal) = (own(&io::stdin())?, own(&io::stdout())?);
    let rescue = paceline_gateway::guard(lifeline, journal, args.interfaces.clone(), args.report.as_deref())?;
    if rescue.exposed > 0 {
        let [exposed, whole, reset] =
            [rescue.exposed, rescue.whole, rescue.reset].map(|number| number.to_string());
        let text =
            format!("the gateway left {exposed} exposed connections: {whole} go on and {reset} were reset");
        let fields = [
            ("PACELINE_EVENT", "rescued"),
            ("PACELINE_EXPOSED", &exposed),
            ("PACELINE_WHOLE", &whole),
            ("PACELINE_RESET", &reset),
        ];
        log::message(Level::Warning, &text, &fields);
    }
    Ok(ExitCode::SUCCESS)
}
