//! The page of a sweep: pictures of every figure over the swept keys, distributions over the stations, and a
//! table of all points.

use super::figures;
use super::groups;
use super::over_keys::key::{Key, short};
use super::run::{DISTRIBUTIONS, MIN_STATIONS};
use paceline_report::count;
use paceline_report::html::{self, Cell};
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, steps};
use paceline_report::table::{self, Column, has_figure};
use paceline_sim::results::GroupMeans;
use paceline_sim::{Origin, RunResult, Totals};
use paceline_study::{Axis, PointDifference, paired};
use serde::Deserialize;
use std::path::Path;

/// `sweep.json`.
#[derive(Deserialize)]
pub struct Sweep {
    paceline: Origin,
    scenario: String,
    seeds: usize,
    over: Vec<Key>,
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    values: Vec<String>,
    mean: Totals,
    ci95: Option<Totals>,
    #[serde(default)] // earlier versions wrote no groups
    groups: Vec<GroupMeans>,
    #[serde(default)]
    runs: Vec<Seed>,
}

#[derive(Deserialize)]
struct Seed {
    seed: u64,
    totals: Totals,
}

/// The file of a run among the parts of a sweep.
#[derive(Deserialize)]
struct Part {
    run: RunResult,
}

/// Points of a sweep whose distributions are drawn, at most. Chosen: more pictures than a reader compares.
const MAX_POINTS: usize = 40;

impl Sweep {
    /// The page; `folder` is that of the sweep.
    pub fn page(&self, folder: &Path) -> String {
        html::page(&format!("{}, sweep", self.scenario), &self.about(), &self.body(folder))
    }
    /// A sentence that describes the results.
    pub fn about(&self) -> String {
        let runs = match self.seeds {
            1 => String::from("one seed"),
            n => format!("{n} seeds each, mean ± 95% confidence interval"),
        };
        let (version, commit) = (&self.paceline.version, &self.paceline.commit);
        format!("{}, {runs}. Paceline {version} ({commit}).", count(self.points.len() as u64, "point"))
    }
    pub fn body(&self, folder: &Path) -> String {
        let point = |point: &Point| (point.values.clone(), point.mean.clone(), point.ci95.clone());
        let points: Vec<_> = self.points.iter().map(point).collect();
        let groups: Vec<_> = self.points.iter().map(|p| (&p.values[..], &p.groups[..])).collect();
        let mut pictures = groups::pictures(&self.over, &groups);
        pictures.extend(self.throughput_against_delay());
        pictures.extend(figures::pictures(&self.over, &points));
        let (sentences, differences) = self.differences();
        html::section("Results over the swept keys", &html::answer(&sentences, &mut pictures))
            + &html::section("All points", &self.table())
            + &html::section("Differences by pairs of equal seeds", &differences)
            + &html::section("More pictures", &html::figures(&pictures.concat()))
            + &html::section("Distributions over the stations", &html::figures(&self.distributions(folder)))
    }
    /// Differences from the first value of a key, in sentences, and in figures as a table.
    fn differences(&self) -> (Vec<String>, String) {
        let axes: Vec<Axis> = self
            .over
            .iter()
            .map(|Key { key, values }| Axis { key: key.clone(), values: values.clone() })
            .collect();
        let seeds = |point: &Point| point.runs.iter().map(|run| (run.seed, run.totals.clone())).collect();
        let found = paired::of_grid(&axes, &self.points.iter().map(seeds).collect::<Vec<_>>());
        if found.is_empty() {
            return Default::default();
        }
        let sentences: Vec<String> =
            found.iter().take(MAX_POINTS).map(|difference| difference.sentence.clone()).collect();
        let differs = |row: &&table::Row| found.iter().any(|own| has_figure((row.3)(&own.paired.mean)));
        let means: Vec<&Totals> = self.points.iter().map(|point| &point.mean).collect();
        let shown: Vec<&table::Row> = table::rows(&means).into_iter().filter(differs).collect();
        let head = self.over.iter().map(|key| key.key.clone()).chain([String::from("against")]);
        let head: Vec<String> =
            head.chain(shown.iter().map(|(name, unit, ..)| table::heading(name, unit))).collect();
        let line = |own: &PointDifference| {
            let column = Column::of_pairs(&own.paired);
            let keys = self.points[own.point].values.iter().cloned().chain([own.against.clone()]);
            keys.chain(shown.iter().map(|row| column.cell(row))).collect::<Vec<String>>()
        };
        let lines: Vec<Vec<String>> = found.iter().map(line).collect();
        (sentences, html::table(&head, &lines, self.over.len() + 1))
    }
    pub fn table(&self) -> String {
        let head = self.over.iter().map(|key| key.key.clone());
        let shown = figures::shown(self.points.iter().map(|point| &point.mean));
        let head: Vec<String> = head.chain(shown.iter().map(|f| table::heading(f.0, f.1))).collect();
        let keyed =
            |(key, value): (&Key, &String)| Cell { key: key.sort_key(value), ..Cell::from(value.as_str()) };
        let line = |point: &Point| {
            let cells = shown.iter().map(|(_, _, decimals, value)| {
                let mean = format!("{:.decimals$}", value(&point.mean));
                let with_interval = |ci95: &Totals| format!("{mean} ± {:.decimals$}", value(ci95));
                point.ci95.as_ref().map_or(mean.clone(), with_interval)
            });
            self.over.iter().zip(&point.values).map(keyed).chain(cells.map(Cell::from)).collect()
        };
        let lines: Vec<Vec<Cell>> = self.points.iter().map(line).collect();
        html::table(&head, &lines, self.over.len())
    }

