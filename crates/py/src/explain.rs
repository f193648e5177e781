//! Explanations of captures: the JSON of the command line, and its connections as a table.

use crate::table::Table;
use paceline_explain::report::{ConnectionReport, DirectionReport, Explanation, Pseudonyms};
use paceline_explain::{Explainer, Taken};
use paceline_sim::results::{Column, Values};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fs::File;
use std::path::PathBuf;

/// Explains captures. Returns the text of `explain.json` without its origin, and the connections.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    interface: Option<&str>,
    taken: Option<&str>,
    pseudonymise: Option<&str>,
) -> PyResult<(String, Table)> {
    let taken = match taken {
        None => Taken::Unknown,
        Some("server") => Taken::Server,
        Some("client") => Taken::Client,
        Some("between") => Taken::Between,
        Some(other) => {
            return Err(PyValueError::new_err(format!("taken = {other}: allowed: server, client, between")));
        }
    };
    let mut explanation = py.detach(|| read(&paths, interface, taken))?;
    if let Some(key) = pseudonymise {
        explanation.pseudonymise(&Pseudonyms::new(key));
    }
    let json = serde_json::to_string(&explanation).expect("an explanation is plain data");
    Ok((json, Table::of(columns(&explanation.connections))))
}

fn read(paths: &[PathBuf], interface: Option<&str>, taken: Taken) -> PyResult<Explanation> {
    let mut explainer = Explainer::new(taken);
    for path in paths {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| PyOSError::new_err(format!("{name}: {error}")))?;
        let read = explainer.read(&name, file);
        read.map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
    }
    let explanation = explainer.finish(interface);
    if explanation.connections.is_empty() {
        return Err(PyValueError::new_err("no TCP segments in the captures, or none at this interface"));
    }
    Ok(explanation)
}

/// The columns of `connections.csv` that are figures of whole connections, and those of their data.
fn columns(rows: &[ConnectionReport]) -> Vec<Column> {
    let main = |row: &ConnectionReport| -> DirectionReport {
        if row.data_from == "server" { row.to_client.clone() } else { row.to_server.clone() }
    };
    let directions: Vec<DirectionReport> = rows.iter().map(main).collect();
    let text = |name, of: fn(&ConnectionReport) -> String| Column {
        name,
        values: Values::Texts(rows.iter().map(of).collect()),
        present: None,
    };
    let optional = |name, values: Vec<Option<f64>>| Column {
        name,
        present: Some(values.iter().map(Option::is_some).collect()),
        values: Values::Numbers(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()),
    };
    let number =
        |name, of: fn(&ConnectionReport) -> Option<f64>| optional(name, rows.iter().map(of).collect());
    let figure =
        |name, of: fn(&DirectionReport) -> Option<f64>| optional(name, directions.iter().map(of).collect());
    let count = |name, of: fn(&DirectionReport) -> u64| Column {
        name,
        values: Values::Integers(directions.iter().map(|row| of(row) as i64).collect()),
        present: None,
    };
    vec![
        text("client", |row| row.client.clone()),
        text("server", |row| row.server.clone()),
        text("interface", |row| row.interface.clone()),
        text("data_from", |row| row.data_from.to_owned()),
        text("cause", |row| row.cause.to_owned()),
        text("verdict", |row| row.verdict.clone()),
        text("round_trip", |row| row.round_trip.clone()),
        text("middlebox_signs", |row| row.middlebox_signs.join("; ")),
        text("notes", |row| row.notes.join("; ")),
        number("start_s", |row| Some(row.start_s)),
        number("duration_ms", |row| Some(row.duration_ms)),
        number("handshake_rtt_ms", |row| row.handshake_rtt_ms),
        number("rtt_min_ms", |row| row.rtt_min_ms),
        number("rtt_median_ms", |row| row.rtt_median_ms),
        number("rtt_p95_ms", |row| row.rtt_p95_ms),
        number("rtt_inflation", |row| row.rtt_inflation),
        number("client_half_median_ms", |row| row.client_half.median_ms),
        number("server_half_median_ms", |row| row.server_half.median_ms),
        number("handshake", |row| Some(row.cause_shares.handshake)),
        number("application", |row| Some(row.cause_shares.application)),
        number("receive_window", |row| Some(row.cause_shares.receive_window)),
        number("recovery", |row| Some(row.cause_shares.recovery)),
        number("timeout", |row| Some(row.cause_shares.timeout)),
        number("pause", |row| Some(row.cause_shares.pause)),
        number("queue", |row| Some(row.cause_shares.queue)),
        number("congestion_window", |row| Some(row.cause_shares.congestion_window)),
        number("policer", |row| Some(row.cause_shares.policer)),
        number("ack_path", |row| Some(row.cause_shares.ack_path)),
        number("unknown", |row| Some(row.cause_shares.unknown)),
        count("bytes", |row| row.bytes),
        count("segments", |row| row.segments),
        count("retransmissions", |row| row.losses.retransmissions),
        count("fast", |row| row.losses.fast),
        count("timeouts", |row| row.losses.timeouts),
        count("tail_probe", |row| row.losses.tail_probe),
        count("spurious", |row| row.losses.spurious),
        count("lost_behind", |row| row.losses.lost_behind),
        count("lost_before", |row| row.losses.lost_before),
        count("out_of_order", |row| row.losses.out_of_order),
        count("pauses", |row| row.pauses),
        count("ce_marks", |row| row.ce_marks),
        figure("goodput_mbps", |row| Some(row.goodput_mbps)),
        figure("flight_median_bytes", |row| row.flight_median_bytes),
        figure("window_median_bytes", |row| row.window_median_bytes),
        figure("segments_per_ack", |row| Some(row.segments_per_ack)),
        figure("policer_mbps", |row| row.policer_mbps),
        figure("longest_pause_ms", |row| Some(row.longest_pause_ms)),
    ]
}
