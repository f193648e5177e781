//! The published statements beside our figures.

use super::parts::{ROUTES, TCPS, WINDOWS};
use super::switch::SwitchTrace;
use crate::{Estimate, Row, Value};
use paceline_ran::sidelink::{FlowDirection, Message, MessageKind};
use paceline_sim::results::RunResult;
use std::collections::BTreeMap;

/// Largest distance from "about 42 ms" at which row 4a holds. Chosen: 10%.
const ABOUT: f64 = 0.1;

/// Runs of the sweeps by part, traces by TCP, and the messages of a datagram and its answer.
pub struct Experiment<'a> {
    /// Per part, the runs of every point.
    pub parts: BTreeMap<String, &'a [Vec<RunResult>]>,
    /// Per TCP in the order of [`TCPS`], the traces of all seeds.
    pub traces: &'a [Vec<SwitchTrace>],
    /// Messages with their times in ms.
    pub timeline: &'a [(f64, Message)],
}

fn rtt(run: &RunResult) -> f64 {
    run.stations[0].rtt_mean_ms
}
fn goodput(run: &RunResult) -> f64 {
    run.totals.goodput_mbps
}

impl Experiment<'_> {
    /// All rows.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.timeline(), self.infrastructure(), self.direct(), self.windows()];
        rows.extend(self.at_switches());
        rows.extend([self.throughputs(), self.forwarded(), self.duplicated(), self.modern()]);
        rows
    }

    fn figures(&self, part: &str, point: usize, of: fn(&RunResult) -> f64) -> Estimate {
        let runs = self.parts.get(part).and_then(|points| points.get(point));
        Estimate::of(runs.into_iter().flat_map(|runs| runs.iter().map(of)))
    }
    fn of_route(&self, route: usize, window: usize, of: fn(&RunResult) -> f64) -> Estimate {
        let name = format!("static-{}", ROUTES[route].0.to_lowercase().replace('/', "-"));
        self.figures(&name, window, of)
    }

    fn timeline(&self) -> Row {
        use FlowDirection::{ToPeer, ToStation};
        let at = |direction, kind| {
            let mut found = self.timeline.iter().filter(|(_, m)| m.direction == direction && m.kind == kind);
            Estimate { mean: found.next().map(|(ms, _)| *ms), half: None }
        };
        let values = [
            ("RAC", 0.0, at(ToStation, MessageKind::Request)),
            ("BSR in the short grant", 5.0, at(ToStation, MessageKind::ShortGrant)),
            ("BSR decoded", 9.0, at(ToStation, MessageKind::ReportDecoded)),
            ("data sent", 11.0, at(ToStation, MessageKind::Data)),
            ("data at the peer", 15.0, at(ToStation, MessageKind::Delivered)),
            ("answer at the sender", 30.0, at(ToPeer, MessageKind::Delivered)),
        ]
        .map(|(name, ms, ours)| Value::new(name, "ms", Some(ms), ours));
        let holds = values.iter().all(|value| value.difference() == Some(0.0));
        let why = String::from("one datagram and its answer, from the recorded messages");
        let published = "0, 5, 9, 11, 15 and 30 ms on the direct link";
        let base =
            Row::of("4-timeline", "messages of a packet and its answer, DM/DM", published, values.to_vec());
        Row { holds, holds_in_ci95: holds, why, ..base }
    }

    fn infrastructure(&self) -> Row {
        let ours = [0, 1].map(|window| self.of_route(3, window, rtt));
        let p95 = [0, 1].map(|window| self.of_route(3, window, |run| run.totals.rtt_p95_ms).mean);
        let named = ["window of 14 segments", "window of 8 KiB"].into_iter().zip(ours);
        let values: Vec<Value> =
            named.map(|(name, ours)| Value::new(name, "ms", Some(42.0), ours).within(37.8, 46.2)).collect();
        let about = |ms: f64| (ms / 42.0 - 1.0).abs() <= ABOUT;
        let fluctuates = |at: usize| p95[at].zip(ours[at].mean).is_some_and(|(p95, mean)| p95 > mean + 1.0);
        let holds = (0..2).all(|at| ours[at].mean_meets(about) && fluctuates(at));
        let why = format!(
            "95th percentiles {:.1} and {:.1} ms; an ACK and a part of the next fit beside the BSR, the rest \
             waits for the data grant; a BSR at the end of a block only with more than a full block left",
            p95[0].unwrap_or(f64::NAN),
            p95[1].unwrap_or(f64::NAN)
        );
        let holds_in_ci95 = holds && ours.iter().all(|ours| ours.interval_meets(about));
        Row {
            holds,
            holds_in_ci95,
            why,
            ..Row::of("4a", "RTT, 8 KB, IM/IM", "about 42 ms, fluctuating", values)
        }
    }

    fn direct(&self) -> Row {
        let ours = [0, 1].map(|window| self.of_route(0, window, rtt));
        let named = ["window of 14 segments", "window of 8 KiB"].into_iter().zip(ours);
        let values = named.map(|(name, ours)| Value::new(name, "ms", Some(30.0), ours)).collect();
        let exact = |ms: f64| (ms - 30.0).abs() < 0.01;
        let holds = ours.iter().all(|ours| ours.mean_meets(exact));
        let holds_in_ci95 = ours.iter().all(|ours| ours.interval_meets(exact));
        let why = String::from("every ACK clocks out its segment 30 ms after the last one");
        Row { holds, holds_in_ci95, why, ..Row::of("4b", "RTT, 8 KB, DM/DM", "30 ms, steady", values) }
    }

    fn windows(&self) -> Row {
        let mut values = Vec::new();
        for (route, (name, _)) in ROUTES.iter().enumerate() {
            for (window, (text, kb)) in WINDOWS.iter().enumerate() {
                let ours = self.of_route(route, window, rtt);
                values.push(Value::new(format!("{name}, {text}"), "ms", None, ours).at(*kb, name));
            }
        }
        let mean = |route, window, of| self.of_route(route, window, of).mean.unwrap_or(f64::NAN);
        let last = WINDOWS.len() - 1;
        let grows = mean(0, last, rtt) > mean(0, 2, rtt) + 5.0;
        let falls = (3..=last).any(|window| mean(3, window, rtt) < mean(3, window - 1, rtt));
        let rates = [0, 3, 2].map(|route| mean(route, last, goodput));
        let overtakes = rates[0] < rates[1] && rates[1] < rates[2];
        let why = format!(
            "at 128 KiB DM/DM carries {:.1}, IM/IM {:.1} and IM/DM {:.1} Mb/s; RTT of IM/IM: {}",
            rates[0],
            rates[1],
            rates[2],
            (2..=last).map(|window| format!("{:.1}", mean(3, window, rtt))).collect::<Vec<_>>().join(", ")
        );
        let holds = grows && falls && overtakes;
        let published = "RTT grows by queueing with DM; it falls past a window where data are on IM, which \
                         beats DM at high rates";
        let base = Row::of("4c", "RTT over the receive window", published, values);
        Row { axis: Some("receive window, KiB".into()), holds, holds_in_ci95: holds, why, ..base }
    }

    fn traced(&self, tcp: &str) -> &[SwitchTrace] {
        let place = TCPS.iter().position(|known| known.name == tcp).expect("a TCP of the experiment");
        &self.traces[place]
    }
    /// A row on the traces of a TCP; `statement` is whether it holds for one trace.
    fn at_switch(
        &self,
        (id, tcp): (&'static str, &'static str),
        published: &'static str,
        statement: fn(&SwitchTrace) -> bool,
    ) -> Row {
        let traces = self.traced(tcp);
        let of = |name: &str, unit, of: fn(&SwitchTrace) -> f64| {
            Value::new(name, unit, None, Estimate::of(traces.iter().map(of)))
        };
        let values = vec![
            of("timeouts in 10 s", "", |trace| trace.timeouts_s.len() as f64),
            of("first timeout after the change", "s", |t| t.timeouts_s.first().copied().unwrap_or(f64::NAN)),
            of("fast recoveries in 10 s", "", |trace| trace.recoveries_s.len() as f64),
            of("longest silence", "s", |trace| trace.silence_s),
            of("smallest window", "segments", |trace| trace.least_window),
            of("segments per round trip, 0.2 to 0.9 s", "segments", |trace| trace.segments_per_rtt),
            of("goodput in the second before", "Mb/s", |trace| trace.goodput_mbps[0]),
            of("goodput in the 5 s after", "Mb/s", |trace| trace.goodput_mbps[1]),
            of("90% of the goodput before, at", "s", |trace| trace.back_at_s.unwrap_or(f64::NAN)),
            of("data packets lost at the change", "packets", |trace| trace.dropped.0 as f64),
        ];
        let met = traces.iter().filter(|trace| statement(trace)).count();
        let holds = 2 * met > traces.len();
        let holds_in_ci95 = met == traces.len() && met > 0;
        let why = format!("the statement holds on {met} of {} traces", traces.len());
        let quantity = format!("{tcp} around a change of path, 128 KB");
        Row { holds, holds_in_ci95, why, ..Row::of(id, &quantity, published, values) }
    }
    fn at_switches(&self) -> Vec<Row> {
        vec![
            self.at_switch(
                ("4d", "reno"),
                "stalls until the 1 s timeout, then a second congestion event",
                |t| !t.timeouts_s.is_empty() && t.silence_s > 0.5 && t.recoveries_s.len() >= 2,
            ),
            self.at_switch(
                ("4e", "newreno-impatient"),
                "a recovery of several seconds, one segment per RTT, a window of 1 at the timeout",
                |t| !t.timeouts_s.is_empty() && t.segments_per_rtt < 2.5 && t.least_window < 2.0,
            ),
            self.at_switch(
                ("4f", "westwood"),
                "samples without a distance count as 0: a window far too low",
                |t| t.least_window <= 4.0,
            ),
            self.at_switch(("4f+", "westwood+"), "a window of about 13 KB, like Reno", |t| {
                !t.timeouts_s.is_empty()
            }),
            self.at_switch(("4g", "sack-reno"), "no timeout, no second event", |t| {
                t.timeouts_s.is_empty() && t.recoveries_s.len() == 1
            }),
            self.at_switch(
                ("4h", "cubic"),
                "timeout and second event like Reno, but the window regrows fast",
                |t| !t.timeouts_s.is_empty() && t.recoveries_s.len() >= 2,
            ),
        ]
    }

    fn dynamic(&self, fate: &str, tcp: &str) -> Estimate {
        self.figures(&format!("dynamic-{fate}-{tcp}"), 0, goodput)
    }
    fn throughputs(&self) -> Row {
        let of = |tcp: &str| self.dynamic("drop", tcp);
        let published: Vec<_> = TCPS.iter().filter(|tcp| tcp.published).collect();
        let values: Vec<Value> =
            published.iter().map(|tcp| Value::new(tcp.name, "Mb/s", None, of(tcp.name))).collect();
        let best = ["sack-reno", "cubic"].map(of);
        let middle = ["reno", "westwood", "westwood+"].map(of);
        let worst = of("newreno-impatient");
        let above = |high: &[Estimate], low: &[Estimate], ends: bool| {
            let end = |estimate: &Estimate, sign: f64| {
                estimate.mean.map(|mean| mean + if ends { sign * estimate.half.unwrap_or(0.0) } else { 0.0 })
            };
            high.iter().all(|high| {
                low.iter().all(|low| end(high, -1.0).zip(end(low, 1.0)).is_some_and(|(a, b)| a > b))
            })
        };
        let ordered = |ends| above(&best, &middle, ends) && above(&middle, &[worst], ends);
        let switches = self.parts.get("dynamic-drop-reno").and_then(|points| points.first());
        let switches =
            switches.map_or(0, |runs| runs.iter().map(|run| run.switches.len() / 2).max().unwrap_or(0));
        let why = format!(
            "{switches} changes of path; the stations move at 3 m/s each, their distance at 6 m/s; means in \
             the order of the rows"
        );
        let statement =
            "SACK Reno and CUBIC clearly best; Reno, Westwood, Westwood+ about equal; NewReno lowest";
        let base = Row::of("4i", "throughput in the dynamic setting", statement, values);
        Row { holds: ordered(false), holds_in_ci95: ordered(true), why, ..base }
    }
    /// The throughputs of a fate that keeps the packets.
    fn kept(&self, fate: &'static str, quantity: &str, why: &str) -> Row {
        let values = TCPS.iter().map(|tcp| Value::new(tcp.name, "Mb/s", None, self.dynamic(fate, tcp.name)));
        Row { why: why.to_owned(), ..Row::of(fate, quantity, "", values.collect()) }
    }
    fn forwarded(&self) -> Row {
        let why = "the same with fate = forward and rlc = am: no packet is lost at a change";
        self.kept("forward", "throughput, dynamic, packets forwarded", why)
    }
    fn duplicated(&self) -> Row {
        let why = "the same with fate = duplicate: both paths send for a time, in UM";
        self.kept("duplicate", "throughput, dynamic, packets duplicated", why)
    }
    fn modern(&self) -> Row {
        let today = TCPS.iter().filter(|tcp| !tcp.published);
        let mut values = Vec::new();
        for tcp in today {
            values.push(Value::new(tcp.name, "Mb/s", None, self.dynamic("drop", tcp.name)));
            let traces = self.traced(tcp.name);
            let of = |name: &str, unit, of: fn(&SwitchTrace) -> f64| {
                Value::new(format!("{}, {name}", tcp.name), unit, None, Estimate::of(traces.iter().map(of)))
            };
            values.push(of("timeouts in 10 s", "", |trace| trace.timeouts_s.len() as f64));
            values.push(of("longest silence", "s", |trace| trace.silence_s));
            values.push(of("goodput in the 5 s after", "Mb/s", |trace| trace.goodput_mbps[1]));
        }
        let why =
            String::from("Linux of today: CUBIC with RACK-TLP and PRR, and BBRv3, with 536 B and 128 KiB");
        Row { why, ..Row::of("modern", "today's TCP at changes that drop", "", values) }
    }
}
