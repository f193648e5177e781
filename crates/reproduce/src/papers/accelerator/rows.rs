//! Rows of the comparison from the runs of all parts.

use super::parts::{
    BEST_CONDITION_MBPS, CONDITIONS, CONTROLS, FILES, GOODPUT_TOLERANCE, PLATEAU_MBPS, PROBE_3G,
    PROBE_LOSS_POINTS, PROBE_LTE, PROBE_RTT_FACTOR, PROFILES, SOURCE, parts,
};
use crate::{Estimate, Row, Value};
use paceline_sim::results::RunResult;
use std::collections::BTreeMap;

/// Axis of the pictures over the rate at which the source writes.
const SOURCE_AXIS: &str = "rate of the source, Mb/s";

/// The experiment: the runs of all parts.
pub struct Experiment<'a> {
    runs: BTreeMap<String, &'a [Vec<RunResult>]>,
}

impl<'a> Experiment<'a> {
    /// `runs` has the runs of each of [`parts`], in this order.
    ///
    /// # Panics
    /// If a part or a point is missing.
    pub fn new(runs: &'a [Vec<Vec<RunResult>>]) -> Self {
        let parts = parts();
        assert_eq!(runs.len(), parts.len(), "runs of every part");
        for (part, runs) in parts.iter().zip(runs) {
            let points = part.over.iter().map(|(_, values)| values.len()).product::<usize>();
            assert_eq!(runs.len(), points, "runs of every point of {}", part.name);
        }
        Self { runs: parts.into_iter().map(|part| part.name).zip(runs.iter().map(Vec::as_slice)).collect() }
    }
    /// Rows of the probes' tables and rows 2a to 2g.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.probe("probe-3g", &PROBE_3G, ["3G probe RTT", "3G probe loss"]);
        rows.extend(self.probe("probe-lte", &PROBE_LTE, ["LTE probe RTT", "LTE probe loss"]));
        rows.extend(
            PROFILES.iter().enumerate().map(|(index, profile)| self.accelerated_source(index, profile)),
        );
        rows.push(self.direct_source());
        rows.extend(PROFILES.iter().enumerate().map(|(index, profile)| self.files(index, profile)));
        rows.push(self.lte_udp());
        rows.push(self.lte_direct());
        rows.extend(PROFILES.iter().enumerate().map(|(index, profile)| self.lte_accelerated(index, profile)));
        rows.push(self.opportunistic());
        rows
    }
    /// Estimate of a value over the seeds of a part's point.
    fn of(&self, part: &str, point: usize, value: impl Fn(&RunResult) -> f64) -> Estimate {
        Estimate::of(self.runs[part][point].iter().map(value))
    }
    fn goodput(&self, part: &str, point: usize) -> Estimate {
        self.of(part, point, |run| run.totals.goodput_mbps)
    }
    /// Goodput of `a` as a share of that of `b`, percent, paired by seed.
    fn share(&self, a: (&str, usize), b: (&str, usize)) -> Estimate {
        let pairs = self.runs[a.0][a.1].iter().zip(&self.runs[b.0][b.1]);
        Estimate::of(pairs.map(|(a, b)| 100.0 * a.totals.goodput_mbps / b.totals.goodput_mbps))
    }
    fn mean(&self, part: &str, point: usize, value: impl Fn(&RunResult) -> f64) -> f64 {
        self.of(part, point, value).mean.unwrap_or(f64::NAN)
    }

    fn probe(&self, part: &str, table: &[(f64, f64, f64)], quantities: [&str; 2]) -> Vec<Row> {
        let value = |unit, index: usize, published: f64, of: fn(&RunResult) -> f64| {
            let rate = table[index].0;
            let ours = self.of(part, index, of);
            Value::new(format!("{rate} Mb/s"), unit, Some(published), ours).at(rate, "")
        };
        let rtt: Vec<Value> =
            (0..table.len()).map(|i| value("ms", i, table[i].1, |run| run.totals.rtt_mean_ms)).collect();
        let loss = |run: &RunResult| 100.0 * run.totals.udp_loss_share;
        let loss: Vec<Value> = (0..table.len()).map(|i| value("%", i, table[i].2, loss)).collect();
        let capacity = self.mean(part, 0, |run| run.totals.link_capacity_mbps);
        let factor = |p: f64| move |x: f64| x <= p * PROBE_RTT_FACTOR && x >= p / PROBE_RTT_FACTOR;
        let points = |p: f64| move |x: f64| (x - p).abs() <= PROBE_LOSS_POINTS;
        let ids = if part == "probe-3g" { ["3G-rtt", "3G-loss"] } else { ["LTE-rtt", "LTE-loss"] };
        let row = |id: &'static str,
                   quantity: &str,
                   values: Vec<Value>,
                   within: &dyn Fn(&Value) -> (bool, bool),
                   how: String| {
            let all: Vec<(bool, bool)> = values.iter().map(within).collect();
            let count = all.iter().filter(|(is, _)| *is).count();
            Row {
                id: id.into(),
                quantity: quantity.to_owned(),
                published: "see the values".into(),
                axis: Some("rate of the probe, Mb/s".into()),
                holds: count == all.len(),
                holds_in_ci95: all.iter().all(|(_, in_ci95)| *in_ci95),
                why: format!(
                    "holds within {how}: {count} of {} rates do; the channel can carry {capacity:.2} Mb/s on average. One set of parameters cannot give every published rate, since more was delivered at higher ones than at those where the queue was full already",
                    all.len()
                ),
                values,
            }
        };
        let rtt_within = |v: &Value| {
            let within = factor(v.published.unwrap_or(f64::NAN));
            (v.ours.mean_meets(within), v.ours.interval_meets(within))
        };
        let loss_within = |v: &Value| {
            let within = points(v.published.unwrap_or(f64::NAN));
            (v.ours.mean_meets(within), v.ours.interval_meets(within))
        };
        vec![
            row(ids[0], quantities[0], rtt, &rtt_within, format!("a factor of {PROBE_RTT_FACTOR}")),
            row(
                ids[1],
                quantities[1],
                loss,
                &loss_within,
                format!("{PROBE_LOSS_POINTS:.0} percentage points"),
            ),
        ]
    }

    fn accelerated_source(&self, profile: usize, name: &str) -> Row {
        let point = |index: usize| profile * SOURCE.len() + index;
        let part = "source-accelerated";
        let values: Vec<Value> = SOURCE
            .iter()
            .enumerate()
            .map(|(index, (rate, published))| {
                let ours = self.goodput(part, point(index));
                Value::new(format!("source {rate} Mb/s"), "Mb/s", Some(*published), ours).at(*rate, "")
            })
            .collect();
        // The adaptive control may exceed the published goodput.
        let least = |p: f64, x: f64| x >= p * (1.0 - GOODPUT_TOLERANCE);
        let near =
            move |p: f64, x: f64| least(p, x) && (name == "adaptive" || x <= p * (1.0 + GOODPUT_TOLERANCE));
        let is = |v: &Value| v.ours.mean_meets(|x| near(v.published.unwrap_or(f64::NAN), x));
        let in_ci95 = |v: &Value| v.ours.interval_meets(|x| near(v.published.unwrap_or(f64::NAN), x));
        let last = point(SOURCE.len() - 1);
        Row {
            id: ["2a", "2a-adaptive"][profile].into(),
            quantity: format!("3G, accelerated goodput by the source's rate, {name} rate control"),
            published: "follows the source up to 5.19 of 5.6 Mb/s".into(),
            axis: Some(SOURCE_AXIS.into()),
            holds: values.iter().all(is),
            holds_in_ci95: values.iter().all(in_ci95),
            why: format!(
                "within {:.0}% of what was published: {} of {}; at the highest rate the channel can carry {:.2} Mb/s with headers, its queue holds {:.0} ms on average, and {:.2}% were sent again",
                100.0 * GOODPUT_TOLERANCE,
                values.iter().filter(|v| is(v)).count(),
                values.len(),
                self.mean(part, last, |run| run.totals.link_capacity_mbps),
                self.mean(part, last, |run| run.totals.link_delay_mean_ms),
                self.mean(part, last, |run| 100.0 * run.totals.retransmission_share)
            ),
            values,
        }
    }

    fn direct_source(&self) -> Row {
        let part = "source-direct";
        let (low, high) = PLATEAU_MBPS;
        let mut values = Vec::new();
        for (control, name) in CONTROLS.iter().enumerate() {
            for (index, (rate, _)) in SOURCE.iter().enumerate().skip(2) {
                let ours = self.goodput(part, control * SOURCE.len() + index);
                let value = Value::new(format!("{name}, source {rate} Mb/s"), "Mb/s", None, ours);
                values.push(value.within(low, high).at(*rate, name));
            }
        }
        let level = |x: f64| (low..=high).contains(&x);
        let rtt = self.mean(part, 2, |run| run.totals.rtt_mean_ms);
        let probe = self.mean("probe-3g", 1, |run| run.totals.rtt_mean_ms);
        Row {
            id: "2b".into(),
            quantity: String::from(
                "3G, goodput without accelerator, window of 17 KB, source of 2.4 Mb/s and more",
            ),
            published: "1.45 to 1.65 Mb/s with CUBIC, Westwood and Veno".into(),
            axis: Some(SOURCE_AXIS.into()),
            holds: values.iter().all(|v| v.ours.mean_meets(level)),
            holds_in_ci95: values.iter().all(|v| v.ours.interval_meets(level)),
            why: format!(
                "the window of 17,520 bytes limits all of them alike: at our mean round-trip time of {rtt:.0} ms it carries {:.2} Mb/s; the published plateau is that of {:.0} to {:.0} ms. The published probe takes {:.0} ms at 1.6 Mb/s, ours {probe:.0}: trains of packets wait longer for each other's late blocks",
                17_520.0 * 8.0 / rtt / 1000.0,
                17_520.0 * 8.0 / (1000.0 * high),
                17_520.0 * 8.0 / (1000.0 * low),
                PROBE_3G[1].1
            ),
            values,
        }
    }

    /// Mb/s from the start of the connection until the client has the file.
    fn throughput(&self, part: &str, point: usize, size: u64) -> Estimate {
        self.of(part, point, |run| {
            let took = run.flows.first().and_then(|flow| flow.received_s).unwrap_or(f64::NAN);
            size as f64 * 8e-6 / took
        })
    }
    fn files(&self, profile: usize, name: &str) -> Row {
        let (mut values, mut ordered, mut clearly_ordered, mut larger_wins) = (Vec::new(), 0, 0, 0);
        let mut gains = Vec::new();
        for (index, (file, size)) in FILES.iter().enumerate() {
            let figures = [
                self.throughput("files-direct", index, *size),
                self.throughput("files-direct", FILES.len() + index, *size),
                self.throughput("files-accelerated", profile * FILES.len() + index, *size),
            ];
            let rises =
                |pair: &[Estimate]| matches!((pair[0].mean, pair[1].mean), (Some(a), Some(b)) if b > a);
            let clear = |pair: &[Estimate]| match (pair[0], pair[1]) {
                (Estimate { mean: Some(a), half: Some(x) }, Estimate { mean: Some(b), half: Some(y) }) => {
                    b - y > a + x
                }
                _ => false,
            };
            // The published order of the accelerated runs. Both windows may give the same: a short file does
            // not fill them.
            let against = [[figures[0], figures[2]], [figures[1], figures[2]]];
            ordered += usize::from(against.iter().all(|pair| rises(pair)));
            clearly_ordered += usize::from(against.iter().all(|pair| clear(pair)));
            larger_wins += usize::from(rises(&figures[..2]));
            if let (Some(direct), Some(fast)) = (figures[1].mean, figures[2].mean) {
                gains.push(format!("{file} {:+.0}%", 100.0 * (fast / direct - 1.0)));
            }
            let names = ["17 KB window", "64 KB window", "accelerated"];
            let kib = *size as f64 / 1024.0;
            values.extend(
                names.iter().zip(figures).map(|(name, ours)| {
                    Value::new(format!("{file}, {name}"), "Mb/s", None, ours).at(kib, name)
                }),
            );
        }
        Row {
            id: ["2c", "2c-adaptive"][profile].into(),
            quantity: format!("3G, throughput of a file until the client has it, {name} rate control"),
            published: "accelerated (17 KB window) above both windows at every size".into(),
            axis: Some("size of the file, KiB".into()),
            holds: ordered == FILES.len(),
            holds_in_ci95: clearly_ordered == FILES.len(),
            why: format!(
                "accelerated above both at {ordered} of {} sizes, the larger window above the smaller at {larger_wins}; against 64 KB: {}",
                FILES.len(),
                gains.join(", ")
            ),
            values,
        }
    }

    fn lte_udp(&self) -> Row {
        let values: Vec<Value> = CONDITIONS
            .iter()
            .enumerate()
            .map(|(index, (name, _, udp, ..))| {
                Value::new(*name, "Mb/s", Some(*udp), self.goodput("lte-udp", index))
            })
            .collect();
        let near = |v: &Value| {
            let p = v.published.unwrap_or(f64::NAN);
            move |x: f64| (x / p - 1.0).abs() <= GOODPUT_TOLERANCE
        };
        Row {
            id: "2d".into(),
            quantity: String::from("LTE, UDP goodput in four signal conditions"),
            published: "81, 80, 55 and 50 Mb/s".into(),
            axis: None,
            holds: values.iter().all(|v| v.ours.mean_meets(near(v))),
            holds_in_ci95: values.iter().all(|v| v.ours.interval_meets(near(v))),
            values,
            why: format!(
                "a condition is a mean rate ({}), chosen for this row; everything else is as the probe calibrated it",
                CONDITIONS.map(|(_, rate, ..)| rate).join(", ")
            ),
        }
    }

    fn lte_direct(&self) -> Row {
        let mut values: Vec<Value> = CONDITIONS
            .iter()
            .enumerate()
            .map(|(index, (name, _, _, tcp, _))| {
                Value::new(*name, "Mb/s", Some(*tcp), self.goodput("lte-direct", index))
            })
            .collect();
        let (least, most) = BEST_CONDITION_MBPS;
        values[0] = values[0].clone().within(least, most);
        // The published range at the best condition, 30 to 44 of 81 Mb/s, as a share.
        let shares: Vec<Estimate> = (0..CONDITIONS.len())
            .map(|index| self.share(("lte-direct", index), ("lte-udp", index)))
            .collect();
        let low = |x: f64| (100.0 * 30.0 / 81.0..=100.0 * 54.0 / 81.0).contains(&x);
        let shown: Vec<String> =
            shares.iter().map(|share| format!("{:.0}%", share.mean.unwrap_or(f64::NAN))).collect();
        Row {
            id: "2e".into(),
            quantity: String::from("LTE, goodput of plain TCP (CUBIC) in the same conditions"),
            published: "34, 36, 30 and 27 Mb/s: 42 to 55% of UDP".into(),
            axis: None,
            holds: values[0].ours.mean_meets(|x| (least..=most).contains(&x))
                && shares.iter().all(|share| share.mean_meets(low)),
            holds_in_ci95: values[0].ours.interval_meets(|x| (least..=most).contains(&x))
                && shares.iter().all(|share| share.interval_meets(low)),
            why: format!(
                "holds with 30 to 44 Mb/s in the best condition and 37 to 67% of UDP in all: {}; losses that no congestion causes keep the window small, {:.2}% of segments were sent again and the queue holds {:.0} ms in the best one",
                shown.join(", "),
                self.mean("lte-direct", 0, |run| 100.0 * run.totals.retransmission_share),
                self.mean("lte-direct", 0, |run| run.totals.link_delay_mean_ms)
            ),
            values,
        }
    }

    fn lte_accelerated(&self, profile: usize, name: &str) -> Row {
        const PART: &str = "lte-accelerated";
        let point = |index: usize| profile * CONDITIONS.len() + index;
        let (mut values, mut shares) = (Vec::new(), Vec::new());
        for (index, (condition, _, udp, _, accelerated)) in CONDITIONS.iter().enumerate() {
            let (ours, published) = (self.goodput(PART, point(index)), Some(*accelerated));
            values.push(Value::new(*condition, "Mb/s", published, ours));
            let (name, published) = (format!("{condition}, share of UDP"), 100.0 * accelerated / udp);
            let ours = self.share((PART, point(index)), ("lte-udp", index));
            shares.push(Value::new(name, "%", Some(published.round()), ours));
        }
        let least = if profile == 0 { 91.0 } else { 97.0 };
        let enough = |v: &Value| v.ours.mean_meets(|x| x >= least);
        let (holds, holds_in_ci95) =
            (shares.iter().all(enough), shares.iter().all(|v| v.ours.interval_meets(|x| x >= least)));
        values.extend(shares);
        Row {
            id: ["2f", "2f-adaptive"][profile].into(),
            quantity: format!("LTE, accelerated goodput, {name} rate control"),
            published: "74, 73, 53 and 47 Mb/s: 91 to 96% of UDP".into(),
            axis: None,
            holds,
            holds_in_ci95,
            why: format!(
                "holds with {least:.0}% of UDP or more in all conditions; in the best one {:.2}% of segments were sent again, the queue holds {:.0} ms on average (95th percentile {:.0}) and the round-trip time is {:.0} ms",
                self.mean(PART, point(0), |run| 100.0 * run.totals.retransmission_share),
                self.mean(PART, point(0), |run| run.totals.link_delay_mean_ms),
                self.mean(PART, point(0), |run| run.totals.link_delay_p95_ms),
                self.mean(PART, point(0), |run| run.totals.rtt_mean_ms)
            ),
            values,
        }
    }

    fn opportunistic(&self) -> Row {
        let (with, without) = (self.goodput("window-opportunistic", 0), self.goodput("window", 0));
        let gain = self.share(("window-opportunistic", 0), ("window", 0));
        let more = |x: f64| x >= 300.0;
        let part = "window-opportunistic";
        Row {
            id: "2g".into(),
            quantity: String::from(
                "3G, opportunistic transmission alone at a fixed 5.6 Mb/s, window of 17 KB",
            ),
            published: "about 5 Mb/s against about 1.5".into(),
            axis: None,
            holds: gain.mean_meets(more) && with.mean_meets(|x| x >= 4.5),
            holds_in_ci95: gain.interval_meets(more) && with.interval_meets(|x| x >= 4.5),
            values: vec![
                Value::new("with", "Mb/s", Some(5.0), with),
                Value::new("without", "Mb/s", Some(1.5), without),
            ],
            why: format!(
                "holds with 4.5 Mb/s or more and three times as much as without; {:.0}% of it; the channel can carry {:.2} Mb/s with headers when it is not congested, less than the fixed rate, and then discards {:.0} packets/s at its full queue",
                gain.mean.unwrap_or(f64::NAN),
                self.mean(part, 0, |run| run.totals.link_capacity_mbps),
                self.mean(part, 0, |run| run.totals.downlink_queue_drops_per_s)
            ),
        }
    }
}
