//! The page of a sweep: a picture for every figure over a swept key, with a line for each combination of the
//! other keys.

use super::chart::{Chart, Mark, Series, Style};
use super::html;
use paceline_sim::{Origin, Totals};
use serde::Deserialize;

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
struct Key {
    key: String,
    values: Vec<String>,
}

#[derive(Deserialize)]
struct Point {
    values: Vec<String>,
    mean: Totals,
    ci95: Option<Totals>,
}

/// A picture: title, unit, decimals, value.
type Figure = (&'static str, &'static str, usize, fn(&Totals) -> f64);

/// The pictures of a sweep. Chosen: goodput, delays, losses and utilisation; a chart of zeros is left out.
const FIGURES: [Figure; 17] = [
    ("Goodput of all stations", "Mb/s", 2, |t| t.goodput_mbps),
    ("Upload of all stations", "Mb/s", 2, |t| t.upload_mbps),
    ("ACKs sent", "1/s", 0, |t| t.acks_sent_per_s),
    ("ACKs discarded", "1/s", 0, |t| t.acks_discarded_per_s),
    ("Fairness: Jain index", "Jain index", 4, |t| t.jain_index),
    ("Mean round-trip time", "ms", 1, |t| t.rtt_mean_ms),
    ("Round-trip time, 95th percentile", "ms", 1, |t| t.rtt_p95_ms),
    ("Segments retransmitted", "%", 3, |t| 100.0 * t.retransmission_share),
    ("Downlink PRBs used", "%", 1, |t| 100.0 * t.downlink_prb_share),
    ("Uplink PRBs used", "%", 1, |t| 100.0 * t.uplink_prb_share),
    ("Transport blocks retransmitted by HARQ", "%", 1, |t| 100.0 * t.harq_retransmission_share),
    ("Scheduling requests", "1/s", 0, |t| t.scheduling_requests_per_s),
    ("Capacity of the link", "Mb/s", 2, |t| t.link_capacity_mbps),
    ("Time in the link's queue, mean", "ms", 1, |t| t.link_delay_mean_ms),
    ("Time in the link's queue, 95th percentile", "ms", 1, |t| t.link_delay_p95_ms),
    ("Lost by link or radio", "1/s", 1, |t| t.radio_losses_per_s),
    ("UDP datagrams lost", "%", 2, |t| 100.0 * t.udp_loss_share),
];

impl Sweep {
    pub fn page(&self) -> String {
        html::page(&format!("{}, sweep", self.scenario), &self.about(), &self.body())
    }
    /// A sentence that describes the results.
    pub fn about(&self) -> String {
        let runs = match self.seeds {
            1 => String::from("one seed"),
            n => format!("{n} seeds each, mean ± 95% confidence interval"),
        };
        let (version, commit) = (&self.paceline.version, &self.paceline.commit);
        format!("{} points, {runs}. Paceline {version} ({commit}).", self.points.len())
    }
    pub fn body(&self) -> String {
        let pictures: String = FIGURES.iter().map(|figure| self.picture(figure)).collect();
        let pictures = self.throughput_against_delay() + &pictures;
        html::section("Figures over the swept keys", &html::figures(&pictures))
            + &html::section("All points", &self.table())
    }
    pub fn table(&self) -> String {
        let head = self.over.iter().map(|key| key.key.clone());
        let shown: Vec<&Figure> =
            FIGURES.iter().filter(|f| self.points.iter().any(|point| f.3(&point.mean) != 0.0)).collect();
        let head: Vec<String> = head.chain(shown.iter().map(|f| format!("{}, {}", f.0, f.1))).collect();
        let line = |point: &Point| {
            let cells = shown.iter().map(|(_, _, decimals, value)| {
                let mean = format!("{:.decimals$}", value(&point.mean));
                let with_interval = |ci95: &Totals| format!("{mean} ± {:.decimals$}", value(ci95));
                point.ci95.as_ref().map_or(mean.clone(), with_interval)
            });
            point.values.iter().cloned().chain(cells).collect::<Vec<String>>()
        };
        let lines: Vec<Vec<String>> = self.points.iter().map(line).collect();
        html::table(&head, &lines, self.over.len())
    }

