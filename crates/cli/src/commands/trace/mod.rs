//! `paceline trace`: describes, generates, imports and exports traces of delivery opportunities in mahimahi's
//! format.
//! An export records the deliveries of a simulated cell or link.

mod file;
mod folder;
mod survey;

use self::file::{Form, write};
use crate::failure::{Failure, Outcome};
use crate::imported::imported;
use crate::output;
use crate::report;
use crate::results_folder::write_file;
use crate::scenario_args::{self, ScenarioArgs};
use anyhow::Context;
use clap::Subcommand;
use paceline_import::Options;
use paceline_net::{Instant, Packet, Rate};
use paceline_report::table::align;
use paceline_sim::link::{OPPORTUNITY_BYTES, Trace};
use paceline_sim::{Capture, simulate};
use paceline_study::scenario_file::read_trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Highest rate of a generated trace, b/s. Chosen: as for imported ones; bounds memory.
const MOST_CONSTANT: u64 = 100_000_000_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check traces and describe them
    Info {
        /// Traces in mahimahi's format or in binary form, or generated:KIND:SEED, by docs/traces.md
        #[arg(required = true)]
        traces: Vec<String>,
        /// Print one line of JSON per trace
        #[arg(long)]
        json: bool,
        /// Also write a picture of one trace: rate over time, autocorrelation, lengths of outages
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// Compare direct CUBIC, direct BBR and the accelerator on many traces, and count where it loses
    Survey(survey::Survey),
    /// Generate the trace of a constant rate
    Constant {
        /// Bit rate, such as "12 Mb/s"
        rate: Rate,
        /// File to write; stdout if left out
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Make traces of files in other formats: times in any unit, tables of times and rates (CSV, TSV, JSON,
    /// "cooked"), one rate a second, iperf's reports and logs, Rattan's traces, captures of a saturating
    /// flow, all also in .gz and .xz
    Import {
        /// File, or folder of files
        input: PathBuf,
        /// File to write, or the folder of a folder's traces; stdout for a file if left out
        #[arg(long, value_name = "FILE|FOLDER")]
        out: Option<PathBuf>,
        #[arg(long, default_value_t, value_enum)]
        form: Form,
        #[command(flatten)]
        options: Options,
    },
    /// Check a trace and write it in canonical form, a file's or a generated one's
    Convert {
        /// Trace in mahimahi's format or in binary form, or generated:KIND:SEED
        trace: String,
        #[arg(long, default_value_t, value_enum)]
        form: Form,
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
        Command::Info { traces, json, plot } => info(traces, *json, plot.as_deref()),
        Command::Survey(survey) => survey::run(survey),
        Command::Constant { rate, .. } if rate.0 > MOST_CONSTANT => {
            Err(Failure::input(format!("{rate}: allowed: up to {}", Rate(MOST_CONSTANT))))
        }
        Command::Constant { rate, out } => write(Trace::constant(rate.0), out.as_deref(), Form::Auto),
        Command::Import { input, out, form, options } => {
            if input.is_dir() {
                folder::import(input, out.as_deref(), *form, options)
            } else {
                import_file(input, out.as_deref(), *form, options)
            }
        }
        Command::Convert { trace, form, out } => write(Ok(read(trace)?), out.as_deref(), *form),
        Command::Export { scenario, station, uplink, out } => {
            export(scenario, *station, *uplink, out.as_deref())
        }
    }
}

/// Reads a trace by its name: a file's, or a generated one's.
fn read(name: &str) -> Outcome<Trace> {
    let file = read_trace(Path::new(""), name);
    let trace = file.and_then(|file| Trace::read(&file).map_err(|error| error.to_string()));
    trace.map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// Imports a file. The statements about it go to stdout, or to stderr if the trace is on stdout.
fn import_file(input: &Path, out: Option<&Path>, form: Form, options: &Options) -> Outcome {
    let (trace, text) = imported(input, options).map_err(Failure::input)?;
    let code = write(Ok(trace), out, form)?;
    match out {
        Some(_) => output::print(&text)?,
        None => output::message(&text),
    }
    Ok(code)
}

/// Writes the picture of the only trace.
fn write_plot(names: &[String], file: &Path) -> Outcome<()> {
    let [name] = names else {
        let message = format!("--plot {}: draws one trace; {} are named", file.display(), names.len());
        return Err(Failure::input(message));
    };
    if file.file_name().is_none() || file.is_dir() {
        return Err(Failure::input(format!("--plot {}: is a folder; name a file", file.display())));
    }
    let picture = report::trace_picture(name, &read(name)?);
    write_file(file, &picture).with_context(|| format!("--plot {}: cannot be written", file.display()))?;
    Ok(())
}

fn info(names: &[String], json: bool, plot: Option<&Path>) -> Outcome {
    if let Some(file) = plot {
        write_plot(names, file)?;
    }
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
        // Seconds of the repeated trace: a shorter one is repeated until a second is full.
        let until = |s: u64| trace.count(Instant::from_millis(s * 1000));
        let ends = (1..=(trace.length_ms() / 1000).max(1)).map(until);
        let (mut low, mut high, mut before) = (f64::INFINITY, 0.0f64, until(0));
        for until in ends {
            let rate = (until - before) as f64 * OPPORTUNITY_BYTES as f64 * 8e-6;
            (low, high, before) = (low.min(rate), high.max(rate), until);
        }
        let times: Vec<u64> = trace.per_time().map(|(at_ms, _)| u64::from(at_ms)).collect();
        let pause = times.windows(2).map(|pair| pair[1] - pair[0]).fold(times[0], u64::max);
        let (length, count, mean) =
            (trace.length_ms() as f64 / 1000.0, trace.count_all(), trace.rate() / 1e6);
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

fn export(args: &ScenarioArgs, station: Option<usize>, uplink: bool, out: Option<&Path>) -> Outcome {
    let (_, scenario) = scenario_args::load(args)?;
    let count = scenario.station_count() as usize;
    if let Some(station) = station.filter(|station| *station >= count) {
        return Err(Failure::input(format!("--station {station}: allowed: 0 to {}", count - 1)));
    }
    // Mahimahi puts four bytes before each packet. They are counted, so that a link with the exported trace
    // has the capacity for the same packets.
    let delivered: Arc<Mutex<Vec<(Instant, u64)>>> = Arc::default();
    let sink = Arc::clone(&delivered);
    let first = paceline_sim::address::station(0).0;
    let packets = Box::new(move |now, interface, packet: &Packet| {
        let at_station = station.map_or(interface > 0, |station| interface == station as u32 + 1);
        let down = u32::from(packet_v4(packet.ip.dst)).wrapping_sub(u32::from(first)) < count as u32;
        if at_station && down != uplink {
            let mut delivered = sink.lock().expect("the other holders of the lock do not panic");
            delivered.push((now, u64::from(packet.len) + 4));
        }
    });
    simulate(&scenario, scenario.run.seed, Some(Capture { packets, blocks: None }), &mut |_| {});
    let delivered = std::mem::take(&mut *delivered.lock().expect("the run is over"));
    write(Trace::of_deliveries(delivered, scenario.run.duration), out, Form::Auto)
}

/// The IPv4 address, which all simulated stations and servers have.
fn packet_v4(address: std::net::IpAddr) -> std::net::Ipv4Addr {
    match address {
        std::net::IpAddr::V4(v4) => v4,
        std::net::IpAddr::V6(_) => std::net::Ipv4Addr::UNSPECIFIED,
    }
}
