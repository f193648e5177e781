//! Pictures over time, from the `timeseries.csv` of a run: goodput, windows, round-trip times, queues, MCS.

use super::picture::{Chart, Kind, Mark, Series, Style};
use paceline_sim::Scenario;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Up to this number of stations, each has a line of its own. Chosen: the number of colours of the charts.
const MAX_STATION_LINES: usize = 7;
/// Points of a line at most. Chosen: one for every two pixels of a chart's width, 560 with its margins.
const MAX_LINE_POINTS: usize = 240;

/// A row of `timeseries.csv`: counters since the start of the run, and the state at one time.
#[derive(Clone, Copy, Default, Deserialize)]
struct Sample {
    #[serde(deserialize_with = "csv::invalid_option")]
    seed: Option<u64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    station: Option<usize>,
    #[serde(default, deserialize_with = "number")]
    time_s: f64,
    #[serde(default, deserialize_with = "number")]
    downloaded: f64,
    /// NaN of a real station.
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    cwnd: f64,
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    srtt_ms: f64,
    #[serde(default, deserialize_with = "number")]
    downlink_queue: f64,
    #[serde(default, deserialize_with = "number")]
    uplink_queue: f64,
    #[serde(default, deserialize_with = "number")]
    acks_sent: f64,
    #[serde(default, deserialize_with = "number")]
    link_queued_ns: f64,
    #[serde(default, deserialize_with = "number")]
    link_sent: f64,
    #[serde(default, deserialize_with = "number")]
    link_capacity: f64,
    /// NaN where no transport block was sent since the last sample, as for the uplink.
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    downlink_mcs: f64,
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    uplink_mcs: f64,
    /// Index of the station's group.
    #[serde(default, deserialize_with = "index")]
    group: usize,
    /// NaN without an accelerator.
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    accelerator_window: f64,
    #[serde(default = "nan", deserialize_with = "number_or_nan")]
    accelerator_capacity_mbps: f64,
}

/// A field as a number; 0 where it is empty or no number.
fn number<'de, D: Deserializer<'de>>(field: D) -> Result<f64, D::Error> {
    csv::invalid_option(field).map(Option::unwrap_or_default)
}

/// A field as an index; 0 where it is empty or no index.
fn index<'de, D: Deserializer<'de>>(field: D) -> Result<usize, D::Error> {
    csv::invalid_option(field).map(Option::unwrap_or_default)
}

fn number_or_nan<'de, D: Deserializer<'de>>(field: D) -> Result<f64, D::Error> {
    csv::invalid_option(field).map(|number| number.unwrap_or(f64::NAN))
}

fn nan() -> f64 {
    f64::NAN
}

/// The pictures of the runs with `seed`, goodput and round-trip time first. `timeseries` is the text of
/// `timeseries.csv`; `scenario` gives the link's capacity, `counts_from` the start of the measured interval
/// in seconds, `acks` says whether those sent are shown.
pub fn figures(
    timeseries: &str,
    seed: u64,
    scenario: Option<&Scenario>,
    counts_from: Option<f64>,
    acks: bool,
) -> Vec<String> {
    let stations = read(timeseries, seed);
    let names = scenario.map(Scenario::group_names).unwrap_or_default();
    let picture = |title: &str, y: &str, value: &dyn Fn(&Sample, &Sample) -> f64| {
        let mut series = if y == "Mb/s" { capacity(&stations, scenario) } else { Vec::new() };
        series.extend(lines(&stations, &names, value));
        let chart = Chart {
            title: title.into(),
            x: format!("time with seed {seed}, s"),
            y: y.into(),
            categories: Vec::new(),
            series,
            style: Style::Lines,
            most: f64::INFINITY,
            from_zero: true,
            counts_from,
        };
        chart.figure()
    };
    let rate = |is: f64, was: f64, seconds: f64| (is - was) / seconds;
    let pictures = [
        picture("Goodput", "Mb/s", &|a, b| rate(b.downloaded, a.downloaded, b.time_s - a.time_s) * 8e-6),
        picture("Smoothed round-trip time", "ms", &|_, b| {
            if b.srtt_ms > 0.0 { b.srtt_ms } else { f64::NAN }
        }),
        picture("Congestion window", "kB", &|_, b| b.cwnd / 1e3),
        picture("Downlink queue", "kB", &|_, b| b.downlink_queue / 1e3),
        picture("Time in the downlink queue", "ms", &|a, b| {
            rate(b.link_queued_ns, a.link_queued_ns, b.link_sent - a.link_sent) / 1e6
        }),
        picture("Queue in the uplink buffer", "kB", &|_, b| b.uplink_queue / 1e3),
        picture("Window of the accelerator", "kB", &|_, b| b.accelerator_window / 1e3),
        picture("Capacity as the accelerator estimates it", "Mb/s", &|_, b| b.accelerator_capacity_mbps),
        picture("ACKs sent", "1/s", &|a, b| {
            if acks { rate(b.acks_sent, a.acks_sent, b.time_s - a.time_s) } else { f64::NAN }
        }),
        picture("MCS of downlink blocks", "MCS index", &|_, b| b.downlink_mcs),
        picture("MCS of uplink blocks", "MCS index", &|_, b| b.uplink_mcs),
    ];
    pictures.into_iter().filter(|picture| !picture.is_empty()).collect()
}

