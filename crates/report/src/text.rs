//! A summary as text, as `paceline run` prints it.

use crate::count;
use crate::table::{Column, MAX_WIDTH, align, render, wrapped};
use paceline_sim::Summary;
use paceline_sim::results::{
    GroupMeans, GroupResult, PingResult, PolicerResult, QueueResult, RouterResult, Times,
};
use std::collections::BTreeSet;

/// A summary as text: heading, totals, and the verdict on each group of stations.
pub fn describe(summary: &Summary) -> String {
    let runs = match summary.runs.len() {
        1 => String::from("1 run"),
        n => format!("{n} runs, mean ± 95% confidence interval"),
    };
    let filter = match summary.scheme.as_str() {
        "basic" => String::new(), // no filter
        scheme => format!(", ACK filter {scheme}"),
    };
    let (name, mode) = (&summary.scenario, summary.mode);
    let stations = count(summary.stations, "station");
    let heading = format!("{name}, {mode}: {stations}, {:.1} s measured, {runs}{filter}", summary.measured_s);
    let column = Column::of_means(summary.scenario.clone(), &summary.mean, summary.ci95.as_ref());
    let (totals, groups) = (render(&[column]), groups(summary));
    let places = queues(summary) + &routers(summary) + &policers(summary) + &pings(summary);
    format!("{heading}\n{totals}{groups}{places}{}", verdicts(summary))
}

