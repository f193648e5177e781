//! The pictures of a run or an emulation: station by station, and over time.

use super::chart::{Chart, Mark, Series, Style};
use super::html;
use super::map;
use crate::table;
use paceline_sim::results::{GroupResult, LimitShares, RadioWaits, StationResult};
use paceline_sim::{Origin, RunResult, Scenario, Totals};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most stations that get a line of their own.
const LINES: usize = 7;
/// Most points of a line.
const POINTS: usize = 240;

/// `summary.json` of a run.
#[derive(Deserialize)]
pub struct Run {
    paceline: Origin,
    scenario: String,
    mode: String,
    scheme: String,
    stations: u64,
    measured_s: f64,
    mean: Totals,
    ci95: Option<Totals>,
    #[serde(default)] // a run of an earlier version has none
    groups: Vec<GroupResult>,
    runs: Vec<RunResult>,
}

impl Run {
    /// The page. `timeseries` and `resolved` are the texts of `timeseries.csv` and `resolved.toml`, `scenario` what the
    /// latter says.
    pub fn page(
        &self,
        timeseries: Option<&str>,
        resolved: Option<&str>,
        scenario: Option<&Scenario>,
    ) -> String {
        let link = scenario.is_some_and(|scenario| scenario.link.is_some());
        let filter = if link { String::new() } else { format!(", ACK filter {}", self.scheme) };
        let runs = match self.runs.len() {
            1 => format!("seed {}", self.runs[0].seed),
            n => format!("{n} seeds, mean ± 95% confidence interval"),
        };
        let about = format!(
            "{}{filter}, {} stations, {:.1} s measured, {runs}. Paceline {} ({}).",
            self.mode, self.stations, self.measured_s, self.paceline.version, self.paceline.commit
        );
        let mut body = html::section("Figures", &self.totals());
        body += &html::section("Why TCP is as slow as it is", &self.why());
        body += &html::section("Station by station", &self.stations());
        body += &html::section("Over time", &self.over_time(timeseries, scenario));
        if let Some(text) = resolved {
            body += &html::section("Scenario", &html::folded("Every value, defaults included", text));
        }
        html::page(&format!("{}, {}", self.scenario, self.mode), &about, &body)
    }

    fn totals(&self) -> String {
        let lines = table::ROWS.iter().filter(|(_, _, _, value)| value(&self.mean) != 0.0);
        let lines = lines.map(|(name, unit, decimals, value)| {
            let mut line = vec![(*name).to_owned(), format!("{:.decimals$}", value(&self.mean))];
            line.extend(self.ci95.as_ref().map(|ci95| format!("± {:.decimals$}", value(ci95))));
            line.push((*unit).to_owned());
            line
        });
        let mut head = vec![String::new(), String::from("mean")];
        head.extend(self.ci95.as_ref().map(|_| String::from("95%")));
        head.push(String::new());
        html::table(&head, &lines.collect::<Vec<_>>(), 1)
    }

    /// What the connections of each group of stations waited for.
    fn why(&self) -> String {
        if self.groups.is_empty() {
            return String::new();
        }
        let head = ["TCP is", "stations", "connections", "RTT, ms"].map(String::from);
        let lines = self.groups.iter().map(|group| {
            let name = format!("station.{}", group.group);
            vec![group.verdict.clone(), name, group.flows.to_string(), format!("{:.1}", group.rtt_mean_ms)]
        });
        let table = html::table(&head, &lines.collect::<Vec<_>>(), 2);
        let chart = |title: &str, y: &str, names: &[&str], of: fn(&GroupResult) -> Vec<f64>| {
            let mark = |index: usize, (at, group): (usize, &GroupResult)| Mark {
                x: at as f64,
                y: 100.0 * of(group)[index],
                half: None,
            };
            let series = names.iter().enumerate().map(|(index, name)| Series {
                name: name.replace('_', " "),
                marks: self.groups.iter().enumerate().map(|group| mark(index, group)).collect(),
                faint: false,
            });
            let series = series.filter(|series| series.marks.iter().any(|mark| mark.y >= 0.05));
            let chart = Chart {
                title: title.into(),
                x: String::from("group of stations"),
                y: y.into(),
                categories: self.groups.iter().map(|group| format!("station.{}", group.group)).collect(),
                series: series.collect(),
                style: Style::Stacked,
                most: f64::INFINITY,
                from_zero: true,
                counts_from: None,
            };
            chart.figure()
        };
        let pictures = [
            chart("What the senders waited for", "% of time", LimitShares::NAMES, |g| g.limits.values()),
            chart("Where the round trip passes", "% of RTT", RadioWaits::NAMES, |g| g.round_trip.values()),
        ];
        format!("{table}{}", html::figures(&pictures.concat()))
    }

