//! A map of a deployment's stations: their places, serving sectors and mean downlink MCS.

use paceline_report::html;
use paceline_sim::results::StationResult;
use std::fmt::Write;

/// Half the width of the picture in SVG user units. Chosen: a mark, 12 units wide, is 3% of the map.
const HALF_WIDTH: f64 = 200.0;
/// Margin for the marks, in SVG user units. Chosen: room for a mark and its number.
const MARGIN: f64 = 30.0;
/// Highest MCS index with a transport block size (TS 36.213 Table 7.1.7.1-1).
const MAX_MCS: f64 = 28.0;

/// Stations with numbers at most. Chosen: the numbers of more stations overlap.
const MAX_NUMBERED: usize = 80;

/// The map; none where stations have no places, since the scenario states their SINRs.
pub fn figure(stations: &[StationResult]) -> Option<String> {
    let places: Vec<_> = stations.iter().filter_map(|station| Some((station, station.place?))).collect();
    let extent_m = places.iter().map(|(_, place)| place.x_m.abs().max(place.y_m.abs())).fold(0.0, f64::max);
    if places.is_empty() || extent_m <= 0.0 {
        return None;
    }
    let ring_m = ring(extent_m);
    let scale = (HALF_WIDTH - MARGIN) / extent_m.max(ring_m);
    let mut svg = format!(
        "<svg class=\"picture\" viewBox=\"{0} {0} {1} {1}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"Map\"><rect class=\"ground\" x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\"/>",
        -HALF_WIDTH,
        2.0 * HALF_WIDTH
    );
    let radius = ring_m * scale;
    let _ = write!(
        svg,
        "<circle class=\"l thin axis\" r=\"{radius:.1}\"/>\
         <text class=\"faint\" x=\"4\" y=\"{:.1}\">{ring_m:.0} m</text><circle class=\"ink\" r=\"4\"/>",
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
        if places.len() <= MAX_NUMBERED {
            let (x, y) = (x + 9.0, y + 4.0);
            let _ = write!(svg, "<text class=\"ink\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", station.station);
        }
        svg += "</g>";
    }
    svg += "</svg>";
    let caption = "Map: a shape for each sector, darker for a higher mean downlink MCS (0 to 28)";
    Some(html::figure(caption, &svg))
}

/// The mark of a station: its shape stands for the sector, its shade for the MCS.
fn mark(station: &StationResult, x: f64, y: f64) -> String {
    let share = (station.downlink_mcs / MAX_MCS).clamp(0.0, 1.0);
    let mix = |light: f64, dark: f64| (light + (dark - light) * share).round() as u8;
    let fill = format!("#{:02x}{:02x}{:02x}", mix(222.0, 8.0), mix(235.0, 48.0), mix(247.0, 107.0));
    let style = format!("class=\"mark\" fill=\"{fill}\"");
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

/// Radius in m of the ring that shows the scale: the largest round number within the map.
fn ring(extent_m: f64) -> f64 {
    [50.0, 100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0]
        .into_iter()
        .rfind(|ring| *ring <= extent_m)
        .unwrap_or(50.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sim::results::{PlaceResult, UplinkResult};

    fn station(index: usize, place: Option<PlaceResult>) -> StationResult {
        StationResult {
            station: index,
            group: 0,
            goodput_mbps: 1.0,
            upload_mbps: 0.0,
            acks_in: 0,
            acks_discarded: 0,
            acks_sent: 0,
            rtt_mean_ms: 0.0,
            downlink_mcs: 9.0,
            uplink_mcs: 0.0,
            downlink_sinr_db: None,
            uplink_sinr_db: None,
            downlink_block_bytes: 0.0,
            scheduling_requests: 0,
            uplink: UplinkResult::default(),
            waits: paceline_sim::results::RadioDelays::default(),
            no_service: None,
            sector: index,
            place,
        }
    }

    #[test]
    fn stations_with_places_are_drawn() {
        assert_eq!(figure(&[station(0, None)]), None);
        let place = PlaceResult { x_m: 120.0, y_m: -40.0, coupling_loss_db: 101.0 };
        let svg = figure(&[0, 1, 2].map(|index| station(index, Some(place)))).unwrap();
        for part in ["<circle cx", "<rect x", "<polygon", "100 m", "station 2: sector 2"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(!svg.contains("NaN"));
    }
}
