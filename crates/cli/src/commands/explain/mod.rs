//! `paceline explain`: the limits of the TCP connections of a capture, and the places of their round trips.

mod files;
mod gain;
mod live;
mod page;
mod text;

use crate::failure::{Failure, Outcome};
use crate::results_folder::check_unused;
use crate::{output, progress};
use anyhow::Context;
use paceline_explain::report::{Explanation, Pseudonyms};
use paceline_explain::{Explainer, Taken};
use paceline_net::Duration;
use paceline_report::count;
use serde_json::json;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Captures of TCP traffic, pcap or pcapng, also packed by gzip or xz; parts of a capture in their order
    #[arg(required_unless_present = "live", value_name = "FILE")]
    captures: Vec<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write connections.csv, explain.json and report.html into a folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write a page with the answer, pictures and tables
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Explain what passes --interface from now on, until Ctrl-C or for the time of --for (needs root)
    #[arg(long, requires = "interface", conflicts_with = "captures")]
    live: bool,
    /// Time of --live, for example "30 s"
    #[arg(long = "for", id = "duration", value_name = "TIME", requires = "live", value_parser = time)]
    duration: Option<Duration>,
    /// Estimate the gain of remedies: the transfers are simulated on the path that the capture shows, as they
    /// are and with each
    #[arg(long, conflicts_with = "live")]
    gain: bool,
    /// Simulations of each remedy of --gain, each with other values of path and seed
    #[arg(long, default_value = "20", requires = "gain", value_name = "N",
          value_parser = clap::value_parser!(u64).range(5..=1000))]
    draws: u64,
    /// Put pseudonyms in place of addresses, the same for the same KEY; addresses of one network keep a
    /// common prefix
    #[arg(long, value_name = "KEY")]
    pseudonymise: Option<String>,
    /// Print all connections, not only those with most data
    #[arg(long)]
    all: bool,
    /// Explain the connections at this interface alone
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The capture was made at the server
    #[arg(long, conflicts_with_all = ["client", "between"])]
    server: bool,
    /// The capture was made at the client
    #[arg(long, conflicts_with = "between")]
    client: bool,
    /// The capture was made between client and server
    #[arg(long)]
    between: bool,
}

pub fn run(args: &Args) -> Outcome {
    if let Some(folder) = &args.out {
        check_unused(folder)?;
    }
    let mut explanation = explain(args)?;
    let gain = args.gain.then(|| gain::estimate(args, &explanation)).transpose()?;
    if let Some(key) = &args.pseudonymise {
        explanation.pseudonymise(&Pseudonyms::new(key));
    }
    let json = || {
        let mut all = json!({"paceline": paceline_study::origin(), "explanation": explanation});
        if let Some(gain) = &gain {
            all["gain"] = json!(gain);
        }
        output::json(&all)
    };
    if let Some(folder) = &args.out {
        files::write(folder, &explanation, gain.as_ref(), &json())?;
    }
    if let Some(file) = &args.html {
        let context = || format!("--html {}: cannot be written", file.display());
        fs::write(file, page::page(&explanation, gain.as_ref())).with_context(context)?;
    }
    let text = || text::text(&explanation, args.all) + &gain.as_ref().map_or_else(String::new, gain::text);
    output::print(&if args.json { json() } else { text() })?;
    Ok(ExitCode::SUCCESS)
}

fn time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<Duration>().ok().filter(|time| *time > Duration::ZERO);
    time.ok_or_else(|| "allowed: a time with its unit, such as 30 s".to_owned())
}

fn explain(args: &Args) -> Outcome<Explanation> {
    let mut explainer = Explainer::new(taken(args));
    let names = match &args.interface {
        Some(interface) if args.live => {
            live::read(&mut explainer, interface, args.duration)?;
            interface.clone()
        }
        _ => {
            read(&mut explainer, args)?;
            args.captures.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        }
    };
    let named: Vec<String> =
        explainer.interfaces().into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let interfaces =
        if named.is_empty() { "none, since the captures name none".into() } else { named.join(", ") };
    let explanation = explainer.finish(args.interface.as_deref());
    if explanation.segments == 0 {
        let cut = explanation.notes.iter().map(|note| format!("; {note}")).collect::<String>();
        return Err(Failure::input(format!(
            "{names}: no TCP segments in {}{cut}; allowed links: Ethernet, VLAN, PPPoE, raw IP, Linux cooked, \
             loopback, GTP-U",
            count(explanation.packets, "packet")
        )));
    }
    if let Some(name) = args.interface.as_ref().filter(|_| explanation.connections.is_empty()) {
        return Err(Failure::input(format!(
            "--interface {name}: no TCP passed there; allowed: {interfaces}"
        )));
    }
    Ok(explanation)
}

fn taken(args: &Args) -> Taken {
    match (args.server, args.client, args.between) {
        (true, ..) => Taken::Server,
        (_, true, _) => Taken::Client,
        (.., true) => Taken::Between,
        _ => Taken::Unknown,
    }
}

fn read(explainer: &mut Explainer, args: &Args) -> Outcome<()> {
    let open = |path: &PathBuf| {
        let failed = |error| Failure::input(format!("{}: cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok((path.display().to_string(), file, bytes))
    };
    let files: Vec<_> = args.captures.iter().map(open).collect::<Outcome<_>>()?;
    let bar = progress::bar(files.iter().map(|(.., bytes)| bytes).sum(), "the captures");
    for (name, file, _) in files {
        let read = explainer.read(&name, bar.wrap_read(file));
        read.map_err(|error| Failure::input(format!("{name}: {error}")))?;
    }
    bar.finish_and_clear();
    Ok(())
}
