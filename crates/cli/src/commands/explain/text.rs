//! The explanation as text: sentences, a table, notes.

use paceline_explain::causes::Cause;
use paceline_explain::report::{ConnectionReport, DirectionReport, Explanation, Position};
use paceline_net::words::percent;
use paceline_report::count;
use paceline_report::table::align;
use std::fmt::Write;

/// Connections in the table without `--all`. Chosen: a screen has room for them and the sentences.
const ROWS: usize = 10;
/// Connections with sentences. Chosen: those with most data explain most of a capture.
const SENTENCES: usize = 3;

pub fn text(explanation: &Explanation, all: bool) -> String {
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
    if !explanation.notes.is_empty() || !explanation.cells.is_empty() {
        text.push('\n');
    }
    for sentence in cells(explanation) {
        let _ = writeln!(text, "{sentence}");
    }
    for note in &explanation.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

pub fn position(position: Position) -> &'static str {
    match position {
        Position::NearServer => "Captured near the server",
        Position::NearClient => "Captured near the client",
        Position::Between => "Captured between client and server",
        Position::Unknown => "Captured at an unknown place",
    }
}

/// The direction with most data.
pub fn main(connection: &ConnectionReport) -> &DirectionReport {
    if connection.data_from == "server" { &connection.to_client } else { &connection.to_server }
}

/// The share of the largest cause.
pub fn largest_share(connection: &ConnectionReport) -> f64 {
    let shares = Cause::ALL.iter().zip(connection.cause_shares.values());
    shares.filter(|(cause, _)| cause.key() == connection.cause).map(|(_, share)| share).sum()
}

/// The periods of the cells, a sentence each.
pub fn cells(explanation: &Explanation) -> Vec<String> {
    let mut sentences = Vec::new();
    for cell in &explanation.cells {
        let at = if cell.interface.is_empty() { String::new() } else { format!(" at {}", cell.interface) };
        for (period, what) in [
            (cell.periods.tdd_period_ms, "data arrive with the period of a TDD pattern"),
            (cell.periods.scheduling_request_period_ms, "ACKs arrive with the period of scheduling requests"),
            (
                cell.periods.uplink_period_ms,
                "ACKs arrive with the period of a TDD pattern or of scheduling requests",
            ),
        ] {
            sentences.extend(period.map(|ms| format!("{what}{at}: {ms} ms")));
        }
    }
    sentences
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
        let main = main(connection);
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
            percent(largest_share(connection)),
        ]);
    }
    align(&lines, 3)
}
