//! The table of a report with the connections of real programs in an emulation.

use crate::quantity;
use paceline_report::html::{self, Cell};
use paceline_sim::results::{KernelConnection, KernelEnd};

/// Connections in the table at most; `kernel_connections.csv` has all. Chosen: a page that is still read.
const MAX_ROWS: usize = 200;

/// The table; empty without connections.
pub fn table(connections: &[KernelConnection]) -> String {
    if connections.is_empty() {
        return String::new();
    }
    let head = [
        "station",
        "server",
        "control at the server",
        "at the station",
        "downloaded",
        "uploaded",
        "retransmitted by the server",
        "by the station",
        "RTT at the server, ms",
        "lasted, s",
        "limit",
    ];
    let number = |text: String, key: f64| Cell { text, key: Some(key), ..Cell::default() };
    let bytes = |count: u64| number(quantity::bytes(count), count as f64);
    let name = |end: &KernelEnd| Cell::from(end.congestion_control.as_deref().unwrap_or(""));
    let count = |end: &KernelEnd| Cell::from(end.retransmissions.map_or(String::new(), |n| n.to_string()));
    let lines = connections.iter().take(MAX_ROWS).map(|c| {
        vec![
            Cell::from(c.station.to_string()),
            Cell::from(c.server.as_str()),
            name(&c.server_end),
            name(&c.station_end),
            bytes(c.downloaded),
            bytes(c.uploaded),
            count(&c.server_end),
            count(&c.station_end),
            Cell::from(c.server_end.srtt_ms.map_or(String::new(), |ms| format!("{ms:.1}"))),
            Cell::from(format!("{:.1}", c.last_packet_s - c.first_packet_s)),
            Cell::from(c.verdict.as_deref().unwrap_or("")),
        ]
    });
    let table = html::table(&head.map(str::to_owned), &lines.collect::<Vec<_>>(), 4);
    match connections.len() {
        0..=MAX_ROWS => table,
        all => format!("{table}<p>The first {MAX_ROWS} of {all}; kernel_connections.csv has all.</p>\n"),
    }
}
