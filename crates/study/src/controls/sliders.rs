//! The values through which a slider steps, in ascending order, the present one among them.

use super::{Choice, quantity};
use paceline_net::units::Db;
use paceline_net::{Bytes, Duration};

/// Stations up to which the slider goes. Chosen: a run of so many takes seconds in a browser.
const MOST_STATIONS: u64 = 40;
/// Round-trip times from a server beside the core to one by a geostationary satellite, ms.
const ROUND_TRIPS_MS: [u32; 15] = [1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 600];
/// Buffers from a few segments to more than any bandwidth-delay product here, three or four a decade.
const BUFFERS: [&str; 14] = [
    "15 kB", "30 kB", "60 kB", "100 kB", "200 kB", "300 kB", "600 kB", "1 MB", "2 MB", "3 MB", "5 MB",
    "10 MB", "20 MB", "40 MB",
];
/// SINRs from below the lowest CQI to above the highest (TS 38.214 Table 5.2.2.1-3), dB.
const SINRS_DB: std::ops::RangeInclusive<i32> = -10..=40;
/// Losses from a good fixed line to a line that stops TCP (Mathis et al. 1997), percent.
const LOSSES_PERCENT: [&str; 9] = ["0", "0.01", "0.03", "0.1", "0.3", "1", "2", "5", "10"];

/// The values of a key whose present value is `present`; none for a key without order.
pub fn stops(key: &str, present: &str) -> Option<Vec<Choice>> {
    let plain: Vec<String> = match key {
        "station.0.count" => (1..=MOST_STATIONS).map(|count| count.to_string()).collect(),
        "cell.max_harq_tx" => (1..=4).map(|transmissions: u64| transmissions.to_string()).collect(),
        super::round_trip::KEY => ROUND_TRIPS_MS.map(|ms| format!("{ms} ms")).to_vec(),
        "cell.downlink_buffer" | "link.queue" | "sidelink.buffer" => BUFFERS.map(str::to_owned).to_vec(),
        "link.loss_percent" => LOSSES_PERCENT.map(str::to_owned).to_vec(),
        "station.0.downlink_sinr" => return Some(sinrs(present)),
        _ => return None,
    };
    let mut choices: Vec<Choice> = plain.into_iter().map(quantity).collect();
    let place = number(present)?;
    choices.retain(|choice| number(&choice.value) != Some(place));
    choices.push(quantity(present.to_owned()));
    choices.sort_by(|a, b| number(&a.value).unwrap_or(0.0).total_cmp(&number(&b.value).unwrap_or(0.0)));
    Some(choices)
}

/// The name of a slider of `[[station]]` if there are several groups.
pub fn label_of_first_group(key: &str) -> &'static str {
    if key == "station.0.count" { "Stations of the first group" } else { "SINR of the first group" }
}

/// A number, or a quantity in its base unit.
fn number(text: &str) -> Option<f64> {
    let time = || text.parse::<Duration>().ok().map(|time| time.as_nanos() as f64);
    let size = || text.parse::<Bytes>().ok().map(|size| size.0 as f64);
    text.parse().ok().or_else(time).or_else(size)
}

/// SINRs, each with the width of the present range (`["15 dB", "32 dB"]`), by their lower ends.
fn sinrs(present: &str) -> Vec<Choice> {
    let ends: Vec<f64> =
        present.split('"').filter_map(|part| part.parse::<Db>().ok().map(|db| db.0)).collect();
    let (Some(low), Some(high)) = (ends.first().copied(), ends.last().copied()) else { return Vec::new() };
    let width = high - low;
    let choice = |low: f64| {
        let [low, high] = [low, low + width].map(Db);
        if width == 0.0 {
            return quantity(low.to_string());
        }
        let meaning = format!("{} to {high}", low.0);
        Choice { value: format!("[\"{low}\", \"{high}\"]"), meaning }
    };
    let mut lows: Vec<f64> = SINRS_DB.map(f64::from).filter(|other| *other != low).collect();
    lows.push(low);
    lows.sort_by(f64::total_cmp);
    lows.into_iter()
        .map(
            |other| {
                if other == low { Choice { value: present.to_owned(), ..choice(low) } } else { choice(other) }
            },
        )
        .collect()
}
