//! The published statements beside our figures.

use super::parts::{COLLAPSE_DROPS, COLLAPSE_RATES, DROPS, LOADS, SHAPED};
use crate::{Estimate, Row, Value};
use paceline_sim::results::RunResult;
use std::collections::BTreeMap;

/// Smallest ratio of rates that is "unchanged". Chosen: 5%.
pub(super) const UNCHANGED: f64 = 0.95;
/// Largest ratio of rates that is a collapse. Chosen: half.
pub(super) const COLLAPSE: f64 = 0.5;
/// Published reduction of the router's load at the loads of [`LOADS`], percent.
const REDUCTION: [f64; 2] = [30.0, 32.0];
/// Largest distance from the published reduction at which row 5c holds, percentage points. Chosen.
const NEAR: f64 = 5.0;
/// Published rates of two filtered sessions, Mb/s.
pub(super) const SHARES: [f64; 2] = [44.0, 49.0];
/// Smallest ratio of two nearly equal rates. Chosen: below the published 44 of 49.
const NEARLY_EQUAL: f64 = 0.8;

/// Quantity of row 5e.
const ONE_FILTERED: &str = "two sessions, one filtered at 80%";

/// Runs of all seeds by part.
pub struct Experiment<'a> {
    /// Runs of each part.
    pub parts: BTreeMap<String, &'a [RunResult]>,
}

fn goodput(run: &RunResult) -> f64 {
    run.totals.goodput_mbps
}
fn retransmissions(run: &RunResult) -> f64 {
    run.flows.iter().map(|flow| flow.retransmissions as f64).sum()
}
fn load(run: &RunResult) -> f64 {
    100.0 * run.routers.first().map_or(f64::NAN, |router| router.busy_share)
}
/// Rates of the sessions, the slower one first.
fn slower_first(run: &RunResult) -> [f64; 2] {
    let rates = [run.stations[0].goodput_mbps, run.stations[1].goodput_mbps];
    [rates[0].min(rates[1]), rates[0].max(rates[1])]
}

