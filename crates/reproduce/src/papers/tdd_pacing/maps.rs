//! Maps of the gain of pacing over buffer and base round-trip time.

use super::experiment::MapCell;
use super::parts::Part;
use paceline_report::html;
use paceline_report::picture::HeatMap;

/// Gains in percent at both ends of the colours. Chosen: losses and gains of this size are seen at a glance,
/// and larger ones have the same colour.
const RANGE: (f64, f64) = (-20.0, 100.0);

/// A file for each control and pacing of a part with a map: its name and its SVG.
pub fn pictures(part: &Part, cells: &[MapCell]) -> Vec<(String, String)> {
    let own: Vec<&MapCell> = cells.iter().filter(|cell| cell.part == part.name).collect();
    let mut pictures = Vec::new();
    for control in &part.controls {
        for mode in part.modes.iter().filter(|mode| **mode != "none") {
            let of: Vec<&MapCell> =
                own.iter().copied().filter(|cell| cell.control == *control && cell.mode == *mode).collect();
            let title = format!("{}, {control}: goodput with {mode} over none", part.cell.name);
            let name = format!("{}-{control}-{mode}.svg", part.name);
            pictures.push((name, html::standalone(&map(title, &of).svg())));
        }
    }
    pictures
}

fn map(title: String, cells: &[&MapCell]) -> HeatMap {
    let distinct = |of: fn(&MapCell) -> f64| {
        let mut values: Vec<f64> = cells.iter().map(|cell| of(cell)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let (buffers, rtts) = (distinct(|cell| cell.buffer), distinct(|cell| cell.rtt_ms));
    let value = |rtt: f64, buffer: f64| {
        let cell = cells.iter().find(|cell| cell.rtt_ms == rtt && cell.buffer == buffer);
        cell.map(|cell| (cell.gain_percent.clamp(RANGE.0, RANGE.1), None))
    };
    HeatMap {
        title,
        x: String::from("buffer, period-bytes"),
        y: String::from("base round-trip time, ms"),
        columns: buffers.iter().map(f64::to_string).collect(),
        rows: rtts.iter().map(f64::to_string).collect(),
        unit: String::from("%"),
        cells: rtts.iter().map(|rtt| buffers.iter().map(|buffer| value(*rtt, *buffer)).collect()).collect(),
        range: RANGE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::parts;
    use super::*;

    #[test]
    fn every_control_and_pacing_of_a_map_has_a_picture_with_its_gains() {
        let part = parts(true).into_iter().find(|part| part.name.starts_with("map")).expect("a map");
        let cell = |control, mode, buffer, rtt_ms, gain_percent| MapCell {
            part: part.name.clone(),
            control,
            mode,
            buffer,
            rtt_ms,
            goodput_mbps: 1.0,
            gain_percent,
            round_trip_ms: (1.0, 1.0),
            retransmitted_percent: 0.0,
        };
        let cells = [cell("cubic", "tdd", 0.2, 6.0, 41.0), cell("cubic", "tdd", 8.0, 24.0, -3.0)];
        let pictures = pictures(&part, &cells);
        assert_eq!(pictures.len(), part.controls.len() * (part.modes.len() - 1));
        let (_, svg) = pictures.iter().find(|(name, _)| name == "map-DDDSU-cubic-tdd.svg").expect("its file");
        assert!(svg.starts_with("<svg") && svg.contains("41") && svg.contains("-3"), "{svg}");
    }
}