/// The samples of one seed by station, each list with a sample of zeros at time 0 ahead. Incomplete rows and
/// rows without a station are left out.
fn read(text: &str, seed: u64) -> BTreeMap<usize, Vec<Sample>> {
    let mut stations: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    for sample in reader.deserialize::<Sample>().filter_map(Result::ok) {
        if let Some(station) = sample.station.filter(|_| sample.seed == Some(seed)) {
            stations.entry(station).or_insert_with(|| vec![Sample::default()]).push(sample);
        }
    }
    stations
}

/// The link's capacity as lines in the background: one line if the stations share the link, else one for each
/// station.
fn capacity(stations: &BTreeMap<usize, Vec<Sample>>, scenario: Option<&Scenario>) -> Vec<Series> {
    let Some(link) = scenario.and_then(Scenario::link) else { return Vec::new() };
    let count = if link.per_station == Some(true) { stations.len().min(MAX_STATION_LINES) } else { 1 };
    let mbps = |a: &Sample, b: &Sample| (b.link_capacity - a.link_capacity) / (b.time_s - a.time_s) * 8e-6;
    let shown = stations.iter().take(count).map(|(station, samples)| (*station, samples.clone())).collect();
    let named = |series: Series| Series { name: String::from("capacity"), kind: Kind::Faint, ..series };
    lines(&shown, &[], &mbps).into_iter().map(named).collect()
}

/// A line for each station; in a scenario with several groups, whose `names` are given, in the colour of its
/// group. With more stations than [`MAX_STATION_LINES`], these lines are thin, with one group grey, and the
/// median of each group is added.
fn lines(
    stations: &BTreeMap<usize, Vec<Sample>>,
    names: &[String],
    value: &dyn Fn(&Sample, &Sample) -> f64,
) -> Vec<Series> {
    let many = stations.len() > MAX_STATION_LINES;
    let group_of = |samples: &Vec<Sample>| samples.last().map_or(0, |sample| sample.group);
    let grouped = names.len() > 1;
    let mut before = vec![0; names.len()];
    let mut kind = |group: usize| match before.get_mut(group) {
        Some(count) if grouped => {
            *count += 1;
            let of_group = stations.values().filter(|samples| group_of(samples) == group).count();
            Kind::of_keys((group, names.len()), (*count - 1, of_group))
        }
        _ => Kind::Ours,
    };
    let line = |(station, samples): (&usize, &Vec<Sample>)| {
        let pairs = samples.windows(2).filter(|pair| pair[1].time_s > pair[0].time_s);
        let marks: Vec<Mark> =
            pairs.map(|pair| Mark { x: pair[1].time_s, y: value(&pair[0], &pair[1]), half: None }).collect();
        let (group, marks) = (group_of(samples), thin(&marks));
        if many {
            let name = names.get(group).filter(|_| grouped);
            let of = name.map_or(String::new(), |name| format!(" of {name}"));
            let kind = match Kind::of_keys((group, names.len()), (0, 1)) {
                Kind::Keyed { hue, .. } if grouped => Kind::Thin(hue),
                _ => Kind::Faint,
            };
            return Series { name: format!("each station{of}"), marks, kind };
        }
        let of = names.get(group).filter(|_| grouped).map_or(String::new(), |name| format!("{name}, "));
        Series { name: format!("{of}station {station}"), marks, kind: kind(group) }
    };
    let mut series: Vec<Series> = stations.iter().map(line).collect();
    if many {
        let groups: Vec<usize> = stations.values().map(group_of).collect();
        let count = names.len().max(1);
        let medians = (0..count).map(|group| {
            let own = series.iter().zip(&groups).filter(|(_, of)| !grouped || **of == group);
            let of = names.get(group).filter(|_| grouped).map_or(String::new(), |name| format!(" of {name}"));
            let marks = median(&own.map(|(series, _)| series).collect::<Vec<_>>());
            Series { name: format!("median station{of}"), marks, kind: Kind::of_keys((group, count), (0, 1)) }
        });
        let medians: Vec<Series> = medians.collect();
        series.extend(medians);
    }
    series
}

