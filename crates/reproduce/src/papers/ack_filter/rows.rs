//! Rows 1a to 1i of the comparison.

use super::experiment::{ACK_BYTES, BASIC, Experiment, GRANTED, HYBRID, OPT, SCHEMES, STATIONS};
use crate::{Estimate, Row, Value};
use paceline_sim::results::{RunResult, Totals, jain, mean_and_ci95};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Largest change of a throughput that counts as "almost the same" and as "saturated", percent. Chosen: the
/// publication gives no number.
const SAME_PERCENT: f64 = 5.0;
/// Total throughput of row 1g, as published, Mb/s.
const TOTAL_MBPS: f64 = 25.0;
/// Number of eNBs behind the serving gateway of row 1i, as published.
const ENBS: f64 = 1000.0;

impl Experiment<'_> {
    /// Rows 1a to 1i.
    pub fn rows(&self) -> Vec<Row> {
        vec![
            self.throughput(),
            self.acks_against_hybrid(),
            self.acks_against_basic(),
            self.total_throughput(),
            self.acks_at_forty(),
            self.saturation(),
            self.capacity(),
            self.fairness(),
            self.ack_rate(),
        ]
    }

    fn throughput(&self) -> Row {
        let changes =
            [GRANTED, HYBRID, OPT].map(|scheme| self.change((scheme, BASIC), 10, |t| t.goodput_mbps));
        let names = [GRANTED, HYBRID, OPT].map(|scheme| SCHEMES[scheme].to_owned());
        let values = names.into_iter().zip(changes);
        Row {
            id: "1a".into(),
            quantity: String::from("throughput per station against basic, 10 stations"),
            published: "almost the same in all schemes".into(),
            axis: None,
            values: values.map(|(name, ours)| Value::new(name, "%", None, ours)).collect(),
            holds: changes.iter().all(|change| change.mean_meets(|percent| percent.abs() <= SAME_PERCENT)),
            holds_in_ci95: changes
                .iter()
                .all(|change| change.interval_meets(|percent| percent.abs() <= SAME_PERCENT)),
            why: format!(
                "\"the same\" means within {SAME_PERCENT:.0}%; {}; {}",
                self.limit(BASIC, 10),
                self.limit(OPT, 10)
            ),
        }
    }

    fn acks_against_hybrid(&self) -> Row {
        let why = format!("{}; {}", self.optimum(10), self.limit(HYBRID, 10));
        self.ack_reduction("1b", (OPT, HYBRID), "-23.9% on average, -65.2% at most", (-23.9, -65.2), why)
    }

    fn acks_against_basic(&self) -> Row {
        let why = format!("{}; {}; {}", self.discarded(OPT, 10), self.optimum(10), self.limit(BASIC, 10));
        self.ack_reduction("1c", (OPT, BASIC), "-54.2% on average, -70.5% at most", (-54.2, -70.5), why)
    }

    fn ack_reduction(
        &self,
        id: &'static str,
        (a, b): (usize, usize),
        published: &'static str,
        (mean, most): (f64, f64),
        why: String,
    ) -> Row {
        let ours = self.change((a, b), 10, |t| t.acks_sent_per_s);
        let values = vec![
            Value::new("all stations", "%", Some(mean), ours),
            Value::new("station with most", "%", Some(most), self.largest_reduction((a, b), 10)),
        ];
        let quantity = format!("ACKs sent, {} against {}, 10 stations", SCHEMES[a], SCHEMES[b]);
        let (holds, holds_in_ci95) =
            (ours.mean_meets(|percent| percent < 0.0), ours.interval_meets(|percent| percent < 0.0));
        Row { holds, holds_in_ci95, why, ..Row::of(id, &quantity, published, values) }
    }

    fn total_throughput(&self) -> Row {
        let goodput = |t: &Totals| t.goodput_mbps;
        let mut why = String::new();
        let (mut holds, mut holds_in_ci95) = (true, true);
        for other in [BASIC, GRANTED] {
            let changes: Vec<(u64, Estimate)> =
                STATIONS[1..].iter().map(|n| (*n, self.change((OPT, other), *n, goodput))).collect();
            let is_above = |(_, change): &&(u64, Estimate)| change.mean_meets(|percent| percent > 0.0);
            let clearly =
                changes.iter().filter(|(_, change)| change.interval_meets(|percent| percent > 0.0)).count();
            let above = changes.iter().filter(is_above).count();
            holds &= above == changes.len();
            holds_in_ci95 &= clearly == changes.len();
            let best =
                changes.iter().max_by(|a, b| a.1.mean.unwrap_or(0.0).total_cmp(&b.1.mean.unwrap_or(0.0)));
            if let Some((stations, Estimate { mean: Some(percent), .. })) = best {
                let _ = write!(
                    why,
                    "above {} at {above} of {} numbers of stations ({clearly} beyond the confidence interval), most at {stations} ({percent:+.1}%); ",
                    SCHEMES[other],
                    changes.len()
                );
            }
        }
        let value = |other: usize, published: f64| {
            let name = format!("against {} at 40", SCHEMES[other]);
            Value::new(name, "%", Some(published), self.change((OPT, other), 40, goodput))
        };
        Row {
            id: "1d".into(),
            quantity: String::from("total throughput of hybrid-opt, 20 to 60 stations"),
            published: "above basic and granted everywhere; best at 40: +59.1% and +11.9%".into(),
            axis: None,
            values: vec![value(BASIC, 59.1), value(GRANTED, 11.9)],
            holds,
            holds_in_ci95,
            why: why + &format!("{}; {}", self.limit(BASIC, 40), self.limit(OPT, 40)),
        }
    }

    fn acks_at_forty(&self) -> Row {
        let ours = self.change((OPT, BASIC), 40, |t| t.acks_sent_per_s);
        let goodput = self.change((OPT, BASIC), 40, |t| t.goodput_mbps);
        let data = goodput.mean.map_or(String::new(), |percent| format!("with {percent:+.1}% data, "));
        Row {
            id: "1e".into(),
            quantity: String::from("ACKs sent, hybrid-opt against basic, 40 stations"),
            published: "-21.4%".into(),
            axis: None,
            values: vec![Value::new("all stations", "%", Some(-21.4), ours)],
            holds: ours.mean_meets(|percent| percent < 0.0),
            holds_in_ci95: ours.interval_meets(|percent| percent < 0.0),
            why: format!("{data}{}; {}", self.discarded(OPT, 40), self.limit(OPT, 40)),
        }
    }

    fn saturation(&self) -> Row {
        let growth = |scheme: usize| {
            let pairs = self.at(scheme, 60).iter().zip(self.at(scheme, 40));
            Estimate::of(pairs.map(|(a, b)| 100.0 * (a.totals.goodput_mbps / b.totals.goodput_mbps - 1.0)))
        };
        let values: Vec<Value> =
            (0..SCHEMES.len()).map(|scheme| Value::new(SCHEMES[scheme], "%", None, growth(scheme))).collect();
        Row {
            id: "1f".into(),
            quantity: String::from("total throughput, 60 stations against 40"),
            published: "saturates or falls in all schemes".into(),
            axis: None,
            holds: values.iter().all(|value| value.ours.mean_meets(|percent| percent <= SAME_PERCENT)),
            holds_in_ci95: values
                .iter()
                .all(|value| value.ours.interval_meets(|percent| percent <= SAME_PERCENT)),
            values,
            why: format!(
                "\"saturates\" means at most {SAME_PERCENT:+.0}% for half as many stations again; {}; {}",
                self.limit(BASIC, 60),
                self.limit(OPT, 60)
            ),
        }
    }

    fn capacity(&self) -> Row {
        let per_seed = |scheme: usize| {
            let seeds = self.at(scheme, 10).len();
            let totals = move |seed: usize| {
                let runs = self.runs[scheme].iter().filter_map(move |runs| runs.get(seed));
                runs.map(|run| run.totals.goodput_mbps).collect::<Vec<f64>>()
            };
            (0..seeds).map(move |seed| stations_served(&totals(seed)))
        };
        let end = STATIONS[STATIONS.len() - 1];
        let value = |scheme: usize, published: f64| {
            Value::new(SCHEMES[scheme], "stations", Some(published), Estimate::of(per_seed(scheme)))
        };
        let (basic, opt) = (value(BASIC, 30.0), value(OPT, 60.0));
        let difference = Estimate::of(per_seed(OPT).zip(per_seed(BASIC)).map(|(opt, basic)| opt - basic));
        let mut why =
            format!("the most stations with a total of {TOTAL_MBPS:.0} Mb/s or more, none beyond {end}");
        for scheme in [BASIC, OPT] {
            let means: Vec<f64> =
                self.runs[scheme].iter().map(|runs| mean_and_ci95(runs).0.goodput_mbps).collect();
            let (low, high) = means.iter().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
            let _ = write!(why, "; totals of {}: {low:.1} to {high:.1} Mb/s", SCHEMES[scheme]);
        }
        let _ = write!(why, "; {}", self.limit(BASIC, 30));
        Row {
            id: "1g".into(),
            quantity: format!("stations that a cell serves at a total of {TOTAL_MBPS:.0} Mb/s"),
            published: "about 30 with basic, 60 with hybrid-opt".into(),
            axis: None,
            holds: difference.mean_meets(|stations| stations > 0.0),
            holds_in_ci95: difference.interval_meets(|stations| stations > 0.0),
            values: vec![basic, opt],
            why,
        }
    }

    fn fairness(&self) -> Row {
        const ORDER: [usize; 3] = [BASIC, GRANTED, OPT];
        let sectors = ORDER.map(|scheme| jain_per_sector(self.at(scheme, 40)));
        let count = sectors[0].len();
        let (mut values, mut steps) = (Vec::new(), [Vec::new(), Vec::new()]);
        for sector in sectors[0].keys() {
            let figures = sectors.each_ref().map(|of| of.get(sector).cloned().unwrap_or_default());
            for (step, pair) in steps.iter_mut().zip(figures.windows(2)) {
                step.push(Estimate::of(pair[1].iter().zip(&pair[0]).map(|(is, was)| is - was)));
            }
            let several = if count > 1 { format!(", sector {sector}") } else { String::new() };
            values.extend(ORDER.into_iter().zip(figures).map(|(scheme, indices)| {
                Value::new(format!("{}{several}", SCHEMES[scheme]), "", None, Estimate::of(indices))
            }));
        }
        let every = |of: fn(&Estimate) -> bool| count > 0 && steps.iter().flatten().all(of);
        let up = |step: &[Estimate]| step.iter().filter(|step| step.mean_meets(|step| step > 0.0)).count();
        let uplink = ORDER.map(|scheme| 100.0 * self.mean(scheme, 40).uplink_prb_share);
        Row {
            id: "1h".into(),
            quantity: String::from("Jain index per sector, 40 stations"),
            published: "basic < granted < hybrid-opt in every sector".into(),
            axis: None,
            holds: every(|step| step.mean_meets(|step| step > 0.0)),
            holds_in_ci95: every(|step| step.interval_meets(|step| step > 0.0)),
            values,
            why: format!(
                "granted is above basic in {} of {count}, hybrid-opt above granted in {}; uplink blocks used: {:.0}% / {:.0}% / {:.0}%; {}",
                up(&steps[0]),
                up(&steps[1]),
                uplink[0],
                uplink[1],
                uplink[2],
                self.limit(BASIC, 40)
            ),
        }
    }

    fn ack_rate(&self) -> Row {
        let value = |scheme: usize, published: f64| {
            let rate = |run: &RunResult| run.totals.acks_sent_per_s * ACK_BYTES * 8.0 * ENBS / 1e6;
            let ours = Estimate::of(self.at(scheme, 10).iter().map(rate));
            Value::new(SCHEMES[scheme], "Mb/s", Some(published), ours)
        };
        let (basic, opt) = (value(BASIC, 866.4), value(OPT, 397.2));
        let change = self.change((OPT, BASIC), 10, |t| t.acks_sent_per_s);
        Row {
            id: "1i".into(),
            quantity: String::from("ACK bit rate at the serving gateway, 1000 eNBs with 10 stations"),
            published: "866.4 Mb/s with basic, 397.2 Mb/s with hybrid-opt".into(),
            axis: None,
            holds: change.mean_meets(|percent| percent < 0.0),
            holds_in_ci95: change.interval_meets(|percent| percent < 0.0),
            values: vec![basic, opt],
            why: format!(
                "ACKs of {ACK_BYTES:.0} bytes; {:.1} Mb/s of data with basic and {:.1} Mb/s with hybrid-opt cause {:.0} and {:.0} ACKs/s; {}",
                self.mean(BASIC, 10).goodput_mbps,
                self.mean(OPT, 10).goodput_mbps,
                self.mean(BASIC, 10).acks_in_per_s,
                self.mean(OPT, 10).acks_in_per_s,
                self.discarded(OPT, 10)
            ),
        }
    }
}

/// Largest number of stations at which the total throughput is that of row 1g, interpolated linearly between
/// the numbers of the experiment; zero if no total reaches it.
pub(super) fn stations_served(totals: &[f64]) -> f64 {
    let points: Vec<(f64, f64)> = STATIONS.iter().map(|n| *n as f64).zip(totals.iter().copied()).collect();
    let Some(index) = points.iter().rposition(|(_, total)| *total >= TOTAL_MBPS) else { return 0.0 };
    let (stations, total) = points[index];
    match points.get(index + 1) {
        Some((next, below)) => stations + (next - stations) * (total - TOTAL_MBPS) / (total - below),
        None => stations,
    }
}

/// Jain's indices of the stations' goodput by sector, one per seed.
fn jain_per_sector(runs: &[RunResult]) -> BTreeMap<usize, Vec<f64>> {
    let mut indices: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let mut sectors: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for station in &run.stations {
            sectors.entry(station.sector).or_default().push(station.goodput_mbps);
        }
        for (sector, goodput) in sectors {
            indices.entry(sector).or_default().push(jain(goodput.into_iter()));
        }
    }
    indices
}