impl Experiment<'_> {
    /// All rows.
    pub fn rows(&self) -> Vec<Row> {
        vec![
            self.rate(),
            self.repeated(),
            self.growth(),
            self.collapse("published"),
            self.collapse("safe"),
            self.loads(),
            self.load_over_rate(),
            self.both_filtered(),
            self.one_filtered(),
            self.why_unequal(),
        ]
    }

    fn of(&self, part: &str, of: impl Fn(&RunResult) -> f64) -> Estimate {
        Estimate::of(self.parts.get(part).into_iter().flat_map(|runs| runs.iter().map(&of)))
    }
    /// Figure with the policer over that without, seed by seed.
    fn ratio(&self, part: &str, without: &str, of: impl Fn(&RunResult) -> f64) -> Estimate {
        let runs = |part: &str| self.parts.get(part).copied().unwrap_or_default();
        Estimate::of(runs(part).iter().zip(runs(without)).map(|(a, b)| of(a) / of(b)))
    }
    fn each_drop(&self, unit: &'static str, of: impl Fn(u32, u32) -> Estimate) -> Vec<Value> {
        let mut values = Vec::new();
        for mbps in SHAPED {
            for drop in DROPS {
                let line = format!("{mbps} Mb/s");
                let name = format!("{line}, {drop}% dropped");
                values.push(Value::new(name, unit, None, of(mbps, drop)).at(f64::from(drop), &line));
            }
        }
        values
    }
    fn rate(&self) -> Row {
        let values = self.each_drop("", |mbps, drop| {
            self.ratio(&format!("steady-{mbps}-{drop}"), &format!("steady-{mbps}-0"), goodput)
        });
        let published = "unchanged from 0 to 80% dropped";
        judged("5a-rate", "data rate over that without drops", published, values, |r| r >= UNCHANGED)
    }
    fn repeated(&self) -> Row {
        let values = self.each_drop("segments", |mbps, drop| {
            let part = |drop| self.parts.get(&format!("steady-{mbps}-{drop}")).copied().unwrap_or_default();
            let pairs = part(drop).iter().zip(part(0));
            Estimate::of(pairs.map(|(a, b)| retransmissions(a) - retransmissions(b)))
        });
        let published = "no more from 0 to 80% dropped";
        judged("5a-retransmissions", "retransmissions beyond those without drops", published, values, |n| {
            n <= 0.0
        })
    }
    fn growth(&self) -> Row {
        let values = self.each_drop("", |mbps, drop| {
            self.ratio(&format!("start-{mbps}-{drop}"), &format!("start-{mbps}-0"), goodput)
        });
        let published = "the same growth in the first 3 s";
        judged("5a-growth", "data of the first 3 s over that without drops", published, values, |r| {
            r >= UNCHANGED
        })
    }
    fn collapse(&self, mode: &str) -> Row {
        let mut values = Vec::new();
        for mbps in COLLAPSE_RATES {
            for drop in COLLAPSE_DROPS {
                let ours = self.ratio(&format!("{mode}-{mbps}-{drop}"), &format!("steady-{mbps}-0"), goodput);
                let line = format!("{mbps} Mb/s");
                let name = format!("{line}, {drop}% dropped");
                values.push(Value::new(name, "", None, ours).at(f64::from(drop), &line));
            }
        }
        if mode == "safe" {
            let quantity = "data rate over that without drops, mode safe at the same buckets";
            let row = judged("5b-safe", quantity, "", values, |r| r >= UNCHANGED);
            return Row { why: self.dropped("safe-"), ..row };
        }
        let quantity = "data rate over that without drops, above 85%";
        judged("5b", quantity, "the rate collapses", values, |r| r < COLLAPSE)
    }
    /// ACKs that the policers of these parts dropped, in words.
    fn dropped(&self, parts: &str) -> String {
        let runs = self.parts.iter().filter(|(name, _)| name.starts_with(parts)).flat_map(|(_, runs)| *runs);
        let policers: Vec<_> = runs.flat_map(|run| &run.policers).collect();
        let acks: u64 = policers.iter().map(|policer| policer.acks).sum();
        let dropped: u64 = policers.iter().map(|policer| policer.dropped).sum();
        format!("{dropped} of {acks} ACKs dropped")
    }
    fn loads(&self) -> Row {
        let values = LOADS.iter().zip(REDUCTION).map(|(at, published)| {
            let ours = self.ratio(&format!("load-{at}-80"), &format!("load-{at}-0"), load);
            let reduction =
                Estimate { mean: ours.mean.map(|r| 100.0 * (1.0 - r)), half: ours.half.map(|h| 100.0 * h) };
            Value::new(format!("{at}% load"), "%", Some(published), reduction)
        });
        let values: Vec<Value> = values.collect();
        let near = |of: fn(&Value) -> Option<f64>| {
            values.iter().all(|value| of(value).is_some_and(|away| away <= NEAR))
        };
        let holds = near(|value| value.difference().map(f64::abs));
        let holds_in_ci95 = near(|value| Some(value.difference()?.abs() + value.ours.half?));
        let why = LOADS.map(|at| {
            let loads =
                [0, 80].map(|drop| self.of(&format!("load-{at}-{drop}"), load).mean.unwrap_or(f64::NAN));
            format!("load {:.1}% without and {:.1}% with the policer", loads[0], loads[1])
        });
        let why = format!(
            "{}; an ACK for two segments is a third of the packets, so that 80% of them are 27% at most",
            why.join(", ")
        );
        let quantity = "router's load, lower by, 80% of ACKs dropped";
        Row {
            holds,
            holds_in_ci95,
            why,
            ..Row::of("5c", quantity, "30% lower at 25% load, 32% at 60%", values)
        }
    }
    fn load_over_rate(&self) -> Row {
        let mut values = Vec::new();
        for drop in [0, 80] {
            for mbps in SHAPED {
                let (part, line) = (format!("steady-{mbps}-{drop}"), format!("{drop}% dropped"));
                let (name, ours) = (format!("{mbps} Mb/s, {line}"), self.of(&part, load));
                values.push(Value::new(name, "%", None, ours).at(f64::from(mbps), &line));
            }
        }
        let quantity = "router's load over the rate, with the service time of 60% at 90 Mb/s";
        let row = Row::of("5c-rates", quantity, "", values);
        let why = String::from("linear by the model: every packet takes the same time");
        Row { axis: Some("rate of the source, Mb/s".into()), why, ..row }
    }
    fn both_filtered(&self) -> Row {
        let mut values = Vec::new();
        for (part, name) in [("two-filtered", "own buckets"), ("two-filtered-one-bucket", "one bucket")] {
            for (index, which) in ["slower", "faster"].into_iter().enumerate() {
                let ours = self.of(part, |run| slower_first(run)[index]);
                values.push(Value::new(format!("{name}, {which}"), "Mb/s", Some(SHARES[index]), ours));
            }
        }
        let equal = ["two-filtered", "two-filtered-one-bucket"].map(|part| self.equality(part));
        let why = format!(
            "slower over faster: own buckets {:.2}, one bucket {:.2}, no policer {:.2}; judged by own buckets",
            mean(equal[0]),
            mean(equal[1]),
            mean(self.equality("two-unfiltered"))
        );
        let verdict = equal[0];
        let published = "44 and 49 of 93 Mb/s: nearly equal";
        let row = Row::of("5d", "two sessions, both filtered at 80%", published, values);
        with_equality(Row { why, ..row }, verdict)
    }
    fn one_filtered(&self) -> Row {
        let values = self.sessions("two-one-filtered", "");
        let equal = self.equality("two-one-filtered");
        let why = format!("slower over faster {:.2}; queue of 1000 packets", mean(equal));
        let published = "nearly equal, slightly unfair";
        with_equality(Row { why, ..Row::of("5e", ONE_FILTERED, published, values) }, equal)
    }
    /// The cause of unequal shares in row 5e: an ACK for ten segments sends them as a burst, of which a full
    /// queue at the source drops more than of single segments.
    fn why_unequal(&self) -> Row {
        let runs = [
            ("no-loss", "1000 packets, windows that fit in"),
            ("short", "43 packets"),
            ("short-paced", "43 packets, senders pace"),
            ("short-safe", "43 packets, mode safe"),
        ];
        let values = runs.map(|(run, name)| self.sessions(&format!("two-one-filtered-{run}"), name));
        let lost = |part: &str| {
            let of = |run: &RunResult, station: usize| {
                let flows = run.flows.iter().filter(|flow| flow.station == station);
                flows.map(|flow| flow.retransmissions as f64).sum::<f64>()
            };
            [0, 1].map(|station| mean(self.of(part, |run| of(run, station))))
        };
        let texts = runs.map(|(run, name)| {
            let [filtered, other] = lost(&format!("two-one-filtered-{run}"));
            format!("{name}: {filtered:.0} of the filtered session and {other:.0} of the other")
        });
        let why = format!("retransmissions in 71 s, queue of {}", texts.join("; "));
        let quantity = "two sessions, one filtered at 80%, by the queue of the source";
        Row { why, ..Row::of("5e-cause", quantity, "", values.concat()) }
    }
    /// Rates of both sessions, the filtered one first.
    fn sessions(&self, part: &str, what: &str) -> Vec<Value> {
        let named = |name: &str| if what.is_empty() { name.to_owned() } else { format!("{what}, {name}") };
        let value = |(index, name): (usize, &str)| {
            Value::new(named(name), "Mb/s", None, self.of(part, |run| run.stations[index].goodput_mbps))
        };
        ["filtered", "unfiltered"].into_iter().enumerate().map(value).collect()
    }
    fn equality(&self, part: &str) -> Estimate {
        self.of(part, |run| slower_first(run)[0] / slower_first(run)[1])
    }
}

