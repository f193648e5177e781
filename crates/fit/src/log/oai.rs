//! MAC statistics of OpenAirInterface, in `nrMAC_stats.log` or the log of the gNB (doc/MAC/mac-usage.md):
//! `Frame.Slot`, then lines of each UE with MCS, SINR and counters of bytes.

use super::{Radio, Rate, Series};
use std::collections::BTreeMap;

/// Length of a frame, s (TS 38.211 §4.3.1), and frames until their number begins anew.
const FRAME_S: f64 = 0.01;
const FRAMES: f64 = 1024.0;
/// Frames between two statistics.
const INTERVAL: f64 = 128.0;

#[derive(Default)]
struct Station {
    rows: Vec<Radio>,
    bytes: Vec<(f64, f64, f64)>,
}

/// The number behind a word.
fn after(line: &str, word: &str) -> Option<f64> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The MCS behind the table's number: `MCS (1) 23`.
fn mcs(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("MCS (")?;
    after(rest, ")")
}

/// Reads the statistics.
pub fn read(text: &str) -> Result<Series, String> {
    let mut stations: BTreeMap<String, Station> = BTreeMap::new();
    let (mut time, mut last_frame, mut has_frames) = (0.0, None::<f64>, false);
    for line in text.lines() {
        if let Some(frame) = after(line, "Frame.Slot") {
            let frame = frame.floor();
            let step = last_frame.map_or(0.0, |last| (frame - last).rem_euclid(FRAMES));
            time += FRAME_S * if step == 0.0 && last_frame.is_some() { FRAMES } else { step };
            (last_frame, has_frames) = (Some(frame), true);
            continue;
        }
        let Some((head, rest)) = line.split_once(": ") else {
            if let Some((_, rest)) = line.split_once("UE RNTI ") {
                start(&mut stations, rest, &mut time, has_frames);
            }
            continue;
        };
        if let Some((_, own)) = head.split_once("UE RNTI ") {
            start(&mut stations, own, &mut time, has_frames);
            continue;
        }
        let Some(name) = head.rsplit("UE ").next().filter(|name| name.len() == 4) else { continue };
        let Some(station) = stations.get_mut(name) else { continue };
        let Some(row) = station.rows.last_mut() else { continue };
        if rest.starts_with("dlsch_rounds") {
            row.mcs = mcs(rest);
        } else if rest.starts_with("ulsch_rounds") {
            row.uplink_sinr_db = after(rest, " SNR ");
        } else if rest.trim_start().starts_with("MAC:")
            && let (Some(sent), Some(received)) = (after(rest, "TX"), after(rest, "RX"))
        {
            station.bytes.push((time, sent, received));
        }
    }
    let moved = |station: &Station| match (station.bytes.first(), station.bytes.last()) {
        (Some(first), Some(last)) => (last.1 - first.1, last.2 - first.2),
        _ => (0.0, 0.0),
    };
    let count = stations.len();
    let total = |station: &Station| moved(station).0 + moved(station).1;
    let main = stations.into_iter().max_by(|(_, a), (_, b)| total(a).total_cmp(&total(b)));
    let (name, station) = main.ok_or("OpenAirInterface: no \"UE RNTI\" in front of the statistics")?;
    let (down, up) = moved(&station);
    let mut series = Series { is_upload: up > down, is_nr: Some(true), ..Series::default() };
    for pair in station.bytes.windows(2) {
        let span_s = pair[1].0 - pair[0].0;
        let bytes = if series.is_upload { pair[1].2 - pair[0].2 } else { pair[1].1 - pair[0].1 };
        if span_s > 0.0 && bytes >= 0.0 {
            series.rates.push(Rate { time_s: pair[0].0, span_s, mbps: bytes * 8.0 / span_s / 1e6 });
        }
    }
    series.notes.push(format!("OpenAirInterface: UE {name} of {count}, {} statistics", station.rows.len()));
    series.radio = station.rows;
    Ok(series)
}

/// The first line of a UE's statistics: its number, and its SINR where that is measured.
fn start(stations: &mut BTreeMap<String, Station>, line: &str, time: &mut f64, has_frames: bool) {
    let Some(name) = line.split_whitespace().next() else { return };
    let station = stations.entry(name.to_owned()).or_default();
    // The file itself has no frame numbers: the same UE again is the next interval.
    if !has_frames && station.rows.last().is_some_and(|row| row.time_s >= *time) {
        *time += INTERVAL * FRAME_S;
    }
    station.rows.push(Radio { time_s: *time, sinr_db: after(line, "average SINR "), ..Radio::default() });
}
