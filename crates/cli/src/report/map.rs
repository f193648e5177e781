//! A map of a deployment's stations: where they stand, which sector serves them, how good their downlink is.

use paceline_sim::results::StationResult;
use std::fmt::Write;

/// Half the width of the picture in its own units.
const HALF: f64 = 300.0;
/// Highest MCS index, the end of the scale.
const BEST_MCS: f64 = 28.0;

/// More stations than these are drawn without their numbers.
const MOST_NUMBERED: usize = 80;

/// The picture; none where SINRs are stated.
pub fn figure(stations: &[StationResult]) -> Option<String> {
    let places: Vec<_> = stations.iter().filter_map(|station| Some((station, station.place?))).collect();
    let reach = places.iter().map(|(_, place)| place.x_m.abs().max(place.y_m.abs())).fold(0.0, f64::max);
    if places.is_empty() || reach <= 0.0 {
        return None;
    }
    let ring_m = ring(reach);
    let scale = (HALF - 30.0) / reach.max(ring_m);
    let mut svg = format!(
        "<svg viewBox=\"{0} {0} {1} {1}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\"><rect x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\" fill=\"#fff\"/>",
        -HALF,
        2.0 * HALF
    );
    let radius = ring_m * scale;
    let _ = write!(
        svg,
        "<circle r=\"{radius:.1}\" fill=\"none\" stroke=\"#bbb\"/>\
         <text x=\"4\" y=\"{:.1}\" fill=\"#666\">{ring_m:.0} m</text><circle r=\"4\" fill=\"#222\"/>",
        radius - 5.0
    );
    for (station, place) in &places {
        let (x, y) = (place.x_m * scale, -place.y_m * scale);
        let _ = write!(
            svg,
            "<g><title>station {}: sector {}, coupling loss {:.1} dB, mean downlink MCS {:.1}, {:.2} Mb/s</title>{}",
            station.station,
            station.sector,
            place.coupling_loss_db,
            station.downlink_mcs,
            station.goodput_mbps + station.upload_mbps,
            mark(station, x, y)
        );
        if places.len() <= MOST_NUMBERED {
            let (x, y) = (x + 9.0, y + 4.0);
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#333\">{}</text>", station.station);
        }
        svg += "</g>";
    }
    svg += "</svg>";
    let words = "Map: a shape for each sector, darker for a higher mean downlink MCS (0 to 28)";
    Some(format!("<figure><figcaption>{words}</figcaption>{svg}</figure>"))
}

/// A shape for the sector, its shade for the MCS.
fn mark(station: &StationResult, x: f64, y: f64) -> String {
    let share = (station.downlink_mcs / BEST_MCS).clamp(0.0, 1.0);
    let mix = |light: f64, dark: f64| (light + (dark - light) * share).round() as u8;
    let fill = format!("#{:02x}{:02x}{:02x}", mix(222.0, 8.0), mix(235.0, 48.0), mix(247.0, 107.0));
    let style = format!("fill=\"{fill}\" stroke=\"#08306b\"");
    match station.sector % 3 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" {style}/>"),
        1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" {style}/>", x - 5.5, y - 5.5),
        _ => {
            let points = [(x, y - 7.0), (x - 6.5, y + 5.0), (x + 6.5, y + 5.0)];
            let points = points.map(|(x, y)| format!("{x:.1},{y:.1}")).join(" ");
            format!("<polygon points=\"{points}\" {style}/>")
        }
    }
}

/// A round distance of which one ring is drawn.
fn ring(reach: f64) -> f64 {
    [50.0, 100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0]
        .into_iter()
        .rfind(|ring| *ring <= reach)
        .unwrap_or(50.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sim::results::{PlaceResult, UplinkResult};

    fn station(index: usize, place: Option<PlaceResult>) -> StationResult {
        StationResult {
            station: index,
            goodput_mbps: 1.0,
            upload_mbps: 0.0,
            acks_in: 0,
            acks_discarded: 0,
            acks_sent: 0,
            rtt_mean_ms: 0.0,
            downlink_mcs: 9.0,
            uplink_mcs: 0.0,
            downlink_block_bytes: 0.0,
            scheduling_requests: 0,
            uplink: UplinkResult::default(),
            waits: paceline_sim::results::RadioDelays::default(),
            sector: index,
            place,
        }
    }

    #[test]
    fn stations_of_a_deployment_are_drawn_and_others_are_not() {
        assert_eq!(figure(&[station(0, None)]), None);
        let place = PlaceResult { x_m: 120.0, y_m: -40.0, coupling_loss_db: 101.0 };
        let svg = figure(&[0, 1, 2].map(|index| station(index, Some(place)))).unwrap();
        for part in ["<circle cx", "<rect x", "<polygon", "100 m", "station 2: sector 2"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(!svg.contains("NaN"));
    }
}
