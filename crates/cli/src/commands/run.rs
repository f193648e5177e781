//! `paceline run`: simulates a scenario, one run for each seed, on all cores.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use crate::quantity;
use crate::results_folder::ResultsFolder;
use crate::scenario_args::{self, RunArgs};
use anyhow::Context;
use indicatif::ProgressBar;
use paceline_linux::files::event_file::{EventFile, Header, Source};
use paceline_linux::files::pcapng::{self, BLOCK_BYTES, SNAP_LEN};
use paceline_net::{Bytes, Instant};
use paceline_report::text::describe;
use paceline_sim::{BlockSink, Capture, Run, RunResult, Scenario, Summary};
use rayon::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: RunArgs,
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
    /// Write the events of TCP, radio, ACK filter and accelerator into the results folder, as lines of JSON,
    /// one file per seed (docs/results.md)
    #[arg(long, requires = "out")]
    events: bool,
    /// End each file of events at this size, for example "50 MB"; the simulation goes on
    #[arg(long, value_name = "SIZE", requires = "events", value_parser = size)]
    events_limit: Option<Bytes>,
}

pub fn run(args: &Args) -> Outcome {
    let (name, scenario) = scenario_args::load(&args.scenario.scenario())?;
    scenario_args::warn(&scenario);
    let last = scenario.run.seed.checked_add(args.seeds - 1);
    let last = last.ok_or_else(|| Failure::input("run.seed plus --seeds is beyond the largest seed"))?;
    let folder = args.out.as_deref().map(ResultsFolder::create).transpose()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0).into()).build();
    let pool = pool.context("cannot start threads")?;
    let bar = progress::bar(args.seeds * scenario.run.duration.as_millis(), "simulated time");
    if args.pcap && args.pcap_limit.is_none() {
        warn_of_large_captures(&scenario, args.seeds);
    }
    let runs: anyhow::Result<Vec<RunResult>> = pool.install(|| {
        let seeds: Vec<u64> = (scenario.run.seed..=last).collect();
        let run = |seed| run_seed(args, (name.as_str(), &scenario), seed, folder.as_ref(), &bar);
        seeds.into_par_iter().map(run).collect()
    });
    bar.finish_and_clear();
    let summary = Summary::new(paceline_study::origin(), &name, "simulated", &scenario, runs?);
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

pub fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if size.0 == 0 { Err("allowed: from 1 B, for example \"50 MB\"".into()) } else { Ok(size) }
}

/// Warns on stderr where the captures of a run may take hundreds of megabytes.
fn warn_of_large_captures(scenario: &Scenario, seeds: u64) {
    // Chosen: below it, a capture opens in Wireshark within seconds.
    const LARGE_BYTES: f64 = 200e6;
    let Some((_, rate)) = scenario_args::downlink_rate(scenario) else { return };
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

/// A function that captures radio blocks.
fn blocks(file: &pcapng::Writer) -> BlockSink {
    let mut write = file.radio();
    Box::new(move |block| block.mac_nr_over_udp().for_each(|payload| write(block.at(), &payload)))
}

/// Simulates one seed of a scenario with this name, with capture and event trace in `folder`.
fn run_seed(
    args: &Args,
    (name, scenario): (&str, &Scenario),
    seed: u64,
    folder: Option<&ResultsFolder>,
    bar: &ProgressBar,
) -> anyhow::Result<RunResult> {
    let mut writer = None;
    let mut capture: Option<Capture> = None;
    if let Some(folder) = folder.filter(|_| args.pcap) {
        let (stations, radio) = (scenario.station_count() as usize, scenario.has_nr_cell());
        let content = pcapng::Content { stations, radio, limit: args.pcap_limit };
        let file = pcapng::Writer::create(&folder.path(&format!("seed-{seed}.pcapng")), &content)?;
        capture = Some(Capture { packets: Box::new(file.packets()), blocks: radio.then(|| blocks(&file)) });
        writer = Some(file);
    }
    let mut run = Run::new(scenario, seed, capture);
    let mut events = None;
    if let Some(folder) = folder.filter(|_| args.events) {
        let header =
            Header::new(paceline_study::origin(), Source::Simulated { scenario: name.to_owned(), seed });
        let path = folder.path(&format!("seed-{seed}.events.jsonl"));
        let file = EventFile::create(&path, &header, args.events_limit)?;
        run.trace_events(scenario, Box::new(file.sink()));
        events = Some(file);
    }
    let mut last = Instant::ZERO;
    while !run.is_over() {
        let now = run.step();
        bar.inc(now.as_millis() - last.as_millis());
        last = now;
    }
    let result = run.finish();
    if let Some(writer) = writer {
        writer.finish()?;
    }
    if let Some(file) = events {
        file.finish()?;
    }
    Ok(result)
}
