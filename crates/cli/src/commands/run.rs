//! `paceline run`: simulates a scenario, one run for each seed, on all cores.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use crate::quantity;
use crate::results_folder::ResultsFolder;
use crate::scenario_file::{self, ScenarioArgs};
use crate::table::{Column, align, render};
use anyhow::Context;
use indicatif::ProgressBar;
use paceline_live::pcapng::{self, BLOCK_BYTES, SNAP_LEN};
use paceline_net::{Bytes, Instant};
use paceline_sim::results::{PolicerResult, QueueResult, RouterResult};
use paceline_sim::{Capture, RunResult, Scenario, Summary, simulate};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of runs; seeds count up from run.seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Runs at the same time; all cores if left out
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json instead of a table
    #[arg(long)]
    json: bool,
    /// Capture headers at the servers and at every station, and the blocks of an NR cell, into the results
    /// folder, one pcapng per seed
    #[arg(long, requires = "out")]
    pcap: bool,
    /// Stop each capture at this size, for example "50 MB"; the simulation goes on
    #[arg(long, value_name = "SIZE", requires = "pcap", value_parser = size)]
    pcap_limit: Option<Bytes>,
}

pub fn run(args: &Args) -> Outcome {
    let (name, scenario) = scenario_file::load(&args.scenario)?;
    scenario_file::warn_of_rate_ceiling(&scenario);
    let last = scenario.run.seed.checked_add(args.seeds - 1);
    let last = last.ok_or_else(|| Failure::input("run.seed plus --seeds is beyond the largest seed"))?;
    let folder = args.out.as_deref().map(ResultsFolder::create).transpose()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0).into()).build();
    let pool = pool.context("cannot start threads")?;
    let bar = progress::bar(args.seeds * scenario.run.duration.as_millis(), "simulated time");
    let captures = folder.as_ref().filter(|_| args.pcap);
    if args.pcap && args.pcap_limit.is_none() {
        warn_of_large_captures(&scenario, args.seeds);
    }
    let runs: anyhow::Result<Vec<RunResult>> = pool.install(|| {
        let seeds: Vec<u64> = (scenario.run.seed..=last).collect();
        seeds.into_par_iter().map(|seed| run_seed(&scenario, seed, captures, args.pcap_limit, &bar)).collect()
    });
    bar.finish_and_clear();
    let summary = Summary::new(output::origin(), &name, "simulated", &scenario, runs?);
    if let Some(folder) = folder {
        folder.finish(&scenario, &summary)?;
    }
    if let Some(warning) = summary.warning() {
        output::message(&format!("paceline: {warning}\n"));
    }
    output::print(&if args.json { summary.to_json() } else { describe(&summary) })?;
    if let Some(out) = &args.out {
        output::message(&format!("results: {}\n", out.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A summary as text: heading, totals, and the verdict on each group of stations.
pub fn describe(summary: &Summary) -> String {
    let runs = match summary.runs.len() {
        1 => String::from("1 run"),
        n => format!("{n} runs, mean ± 95% confidence interval"),
    };
    let (name, mode) = (&summary.scenario, summary.mode);
    let stations = output::count(summary.stations, "station");
    let heading = format!("{name}, {mode}: {stations}, {:.1} s measured, {runs}", summary.measured_s);
    let column = Column { name: summary.scheme.clone(), mean: &summary.mean, ci95: summary.ci95.as_ref() };
    let (totals, groups) = (render(&[column]), groups(summary));
    let places = queues(summary) + &routers(summary) + &policers(summary);
    format!("{heading}\n{totals}{groups}{places}{}", verdicts(summary))
}

/// The figures of each group of stations, where there are several.
fn groups(summary: &Summary) -> String {
    if summary.groups.len() < 2 {
        return String::new();
    }
    let heading =
        ["group", "stations", "Mb/s", "Mb/s per station", "upload Mb/s", "RTT ms", "retransmitted %", "Jain"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    lines.extend(summary.groups.iter().map(|group| {
        vec![
            format!("station.{}", group.group),
            group.stations.to_string(),
            format!("{:.2}", group.mean.goodput_mbps),
            format!("{:.2}", group.mean.goodput_per_station_mbps),
            format!("{:.2}", group.mean.upload_mbps),
            format!("{:.1}", group.mean.rtt_mean_ms),
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

/// A sentence for each group of stations that says why its TCP is not faster.
fn verdicts(summary: &Summary) -> String {
    let mut text = String::new();
    for group in &summary.groups {
        let stations = output::count(group.stations, "station");
        text += &format!("\nstation.{}, {stations}: TCP is {}.", group.group, group.verdict);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

pub fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if size.0 == 0 { Err("allowed: from 1 B, for example \"50 MB\"".into()) } else { Ok(size) }
}

/// Warns on stderr where the captures of a run may take hundreds of megabytes.
fn warn_of_large_captures(scenario: &Scenario, seeds: u64) {
    // Chosen: below it, a capture opens in Wireshark within seconds.
    const LARGE_BYTES: f64 = 200e6;
    let Some((_, rate)) = scenario_file::downlink_rate(scenario) else { return };
    // A segment of 1500 bytes, and half an ACK of 52 bytes, each captured at the server and at the station;
    // in NR both also in a block, which is complete.
    let mut per_segment = (2 * (BLOCK_BYTES + u64::from(SNAP_LEN)) + BLOCK_BYTES + 52) as f64;
    if scenario.has_nr_cell() {
        per_segment += 1500.0 + 52.0 / 2.0;
    }
    let seconds = scenario.run.duration.as_millis() as f64 / 1000.0 * seeds as f64;
    let bytes = rate as f64 / (8.0 * 1500.0) * seconds * per_segment;
    if bytes > LARGE_BYTES {
        let bytes = quantity::bytes(bytes as u64);
        output::message(&format!(
            "warning: --pcap: the captures may take up to {bytes}; --pcap-limit SIZE ends each at a size\n"
        ));
    }
}

/// Simulates one seed, with a capture in `folder`.
fn run_seed(
    scenario: &Scenario,
    seed: u64,
    folder: Option<&ResultsFolder>,
    limit: Option<Bytes>,
    bar: &ProgressBar,
) -> anyhow::Result<RunResult> {
    let mut writer = None;
    let mut capture: Option<Capture> = None;
    if let Some(folder) = folder {
        let (stations, radio) = (scenario.station_count() as usize, scenario.has_nr_cell());
        let content = pcapng::Content { stations, radio, limit };
        let (file, sinks) = pcapng::create(&folder.path(&format!("seed-{seed}.pcapng")), &content)?;
        writer = Some(file);
        capture = Some(sinks);
    }
    let mut last = Instant::ZERO;
    let result = simulate(scenario, seed, capture, &mut |now| {
        bar.inc(now.since(last).as_millis());
        last = now;
    });
    if let Some(writer) = writer {
        writer.finish()?;
    }
    Ok(result)
}
