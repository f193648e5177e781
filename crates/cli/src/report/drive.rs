//! A map of a drive: the sites, the ways of the stations, and the places of their handovers.

use paceline_report::html;
use paceline_sim::results::HandoverResult;
use paceline_sim::scenario::Stations;
use paceline_sim::{RunResult, Scenario};
use std::fmt::Write;

/// Half the width of the picture in SVG user units, and its margin. Chosen: those of the map of the stations.
const HALF_WIDTH: f64 = 200.0;
const MARGIN: f64 = 30.0;
/// Colours of lines and marks in `page/picture.css`.
const COLOURS: usize = 7;

/// The map of a run; none of a scenario without stations that move.
pub fn figure(scenario: &Scenario, run: &RunResult) -> Option<String> {
    let deployment = scenario.cells()?.deployment.as_ref()?;
    let groups = || scenario.stations.iter().enumerate().filter(|(_, group)| group.path.len() > 1);
    groups().next()?;
    let sites: Vec<(f64, f64)> = deployment.site_places().iter().map(|site| (site.x, site.y)).collect();
    let places = groups().flat_map(|(_, group)| group.path.iter().map(|place| (place.x_m, place.y_m)));
    let served = sites.iter().take(deployment.served_sites as usize).copied();
    let extent_m = places.chain(served).map(|(x, y)| x.abs().max(y.abs())).fold(50.0, f64::max);
    let scale = (HALF_WIDTH - MARGIN) / extent_m;
    let at = |(x, y): (f64, f64)| (x * scale, -y * scale);
    let mut svg = format!(
        "<svg class=\"picture\" viewBox=\"{0} {0} {1} {1}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"Map of the drive\"><rect class=\"ground\" x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\"/>",
        -HALF_WIDTH,
        2.0 * HALF_WIDTH
    );
    for (index, site) in sites.iter().enumerate().filter(|(_, (x, y))| x.abs().max(y.abs()) <= extent_m) {
        let (x, y) = at(*site);
        let class = if index < deployment.served_sites as usize { "ink" } else { "faint" };
        let _ = write!(
            svg,
            "<polygon class=\"{class}\" points=\"{x:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>\
             <text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\">site {index}</text>",
            y - 8.0,
            x - 7.0,
            y + 5.0,
            x + 7.0,
            y + 5.0,
            x + 10.0,
            y + 5.0
        );
    }
    let (names, group_of) = (scenario.group_names(), scenario.group_of_stations());
    for (index, group) in groups() {
        svg += &way((index, &names[index]), group, at);
    }
    for handover in &run.handovers {
        let group = group_of.get(handover.station).copied().unwrap_or(0);
        svg += &mark(handover, group, at).unwrap_or_default();
    }
    svg += "</svg>";
    let caption = format!(
        "Drive of seed {}: sites, ways, and a mark where a station changed its cell ({} changes)",
        run.seed,
        run.handovers.len()
    );
    Some(html::figure(&caption, &svg))
}

fn way((index, name): (usize, &str), group: &Stations, at: impl Fn((f64, f64)) -> (f64, f64)) -> String {
    let places = group.path.iter().map(|place| at((place.x_m, place.y_m)));
    let points: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!(
        "<polyline class=\"l l{}\" points=\"{}\"><title>way of {name}</title></polyline>",
        index % COLOURS,
        points.join(" ")
    )
}

/// A mark with the handover as its tooltip, in the colour of the station's group: a ring if it left the
/// station without service of the target.
fn mark(handover: &HandoverResult, group: usize, at: impl Fn((f64, f64)) -> (f64, f64)) -> Option<String> {
    let (x, y) = at((handover.x_m?, handover.y_m?));
    let silent = handover.interruption_ms.map_or(String::new(), |ms| format!(", {ms:.0} ms without service"));
    let class = match (handover.cause.as_str(), handover.outcome.as_str()) {
        ("link-failure", _) | (_, "failed") => String::from("l l1"),
        _ => format!("f{} faded", group % COLOURS),
    };
    Some(format!(
        "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>station {}, {:.2} s: cell {} to {}, \
         {}, {}{silent}, {} packets dropped, {} forwarded</title></circle>",
        handover.station,
        handover.time_s,
        handover.from_cell,
        handover.to_cell,
        handover.cause,
        handover.outcome,
        handover.dropped_packets,
        handover.forwarded_packets
    ))
}
