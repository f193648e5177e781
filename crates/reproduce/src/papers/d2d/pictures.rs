//! Pictures of the experiment: congestion windows around a change of path, and the messages of a
//! packet as a ladder.

use super::parts::TCPS;
use super::switch::SwitchTrace;
use paceline_ran::sidelink::Message;
use paceline_report::html;
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, ladder};

/// Names and contents of the pictures: one window for each TCP, of the first trace, and the ladder.
pub fn pictures(traces: &[Vec<SwitchTrace>], messages: &[(f64, Message)]) -> Vec<(String, String)> {
    let windows = TCPS.iter().zip(traces).filter_map(|(tcp, traces)| {
        let trace = traces.first()?;
        let name = format!("window-{}.svg", tcp.name);
        Some((name, html::standalone(&window(tcp.name, trace).svg())))
    });
    windows.chain([(String::from("messages.svg"), html::standalone(&ladder(messages)))]).collect()
}

fn window(tcp: &str, trace: &SwitchTrace) -> Chart {
    let marks = trace.window.iter().map(|(x, y)| Mark { x: *x, y: *y, half: None }).collect();
    let most = trace.window.iter().map(|(_, y)| *y).fold(1.0, f64::max);
    let switch = [0.0, most].map(|y| Mark { x: 0.0, y, half: None }).to_vec();
    Chart {
        title: format!("Congestion window of {tcp} around a change of path"),
        x: String::from("time since the change, s"),
        y: String::from("congestion window, segments"),
        categories: Vec::new(),
        series: vec![
            Series { name: tcp.to_owned(), marks, kind: Kind::Ours },
            Series { name: String::from("change of path"), marks: switch, kind: Kind::Published },
        ],
        style: Style::Lines,
        most: f64::INFINITY,
        from_zero: true,
        counts_from: None,
    }
}
