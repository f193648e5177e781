//! Subcommands that control a running gateway or show its state.

use super::options::{CaptureArgs, StopArgs, TableArgs, Which};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bits, bytes};
use anyhow::{Context, anyhow};
use paceline_gateway::{Client, FlowStatus, PatternStatus, Request, Status, StopReport};
use paceline_linux::clock;
use paceline_linux::files::event_file::{EventFile, Header, Source};
use paceline_linux::files::pcapng;
use paceline_net::event_trace::{AcceleratorChanges, Record};
use paceline_net::{Duration, Instant};
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Duration of a capture without options, in seconds. Chosen: long enough to see a transfer.
const DEFAULT_CAPTURE_S: u32 = 10;
/// Duration of a capture with --packets alone: it waits for the packets. Chosen: the maximum of --seconds.
const MAX_CAPTURE_S: u32 = 3600;
/// Packets of a capture without --packets. Chosen: a file of up to 30 MB, with the first 256 bytes of
/// every packet.
const DEFAULT_CAPTURE_PACKETS: u64 = 100_000;

fn client(which: &Which) -> anyhow::Result<Client> {
    Client::find(which.control.as_deref())
}

pub fn stop(args: &StopArgs) -> Outcome {
    let StopReport { detached, reset } = client(&args.which)?.stop(args.limit)?;
    output::print(&format!(
        "stopped: {detached} connections go on without the gateway, {reset} were reset\n"
    ))?;
    Ok(if reset == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

pub fn reload(which: &Which) -> Outcome {
    let mut client = client(which)?;
    client.send(&Request::Reload)?;
    // A refused reload is a fault of the configuration.
    client.receive().map_err(Failure::Input)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Flows<'a> {
    flows: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    flow: String,
    #[serde(flatten)]
    state: &'a FlowStatus,
}

pub fn flows(args: &TableArgs) -> Outcome {
    let mut flows = client(&args.which)?.flows()?;
    flows.sort_by_key(|flow| (std::cmp::Reverse(flow.delivered), flow.server, flow.mobile));
    let text = if args.json {
        let flows = flows.iter().map(|state| Named { flow: state.name(), state }).collect();
        serde_json::to_string_pretty(&Flows { flows }).context("a connection is no JSON")? + "\n"
    } else {
        flow_table(&flows)
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn flow_table(flows: &[FlowStatus]) -> String {
    let width = flows.iter().map(|flow| flow.name().len()).max().unwrap_or(0).max("connection".len());
    let mut text = format!(
        "{:width$} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10}  {:13} {:12} {:8} period\n",
        "connection",
        "delivered",
        "rate",
        "allowed",
        "RTT ms",
        "queue ms",
        "stored ms",
        "in flight",
        "exposure",
        "limit",
        "control",
        "phase ms"
    );
    let ms = |time: Option<f64>| time.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    for flow in flows {
        let _ = writeln!(
            text,
            "{:width$} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10}  {:13} {:12} {:8} {}",
            flow.name(),
            bytes(flow.delivered),
            bits(flow.rate as f64),
            bits(flow.allowed as f64),
            ms(flow.rtt_ms),
            ms(flow.queue_ms),
            ms(Some(flow.stored_ms)),
            bytes(flow.in_flight),
            bytes(flow.exposure),
            flow.limit,
            flow.control,
            ms(flow.pattern.as_ref().and_then(|pattern| pattern.phase_ms)),
            flow.pattern.as_ref().map_or("none".to_owned(), period)
        );
    }
    text
}

/// The learned period with the chance that noise looks so.
fn period(pattern: &PatternStatus) -> String {
    format!("{} ms, chance of noise 10^{:.0}", pattern.period_ms, pattern.log10_chance)
}

pub fn status(args: &TableArgs) -> Outcome {
    let status = client(&args.which)?.status()?;
    let text = if args.json {
        format!("{:#}\n", serde_json::to_value(&status).context("the status is no JSON")?)
    } else {
        status_text(&status)
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn status_text(status: &Status) -> String {
    let state = match (status.draining, status.paused) {
        (true, _) => "stopping",
        (false, true) => "running, paused,",
        (false, false) => "running",
    };
    let guardian = if status.guarded { "is running" } else { "is missing" };
    let mut text = format!(
        "paceline {}, process {}: {state} for {:.0} s, {} to {}, {} workers\nguardian {guardian}\n",
        status.version, status.process, status.uptime, status.server, status.mobile, status.workers
    );
    if let Some(reason) = &status.filter_stopped {
        let _ = writeln!(text, "the ACK filter is stopped: {reason}");
    }
    for note in &status.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(
        text,
        "{} connections, {} handshakes; {} buffered, {} exposed\n",
        status.flows,
        status.openings,
        bytes(status.held),
        bytes(status.exposure)
    );
    for (name, value) in status.counters.iter().filter(|(_, value)| **value > 0) {
        let _ = writeln!(text, "{name:32} {value}");
    }
    text
}

/// Parses `SERVER:PORT-DEVICE:PORT`.
fn parse_flow(flow: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (server, mobile) = flow.split_once('-')?;
    Some((server.parse().ok()?, mobile.parse().ok()?))
}

/// Limits of a capture: number of packets and duration.
fn limits(args: &CaptureArgs) -> (u64, Duration) {
    let default_seconds = if args.packets.is_some() { MAX_CAPTURE_S } else { DEFAULT_CAPTURE_S };
    let seconds = args.seconds.unwrap_or(default_seconds);
    (args.packets.unwrap_or(DEFAULT_CAPTURE_PACKETS), Duration::from_secs(seconds.into()))
}

pub fn capture(args: &CaptureArgs) -> Outcome {
    let (server, mobile) = parse_flow(&args.flow).ok_or_else(|| {
        let allowed = "allowed: SERVER:PORT-DEVICE:PORT, as `paceline gateway flows` names it";
        Failure::input(format!("{}: {allowed}", args.flow))
    })?;
    let (packets, time) = limits(args);
    let device = mobile.ip();
    let trace = args.events.as_deref().map(|path| start_trace(path, device)).transpose()?;
    let mut client = client(&args.which)?;
    let capture = client.capture(Request::Capture { server, mobile, packets, time })?;
    let context = || format!("cannot write {}", args.out.display());
    let mut file = File::create(&args.out).with_context(context)?;
    let captured = &AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = |trace| scope.spawn(move || watch(&args.which, device, trace, captured));
        let events = trace.as_ref().map(watch);
        let copied = io::copy(capture, &mut file).with_context(context);
        captured.store(true, Ordering::Relaxed);
        let watched = events.map_or(Ok(()), |events| events.join().expect("the watch does not panic"));
        copied.and(watched)
    })?;
    let packets = pcapng::count(&args.out)?;
    output::message(&format!("paceline: {packets} packets in {}\n", args.out.display()));
    if packets == 0 {
        return Err(Failure::Failed(anyhow!("{}: no packet was captured", args.flow)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the event trace of a device: the file, and time 0 of its events.
fn start_trace(path: &Path, device: IpAddr) -> anyhow::Result<(EventFile, Instant)> {
    let (started, source) = (clock::now(), Source::gateway(device));
    Ok((EventFile::create(path, &Header::new(paceline_study::origin(), source), None)?, started))
}

/// Writes the changes of a device's accelerated connections to a trace until the capture has ended.
fn watch(
    which: &Which,
    device: IpAddr,
    (file, started): &(EventFile, Instant),
    captured: &AtomicBool,
) -> anyhow::Result<()> {
    let mut changes = AcceleratorChanges::default();
    // The gateway answers after half a second, in which it measures rates.
    while !captured.load(Ordering::Relaxed) {
        let flows = client(which)?.flows()?;
        let time_ms = clock::now().since(*started).as_millis_f64();
        for flow in flows.iter().filter(|flow| flow.mobile.ip() == device) {
            for detail in changes.read(&flow.name(), &flow.control, flow.into()) {
                file.write(&Record { time_ms, station: None, flow: Some(flow.name()), detail });
            }
        }
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_ends_after_ten_seconds_unless_a_limit_is_given() {
        let bounds = |seconds, packets| {
            let which = Which { control: None };
            let (count, time) = limits(&CaptureArgs {
                which,
                flow: String::new(),
                out: "one.pcapng".into(),
                events: None,
                seconds,
                packets,
            });
            (count, time.as_secs_f64() as u64)
        };
        assert_eq!(bounds(None, None), (100_000, 10));
        assert_eq!(bounds(Some(5), None), (100_000, 5));
        for packets in [1, 100_000, 1_000_000] {
            assert_eq!(bounds(None, Some(packets)), (packets, 3600));
            assert_eq!(bounds(Some(60), Some(packets)), (packets, 60));
        }
    }
}
