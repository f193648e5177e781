//! Tables, sentences and pictures as snapshots (`tests/snapshots`), of figures that are written here.

use insta::assert_snapshot;
use paceline_report::picture::{Chart, Kind, Mark, Panel, Series, Style, packets, slot_map, steps};
use paceline_report::table::{Column, render};
use paceline_report::{compare, html, journey};
use paceline_sim::Totals;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::journey::{Journey, Place, Step};
use paceline_study::scenario_file;

fn totals(goodput_mbps: f64) -> Totals {
    Totals {
        goodput_mbps,
        rtt_mean_ms: 500.0 / goodput_mbps,
        retransmission_share: (goodput_mbps / 2000.0 - 0.01).max(0.0),
        jain_index: 0.9,
        congestion_window_share: 0.75,
        ..Totals::default()
    }
}

/// A side with three runs whose goodput differs by `spread`.
fn side(scheme: &str, goodput_mbps: f64, spread: f64) -> compare::Side {
    let runs = (1..4).map(|seed| (seed, totals(goodput_mbps + spread * (seed as f64 - 2.0)))).collect();
    compare::Side {
        name: format!("results/{scheme}"),
        mode: String::from("simulated"),
        mean: totals(goodput_mbps),
        ci95: Some(totals(20.0 + spread)),
        scenario: compare::values(&format!("[ack_filter]\nscheme = \"{scheme}\"\n")),
        runs,
    }
}

fn compared(sides: &[compare::Side]) -> String {
    let labels = compare::labels(sides, &compare::differing_keys(sides));
    let differences = compare::differences(sides);
    let table = render(&compare::columns(sides, &labels, &differences));
    table + "\n" + &compare::sentences(&labels, &differences).join("\n")
}

#[test]
fn totals_side_by_side() {
    let two = [side("basic", 20.0, 1.0), side("granted", 30.0, 2.0)];
    assert_snapshot!("two_sides", compared(&two));
    let mut filtered = side("safe", 32.0, 1.0);
    filtered.mean.acks_discarded_per_s = 150.0;
    let more = [side("hybrid(6)", 28.0, 0.5), side("hybrid-opt", 30.0, 0.1), filtered];
    assert_snapshot!("more_sides_than_a_terminal_is_wide", compared(&[&two[..], &more].concat()));
    assert_snapshot!("sides_in_words", compare::words(&two[0], &two[1]).join("\n"));
    // A figure that was not measured is empty.
    let (simulated, mut emulated) = (totals(20.0), totals(25.0));
    emulated.rtt_mean_ms = f64::NAN;
    let column = |name: &str, mean| Column::of_means(name.into(), mean, None);
    assert_snapshot!(
        "not_measured",
        render(&[column("simulated", &simulated), column("emulated", &emulated)])
    );
}

/// SVG with an element on each line.
fn by_line(svg: &str) -> String {
    svg.replace("><", ">\n<")
}

#[test]
fn charts_of_every_style() {
    let names = ["BBR, 20 ms", "CUBIC, 20 ms", "published"].map(String::from);
    let kinds = [Kind::of_keys((0, 2), (0, 2)), Kind::of_keys((1, 2), (1, 2)), Kind::Published];
    let series = |style: Style| {
        let marks = |at: f64| match style {
            Style::Steps => steps([3.0, 1.0 + at, f64::NAN, 2.0]),
            _ => {
                let ys = [20.0 + at, 40.0 - at, f64::NAN, -5.0 * at];
                let mark = |(x, y): (usize, &f64)| Mark { x: x as f64, y: *y, half: Some(2.0 * at) };
                ys.iter().enumerate().map(mark).collect()
            }
        };
        let series = names.iter().zip(kinds).enumerate();
        series
            .map(|(at, (name, kind))| Series { name: name.clone(), marks: marks(at as f64), kind })
            .collect()
    };
    for style in [Style::Lines, Style::Points, Style::Steps, Style::Scatter, Style::Bars, Style::Stacked] {
        let named = matches!(style, Style::Bars | Style::Stacked);
        let categories = ["a", "a name longer than its place", "<c>", "d"].map(String::from).to_vec();
        let chart = Chart {
            title: String::from("t & u"),
            x: String::from("station.count"),
            y: String::from("goodput, Mb/s"),
            categories: if named { categories } else { Vec::new() },
            series: series(style),
            style,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: (style == Style::Lines).then_some(1.0),
        };
        assert_snapshot!(format!("chart_{style:?}"), by_line(&chart.figure()));
    }
}

#[test]
fn pictures_of_slots_packets_and_ladders() {
    let (_, text) = scenario_file::built_in("private-5g");
    let scenario = scenario_file::parse("private-5g", text, &[]).unwrap();
    let facts = CellFacts::of(scenario.cell().unwrap());
    assert_snapshot!("slots", by_line(&slot_map("private-5g", &facts)));
    let panel = Panel { name: "private-5g".into(), packets: vec![(0.5, 3.0), (2.0, 4.0), (9.0, 1.0)] };
    assert_snapshot!("packets", by_line(&packets("title", &facts, &[panel], 2.5, "round-trip time, ms")));
    let step = |(from_ms, to_ms), (from, to), text: &str, lost| Step {
        from_ms,
        to_ms,
        from,
        to,
        text: text.into(),
        lost,
    };
    let air = (Place::BaseStation, Place::Station);
    let steps = vec![
        step((0.0, 9.0), (Place::Server, Place::BaseStation), "segment, 1448 B", false),
        step((9.0, 79.0), (Place::BaseStation, Place::BaseStation), "waits in the downlink buffer", false),
        step((79.0, 79.0), air, "block 3000 B: not decoded", true),
        step((87.0, 91.0), air, "block 3000 B, transmission 2", false),
    ];
    let journey = Journey { at_s: 5.0, bytes: 1448, steps };
    let text = format!("{}\n{}", journey::words(&journey), by_line(&journey::ladder(&journey)));
    assert_snapshot!("ladder", text);
}

#[test]
fn a_table_wider_than_a_page_becomes_several() {
    let head: Vec<String> = (0..14).map(|column| format!("figure {column}, Mb/s")).collect();
    let line: Vec<String> = (0..14).map(|column| format!("{column}.00 ± 0.10")).collect();
    assert_snapshot!(html::table(&head, &[line], 1));
}