/// The medians of lines with the same samples.
fn median(lines: &[&Series]) -> Vec<Mark> {
    let longest = lines.iter().map(|series| series.marks.len()).max().unwrap_or(0);
    let median = |index: usize| {
        let marks: Vec<Mark> = lines.iter().filter_map(|s| s.marks.get(index)).copied().collect();
        let mut values: Vec<f64> = marks.iter().map(|m| m.y).filter(|y| y.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let y = *values.get(values.len() / 2)?;
        Some(Mark { x: marks[0].x, y, half: None })
    };
    (0..longest).filter_map(median).collect()
}

/// Means over equal numbers of points, so that at most [`MAX_LINE_POINTS`] are left.
fn thin(marks: &[Mark]) -> Vec<Mark> {
    let size = marks.len().div_ceil(MAX_LINE_POINTS).max(1);
    let mean = |marks: &[Mark]| {
        let finite: Vec<f64> = marks.iter().map(|m| m.y).filter(|y| y.is_finite()).collect();
        let y = finite.iter().sum::<f64>() / finite.len() as f64;
        Mark { x: marks[marks.len() - 1].x, y, half: None }
    };
    marks.chunks(size).map(mean).collect()
}

/// Rates of named lines.
pub fn rates(title: &str, lines: &[(String, Vec<(f64, f64)>)]) -> Chart {
    let series = lines.iter().map(|(name, points)| Series {
        name: name.clone(),
        marks: points.iter().map(|(x, y)| Mark { x: *x, y: *y, half: None }).collect(),
        kind: Kind::Ours,
    });
    Chart {
        title: title.to_owned(),
        x: String::from("time, s"),
        y: String::from("Mb/s"),
        categories: Vec::new(),
        series: series.collect(),
        style: Style::Lines,
        most: f64::INFINITY,
        from_zero: true,
        counts_from: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_colour_of_their_group_and_dashes_of_their_own() {
        let mut text = String::from("seed,time_s,station,downloaded,group\n");
        for (station, group) in [(0, 0), (1, 0), (2, 1)] {
            text += &format!("1,0.5,{station},100,{group}\n1,1.0,{station},200,{group}\n");
        }
        let names = ["BBR", "CUBIC"].map(str::to_owned);
        let drawn = lines(&read(&text, 1), &names, &|a, b| b.downloaded - a.downloaded);
        let kinds: Vec<(&str, Kind)> = drawn.iter().map(|series| (&series.name[..], series.kind)).collect();
        let keyed = |hue, dash| Kind::Keyed { hue, dash };
        let expected = [("BBR, station 0", keyed(0, 0)), ("BBR, station 1", keyed(0, 1))];
        assert_eq!(kinds[..2], expected);
        assert_eq!(kinds[2], ("CUBIC, station 2", keyed(1, 0)));
    }

    #[test]
    fn rows_of_other_seeds_and_damaged_rows_are_left_out() {
        let text =
            "seed,time_s,station,downloaded,downlink_mcs\n1,0.5,0,100,\n2,0.5,0,7,3\n1,1.0,0,x,5\n1,1.5\n";
        let stations = read(text, 1);
        let samples = &stations[&0];
        assert_eq!((stations.len(), samples.len()), (1, 3));
        assert_eq!((samples[1].time_s, samples[1].downloaded), (0.5, 100.0));
        assert!(samples[1].downlink_mcs.is_nan() && samples[1].uplink_mcs.is_nan());
        assert_eq!((samples[2].downloaded, samples[2].downlink_mcs), (0.0, 5.0));
    }
}
