//! `paceline trace survey`: direct CUBIC, direct BBR and CUBIC behind the accelerator on many traces, and the
//! traces on which the accelerator loses.

use super::folder;
use crate::failure::{Failure, Outcome};
use crate::{output, progress};
use paceline_net::Duration;
use paceline_report::table::align;
use paceline_sim::link::{Trace, generated_kinds};
use paceline_sim::{Scenario, scenario, simulate};
use paceline_study::scenario_file::read_trace;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Utilisation by which the accelerator may be under BBR before it counts as a loss, percentage points.
/// Chosen: the differences of BBR between seeds.
const MARGIN_POINTS: f64 = 1.0;
/// Queue of the link: this time at the trace's mean rate. Chosen: base stations hold about a second.
const QUEUE_S: f64 = 1.0;
/// Smallest queue of the link, bytes. Chosen: a hundred packets.
const LEAST_QUEUE_BYTES: u64 = 150_000;
/// Start of a run that is not measured, s. Chosen: slow start and BBR's first probes are over.
const WARMUP_S: u64 = 3;

#[derive(clap::Args)]
pub struct Survey {
    /// Folder of traces in mahimahi's format or in binary form; NAME.up is the uplink of NAME.down. Generated
    /// traces if left out
    folder: Option<PathBuf>,
    /// Kind of generated traces; may be repeated; all kinds if left out
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Generated traces of each kind
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    count: u64,
    /// Simulated time of each run
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    duration: Duration,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Name, congestion control and path of the compared ways to send. Chosen: the congestion controls of most
/// servers, and the accelerator.
const SCHEMES: [(&str, &str, &str); 3] =
    [("cubic", "cubic", "none"), ("bbr", "bbr", "none"), ("accelerator", "cubic", "accelerator")];

/// A trace to run on.
#[derive(Clone)]
struct Job {
    family: String,
    downlink: String,
    uplink: Option<String>,
}

/// Figures of one way to send on one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Figures {
    /// Share of the link's capacity that was used.
    utilisation_percent: f64,
    /// 95th percentile of the time in the link's queue.
    delay_p95_ms: f64,
}

/// All ways on one trace.
#[derive(Serialize)]
struct Row {
    family: String,
    trace: String,
    cubic: Figures,
    bbr: Figures,
    accelerator: Figures,
    loses: Vec<&'static str>,
}

