//! `paceline emulate`: runs real programs through the modelled radio in real time.

use super::run::size;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::results_folder::ResultsFolder;
use crate::scenario_args::{self, RunArgs};
use paceline_emulate::{Emulation, ProgramUser, RealStation};
use paceline_linux::files::event_file::{EventFile, Header, Source};
use paceline_net::Bytes;
use paceline_report::text::describe;
use paceline_sim::results::KernelConnection;
use paceline_sim::scenario::Proxy;
use paceline_sim::{Scenario, Summary, Variant};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: RunArgs,
    /// Real stations, by index: 3, or 0,2, or 0-3 (repeatable); the others are simulated
    #[arg(long, default_value = "0", value_name = "LIST")]
    station: Vec<String>,
    /// Congestion control of the connections through the cell, by the kernel's name, such as cubic. If left
    /// out: that of the station's own table `tcp`, else `tcp.congestion_control` if the scenario states it,
    /// else the host's. newreno and westwood+ stand for the kernel's reno and westwood
    #[arg(long = "tcp", alias = "congestion-control", value_name = "NAME")]
    congestion_control: Option<String>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json to stdout instead of a table to stderr
    #[arg(long)]
    json: bool,
    /// Print the distribution of the delays of the emulator's timers as well
    #[arg(long)]
    timing: bool,
    /// Capture headers at the servers' side and at every station into the results folder
    #[arg(long, requires = "out")]
    pcap: bool,
    /// End the capture at this size, for example "50 MB"; the emulation goes on
    #[arg(long, value_name = "SIZE", requires = "pcap", value_parser = size)]
    pcap_limit: Option<Bytes>,
    /// Write the events of radio, ACK filter, accelerator and TCP into the results folder, as lines of JSON
    /// (docs/results.md)
    #[arg(long, requires = "out")]
    events: bool,
    /// End the file of events at this size, for example "50 MB"; the emulation goes on
    #[arg(long, value_name = "SIZE", requires = "events", value_parser = size)]
    events_limit: Option<Bytes>,
    /// User as whom the program runs, by name or number; if left out, the caller of sudo, pkexec or doas
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Program to run in each real station's namespace; a shell if left out. The host side is $PACELINE_HOST
    /// (198.18.0.1) and $PACELINE_HOST6 (2001:2::1), the station's index {station} in the arguments and
    /// $PACELINE_STATION. A `--` before it is only needed where its name begins with a dash
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(args: &Args) -> Outcome {
    let (name, scenario, states_control) = scenario_args::load_stating(&args.scenario.scenario(), CONTROL)?;
    let stations = stations(&args.station, scenario.station_count() as usize)?;
    if scenario.core.proxy == Proxy::SplitTcp {
        let problem = "the simulated proxy forwards no bytes of real connections; allowed: none, accelerator";
        return Err(Failure::input(format!("core.proxy = split-tcp: {problem}")));
    }
    let stations = real_stations(&scenario, &stations, args.congestion_control.as_deref(), states_control)?;
    if args.command.is_empty() && stations.len() > 1 {
        return Err(Failure::input("several real stations need a COMMAND: one terminal holds one shell"));
    }
    let user = args.user.as_deref().map(ProgramUser::named).transpose();
    let user = user.map_err(|error| Failure::input(format!("{error:#}")))?;
    if let Some(problem) = paceline_emulate::problem() {
        return Err(Failure::Failed(anyhow::anyhow!("emulate: {problem}")));
    }
    if stations.len() > 1 && !paceline_emulate::names_station(&args.command) {
        output::message(
            "note: all stations run this command in this folder; {station} in its arguments is the station's \
             index, for files that differ\n",
        );
    }
    scenario_args::warn(&scenario);
    let user = match user {
        Some(user) => Some(user),
        None => ProgramUser::caller()?.inspect(|user| {
            let name = user.name();
            output::message(&format!(
                "note: the program runs as user {name}, the caller; --user root keeps root\n"
            ));
        }),
    };
    let folder = args.out.as_deref().map(ResultsFolder::create).transpose()?;
    let pcap = folder.as_ref().filter(|_| args.pcap).map(|folder| folder.path("emulated.pcapng"));
    let events = folder.as_ref().filter(|_| args.events).map(|folder| {
        let source = Source::Emulated { scenario: name.clone(), seed: scenario.run.seed };
        let header = Header::new(paceline_study::origin(), source);
        EventFile::create(&folder.path("events.jsonl"), &header, args.events_limit)
    });
    let events = events.transpose()?;
    let emulation = Emulation {
        scenario: &scenario,
        stations: &stations,
        command: &args.command,
        user: user.as_ref(),
        pcap: pcap.as_deref(),
        pcap_limit: args.pcap_limit,
        events: events.as_ref(),
    };
    let report = paceline_emulate::run(&emulation)?;
    if let Some(file) = events {
        file.finish()?;
    }
    let summary = Summary::new(paceline_study::origin(), &name, "emulated", &scenario, vec![report.result]);
    if let Some(folder) = folder {
        folder.finish(&scenario, &summary)?;
    }
    if args.json {
        output::print(&summary.to_json())?;
    }
    let kernel = kernel_connections(&summary.runs[0].kernel_connections);
    let lateness = report.lateness.to_string();
    let timing = if args.timing { lateness.as_str() } else { lateness.lines().next().unwrap_or_default() };
    output::message(&format!("{timing}\n{}{kernel}", describe(&summary)));
    for (station, status) in &report.failed {
        output::message(&format!("paceline: the program of station {station} ended with {status}\n"));
    }
    if let Some(out) = &args.out {
        output::message(&format!("results: {}\n", out.display()));
    }
    let ok = report.failed.is_empty() && !report.stopped;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A line on the kernel's connections and the congestion controls of their servers' ends, and of the
/// stations' ends where those could not be read; then the verdict on those of each station.
fn kernel_connections(connections: &[KernelConnection]) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for connection in connections {
        let ends = [&connection.server_end, &connection.station_end];
        let name = ends.into_iter().find_map(|end| end.congestion_control.as_deref());
        *counts.entry(name.unwrap_or("not known")).or_default() += 1;
    }
    if counts.is_empty() {
        return String::new();
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let verdicts: String = KernelConnection::verdicts(connections)
        .into_iter()
        .map(|(station, count, verdict)| {
            let connections = if count == 1 { "connection" } else { "connections" };
            format!("station {station}, {count} {connections} of the kernel: TCP is {verdict}.\n")
        })
        .collect();
    format!("connections of the kernel, by congestion control: {}\n{verdicts}", counts.join(", "))
}

/// The key of the congestion control of all stations.
const CONTROL: [&str; 2] = ["tcp", "congestion_control"];

/// The real stations with their congestion controls: that of the option, else that of the station's own
/// table, else that of the table `tcp` if the scenario `states` it.
fn real_stations(
    scenario: &Scenario,
    stations: &[usize],
    option: Option<&str>,
    states: bool,
) -> Outcome<Vec<RealStation>> {
    let groups = scenario.group_of_stations();
    let control = |group: usize| {
        let (key, name) = match (option, &scenario.stations[group].tcp) {
            (Some(name), _) => ("--tcp".to_owned(), name),
            (None, Some(own)) => {
                let name = own.over(&scenario.tcp).congestion_control.name();
                (format!("station.{group}.tcp.congestion_control"), name)
            }
            (None, None) if states => (CONTROL.join("."), scenario.tcp.congestion_control.name()),
            (None, None) => return Ok(None),
        };
        kernel_name(&key, name).map(|name| Some(name.to_owned()))
    };
    let real =
        |index: &usize| Ok(RealStation { index: *index, congestion_control: control(groups[*index])? });
    stations.iter().map(real).collect()
}

/// Checks the name of a congestion control, the value of `key`; gives the kernel's name of it. Where the
/// kernel does not list its congestion controls, any single word is accepted.
pub fn kernel_name<'a>(key: &str, given: &'a str) -> Outcome<&'a str> {
    let known = paceline_linux::ability::congestion_controls();
    let list = known.join(", ");
    let name = match given.parse::<Variant>() {
        Ok(Variant::Westwood) | Err(_) => given, // the kernel's westwood is Westwood+
        Ok(variant) if known.iter().any(|known| known == variant.name()) => given,
        Ok(variant) => variant.linux_name().ok_or_else(|| {
            Failure::input(format!(
                "{key} {given}: Linux has no {given}; `paceline run` simulates it; allowed: {list}"
            ))
        })?,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = !name.is_empty() && name.chars().all(word);
    if plain && (known.is_empty() || known.iter().any(|k| k == name)) {
        return Ok(name);
    }
    Err(Failure::input(format!(
        "{key} {given:?}: this kernel has no such congestion control; allowed: {list}; \
         another after `modprobe tcp_NAME`, where the kernel has it"
    )))
}

/// Parses lists of stations such as `0,2-4`; gives the indices in order, each once.
fn stations(lists: &[String], count: usize) -> Outcome<Vec<usize>> {
    let mut stations = Vec::new();
    for part in lists.iter().flat_map(|list| list.split(',')) {
        let bad = || {
            let last = count - 1;
            Failure::input(format!(
                "--station {part}: allowed: an index, 0 to {last}, or a range such as 0-{last}"
            ))
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| bad())?;
        let last: usize = last.trim().parse().map_err(|_| bad())?;
        if first > last || last >= count {
            return Err(bad());
        }
        stations.extend(first..=last);
    }
    stations.sort_unstable();
    stations.dedup();
    Ok(stations)
}
