//! The page of a fit: what was found, and measured over simulated.

use paceline_fit::{Fit, Fitted, Simulated};
use paceline_report::html;
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, steps};

/// Points of a line at most. Chosen: one for every two pixels of a chart's width.
const POINTS: usize = 240;

/// Means over equal numbers of points.
fn thin(points: &[(f64, f64)]) -> Vec<Mark> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean = |points: &[(f64, f64)]| {
        let y = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
        Mark { x: points[points.len() - 1].0, y, half: None }
    };
    points.chunks(size).map(mean).collect()
}

fn chart(title: &str, (x, y): (&str, &str), style: Style, marks: [Vec<Mark>; 2]) -> String {
    let named = ["measured", "simulated"].into_iter().zip(marks).zip([Kind::Published, Kind::Ours]);
    let series: Vec<Series> = named
        .filter(|((_, marks), _)| !marks.is_empty())
        .map(|((name, marks), kind)| Series { name: name.to_owned(), marks, kind })
        .collect();
    if series.is_empty() {
        return String::new();
    }
    let most = if style == Style::Steps { 100.0 } else { f64::INFINITY };
    Chart {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        categories: Vec::new(),
        series,
        style,
        most,
        from_zero: true,
        counts_from: None,
    }
    .figure()
}

/// The page. `rows` are quantity, value, confidence and source.
pub fn page(fit: &Fit, fitted: &Fitted, simulated: &Simulated, rows: &[Vec<String>]) -> String {
    let rates: Vec<(f64, f64)> = fit.rates.iter().map(|window| (window.time_s, window.mbps)).collect();
    let over_time = |of: &[(f64, f64)]| thin(of);
    // Windows without data are those before the transfer.
    let shares = |of: &[(f64, f64)]| steps(of.iter().map(|(_, value)| *value).filter(|value| *value > 0.0));
    let pictures = [
        chart(
            "Round trip over time",
            ("time, s", "ms"),
            Style::Lines,
            [over_time(&fit.rtts), over_time(&simulated.rtts)],
        ),
        chart(
            "Distribution of the round trip",
            ("ms", "%"),
            Style::Steps,
            [shares(&fit.rtts), shares(&simulated.rtts)],
        ),
        chart(
            "Rate over time",
            ("time, s", "Mb/s"),
            Style::Lines,
            [over_time(&rates), over_time(&simulated.rates)],
        ),
        chart(
            "Distribution of the rate",
            ("Mb/s", "%"),
            Style::Steps,
            [shares(&rates), shares(&simulated.rates)],
        ),
    ];
    let (head, lines) = rows.split_first().map_or((&[][..], rows), |(head, lines)| (&head[..], lines));
    let body = html::section("Measured over simulated", &html::figures(&pictures.concat()))
        + &html::section("Found", &html::table(head, lines, 4))
        + &html::section("Not known", &html::list(&fit.unknown))
        + &html::section("Inputs that contradict each other", &html::list(&fit.conflicts))
        + &html::section("Assumed in the scenario", &html::list(&fitted.assumptions))
        + &html::section("Notes", &html::list(&fit.notes))
        + &html::section("Scenario", &html::folded("scenario.toml", &fitted.toml));
    let about = format!("{}. The simulation has one transfer and no other traffic.", fit.inputs.join("; "));
    html::still_page("A scenario fitted to a network", &about, &body)
}
