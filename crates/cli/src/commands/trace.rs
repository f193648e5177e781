//! `paceline trace`: describes, generates and exports traces of delivery opportunities in mahimahi's format.
//! An export records the deliveries of a simulated cell or link.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::scenario_file::{self, ScenarioArgs};
use crate::table::align;
use anyhow::Context;
use clap::Subcommand;
use paceline_net::{Instant, Rate};
use paceline_sim::link::{OPPORTUNITY_BYTES, Trace, TraceError};
use paceline_sim::{Capture, simulate};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check traces and describe them
    Info {
        /// Traces in mahimahi's format, or generated:KIND:SEED with a kind of stationary, walking or driving
        #[arg(required = true)]
        traces: Vec<String>,
        /// Print one line of JSON per trace
        #[arg(long)]
        json: bool,
    },
    /// Generate the trace of a constant rate
    Constant {
        /// Bit rate, such as "12 Mb/s"
        rate: Rate,
        /// File to write; stdout if left out
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Check a trace and write it in canonical form, a file's or a generated one's
    Convert {
        /// Trace in mahimahi's format, or generated:KIND:SEED
        trace: String,
        /// File to write; stdout if left out
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Simulate a scenario and write the deliveries of its cell or link to a station as a trace
    Export {
        #[command(flatten)]
        scenario: ScenarioArgs,
        /// Station, by index; all of them together if left out
        #[arg(long)]
        station: Option<usize>,
        /// Deliveries of the uplink instead of the downlink
        #[arg(long)]
        uplink: bool,
        /// File to write; stdout if left out
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Info { traces, json } => info(traces, *json),
        Command::Constant { rate, out } => write(Trace::constant(rate.0), out.as_deref()),
        Command::Convert { trace, out } => write(Ok(read(trace)?), out.as_deref()),
        Command::Export { scenario, station, uplink, out } => {
            export(scenario, *station, *uplink, out.as_deref())
        }
    }
}

/// Reads a trace by its name: a file's, or a generated one's.
fn read(name: &str) -> Outcome<Trace> {
    let text = scenario_file::read_trace(Path::new(""), name);
    let trace = text.and_then(|text| Trace::parse(&text).map_err(|error| error.to_string()));
    trace.map_err(|error| Failure::input(format!("{name}: {error}")))
}

fn info(names: &[String], json: bool) -> Outcome {
    let head = [
        "trace",
        "length s",
        "opportunities",
        "mean Mb/s",
        "slowest second",
        "fastest second",
        "longest pause ms",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let mut text = String::new();
    for name in names {
        let trace = read(name)?;
        let in_second = |s: u64| {
            let count = |ms: u64| trace.at_ms().partition_point(|at| u64::from(*at) < ms);
            (count((s + 1) * 1000) - count(s * 1000)) as f64 * OPPORTUNITY_BYTES as f64 * 8e-6
        };
        let full_seconds = (0..trace.length_ms() / 1000).map(in_second);
        let (low, high) = full_seconds.fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
        let low = if low.is_finite() { low } else { 0.0 };
        let first = u64::from(trace.at_ms()[0]);
        let pauses = trace.at_ms().windows(2).map(|pair| u64::from(pair[1] - pair[0]));
        let pause = pauses.max().unwrap_or(0).max(first);
        let (length, count, mean) =
            (trace.length_ms() as f64 / 1000.0, trace.at_ms().len(), trace.rate() / 1e6);
        if json {
            let line = serde_json::json!({
                "trace": name, "length_s": length, "opportunities": count, "mean_mbps": mean,
                "least_second_mbps": low, "most_second_mbps": high, "longest_pause_ms": pause,
            });
            text += &format!("{line}\n");
        }
        let cells = [
            format!("{length:.3}"),
            count.to_string(),
            format!("{mean:.3}"),
            format!("{low:.2}"),
            format!("{high:.2}"),
            pause.to_string(),
        ];
        lines.push(std::iter::once(name.clone()).chain(cells).collect());
    }
    output::print(&if json { text } else { align(&lines, 1) })?;
    Ok(ExitCode::SUCCESS)
}

fn write(trace: Result<Trace, TraceError>, out: Option<&Path>) -> Outcome {
    let text = trace.map_err(|error| Failure::input(error.to_string()))?.to_text();
    match out {
        Some(path) => {
            if path.exists() {
                return Err(Failure::input(format!("--out {}: exists; name another file", path.display())));
            }
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => output::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn export(args: &ScenarioArgs, station: Option<usize>, uplink: bool, out: Option<&Path>) -> Outcome {
    let (_, scenario) = scenario_file::load(args)?;
    let count = scenario.station_count() as usize;
    if let Some(station) = station.filter(|station| *station >= count) {
        return Err(Failure::input(format!("--station {station}: allowed: 0 to {}", count - 1)));
    }
    // Mahimahi puts four bytes before each packet. They are counted, so that a link with the exported trace
    // has the capacity for the same packets.
    let delivered: Arc<Mutex<Vec<(Instant, u64)>>> = Arc::default();
    let sink = Arc::clone(&delivered);
    let first = paceline_sim::address::station(0).0;
    let capture: Capture = Box::new(move |now, interface, packet| {
        let at_station = station.map_or(interface > 0, |station| interface == station as u32 + 1);
        let down = u32::from(packet_v4(packet.ip.dst)).wrapping_sub(u32::from(first)) < count as u32;
        if at_station && down != uplink {
            let mut delivered = sink.lock().expect("the other holders of the lock do not panic");
            delivered.push((now, u64::from(packet.len) + 4));
        }
    });
    simulate(&scenario, scenario.run.seed, Some(capture), &mut |_| {});
    let delivered = std::mem::take(&mut *delivered.lock().expect("the run is over"));
    write(Trace::of_deliveries(delivered, scenario.run.duration), out)
}

/// The IPv4 address, which all simulated stations and servers have.
fn packet_v4(address: std::net::IpAddr) -> std::net::Ipv4Addr {
    match address {
        std::net::IpAddr::V4(v4) => v4,
        std::net::IpAddr::V6(_) => std::net::Ipv4Addr::UNSPECIFIED,
    }
}
