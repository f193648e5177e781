//! The explanation as a page: the answer first, then pictures, then tables.

use super::text::{cells, largest_share, main, position};
use paceline_explain::causes::Cause;
use paceline_explain::report::{ConnectionReport, Explanation, TimePoint};
use paceline_gain::Gain;
use paceline_net::words::percent;
use paceline_report::count;
use paceline_report::html::{self, Cell, escape};
use paceline_report::picture::{Chart, Kind, Mark, Series, Style};

/// Connections in the bars, and with pictures over time. Chosen: more bars are too narrow to be read, and the
/// ones with most data explain most of a capture.
const BARS: usize = 8;
const LINES: usize = 4;
/// Connections in the table, those with most data. Chosen: a browser sorts them at once; connections.csv has
/// all.
const ROWS: usize = 1000;

/// The page.
pub fn page(explanation: &Explanation, gain: Option<&Gain>) -> String {
    let network = &explanation.network;
    let about = format!(
        "{}, {:.1} MB of data, {}. Paceline {}.",
        count(network.connections, "connection"),
        network.bytes as f64 / 1e6,
        count(explanation.packets, "packet"),
        paceline_study::origin().version
    );
    let mut body = html::section("The answer", &answer(explanation));
    if let Some(gain) = gain {
        body += &html::section("Expected gain", &super::gain::section(gain));
    }
    body += &html::section("What TCP waited for", &html::figures(&causes(explanation)));
    body += &html::section("Over time", &html::figures(&over_time(explanation)));
    body += &html::section("Connections", &table(&explanation.connections));
    let sentences = explanation.connections.iter().take(BARS).map(|connection| {
        let (name, verdict, trip) = (name(connection), &connection.verdict, &connection.round_trip);
        let notes: String = connection.notes.iter().map(|note| format!(" Note: {note}.")).collect();
        format!("{name}: TCP is {verdict}. {}; {trip}.{notes}", position(connection.position))
    });
    body += &html::section("Connections in words", &html::list(&sentences.collect::<Vec<_>>()));
    let notes: Vec<String> = cells(explanation).into_iter().chain(explanation.notes.clone()).collect();
    body += &html::section("Notes on the capture", &html::list(&notes));
    html::page("What limits TCP", &about, &body)
}

/// The verdict on the network, and the figures that a decision needs.
fn answer(explanation: &Explanation) -> String {
    let network = &explanation.network;
    let ms = |value: Option<f64>| value.map_or_else(|| "not measured".to_owned(), |ms| format!("{ms:.1} ms"));
    let figures = [
        ("round trip, median", ms(network.rtt_median_ms)),
        ("round trip, least", ms(network.rtt_min_ms)),
        ("round trip, 95% are below", ms(network.rtt_p95_ms)),
        ("segments sent again", percent(network.retransmission_share)),
    ];
    let lines: Vec<Vec<String>> =
        figures.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    format!(
        "<p><strong>TCP is {}.</strong></p>\n<p>{}; {}.</p>\n{}",
        escape(&network.verdict),
        position(network.position),
        escape(&network.round_trip),
        html::table(&["figure", "value"].map(String::from), &lines, 1)
    )
}

fn name(connection: &ConnectionReport) -> String {
    format!("{} to {}", connection.client, connection.server)
}

/// Bars of all connections together, and of those with most data.
fn causes(explanation: &Explanation) -> String {
    let mut bars = vec![("all".to_owned(), explanation.network.cause_shares.values())];
    if explanation.connections.len() > 1 {
        let own = explanation.connections.iter().take(BARS);
        bars.extend(own.map(|connection| (connection.client.clone(), connection.cause_shares.values())));
    }
    let series = Cause::ALL.iter().enumerate().map(|(index, cause)| Series {
        name: cause.key().replace('_', " "),
        marks: bars
            .iter()
            .enumerate()
            .map(|(at, (_, shares))| Mark { x: at as f64, y: 100.0 * shares[index], half: None })
            .collect(),
        kind: Kind::Ours,
    });
    // Less than half a percent is not seen in a bar.
    let series = series.filter(|series| series.marks.iter().any(|mark| mark.y >= 0.5));
    let chart = Chart {
        title: String::from("Share of the time by cause"),
        x: String::from("client"),
        y: String::from("% of time"),
        series: series.collect(),
        categories: bars.iter().map(|(name, _)| name.clone()).collect(),
        style: Style::Stacked,
        most: f64::INFINITY,
        from_zero: true,
        counts_from: None,
    };
    chart.figure()
}

/// Goodput and round trip of the connections with most data.
fn over_time(explanation: &Explanation) -> String {
    let chart = |title: &str, y: &str, value: fn(&TimePoint) -> f64| {
        let line = |connection: &ConnectionReport| Series {
            name: name(connection),
            marks: connection
                .over_time
                .iter()
                .map(|point| Mark { x: point.at_s, y: value(point), half: None })
                .collect(),
            kind: Kind::Ours,
        };
        let chart = Chart {
            title: title.to_owned(),
            x: String::from("time, s"),
            y: y.to_owned(),
            categories: Vec::new(),
            series: explanation.connections.iter().take(LINES).map(line).collect(),
            style: Style::Lines,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        chart.figure()
    };
    [
        chart("Goodput", "Mb/s", |point| point.goodput_mbps),
        chart("Round trip", "ms", |point| point.rtt_ms.unwrap_or(f64::NAN)),
    ]
    .concat()
}

fn table(connections: &[ConnectionReport]) -> String {
    let head = [
        "client",
        "server",
        "largest cause",
        "share",
        "data from",
        "MB",
        "Mb/s",
        "s",
        "RTT, ms",
        "least",
        "p95",
        "sent again",
        "middlebox",
    ];
    let number = |value: f64, decimals: usize| Cell {
        text: format!("{value:.decimals$}"),
        key: Some(value),
        ..Cell::default()
    };
    let ms = |value: Option<f64>| value.map_or_else(|| Cell::from(""), |ms| number(ms, 1));
    let line = |connection: &ConnectionReport| {
        let main = main(connection);
        let share = largest_share(connection);
        let again = main.losses.retransmissions as f64 / main.segments.max(1) as f64;
        vec![
            Cell::from(connection.client.as_str()),
            Cell::from(connection.server.as_str()),
            Cell::from(connection.cause.replace('_', " ")),
            Cell { key: Some(share), ..Cell::from(percent(share)) },
            Cell::from(connection.data_from),
            number(main.bytes as f64 / 1e6, 3),
            number(main.goodput_mbps, 2),
            number(connection.duration_ms / 1e3, 2),
            ms(connection.rtt_median_ms),
            ms(connection.rtt_min_ms),
            ms(connection.rtt_p95_ms),
            Cell { key: Some(again), ..Cell::from(percent(again)) },
            Cell::from(connection.middlebox_signs.join(", ").replace('_', " ")),
        ]
    };
    let lines: Vec<Vec<Cell>> = connections.iter().take(ROWS).map(line).collect();
    html::table(&head.map(String::from), &lines, 3)
}
