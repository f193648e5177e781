//! The results of a sweep: `sweep.csv`, `runs.csv`, `differences.csv`, `sweep.json` and a text table.

use crate::report::groups::labels;
use paceline_report::table::{align, shows_acks};
use paceline_sim::results::{GroupFigures, GroupMeans, mean_and_ci95};
use paceline_sim::{RunResult, Totals};
use paceline_study::{Grid, PointDifference, paired};
use serde_json::{Value, json};

/// A column of the text table: heading, decimals, value.
type TextColumn = (&'static str, usize, fn(&Totals) -> f64);

/// The columns of the text table. Chosen: the totals that most sweeps compare.
const TEXT_COLUMNS: [TextColumn; 7] = [
    ("goodput Mb/s", 2, |t| t.goodput_mbps),
    ("upload Mb/s", 2, |t| t.upload_mbps),
    ("RTT ms", 1, |t| t.rtt_mean_ms),
    ("retransmitted %", 3, |t| 100.0 * t.retransmission_share),
    ("Jain", 4, |t| t.jain_index),
    ("DL PRBs %", 1, |t| 100.0 * t.downlink_prb_share),
    ("UL PRBs %", 1, |t| 100.0 * t.uplink_prb_share),
];

/// Behind them, where some ACKs are discarded or ACKs limit. Chosen: what an ACK filter saves.
const ACKS: TextColumn = ("ACKs sent 1/s", 0, |t| t.acks_sent_per_s);

/// Sentences on differences at most. Chosen: half of a terminal's lines; `differences.csv` has all.
const MAX_SENTENCES: usize = 12;

pub struct Swept<'a> {
    grid: &'a Grid,
    runs: &'a [Vec<RunResult>],
    /// Mean and half width of the 95% confidence interval of every point.
    figures: Vec<(Totals, Option<Totals>)>,
    /// The groups of stations of every point.
    groups: Vec<Vec<GroupMeans>>,
    /// Names of the groups; empty where there is only one, which has the totals.
    shown_groups: Vec<String>,
    /// Differences of points by pairs of runs with equal seeds.
    differences: Vec<PointDifference>,
}