/// The row with its verdict: whether the slower rate over the faster one is near 1.
pub(super) fn with_equality(row: Row, ratio: Estimate) -> Row {
    Row {
        holds: ratio.mean_meets(|r| r >= NEARLY_EQUAL),
        holds_in_ci95: ratio.interval_meets(|r| r >= NEARLY_EQUAL),
        ..row
    }
}
pub(super) fn mean(estimate: Estimate) -> f64 {
    estimate.mean.unwrap_or(f64::NAN)
}

/// A row that holds if every value meets the condition; `why` names the values that do not.
pub(super) fn judged(
    id: &'static str,
    quantity: &str,
    published: &'static str,
    values: Vec<Value>,
    condition: impl Fn(f64) -> bool,
) -> Row {
    let holds = values.iter().all(|value| value.ours.mean_meets(&condition));
    // Pairs of equal runs have intervals of no width.
    let in_ci95 = values.iter().all(|value| value.ours.interval_meets(&condition));
    let not: Vec<&str> =
        values.iter().filter(|value| !value.ours.mean_meets(&condition)).map(|v| v.name.as_str()).collect();
    let why = match not.len() {
        0 => String::from("at every point"),
        count => format!("not at {count} of {} points: {}", values.len(), not.join("; ")),
    };
    let axis = Some("ACKs dropped, %".into());
    Row { why, axis, holds, holds_in_ci95: in_ci95, ..Row::of(id, quantity, published, values) }
}
