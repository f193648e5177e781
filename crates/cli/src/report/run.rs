//! The page of a run or an emulation: figures, pictures of the stations, and pictures over time.

use super::drive;
use super::groups;
use super::kernel;
use super::map;
use paceline_report::html::{self, Cell};
use paceline_report::over_time;
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, steps};
use paceline_report::table;
use paceline_sim::results::{GroupResult, LimitShares, RadioDelays, RunGroup, StationResult};
use paceline_sim::{Origin, RunResult, Scenario, Totals};
use serde::Deserialize;

/// Stations of all seeds of which a distribution is drawn, at least. Chosen: fewer are single values.
pub const MIN_STATIONS: usize = 5;
/// Stations with a bar each, at most; more have their distributions alone. Chosen: thinner bars cannot be
/// told apart.
const MAX_BARS: usize = 60;

/// A figure of a station: title, unit, value.
pub type StationFigure = (&'static str, &'static str, fn(&StationResult) -> f64);

/// Figures whose distributions over the stations are drawn. Chosen: those that differ between stations.
pub const DISTRIBUTIONS: [StationFigure; 5] = [
    ("Goodput of a station", "Mb/s", |s| s.goodput_mbps),
    ("Upload of a station", "Mb/s", |s| s.upload_mbps),
    ("Mean round-trip time of a station", "ms", |s| s.rtt_mean_ms),
    ("Mean downlink MCS of a station", "MCS index", |s| s.downlink_mcs),
    ("Mean uplink MCS of a station", "MCS index", |s| s.uplink_mcs),
];

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
    #[serde(default)] // earlier versions wrote no groups
    groups: Vec<GroupResult>,
    runs: Vec<RunResult>,
}

impl Run {
    /// The page. `timeseries` and `resolved` are the texts of `timeseries.csv` and `resolved.toml`;
    /// `scenario` is the parsed `resolved.toml`.
    pub fn page(
        &self,
        timeseries: Option<&str>,
        resolved: Option<&str>,
        scenario: Option<&Scenario>,
    ) -> String {
        let link = scenario.is_some_and(|scenario| scenario.cell().is_none());
        let filter = if link { String::new() } else { format!(", ACK filter {}", self.scheme) };
        let runs = match self.runs.len() {
            1 => format!("seed {}", self.runs[0].seed),
            n => format!("{n} seeds, mean ± 95% confidence interval"),
        };
        let about = format!(
            "{}{filter}, {}, {:.1} s measured, {runs}. Paceline {} ({}).",
            self.mode,
            paceline_report::count(self.stations, "station"),
            self.measured_s,
            self.paceline.version,
            self.paceline.commit
        );
        let mut body = html::section("Figures", &self.totals());
        body += &html::section("Groups of stations", &groups::table(&self.groups));
        body += &html::section("Why TCP is as slow as it is", &self.limits());
        let connections: Vec<_> = self.runs.iter().flat_map(|run| run.kernel_connections.clone()).collect();
        body += &html::section("Connections of real programs", &kernel::table(&connections));
        body += &html::section("Station by station", &self.stations());
        let drive = scenario.zip(self.runs.first()).and_then(|(scenario, run)| drive::figure(scenario, run));
        body += &html::section("Drive", &drive.map(|map| html::figures(&map)).unwrap_or_default());
        body += &html::section("Distributions over the stations", &html::figures(&self.distributions()));
        body += &html::section("Over time", &self.over_time(timeseries, scenario));
        if let Some(text) = resolved {
            body += &html::section("Scenario", &html::folded("Every value, defaults included", text));
        }
        html::page(&format!("{}, {}", self.scenario, self.mode), &about, &body)
    }

    fn totals(&self) -> String {
        let lines = table::ROWS.iter().filter(|(_, _, _, value)| table::has_figure(value(&self.mean)));
        let lines = lines.map(|(name, unit, decimals, value)| {
            let mut line = vec![(*name).to_owned(), format!("{:.decimals$}", value(&self.mean))];
            line.extend(self.ci95.as_ref().map(|ci95| format!("± {:.decimals$}", value(ci95))));
            line.push((*unit).to_owned());
            line
        });
        let mut head = vec![String::from("figure"), String::from("mean")];
        head.extend(self.ci95.as_ref().map(|_| String::from("95%")));
        head.push(String::from("unit"));
        html::table(&head, &lines.collect::<Vec<_>>(), 1)
    }

    /// Limits of the connections of each group of stations: verdict, senders' time, parts of the round
    /// trip.
    fn limits(&self) -> String {
        if self.groups.is_empty() {
            return String::new();
        }
        let head = ["TCP is", "stations", "connections", "RTT, ms"].map(String::from);
        let lines = self.groups.iter().map(|group| {
            let name = group.label();
            let verdict = Cell { class: "wide", ..Cell::from(group.verdict.as_str()) };
            let figures = [group.flows.to_string(), format!("{:.1}", group.mean.rtt_mean_ms)];
            [verdict, name.into()].into_iter().chain(figures.map(Cell::from)).collect::<Vec<Cell>>()
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
                kind: Kind::Ours,
            });
            let series = series.filter(|series| series.marks.iter().any(|mark| mark.y >= 0.05));
            let chart = Chart {
                title: title.into(),
                x: String::from("group of stations"),
                y: y.into(),
                categories: self.groups.iter().map(GroupResult::label).collect(),
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
            chart("Where the round trip passes", "% of RTT", RadioDelays::NAMES, |g| g.round_trip.values()),
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
        let series = |name: &str, value| Series { name: name.into(), marks: mean(value), kind: Kind::Ours };
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
        let bars = pictures.iter().filter(|_| count <= MAX_BARS).map(Chart::figure);
        html::figures(&(bars.collect::<String>() + &map))
    }

    /// Distributions over the stations of all seeds, with a line for each group of stations.
    fn distributions(&self) -> String {
        let stations = || self.runs.iter().flat_map(|run| &run.stations);
        if stations().count() < MIN_STATIONS {
            return String::new();
        }
        let mut groups: Vec<usize> = stations().map(|station| station.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let names: Vec<String> =
            self.runs.first().map_or(&[][..], |run| &run.groups).iter().map(RunGroup::label).collect();
        let picture = |(title, unit, value): &StationFigure| {
            let series = groups.iter().map(|group| Series {
                name: names.get(*group).cloned().unwrap_or_default(),
                // Zero stands for a value that was not measured.
                marks: steps(
                    stations().filter(|s| s.group == *group).map(value).filter(|value| *value > 0.0),
                ),
                kind: Kind::of_keys((*group, names.len()), (0, 1)),
            });
            Chart::of_distributions(title, unit, series.collect()).figure()
        };
        DISTRIBUTIONS.iter().map(picture).collect()
    }

    /// Pictures over time of the first seed.
    pub fn over_time(&self, timeseries: Option<&str>, scenario: Option<&Scenario>) -> String {
        let (Some(run), Some(timeseries)) = (self.runs.first(), timeseries) else { return String::new() };
        let warmup = scenario.map(|scenario| scenario.run.warmup.as_secs_f64());
        let counts_from = run.measured_from_s.or(warmup);
        let pictures = over_time::figures(timeseries, run.seed, scenario, counts_from);
        if self.runs.len() > 1 && !pictures.is_empty() {
            return format!("<p>Seed {}.</p>\n{pictures}", run.seed);
        }
        pictures
    }
}