    fn stations(&self) -> String {
        let count = self.runs.iter().map(|run| run.stations.len()).max().unwrap_or(0);
        let mean = |value: fn(&StationResult) -> f64| {
            let mark = |station: usize| {
                let values = self.runs.iter().filter_map(|run| run.stations.get(station)).map(value);
                let (n, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
                Mark { x: station as f64, y: sum / n, half: None }
            };
            (0..count).map(mark).collect::<Vec<Mark>>()
        };
        let series = |name: &str, value| Series { name: name.into(), marks: mean(value), faint: false };
        let chart = |title: &str, y: &str, style, series: Vec<Series>| Chart {
            title: title.into(),
            x: String::from("station"),
            y: y.into(),
            categories: (0..count).map(|station| station.to_string()).collect(),
            series,
            style,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        let mut goodput = vec![series("download", |s| s.goodput_mbps)];
        if self.mean.upload_mbps > 0.0 {
            goodput.push(series("upload", |s| s.upload_mbps));
        }
        let acks =
            vec![series("sent", |s| s.acks_sent as f64), series("discarded", |s| s.acks_discarded as f64)];
        let pictures = [
            chart("Goodput of each station", "Mb/s", Style::Bars, goodput),
            chart("ACKs of each station", "ACKs", Style::Stacked, acks),
            chart("Mean round-trip time", "ms", Style::Bars, vec![series("RTT", |s| s.rtt_mean_ms)]),
            chart(
                "Mean MCS",
                "MCS index",
                Style::Bars,
                vec![series("downlink", |s| s.downlink_mcs), series("uplink", |s| s.uplink_mcs)],
            ),
        ];
        let map = self.runs.first().and_then(|run| map::figure(&run.stations)).unwrap_or_default();
        html::figures(&(pictures.iter().map(Chart::figure).collect::<String>() + &map))
    }

    /// Pictures over time of the first seed.
    pub fn over_time(&self, timeseries: Option<&str>, scenario: Option<&Scenario>) -> String {
        let Some(seed) = self.runs.first().map(|run| run.seed.to_string()) else { return String::new() };
        let Some(stations) = timeseries.map(|text| read(text, &seed)) else { return String::new() };
        let warmup = scenario.map(|scenario| scenario.run.warmup.as_secs_f64());
        let picture = |title: &str, y: &str, value: &dyn Fn(&Moment, &Moment) -> f64| {
            let mut series = if y == "Mb/s" { capacity(&stations, scenario) } else { Vec::new() };
            series.extend(lines(&stations, value));
            let chart = Chart {
                title: title.into(),
                x: String::from("time, s"),
                y: y.into(),
                categories: Vec::new(),
                series,
                style: Style::Lines,
                most: f64::INFINITY,
                from_zero: true,
                counts_from: warmup,
            };
            chart.figure()
        };
        let rate = |is: f64, was: f64, seconds: f64| (is - was) / seconds;
        let pictures = [
            picture("Goodput", "Mb/s", &|a, b| rate(b.downloaded, a.downloaded, b.time - a.time) * 8e-6),
            picture("Congestion window", "kB", &|_, b| b.cwnd / 1e3),
            picture("Smoothed round-trip time", "ms", &|_, b| if b.srtt > 0.0 { b.srtt } else { f64::NAN }),
            picture("Downlink queue", "kB", &|_, b| b.downlink_queue / 1e3),
            picture("Time in the downlink queue", "ms", &|a, b| {
                rate(b.queued_ns, a.queued_ns, b.link_sent - a.link_sent) / 1e6
            }),
            picture("Queue in the uplink buffer", "kB", &|_, b| b.uplink_queue / 1e3),
            picture("ACKs sent", "1/s", &|a, b| rate(b.acks_sent, a.acks_sent, b.time - a.time)),
            picture("MCS of downlink blocks", "MCS index", &|_, b| b.downlink_mcs),
            picture("MCS of uplink blocks", "MCS index", &|_, b| b.uplink_mcs),
        ];
        let pictures = html::figures(&pictures.concat());
        if self.runs.len() > 1 && !pictures.is_empty() {
            return format!("<p>Seed {seed}.</p>\n{pictures}");
        }
        pictures
    }
}

/// A row of `timeseries.csv`.
#[derive(Clone, Copy, Default)]
struct Moment {
    time: f64,
    downloaded: f64,
    cwnd: f64,
    srtt: f64,
    downlink_queue: f64,
    uplink_queue: f64,
    acks_sent: f64,
    queued_ns: f64,
    link_sent: f64,
    capacity: f64,
    /// Not a number where no block was sent, as of the next.
    downlink_mcs: f64,
    uplink_mcs: f64,
}

/// What a link can carry, in the background: one line if the stations share it, else one each.
fn capacity(stations: &BTreeMap<usize, Vec<Moment>>, scenario: Option<&Scenario>) -> Vec<Series> {
    let Some(link) = scenario.and_then(|scenario| scenario.link.as_ref()) else { return Vec::new() };
    let own = if link.per_station == Some(true) { stations.len().min(LINES) } else { 1 };
    let mbps = |a: &Moment, b: &Moment| (b.capacity - a.capacity) / (b.time - a.time) * 8e-6;
    let shown = stations.iter().take(own).map(|(station, moments)| (*station, moments.clone())).collect();
    let named = |series: Series| Series { name: String::from("capacity"), faint: true, ..series };
    lines(&shown, &mbps).into_iter().map(named).collect()
}

/// The moments of one seed, station by station; rows that are no numbers are left out.
fn read(text: &str, seed: &str) -> BTreeMap<usize, Vec<Moment>> {
    let mut stations: BTreeMap<usize, Vec<Moment>> = BTreeMap::new();
    let mut rows = text.lines();
    let names: Vec<&str> = rows.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let cell = |name: &str| column(name).and_then(|index| cells.get(index)).copied();
        let said = |name: &str| cell(name).and_then(|text| text.parse::<f64>().ok());
        let number = |name: &str| said(name).unwrap_or(0.0);
        let Some(station) = cell("station").and_then(|text| text.parse().ok()) else { continue };
        if cell("seed") == Some(seed) {
            stations.entry(station).or_insert_with(|| vec![Moment::default()]).push(Moment {
                time: number("time_s"),
                downloaded: number("downloaded"),
                cwnd: number("cwnd"),
                srtt: number("srtt_ms"),
                downlink_queue: number("downlink_queue"),
                uplink_queue: number("uplink_queue"),
                acks_sent: number("acks_sent"),
                queued_ns: number("link_queued_ns"),
                link_sent: number("link_sent"),
                capacity: number("link_capacity"),
                downlink_mcs: said("downlink_mcs").unwrap_or(f64::NAN),
                uplink_mcs: said("uplink_mcs").unwrap_or(f64::NAN),
            });
        }
    }
    stations
}

/// A line per station; of many stations, all of them in grey and their median.
fn lines(stations: &BTreeMap<usize, Vec<Moment>>, value: &dyn Fn(&Moment, &Moment) -> f64) -> Vec<Series> {
    let many = stations.len() > LINES;
    let line = |(station, moments): (&usize, &Vec<Moment>)| {
        let name = if many { String::from("each station") } else { format!("station {station}") };
        let pairs = moments.windows(2).filter(|pair| pair[1].time > pair[0].time);
        let marks: Vec<Mark> =
            pairs.map(|pair| Mark { x: pair[1].time, y: value(&pair[0], &pair[1]), half: None }).collect();
        Series { name, marks: thin(&marks), faint: many }
    };
    let mut series: Vec<Series> = stations.iter().map(line).collect();
    if many {
        let longest = series.iter().map(|series| series.marks.len()).max().unwrap_or(0);
        let median = (0..longest).filter_map(|index| {
            let marks: Vec<Mark> = series.iter().filter_map(|s| s.marks.get(index)).copied().collect();
            let mut values: Vec<f64> = marks.iter().map(|m| m.y).filter(|y| y.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            let y = *values.get(values.len() / 2)?;
            Some(Mark { x: marks[0].x, y, half: None })
        });
        let marks = median.collect();
        series.push(Series { name: String::from("median station"), marks, faint: false });
    }
    series
}

/// Means over equal stretches, where there are more points than the picture can show.
fn thin(marks: &[Mark]) -> Vec<Mark> {
    let size = marks.len().div_ceil(POINTS).max(1);
    let mean = |marks: &[Mark]| {
        let finite: Vec<f64> = marks.iter().map(|m| m.y).filter(|y| y.is_finite()).collect();
        let y = finite.iter().sum::<f64>() / finite.len() as f64;
        Mark { x: marks[marks.len() - 1].x, y, half: None }
    };
    marks.chunks(size).map(mean).collect()
}
