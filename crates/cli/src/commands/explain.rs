//! `paceline explain`: the limits of the TCP connections of a capture, and the places of their round trips.

use crate::failure::{Failure, Outcome};
use crate::results_folder::{check_unused, write_file};
use crate::{output, progress};
use anyhow::Context;
use paceline_explain::causes::Cause;
use paceline_explain::report::{ConnectionReport, Explanation, Position};
use paceline_explain::{Explainer, Taken};
use paceline_net::words::percent;
use paceline_report::count;
use paceline_report::table::align;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Connections in the table without `--all`. Chosen: a screen has room for them and the sentences.
const ROWS: usize = 10;
/// Connections with sentences. Chosen: those with most data explain most of a capture.
const SENTENCES: usize = 3;
/// Columns in front of the others, which are in the order of their names. Chosen: they name a row.
const FIRST: [&str; 4] = ["client", "server", "interface", "data_from"];

#[derive(clap::Args)]
pub struct Args {
    /// Captures of TCP traffic, pcap or pcapng, also packed by gzip or xz; parts of a capture in their order
    #[arg(required = true, value_name = "FILE")]
    captures: Vec<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write connections.csv and explain.json into a folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
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
    let explanation = explain(args)?;
    let json = || output::json(&json!({"paceline": paceline_study::origin(), "explanation": explanation}));
    if let Some(folder) = &args.out {
        write(folder, &explanation, &json())?;
    }
    output::print(&if args.json { json() } else { text(&explanation, args.all) })?;
    Ok(ExitCode::SUCCESS)
}

fn explain(args: &Args) -> Outcome<Explanation> {
    let taken = match (args.server, args.client, args.between) {
        (true, ..) => Taken::Server,
        (_, true, _) => Taken::Client,
        (.., true) => Taken::Between,
        _ => Taken::Unknown,
    };
    let open = |path: &PathBuf| {
        let failed = |error| Failure::input(format!("{}: cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok((path.display().to_string(), file, bytes))
    };
    let files: Vec<_> = args.captures.iter().map(open).collect::<Outcome<_>>()?;
    let bar = progress::bar(files.iter().map(|(.., bytes)| bytes).sum(), "the captures");
    let mut explainer = Explainer::new(taken);
    for (name, file, _) in files {
        let read = explainer.read(&name, bar.wrap_read(file));
        read.map_err(|error| Failure::input(format!("{name}: {error}")))?;
    }
    bar.finish_and_clear();
    let names = args.captures.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let named: Vec<&str> = explainer.interfaces().into_iter().filter(|name| !name.is_empty()).collect();
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

/// Writes the folder under a hidden name and renames it when it is complete.
fn write(folder: &Path, explanation: &Explanation, json: &str) -> anyhow::Result<()> {
    let context = || format!("--out {}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    write_file(&folder.join("connections.csv"), &csv(explanation)?).with_context(context)?;
    write_file(&folder.join("explain.json"), json).with_context(context)
}

/// The connections as a table: the figures of the JSON, those of tables and lists left out.
fn csv(explanation: &Explanation) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut has_heading = false;
    for connection in &explanation.connections {
        let value = serde_json::to_value(connection)?;
        let mut cells = Vec::new();
        flatten("", &value, &mut cells);
        cells.sort_by_key(|(name, _)| FIRST.iter().position(|first| name == first).unwrap_or(FIRST.len()));
        if !has_heading {
            writer.write_record(cells.iter().map(|(name, _)| name))?;
            has_heading = true;
        }
        writer.write_record(cells.iter().map(|(_, cell)| cell))?;
    }
    Ok(String::from_utf8(writer.into_inner().context("the table is in memory")?)?)
}

/// The cells of an object, with the names of nested ones in front. Options of SYNs are in the JSON alone,
/// since a capture may lack them.
fn flatten(prefix: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let name = format!("{prefix}{key}");
        match value {
            _ if key.ends_with("_offer") => {}
            Value::Object(_) => flatten(&format!("{name}."), value, cells),
            Value::Array(list) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                cells.push((name, words.join("; ")));
            }
            Value::Null => cells.push((name, String::new())),
            Value::String(text) => cells.push((name, text.clone())),
            other => cells.push((name, other.to_string())),
        }
    }
}

fn text(explanation: &Explanation, all: bool) -> String {
    let network = &explanation.network;
    let mut text = format!(
        "{}, {:.3} MB: TCP is {}.\n",
        count(network.connections, "connection"),
        network.bytes as f64 / 1e6,
        network.verdict
    );
    let _ = writeln!(text, "{}; {}.\n", position(network.position), network.round_trip);
    let shown = if all { explanation.connections.len() } else { ROWS };
    text += &table(&explanation.connections, shown);
    let more = explanation.connections.len().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "and {more} more with less data: --all prints them");
    }
    for connection in explanation.connections.iter().take(SENTENCES) {
        let _ = writeln!(
            text,
            "\n{} to {}: TCP is {}.",
            connection.client, connection.server, connection.verdict
        );
        let _ = writeln!(text, "{}; {}.", position(connection.position), connection.round_trip);
        for note in &connection.notes {
            let _ = writeln!(text, "note: {note}");
        }
    }
    if !explanation.notes.is_empty() {
        text.push('\n');
    }
    for note in &explanation.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn position(position: Position) -> &'static str {
    match position {
        Position::NearServer => "Captured near the server",
        Position::NearClient => "Captured near the client",
        Position::Between => "Captured between client and server",
        Position::Unknown => "Captured at an unknown place",
    }
}

fn table(connections: &[ConnectionReport], rows: usize) -> String {
    let heading = [
        "client",
        "server",
        "data from",
        "MB",
        "Mb/s",
        "s",
        "RTT ms",
        "least",
        "p95",
        "sent again",
        "largest cause",
        "share",
    ];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    let ms = |value: Option<f64>| value.map_or(String::new(), |ms| format!("{ms:.1}"));
    for connection in connections.iter().take(rows) {
        let main =
            if connection.data_from == "server" { &connection.to_client } else { &connection.to_server };
        let share = Cause::ALL.iter().zip(connection.cause_shares.values());
        let share = share.filter(|(cause, _)| cause.key() == connection.cause).map(|(_, share)| share).sum();
        lines.push(vec![
            connection.client.clone(),
            connection.server.clone(),
            connection.data_from.to_owned(),
            format!("{:.3}", main.bytes as f64 / 1e6),
            format!("{:.2}", main.goodput_mbps),
            format!("{:.2}", connection.duration_ms / 1e3),
            ms(connection.rtt_median_ms),
            ms(connection.rtt_min_ms),
            ms(connection.rtt_p95_ms),
            percent(main.losses.retransmissions as f64 / main.segments.max(1) as f64),
            connection.cause.replace('_', " "),
            percent(share),
        ]);
    }
    align(&lines, 3)
}