    /// Goodput over the time in a link's queue: a picture for each combination of the link's keys, with a
    /// point for each combination of the other keys.
    fn throughput_against_delay(&self) -> Vec<String> {
        if self.points.iter().all(|point| point.mean.link_delay_p95_ms == 0.0) || self.points.len() < 2 {
            return Vec::new();
        }
        let of_link = |index: &usize| self.over[*index].key.starts_with("link.");
        let named = |point: &Point, keep: &dyn Fn(&usize) -> bool| {
            let kept = (0..self.over.len()).filter(keep).map(|index| short(&point.values[index]));
            kept.collect::<Vec<String>>().join(", ")
        };
        let mut pictures: Vec<(String, Vec<Series>)> = Vec::new();
        for point in &self.points {
            let (link, name) = (named(point, &of_link), named(point, &|index| !of_link(index)));
            let half = point.ci95.as_ref().map(|ci95| ci95.goodput_mbps);
            let mark = Mark { x: point.mean.link_delay_p95_ms, y: point.mean.goodput_mbps, half };
            let series = Series { name, marks: vec![mark], kind: Kind::Ours };
            match pictures.iter_mut().find(|(other, _)| *other == link) {
                Some((_, all)) => all.push(series),
                None => pictures.push((link, vec![series])),
            }
        }
        let figure = |(link, series): (String, Vec<Series>)| {
            let chart = Chart {
                title: format!(
                    "Throughput against delay{}",
                    if link.is_empty() { link } else { format!(": {link}") }
                ),
                x: String::from("time in the downlink queue, 95th percentile, ms"),
                y: String::from("goodput, Mb/s"),
                categories: Vec::new(),
                series,
                style: Style::Scatter,
                most: f64::INFINITY,
                from_zero: true,
                counts_from: None,
            };
            chart.figure()
        };
        pictures.into_iter().map(figure).collect()
    }
    /// Distributions of the stations' goodput and round-trip times over all seeds: a picture for each value
    /// of the first key and a line for each combination of the others, or one picture. Empty with few
    /// stations or without the runs' files.
    fn distributions(&self, folder: &Path) -> String {
        if self.points.len() > MAX_POINTS {
            return String::new();
        }
        let stations = |(index, point): (usize, &Point)| {
            let run = |seed: &Seed| {
                let file = folder.join(format!("parts/point-{index:04}-seed-{}.json", seed.seed));
                serde_json::from_str::<Part>(&std::fs::read_to_string(file).ok()?).ok()
            };
            let runs = point.runs.iter().filter_map(run);
            runs.flat_map(|part| part.run.stations).collect::<Vec<_>>()
        };
        let stations: Vec<_> = self.points.iter().enumerate().map(stations).collect();
        if stations.iter().any(|stations| stations.len() < MIN_STATIONS) {
            return String::new();
        }
        let together = self.over.len() == 1;
        let mut html = String::new();
        for (title, unit, value) in DISTRIBUTIONS {
            for first in
                self.over.first().map_or(&[][..], |key| if together { &key.values[..1] } else { &key.values })
            {
                let points = self.points.iter().zip(&stations);
                let points = points.filter(|(point, _)| together || point.values.first() == Some(first));
                let series = points.map(|(point, stations)| Series {
                    name: point.values[usize::from(!together)..]
                        .iter()
                        .map(|v| short(v))
                        .collect::<Vec<_>>()
                        .join(", "),
                    marks: steps(stations.iter().map(value).filter(|value| *value > 0.0)),
                    kind: Kind::Ours,
                });
                let of =
                    if together { String::new() } else { format!(": {} {}", self.over[0].key, short(first)) };
                html += &Chart::of_distributions(&format!("{title}{of}"), unit, series.collect()).figure();
            }
        }
        html
    }
}