    /// Goodput over the time in a link's queue: a picture for each combination of the link's keys, with a
    /// point for each combination of the other keys.
    fn throughput_against_delay(&self) -> String {
        if self.points.iter().all(|point| point.mean.link_delay_p95_ms == 0.0) || self.points.len() < 2 {
            return String::new();
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
            let series = Series { name, marks: vec![mark], faint: false };
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

    fn picture(&self, (title, unit, _, value): &Figure) -> String {
        let numeric = self.over.iter().position(|key| key.values.len() > 1 && key.numbers().is_some());
        let along = numeric.unwrap_or(self.over.len().saturating_sub(1));
        let Some(key) = self.over.get(along) else { return String::new() };
        let numbers = key.numbers().filter(|_| numeric.is_some());
        let mut series: Vec<Series> = Vec::new();
        for point in &self.points {
            let Some(place) = point.values.get(along).and_then(|v| key.values.iter().position(|o| o == v))
            else {
                continue;
            };
            let others = point.values.iter().enumerate().filter(|(index, _)| *index != along);
            let name = others.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
            let x = numbers.as_ref().map_or(place as f64, |(numbers, _)| numbers[place]);
            let mark = Mark { x, y: value(&point.mean), half: point.ci95.as_ref().map(value) };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.marks.push(mark),
                None => series.push(Series { name, marks: vec![mark], faint: false }),
            }
        }
        for series in &mut series {
            series.marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        let unit_of_x = numbers.as_ref().map_or("", |(_, unit)| unit.as_str());
        let chart = Chart {
            title: (*title).to_owned(),
            x: if unit_of_x.is_empty() { key.key.clone() } else { format!("{}, {unit_of_x}", key.key) },
            y: (*unit).to_owned(),
            categories: if numbers.is_some() { Vec::new() } else { key.values.clone() },
            series,
            style: if numbers.is_some() { Style::Points } else { Style::Bars },
            most: match *unit {
                "%" => 100.0,
                "Jain index" => 1.0,
                _ => f64::INFINITY,
            },
            from_zero: numbers.is_none() || !title.starts_with("Fairness"),
            counts_from: None,
        };
        chart.figure()
    }
}

/// The last part of a path, without quotes and the suffix `.trace`.
fn short(value: &str) -> String {
    let value = value.trim_matches('"');
    let name = value.rsplit('/').next().unwrap_or(value);
    name.strip_suffix(".trace").unwrap_or(name).to_owned()
}

impl Key {
    /// The values as numbers with their unit; none if a value is no number, or the units differ.
    fn numbers(&self) -> Option<(Vec<f64>, String)> {
        let split = |value: &String| {
            let value = value.trim_matches('"').trim();
            let end = value.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
            let (number, unit) = value.split_at(end.unwrap_or(value.len()));
            Some((number.parse::<f64>().ok()?, unit.trim().to_owned()))
        };
        let pairs: Vec<(f64, String)> = self.values.iter().map(split).collect::<Option<_>>()?;
        let unit = pairs.first()?.1.clone();
        pairs.iter().all(|pair| pair.1 == unit).then(|| (pairs.iter().map(|pair| pair.0).collect(), unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_axis_are_numbers_with_one_unit() {
        let numbers = |values: &[&str]| {
            let values = values.iter().map(|v| (*v).to_owned()).collect();
            Key { key: String::from("k"), values }.numbers()
        };
        assert_eq!(numbers(&["5 MHz", "\"10 MHz\""]), Some((vec![5.0, 10.0], String::from("MHz"))));
        assert_eq!(numbers(&["1", "2.5"]), Some((vec![1.0, 2.5], String::new())));
        assert_eq!(numbers(&["1 ms", "2 s"]), None);
        assert_eq!(numbers(&["basic", "hybrid(6)"]), None);
    }
}