pub fn run(args: &Survey) -> Outcome {
    if args.duration <= Duration::from_secs(WARMUP_S) {
        return Err(Failure::input(format!("--duration {}: allowed: above {WARMUP_S} s", args.duration)));
    }
    let jobs = match &args.folder {
        Some(folder) => of_folder(folder)?,
        None => of_kinds(&args.kind, args.count)?,
    };
    let runs: Vec<(usize, usize)> =
        (0..jobs.len()).flat_map(|job| (0..SCHEMES.len()).map(move |scheme| (job, scheme))).collect();
    let bar = progress::bar(runs.len() as u64, "the runs");
    let figures: Result<Vec<Figures>, Failure> = runs
        .par_iter()
        .map(|(job, scheme)| {
            let figures = figures(&jobs[*job], SCHEMES[*scheme], args.duration);
            bar.inc(1);
            figures
        })
        .collect();
    bar.finish_and_clear();
    let figures = figures?;
    let rows: Vec<Row> =
        jobs.into_iter().zip(figures.chunks(SCHEMES.len())).map(|(job, own)| Row::new(job, own)).collect();
    output::print(&if args.json {
        serde_json::to_string_pretty(&rows).expect("figures are plain data") + "\n"
    } else {
        tables(&rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The traces of a folder; its name is the family's.
fn of_folder(folder: &Path) -> Outcome<Vec<Job>> {
    let family = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    let job = |(path, uplink): (PathBuf, Option<PathBuf>)| Job {
        family: family.clone(),
        uplink: uplink.map(name),
        downlink: name(path),
    };
    Ok(folder::traces(folder)?.into_iter().map(job).collect())
}

fn of_kinds(kinds: &[String], count: u64) -> Outcome<Vec<Job>> {
    let all: Vec<&str> = generated_kinds().collect();
    if let Some(unknown) = kinds.iter().find(|kind| !all.contains(&kind.as_str())) {
        return Err(Failure::input(format!("--kind {unknown}: allowed: {}", all.join(", "))));
    }
    let chosen = all.into_iter().filter(|kind| kinds.is_empty() || kinds.iter().any(|own| own == kind));
    let job = |kind: &str, seed: u64| Job {
        family: kind.to_owned(),
        downlink: format!("generated:{kind}:{seed}"),
        // The return path of 3G is as slow as the way there; its trace has another seed.
        uplink: kind.starts_with("3g").then(|| format!("generated:{kind}:{}", seed + 1_000_000)),
    };
    Ok(chosen.flat_map(|kind| (1..=count).map(move |seed| job(kind, seed))).collect())
}

/// The scenario of one run: a round trip of 40 ms, and windows of 64 MiB, so that TCP's do not limit.
fn scenario(job: &Job, (_, control, path): (&str, &str, &str), duration: Duration) -> Outcome<Scenario> {
    let failure = |error: String| Failure::input(format!("{}: {error}", job.downlink));
    let file = read_trace(Path::new(""), &job.downlink).map_err(failure)?;
    let trace = Trace::read(&file).map_err(|error| failure(error.to_string()))?;
    let queue = ((trace.rate() / 8.0 * QUEUE_S) as u64).clamp(LEAST_QUEUE_BYTES, 1 << 30);
    let uplink = match &job.uplink {
        Some(uplink) => format!("uplink = {uplink:?}"),
        None => String::from("uplink_rate = \"50 Mb/s\""),
    };
    let text = format!(
        "[run]\nduration = \"{duration}\"\nwarmup = \"{WARMUP_S} s\"\n\
         [core]\nhops = [{{ rate = \"10 Gb/s\", delay = \"10 ms\", queue = \"64 MiB\" }}]\npath = \"{path}\"\n\
         [tcp]\ncongestion_control = \"{control}\"\nreceive_buffer = \"64 MiB\"\nsend_buffer = \"64 MiB\"\n\
         [link]\ndelay = \"10 ms\"\nqueue = \"{queue} B\"\n\
         [link.trace]\ndownlink = {:?}\n{uplink}\n[[station]]\n",
        job.downlink
    );
    let read = |name: &str| read_trace(Path::new(""), name);
    scenario::load_with("survey", &text, &[], &read).map_err(|error| failure(error.to_string()))
}

fn figures(job: &Job, scheme: (&str, &str, &str), duration: Duration) -> Outcome<Figures> {
    let totals = simulate(&scenario(job, scheme, duration)?, 1, None, &mut |_| {}).totals;
    let utilisation_percent = 100.0 * totals.link_sent_mbps / totals.link_capacity_mbps.max(1e-9);
    Ok(Figures { utilisation_percent, delay_p95_ms: totals.link_delay_p95_ms })
}

impl Row {
    fn new(job: Job, figures: &[Figures]) -> Self {
        let [cubic, bbr, accelerator] = [0, 1, 2].map(|scheme| figures[scheme]);
        let less_used = accelerator.utilisation_percent < bbr.utilisation_percent - MARGIN_POINTS;
        let later = accelerator.delay_p95_ms > bbr.delay_p95_ms;
        let loses = [("utilisation", less_used), ("delay", later)];
        let loses = loses.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
        Self { family: job.family, trace: job.downlink, cubic, bbr, accelerator, loses }
    }
    fn cells(cubic: Figures, bbr: Figures, accelerator: Figures) -> Vec<String> {
        let of = |figures: Figures| {
            [format!("{:.1}", figures.utilisation_percent), format!("{:.0}", figures.delay_p95_ms)]
        };
        [cubic, bbr, accelerator].into_iter().flat_map(of).collect()
    }
}

/// The means of each family, then the traces on which the accelerator loses.
fn tables(rows: &[Row]) -> String {
    let head = |first: [&str; 2]| {
        let names = SCHEMES.iter().flat_map(|(name, ..)| [format!("{name} %"), String::from("p95 ms")]);
        first.map(str::to_owned).into_iter().chain(names).chain([String::from("loses")]).collect::<Vec<_>>()
    };
    let mut families: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| families.entry(&row.family).or_default().push(row));
    let mut lines = vec![head(["family", "traces"])];
    for (family, own) in &families {
        let mean = |of: fn(&Row) -> Figures| {
            let sum = |value: fn(Figures) -> f64| own.iter().map(|row| value(of(row))).sum::<f64>();
            let n = own.len() as f64;
            let (utilisation, delay) = (sum(|f| f.utilisation_percent), sum(|f| f.delay_p95_ms));
            Figures { utilisation_percent: utilisation / n, delay_p95_ms: delay / n }
        };
        let mut line = vec![(*family).to_owned(), own.len().to_string()];
        line.extend(Row::cells(mean(|row| row.cubic), mean(|row| row.bbr), mean(|row| row.accelerator)));
        line.push(own.iter().filter(|row| !row.loses.is_empty()).count().to_string());
        lines.push(line);
    }
    let lost: Vec<&Row> = rows.iter().filter(|row| !row.loses.is_empty()).collect();
    let mut text = align(&lines, 1);
    text += &format!(
        "\nThe accelerator loses on {} of {} traces: more than {MARGIN_POINTS:.0} point of utilisation under \
         BBR, or a p95 delay above BBR's.\n",
        lost.len(),
        rows.len()
    );
    if !lost.is_empty() {
        let mut lines = vec![head(["trace", ""])];
        lines.extend(lost.iter().map(|row| {
            let mut line = vec![row.trace.clone(), String::new()];
            line.extend(Row::cells(row.cubic, row.bbr, row.accelerator));
            line.push(row.loses.join(", "));
            line
        }));
        text += &align(&lines, 1);
    }
    text
}