/// The figures of each group of stations, where there are several.
fn groups(summary: &Summary) -> String {
    let groups = GroupMeans::of_runs(&summary.runs);
    if groups.len() < 2 {
        return String::new();
    }
    let rtt = |ms: f64| if ms > 0.0 { format!("{ms:.1}") } else { String::from("-") };
    let heading =
        ["group", "stations", "Mb/s", "Mb/s per station", "upload Mb/s", "RTT ms", "retransmitted %", "Jain"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    lines.extend(groups.iter().map(|group| {
        vec![
            group.label(),
            group.stations.to_string(),
            format!("{:.2}", group.mean.goodput_mbps),
            format!("{:.2}", group.mean.goodput_per_station_mbps),
            format!("{:.2}", group.mean.upload_mbps),
            rtt(group.mean.rtt_mean_ms),
            format!("{:.3}", 100.0 * group.mean.retransmission_share),
            format!("{:.4}", group.mean.jain_index),
        ]
    }));
    format!("\n{}", align(&lines, 1))
}

/// The figures of queues with active management, as means over the runs.
fn queues(summary: &Summary) -> String {
    let first = summary.runs.first().map_or(&[][..], |run| &run.queues);
    if first.is_empty() {
        return String::new();
    }
    let heading = ["queue", "discipline", "packets", "marked", "dropped", "overflows", "mean ms", "p95 ms"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for (index, queue) in first.iter().enumerate() {
        let all = || summary.runs.iter().filter_map(move |run| run.queues.get(index));
        let mean = |value: fn(&QueueResult) -> f64| all().map(value).sum::<f64>() / summary.runs.len() as f64;
        let counts: [fn(&QueueResult) -> f64; 4] =
            [|q| q.packets as f64, |q| q.marks as f64, |q| q.drops as f64, |q| q.overflows as f64];
        let mut line = vec![queue.queue.clone(), queue.discipline.clone()];
        line.extend(counts.map(|count| format!("{:.0}", mean(count))));
        line.extend([mean(|q| q.sojourn_mean_ms), mean(|q| q.sojourn_p95_ms)].map(|ms| format!("{ms:.2}")));
        lines.push(line);
    }
    format!("\n{}", align(&lines, 2))
}

/// The figures of routers with a service time, as means over the runs.
fn routers(summary: &Summary) -> String {
    let first = summary.runs.first().map_or(&[][..], |run| &run.routers);
    if first.is_empty() {
        return String::new();
    }
    let heading = ["router", "busy, %", "packets/s", "dropped", "most waiting"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for (index, router) in first.iter().enumerate() {
        let all = || summary.runs.iter().filter_map(move |run| run.routers.get(index));
        let mean =
            |value: fn(&RouterResult) -> f64| all().map(value).sum::<f64>() / summary.runs.len() as f64;
        lines.push(vec![
            router.router.clone(),
            format!("{:.1}", 100.0 * mean(|r| r.busy_share)),
            format!("{:.0}", mean(|r| r.packets_per_s)),
            format!("{:.0}", mean(|r| (r.downlink_drops + r.uplink_drops) as f64)),
            format!("{:.0}", mean(|r| r.most_waiting as f64)),
        ]);
    }
    format!("\n{}", align(&lines, 1))
}

/// The figures of ACK policers, as means over the runs.
fn policers(summary: &Summary) -> String {
    let first = summary.runs.first().map_or(&[][..], |run| &run.policers);
    if first.is_empty() {
        return String::new();
    }
    let mut lines = vec![["policer", "decision", "ACKs", "%"].map(str::to_owned).to_vec()];
    for (index, policer) in first.iter().enumerate() {
        let all = || summary.runs.iter().filter_map(move |run| run.policers.get(index));
        let mean = |count: &dyn Fn(&PolicerResult) -> u64| {
            all().map(|policer| count(policer) as f64).sum::<f64>() / summary.runs.len() as f64
        };
        let reasons: BTreeSet<&str> =
            all().flat_map(|policer| policer.kept.keys().map(String::as_str)).collect();
        let acks = mean(&|policer| policer.acks).max(1.0);
        let kept = reasons.iter().map(|reason| {
            let count = mean(&|policer| policer.kept.get(*reason).copied().unwrap_or(0));
            (format!("kept: {reason}"), count)
        });
        let dropped = (String::from("dropped"), mean(&|policer| policer.dropped));
        for (decision, count) in std::iter::once(dropped).chain(kept) {
            let share = format!("{:.1}", 100.0 * count / acks);
            lines.push(vec![policer.policer.clone(), decision, format!("{count:.0}"), share]);
        }
    }
    format!("\n{}", align(&lines, 2))
}

/// The pings of each station, as means over the runs.
fn pings(summary: &Summary) -> String {
    let first = summary.runs.first().map_or(&[][..], |run| &run.pings);
    if first.is_empty() {
        return String::new();
    }
    let head = ["pings of", "part", "count", "mean ms", "p5", "p50", "p95", "p99"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for ping in first {
        let own = || summary.runs.iter().flat_map(|run| &run.pings).filter(|own| own.station == ping.station);
        let mut add = |name: &str, of: &dyn Fn(&PingResult) -> Option<(u64, Times)>| {
            let all: Vec<(u64, Times)> = own().filter_map(of).collect();
            let mean = |value: fn(&Times) -> f64| {
                format!("{:.2}", all.iter().map(|(_, times)| value(times)).sum::<f64>() / all.len() as f64)
            };
            let count = all.iter().map(|(count, _)| count).sum::<u64>();
            let mut line = vec![format!("station {}", ping.station), name.to_owned(), count.to_string()];
            line.extend([mean(|t| t.mean_ms), mean(|t| t.p5_ms), mean(|t| t.p50_ms)]);
            line.extend([mean(|t| t.p95_ms), mean(|t| t.p99_ms)]);
            lines.push(line);
        };
        add("round trip", &|own| Some((own.answered, own.rtt)));
        add("request", &|own| Some((own.answered, own.there)));
        add("answer", &|own| Some((own.answered, own.back)));
        for part in &ping.parts {
            let same = |own: &PingResult| {
                own.parts.iter().find(|other| other.part == part.part).map(|part| (part.count, part.times))
            };
            add(&part.part, &same);
        }
    }
    format!("\n{}", align(&lines, 2))
}

/// A sentence for each group of stations that says why its TCP is not faster. Its figures are those of whole
/// connections with the warm-up, unlike those of the tables.
pub fn verdict_sentences(groups: &[GroupResult]) -> Vec<String> {
    let sentence = |group: &GroupResult| {
        let stations = count(group.stations, "station");
        format!("{}, {stations}, over whole connections: TCP is {}.", group.label(), group.verdict)
    };
    groups.iter().map(sentence).collect()
}

fn verdicts(summary: &Summary) -> String {
    let sentences = verdict_sentences(&summary.groups);
    let lines: Vec<String> =
        sentences.iter().map(|sentence| wrapped(sentence, MAX_WIDTH - 2).join("\n  ")).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}