impl<'a> Swept<'a> {
    pub fn new(grid: &'a Grid, runs: &'a [Vec<RunResult>]) -> Self {
        let figures = runs.iter().map(|runs| mean_and_ci95(runs)).collect();
        let groups: Vec<_> = runs.iter().map(|runs| GroupMeans::of_runs(runs)).collect();
        let names = labels(groups.iter().map(Vec::as_slice));
        let shown_groups = if names.len() > 1 { names } else { Vec::new() };
        let seeds = |runs: &Vec<RunResult>| runs.iter().map(|run| (run.seed, run.totals.clone())).collect();
        let differences = paired::of_grid(&grid.axes, &runs.iter().map(seeds).collect::<Vec<_>>());
        Self { grid, runs, figures, groups, shown_groups, differences }
    }
    /// `sweep.csv`: one row per point, with mean and half width of the confidence interval of every total
    /// and, with several groups of stations, of each group's figures.
    pub fn sweep_csv(&self) -> String {
        let mut header = key_fields(self.grid.axes.iter().map(|axis| axis.key.clone()));
        header.extend(Totals::names().iter().flat_map(|name| [(*name).to_owned(), format!("{name}_ci95")]));
        for group in &self.shown_groups {
            let names = GroupFigures::NAMES.iter().map(|name| format!("{group}.{name}"));
            header.extend(names.flat_map(|name| [name.clone(), format!("{name}_ci95")]));
        }
        let points = self.grid.points.iter().zip(&self.figures).zip(&self.groups);
        let rows = points.map(|((point, (mean, ci95)), groups)| {
            let half_widths = ci95.as_ref().map(Totals::values);
            let half_width =
                |index: usize| half_widths.as_ref().map_or(String::new(), |all| number(all[index]));
            let means = mean.values();
            let figures =
                means.iter().enumerate().flat_map(|(index, mean)| [number(*mean), half_width(index)]);
            let mut row = key_fields(point.values.iter().cloned());
            row.extend(figures);
            (0..self.shown_groups.len()).for_each(|group| row.extend(group_fields(groups.get(group))));
            row
        });
        to_csv(std::iter::once(header).chain(rows))
    }
    /// `runs.csv`: one row per point and seed, with every total.
    pub fn runs_csv(&self) -> String {
        let mut header = key_fields(self.grid.axes.iter().map(|axis| axis.key.clone()));
        header.push(String::from("seed"));
        header.extend(Totals::names().iter().map(|name| (*name).to_owned()));
        let points = self.grid.points.iter().zip(self.runs);
        let rows = points.flat_map(|(point, runs)| {
            runs.iter().map(|run| {
                let mut row = key_fields(point.values.iter().cloned());
                row.push(run.seed.to_string());
                row.extend(run.totals.values().iter().map(|value| number(*value)));
                row
            })
        });
        to_csv(std::iter::once(header).chain(rows))
    }
    /// `differences.csv`: one row per point with a point that it is compared with: the differences of all
    /// totals and the half widths of their confidence intervals; none without such points.
    pub fn differences_csv(&self) -> Option<String> {
        let mut header = key_fields(self.grid.axes.iter().map(|axis| axis.key.clone()));
        header.extend(["against", "pairs"].map(str::to_owned));
        header.extend(Totals::names().iter().flat_map(|name| [(*name).to_owned(), format!("{name}_ci95")]));
        let rows = self.differences.iter().map(|own| {
            let halves = own.paired.ci95.as_ref().map(Totals::values);
            let half = |index: usize| halves.as_ref().map_or(String::new(), |all| number(all[index]));
            let mut row = key_fields(self.grid.points[own.point].values.iter().cloned());
            row.extend([own.against.clone(), own.paired.seeds.len().to_string()]);
            let means = own.paired.mean.values();
            row.extend(means.iter().enumerate().flat_map(|(index, mean)| [number(*mean), half(index)]));
            row
        });
        (!self.differences.is_empty()).then(|| to_csv(std::iter::once(header).chain(rows)))
    }
    pub fn json(&self) -> String {
        let points = self.grid.points.iter().zip(&self.figures).zip(self.runs).zip(&self.groups);
        let points = points.map(|(((point, (mean, ci95)), runs), groups)| {
            json!({
                "values": point.values,
                "scheme": point.scenario.access.ack_scheme().to_string(),
                "stations": point.scenario.station_count(),
                "measured_s": runs.first().map_or(0.0, |run| run.measured_s),
                "mean": mean,
                "ci95": ci95,
                "groups": groups,
                "runs": runs.iter().map(|r| json!({"seed": r.seed, "totals": r.totals})).collect::<Value>(),
            })
        });
        let json = json!({
            "paceline": paceline_study::origin(),
            "scenario": self.grid.name,
            "mode": "simulated",
            "seeds": self.runs.first().map_or(0, Vec::len),
            "over": self.grid.axes,
            "points": points.collect::<Value>(),
        });
        serde_json::to_string_pretty(&json).expect("results are plain data") + "\n"
    }
    /// A text table: a line for each point, a column for each total that is not zero everywhere.
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
        let acks = self.figures.iter().any(|(mean, _)| shows_acks(mean)).then_some(ACKS);
        for (heading, decimals, value) in TEXT_COLUMNS.into_iter().chain(acks) {
            if self.figures.iter().all(|(mean, _)| value(mean) == 0.0) {
                continue;
            }
            lines[0].push(heading.to_owned());
            for (line, (mean, ci95)) in lines[1..].iter_mut().zip(&self.figures) {
                let mean = format!("{:.decimals$}", value(mean));
                let with_interval = |ci95: &Totals| format!("{mean} ± {:.decimals$}", value(ci95));
                line.push(ci95.as_ref().map_or(mean.clone(), with_interval));
            }
        }
        for (group, name) in self.shown_groups.iter().enumerate() {
            lines[0].push(format!("{name} Mb/s"));
            for (line, groups) in lines[1..].iter_mut().zip(&self.groups) {
                line.push(groups.get(group).map_or(String::new(), payload_rate));
            }
        }
        let table = align(&lines, self.grid.axes.len());
        format!("{name}, simulated: {points} points, {runs}\n{table}{}", self.differences_in_words())
    }
    /// A sentence for each point that is compared with another.
    fn differences_in_words(&self) -> String {
        let said: Vec<&str> =
            self.differences.iter().take(MAX_SENTENCES).map(|own| own.sentence.as_str()).collect();
        match self.differences.len().checked_sub(MAX_SENTENCES) {
            _ if said.is_empty() => String::new(),
            Some(more) if more > 0 => {
                format!("\n{}\nand {more} more: differences.csv\n", said.join("\n"))
            }
            _ => format!("\n{}\n", said.join("\n")),
        }
    }
}

/// Goodput of a group or, where it has none, its upload.
fn payload_rate(group: &GroupMeans) -> String {
    let downloads = group.mean.goodput_mbps > 0.0 || group.mean.upload_mbps == 0.0;
    let value = |of: &GroupFigures| if downloads { of.goodput_mbps } else { of.upload_mbps };
    let mean = format!("{:.2}", value(&group.mean));
    group.ci95.as_ref().map_or(mean.clone(), |ci95| format!("{mean} ± {:.2}", value(ci95)))
}

/// Mean and half width of every figure of a group; empty fields for one that the point does not have.
fn group_fields(group: Option<&GroupMeans>) -> Vec<String> {
    let text = |value: Option<f64>| value.map_or(String::new(), number);
    let values = |figures: Option<GroupFigures>| figures.map(|figures| figures.values());
    let (means, halves) = (values(group.map(|own| own.mean)), values(group.and_then(|own| own.ci95)));
    let at = |values: &Option<Vec<f64>>, figure: usize| values.as_ref().map(|values| values[figure]);
    let figures = 0..GroupFigures::NAMES.len();
    figures.flat_map(|figure| [text(at(&means, figure)), text(at(&halves, figure))]).collect()
}

/// The fields of the swept keys; a grid without keys has one empty field, so that every table has a first
/// column.
fn key_fields(fields: impl Iterator<Item = String>) -> Vec<String> {
    let fields: Vec<String> = fields.collect();
    if fields.is_empty() { vec![String::new()] } else { fields }
}

/// A figure with the six decimals that all tables of results have.
fn number(value: f64) -> String {
    format!("{value:.6}")
}

fn to_csv(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("rows are equally long, and memory can be written to");
    }
    String::from_utf8(writer.into_inner().expect("memory can be written to")).expect("fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_rfc_4180_asks_for_it() {
        let fields = ["basic", "a,b", "\"5 MHz\"", ""].map(String::from).to_vec();
        assert_eq!(to_csv(std::iter::once(fields)), "basic,\"a,b\",\"\"\"5 MHz\"\"\",\n");
    }
}
