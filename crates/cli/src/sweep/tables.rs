//! What a sweep gives out: `sweep.csv`, `runs.csv`, `sweep.json` and a table for people.

use super::grid::Grid;
use crate::output;
use crate::table::align;
use paceline_sim::results::mean_and_ci95;
use paceline_sim::{RunResult, Totals};
use serde_json::{Value, json};
use std::fmt::Write;

/// Heading, decimals and value of the totals in the printed table.
type Shown = (&'static str, usize, fn(&Totals) -> f64);

const SHOWN: [Shown; 8] = [
    ("goodput Mb/s", 2, |t| t.goodput_mbps),
    ("upload Mb/s", 2, |t| t.upload_mbps),
    ("ACKs sent 1/s", 0, |t| t.acks_sent_per_s),
    ("RTT ms", 1, |t| t.rtt_mean_ms),
    ("again %", 3, |t| 100.0 * t.retransmission_share),
    ("Jain", 4, |t| t.jain_index),
    ("DL blocks %", 1, |t| 100.0 * t.downlink_prb_share),
    ("UL blocks %", 1, |t| 100.0 * t.uplink_prb_share),
];

/// The results of a sweep.
pub struct Swept<'a> {
    grid: &'a Grid,
    runs: &'a [Vec<RunResult>],
    /// Mean and half width of the confidence interval, point by point.
    figures: Vec<(Totals, Option<Totals>)>,
}

impl<'a> Swept<'a> {
    /// Summarises the runs of every point.
    pub fn new(grid: &'a Grid, runs: &'a [Vec<RunResult>]) -> Self {
        Self { grid, runs, figures: runs.iter().map(|runs| mean_and_ci95(runs)).collect() }
    }
    /// `sweep.csv`: a row per point.
    pub fn sweep_csv(&self) -> String {
        let mut csv = self.keys();
        for name in Totals::names() {
            let _ = write!(csv, ",{name},{name}_ci95");
        }
        csv.push('\n');
        for (point, (mean, ci95)) in self.figures.iter().enumerate() {
            csv += &self.values(point);
            let ci95 = ci95.as_ref().map(Totals::values);
            for (index, mean) in mean.values().iter().enumerate() {
                let half = ci95.as_ref().map_or(String::new(), |all| format!("{:.6}", all[index]));
                let _ = write!(csv, ",{mean:.6},{half}");
            }
            csv.push('\n');
        }
        csv
    }
    /// `runs.csv`: a row per point and seed.
    pub fn runs_csv(&self) -> String {
        let mut csv = format!("{},seed,{}\n", self.keys(), Totals::names().join(","));
        for (point, runs) in self.runs.iter().enumerate() {
            for run in runs {
                let _ = write!(csv, "{},{}", self.values(point), run.seed);
                for value in run.totals.values() {
                    let _ = write!(csv, ",{value:.6}");
                }
                csv.push('\n');
            }
        }
        csv
    }
    /// `sweep.json`.
    pub fn json(&self) -> String {
        let points = self.grid.points.iter().zip(&self.figures).zip(self.runs);
        let points = points.map(|((point, (mean, ci95)), runs)| {
            json!({
                "values": point.values,
                "scheme": point.scenario.ack_filter.scheme.to_string(),
                "stations": point.scenario.station_count(),
                "measured_s": runs.first().map_or(0.0, |run| run.measured_s),
                "mean": mean,
                "ci95": ci95,
                "runs": runs.iter().map(|r| json!({"seed": r.seed, "totals": r.totals})).collect::<Value>(),
            })
        });
        let json = json!({
            "paceline": output::origin(),
            "scenario": self.grid.name,
            "mode": "simulated",
            "seeds": self.runs.first().map_or(0, Vec::len),
            "over": self.grid.axes,
            "points": points.collect::<Value>(),
        });
        serde_json::to_string_pretty(&json).expect("results are plain data") + "\n"
    }
    /// A table for people: points down, totals across; totals that are zero everywhere are left out.
    pub fn text(&self) -> String {
        let seeds = self.runs.first().map_or(0, Vec::len);
        let runs = if seeds == 1 {
            String::from("1 run each")
        } else {
            format!("{seeds} runs each, mean ± 95% confidence interval")
        };
        let (name, points) = (&self.grid.name, self.grid.points.len());
        let mut lines = vec![self.grid.axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>()];
        lines.extend(self.grid.points.iter().map(|point| point.values.clone()));
        for (heading, decimals, value) in SHOWN {
            if self.figures.iter().all(|(mean, _)| value(mean) == 0.0) {
                continue;
            }
            lines[0].push(heading.to_owned());
            for (line, (mean, ci95)) in lines[1..].iter_mut().zip(&self.figures) {
                let mean = format!("{:.decimals$}", value(mean));
                let both = |ci95: &Totals| format!("{mean} ± {:.decimals$}", value(ci95));
                line.push(ci95.as_ref().map_or(mean.clone(), both));
            }
        }
        format!("{name}, simulated: {points} points, {runs}\n{}", align(&lines, self.grid.axes.len()))
    }
    fn keys(&self) -> String {
        let keys: Vec<String> = self.grid.axes.iter().map(|axis| quoted(&axis.key)).collect();
        keys.join(",")
    }
    fn values(&self, point: usize) -> String {
        let values: Vec<String> = self.grid.points[point].values.iter().map(|v| quoted(v)).collect();
        values.join(",")
    }
}

/// A field of a CSV file (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
