//! The page of a run or an emulation: figures, pictures of the stations, and pictures over time.

use super::drive;
use super::groups;
use super::kernel;
use super::map;
use paceline_report::html;
use paceline_report::over_time;
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, steps};
use paceline_report::table;
use paceline_report::text::verdict_sentences;
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
        let filter = match self.scheme.as_str() {
            "basic" => String::new(), // no filter
            scheme => format!(", ACK filter {scheme}"),
        };
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
        let connections: Vec<_> = self.runs.iter().flat_map(|run| run.kernel_connections.clone()).collect();
        let mut over_time = self.over_time(timeseries, scenario);
        let mut limits = self.limits();
        // Goodput and round-trip time over time, and where the round trip passes.
        let mut pictures: Vec<String> = over_time.drain(..over_time.len().min(2)).collect();
        pictures.append(&mut limits);
        let mut body = html::section("Result", &html::answer(&self.sentences(), &mut pictures));
        body += &html::section("Groups of stations", &groups::table(&self.groups));
        body += &html::section("Figures", &self.totals());
        body += &html::section("What limits TCP", &html::figures(&pictures.concat()));
        body += &html::section("Connections of real programs", &kernel::table(&connections));
        body += &html::section("Station by station", &self.stations());
        let drive = scenario.zip(self.runs.first()).and_then(|(scenario, run)| drive::figure(scenario, run));
        body += &html::section("Drive", &drive.map(|map| html::figures(&map)).unwrap_or_default());
        body += &html::section("Distributions over the stations", &html::figures(&self.distributions()));
        body += &html::section("Over time", &html::figures(&over_time.concat()));
        if let Some(text) = resolved {
            body += &html::section("Scenario", &html::folded("Every value, defaults included", text));
        }
        html::page(&format!("{}, {}", self.scenario, self.mode), &about, &body)
    }

    fn totals(&self) -> String {
        let lines = table::rows(&[&self.mean]).into_iter();
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

    /// Goodput, round-trip time and retransmissions, and the verdict on each group of stations.
    fn sentences(&self) -> Vec<String> {
        let Totals { goodput_mbps, upload_mbps, rtt_mean_ms, retransmission_share, .. } = self.mean;
        let figures = [
            ("goodput", goodput_mbps, format!("{goodput_mbps:.2} Mb/s")),
            ("upload", upload_mbps, format!("{upload_mbps:.2} Mb/s")),
            ("RTT after the warm-up", rtt_mean_ms, format!("{rtt_mean_ms:.1} ms")),
            ("segments retransmitted", retransmission_share, format!("{:.3}%", 100.0 * retransmission_share)),
        ];
        let said = figures.iter().filter(|(_, value, _)| table::has_figure(*value));
        let said: Vec<String> = said.map(|(name, _, text)| format!("{name} {text}")).collect();
        let all = format!("{}: {}.", paceline_report::count(self.stations, "station"), said.join(", "));
        let totals = (!said.is_empty()).then_some(all);
        totals.into_iter().chain(verdict_sentences(&self.groups)).collect()
    }

    /// Pictures of the limits of each group of stations: parts of the round trip, senders' time.
    fn limits(&self) -> Vec<String> {
        let chart = |title: &str, y: &str, names: &[&str], of: &dyn Fn(&GroupResult) -> Vec<f64>| {
            let mark = |index: usize, (at, group): (usize, &GroupResult)| Mark {
                x: at as f64,
                y: 100.0 * of(group)[index],
                half: None,
            };
            let series = names.iter().enumerate().map(|(index, name)| Series {
                name: name.replace('_', " ").replace("harq", "HARQ"),
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
                most: 100.0,
                from_zero: true,
                counts_from: None,
            };
            chart.figure()
        };
        // The parts that the cell measures and the rest; a link measures none.
        let parts = |group: &GroupResult| {
            let mut parts = group.round_trip.values();
            let radio: f64 = parts.iter().sum();
            parts.push(if radio > 0.0 { 1.0 - radio } else { 0.0 });
            parts
        };
        let names = [RadioDelays::NAMES, &["propagation, wired path, delayed ACKs"]].concat();
        let pictures = [
            chart("Where the round trip passes", "% of RTT, over whole connections", &names, &parts),
            chart("What the senders waited for", "% of time", LimitShares::NAMES, &|g| g.limits.values()),
        ];
        pictures.into_iter().filter(|picture| !picture.is_empty()).collect()
    }

    /// Names of the groups of stations.
    fn group_names(&self) -> Vec<String> {
        self.runs.first().map_or(&[][..], |run| &run.groups).iter().map(RunGroup::label).collect()
    }

    /// Bars of the stations' means over the seeds, in the colours of their groups.
    fn stations(&self) -> String {
        let stations = self.runs.iter().map(|run| &run.stations).max_by_key(|stations| stations.len());
        let group_of: Vec<usize> = stations.into_iter().flatten().map(|station| station.group).collect();
        let names = self.group_names();
        let mean = |value: fn(&StationResult) -> f64, station: usize| {
            let values = self.runs.iter().filter_map(|run| run.stations.get(station)).map(value);
            let (n, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
            Mark { x: station as f64, y: sum / n, half: None }
        };
        // Each station has a bar in one of these series: they stack without one upon another.
        let of_groups = |value: fn(&StationResult) -> f64| {
            let series = |group: usize| {
                let own = (0..group_of.len()).filter(|station| group_of[*station] == group);
                let name = if names.len() > 1 { names[group].clone() } else { String::from("sent") };
                let kind = Kind::of_keys((group, names.len()), (0, 1));
                Series { name, marks: own.map(|station| mean(value, station)).collect(), kind }
            };
            (0..names.len()).map(series).collect::<Vec<Series>>()
        };
        let chart = |title: &str, y: &str, series: Vec<Series>| Chart {
            title: title.into(),
            x: String::from("station"),
            y: y.into(),
            categories: (0..group_of.len()).map(|station| station.to_string()).collect(),
            series,
            style: Style::Stacked,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        let mut charts = vec![
            chart("Goodput of each station", "Mb/s", of_groups(|s| s.goodput_mbps)),
            chart("Upload of each station", "Mb/s", of_groups(|s| s.upload_mbps)),
            chart("Mean round-trip time of each station", "ms", of_groups(|s| s.rtt_mean_ms)),
            chart("Mean downlink MCS of each station", "MCS index", of_groups(|s| s.downlink_mcs)),
            chart("Mean uplink MCS of each station", "MCS index", of_groups(|s| s.uplink_mcs)),
        ];
        if table::shows_acks(&self.mean) {
            let mut acks = of_groups(|s| s.acks_sent as f64);
            let marks = (0..group_of.len()).map(|station| mean(|s| s.acks_discarded as f64, station));
            acks.push(Series {
                name: String::from("discarded"),
                marks: marks.collect(),
                kind: Kind::Published,
            });
            charts.push(chart("ACKs of each station", "ACKs", acks));
        }
        let map = self.runs.first().and_then(|run| map::figure(&run.stations)).unwrap_or_default();
        let bars = charts.iter().filter(|_| group_of.len() <= MAX_BARS).map(Chart::figure);
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
        let names = self.group_names();
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

    /// Pictures over time of the first seed, goodput and round-trip time first.
    pub fn over_time(&self, timeseries: Option<&str>, scenario: Option<&Scenario>) -> Vec<String> {
        let (Some(run), Some(timeseries)) = (self.runs.first(), timeseries) else { return Vec::new() };
        let warmup = scenario.map(|scenario| scenario.run.warmup.as_secs_f64());
        let counts_from = run.measured_from_s.or(warmup);
        over_time::figures(timeseries, run.seed, scenario, counts_from, table::shows_acks(&self.mean))
    }
}
