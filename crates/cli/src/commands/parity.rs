//! `paceline parity`: compares this host's TCP, emulated in real time, with simulated TCP on the same links.
//!
//! Ten simulated runs of each scenario show by how much runs with different seeds differ. A difference
//! between the means of both sides within three standard errors counts as chance.

use super::emulate::kernel_name;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use anyhow::Context;
use paceline_emulate::{Emulation, RealStation, bulk};
use paceline_linux::network::netns;
use paceline_report::table::align;
use paceline_sim::results::jain;
use paceline_sim::{RunResult, Scenario, Totals, address, simulate};
use paceline_study::scenario_file;
use serde_json::json;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// TCP port of the server in the emulation. Chosen: any port, since the namespace has no other server.
const PORT: u16 = 5001;
/// The links. Chosen: one for each kind of bottleneck, and one with ten connections that share it.
const LINKS: [ComparedLink; 5] = [
    ComparedLink { name: "20 Mb/s, 40 ms", scenario: "parity-fixed", controls: &CONTROLS, connections: 1 },
    ComparedLink { name: "1% random loss", scenario: "parity-loss", controls: &CONTROLS, connections: 1 },
    ComparedLink { name: "cellular trace", scenario: "parity-trace", controls: &CONTROLS, connections: 1 },
    ComparedLink { name: "LTE cell", scenario: "parity-cell", controls: &CONTROLS, connections: 1 },
    ComparedLink { name: "ten on 20 Mb/s", scenario: "parity-fixed", controls: &["bbr"], connections: 10 },
];
/// Congestion controls. Chosen: Reno, and the two most used ones.
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
/// Simulated runs of each scenario. Chosen: enough for a standard deviation.
const SIMULATED_RUNS: u64 = 10;
/// Settings of `--quick`. Chosen: short enough for CI.
const QUICK: [&str; 2] = ["run.duration=8 s", "run.warmup=2 s"];

#[derive(clap::Args)]
pub struct Args {
    /// Eight seconds a run in place of thirty
    #[arg(long)]
    quick: bool,
    /// Compare on this link alone: parity-fixed, parity-loss, parity-trace or parity-cell (repeatable)
    #[arg(long, value_name = "NAME")]
    link: Vec<String>,
    /// Runs of the kernel's TCP per link and control, each with a seed of its own: 3, or 1 if quick
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Set one value of the scenarios (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// File for the figures as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A link to compare on, and what runs on it.
struct ComparedLink {
    name: &'static str,
    /// Name of the built-in scenario.
    scenario: &'static str,
    /// Congestion controls, each with runs of its own.
    controls: &'static [&'static str],
    /// Connections of each station.
    connections: u16,
}

/// Figures of one run, or their means over several.
#[derive(Clone, Copy, Debug)]
struct Figures {
    goodput_mbps: f64,
    /// Mean time in the queue of the bottleneck.
    queue_ms: f64,
    /// Retransmitted share of the data segments.
    retransmission_share: f64,
    /// Jain's fairness index of the connections.
    jain: f64,
}

/// Both sides of one link and congestion control.
struct Pair {
    link: &'static str,
    control: &'static str,
    connections: u16,
    kernel: Figures,
    simulated: Figures,
    /// Three standard errors of the difference between both.
    chance: Figures,
    /// 99th percentile of the emulator's lateness in ms, in the run where it was largest.
    lateness_p99_ms: f64,
}

pub fn run(args: &Args) -> Outcome {
    let names: Vec<&str> = LINKS.iter().map(|link| link.scenario).collect();
    if let Some(unknown) = args.link.iter().find(|link| !names.contains(&link.as_str())) {
        return Err(Failure::input(format!("--link {unknown}: allowed: {}", names[..4].join(", "))));
    }
    // Check the file before minutes of runs.
    if let Some(path) = &args.out {
        let file = File::options().create(true).append(true).open(path);
        file.with_context(|| format!("--out {}: cannot be written", path.display()))
            .map_err(Failure::Input)?;
    }
    if let Some(problem) = paceline_emulate::problem() {
        return Err(Failure::Failed(anyhow::anyhow!("parity: {problem}")));
    }
    let selected =
        |link: &&ComparedLink| args.link.is_empty() || args.link.iter().any(|name| name == link.scenario);
    let links: Vec<&ComparedLink> = LINKS.iter().filter(selected).collect();
    let bar = progress::bar(links.iter().map(|link| link.controls.len() as u64).sum(), "the runs");
    let mut pairs = Vec::new();
    for ComparedLink { name, scenario, controls, connections } in links {
        for control in *controls {
            let quick: &[&str] = if args.quick { &QUICK } else { &[] };
            let mut set =
                vec![format!("tcp.congestion_control={control}"), format!("station.flows={connections}")];
            if *connections > 1 {
                set.push("station.count=1".into());
            }
            set.extend(quick.iter().map(|text| (*text).to_owned()).chain(args.set.iter().cloned()));
            let text = scenario_file::built_in(scenario).1;
            let scenario = scenario_file::parse(scenario, text, &set)?;
            pairs.push(pair(name, control, &scenario, args.seeds.unwrap_or(if args.quick { 1 } else { 3 }))?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    output::print(&describe(&pairs))?;
    if let Some(path) = &args.out {
        let text = serde_json::to_string_pretty(&to_json(&pairs, &args.set)).expect("figures are plain data");
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let all = pairs.iter().all(Pair::alike);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn pair(link: &'static str, control: &'static str, scenario: &Scenario, seeds: u64) -> Outcome<Pair> {
    let simulated: Vec<Figures> = (0..SIMULATED_RUNS)
        .map(|seed| {
            let result = simulate(scenario, scenario.run.seed + seed, None, &mut |_| {});
            let bytes: Vec<u64> = result.flows.iter().map(|flow| flow.bytes).collect();
            Figures::of(&result, scenario, &bytes)
        })
        .collect();
    let name = kernel_name("control", control)?;
    let (mut kernel, mut lateness_p99_ms) = (Vec::new(), 0.0_f64);
    for seed in 0..seeds {
        let mut scenario = scenario.clone();
        scenario.run.seed += seed;
        let (result, bytes, late) = netns::apart(|| emulated(&scenario, name))?;
        kernel.push(Figures::of(&result, &scenario, &bytes));
        lateness_p99_ms = lateness_p99_ms.max(late);
    }
    let (mean, spread) = mean_and_deviation(&simulated);
    let errors = (1.0 / SIMULATED_RUNS as f64 + 1.0 / seeds as f64).sqrt();
    let chance = Figures::from_array(spread.to_array().map(|deviation| 3.0 * errors * deviation));
    let connections = scenario.stations[0].flows as u16;
    let kernel = mean_and_deviation(&kernel).0;
    Ok(Pair { link, control, connections, kernel, simulated: mean, chance, lateness_p99_ms })
}

fn mean_and_deviation(runs: &[Figures]) -> (Figures, Figures) {
    let count = runs.len() as f64;
    let column = |at: usize| runs.iter().map(move |run| run.to_array()[at]);
    let mean: [f64; 4] = std::array::from_fn(|at| column(at).sum::<f64>() / count);
    let deviation = std::array::from_fn(|at| {
        let squares: f64 = column(at).map(|value| (value - mean[at]) * (value - mean[at])).sum();
        (squares / (count - 1.0).max(1.0)).sqrt()
    });
    (Figures::from_array(mean), Figures::from_array(deviation))
}

/// Runs downloads by this host's TCP in every station; gives the result, the bytes of each connection, and
/// the 99th percentile of the lateness in ms.
fn emulated(scenario: &Scenario, control: &str) -> anyhow::Result<(RunResult, Vec<u64>, f64)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let real = |index| RealStation { index, congestion_control: Some(control.to_owned()) };
    let stations: Vec<RealStation> = (0..scenario.station_count() as usize).map(real).collect();
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let server = SocketAddr::new(address::HOST.0.into(), PORT);
    let connections = scenario.stations[0].flows;
    let command = [
        program.to_string_lossy().into_owned(),
        "receive".into(),
        server.to_string(),
        connections.to_string(),
        scenario.run.duration.as_secs_f64().to_string(),
        folder.path().to_string_lossy().into_owned(),
    ];
    let _source = bulk::Source::start(server);
    let emulation = Emulation {
        scenario,
        stations: &stations,
        command: &command,
        user: None,
        pcap: None,
        pcap_limit: None,
        events: None,
    };
    let report = paceline_emulate::run(&emulation)?;
    anyhow::ensure!(!report.stopped, "stopped by a signal");
    anyhow::ensure!(report.failed.is_empty(), "a receiving program failed");
    let mut bytes = Vec::new();
    for station in stations {
        let text = std::fs::read_to_string(folder.path().join(station.index.to_string()))?;
        let counts: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        bytes.extend(counts.context("a receiving program wrote no numbers")?);
    }
    Ok((report.result, bytes, report.lateness.quantile(0.99).as_secs_f64() * 1e3))
}

/// Arguments of the receiving program of a station in the emulation.
#[derive(clap::Args)]
pub struct ReceiveArgs {
    server: SocketAddr,
    connections: usize,
    seconds: f64,
    folder: PathBuf,
}

pub fn receive(args: &ReceiveArgs) -> Outcome {
    let station = std::env::var("PACELINE_STATION").context("runs only inside an emulation")?;
    let span = Duration::try_from_secs_f64(args.seconds).context("not a duration")?;
    let bytes = bulk::receive(args.server, args.connections, span)?;
    let text: Vec<String> = bytes.iter().map(u64::to_string).collect();
    std::fs::write(Path::new(&args.folder).join(station), text.join("\n"))
        .context("cannot write the numbers of bytes")?;
    Ok(ExitCode::SUCCESS)
}

impl Figures {
    fn from_array([goodput_mbps, queue_ms, retransmission_share, jain]: [f64; 4]) -> Self {
        Self { goodput_mbps, queue_ms, retransmission_share, jain }
    }
    fn to_array(self) -> [f64; 4] {
        [self.goodput_mbps, self.queue_ms, self.retransmission_share, self.jain]
    }
    fn of(result: &RunResult, scenario: &Scenario, bytes: &[u64]) -> Self {
        let Totals { goodput_mbps, retransmission_share, link_delay_mean_ms, .. } = result.totals;
        let queue_ms = if scenario.link().is_some() {
            link_delay_mean_ms
        } else {
            queue_ms_by_littles_law(result, scenario)
        };
        Self {
            goodput_mbps,
            queue_ms,
            retransmission_share,
            jain: jain(bytes.iter().map(|bytes| *bytes as f64)),
        }
    }
}

/// Mean time in ms in the eNB's buffers, from the mean number of bytes there, by Little's law.
fn queue_ms_by_littles_law(result: &RunResult, scenario: &Scenario) -> f64 {
    let warmup = paceline_net::Instant::ZERO + scenario.run.warmup;
    let samples = result.samples.iter().filter(|sample| sample.at >= warmup);
    let (sum, count) = samples.fold((0, 0), |(sum, count), sample| (sum + sample.downlink_queue, count + 1));
    let stations = result.stations.len() as f64;
    let waiting = if count == 0 { 0.0 } else { sum as f64 / f64::from(count) * stations };
    waiting * 8e-3 / result.totals.goodput_mbps.max(1e-9)
}

/// Verdict on a figure of both sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Alike {
    /// The difference is within the tolerance.
    Yes,
    /// The difference is larger, and within three standard errors.
    WithinChance,
    /// The difference is larger than both.
    No,
}

impl Pair {
    fn verdicts(&self) -> [(&'static str, Alike); 4] {
        let goodput = if self.control == "bbr" { 0.10 } else { 0.05 };
        let jain = if self.connections > 1 { 0.1 / self.kernel.jain } else { f64::INFINITY };
        // Relative tolerance above and below the kernel's figure; for retransmissions a factor of 1.3.
        let tolerances = [(goodput, goodput), (0.15, 0.15), (0.3, 1.0 - 1.0 / 1.3), (jain, jain)];
        let names = ["goodput", "queue", "retransmissions", "Jain index"];
        let (kernel, simulated, chance) =
            (self.kernel.to_array(), self.simulated.to_array(), self.chance.to_array());
        std::array::from_fn(|at| {
            let difference = simulated[at] - kernel[at];
            let (above, below) = tolerances[at];
            let alike = if difference <= above * kernel[at] && -difference <= below * kernel[at] {
                Alike::Yes
            } else if difference.abs() <= chance[at] {
                Alike::WithinChance
            } else {
                Alike::No
            };
            (names[at], alike)
        })
    }
    fn alike(&self) -> bool {
        self.verdicts().iter().all(|(_, alike)| *alike != Alike::No)
    }
    fn verdict(&self) -> String {
        let verdicts = self.verdicts();
        let names_of = |verdict: Alike| {
            let names = verdicts.iter().filter(|(_, alike)| *alike == verdict).map(|(name, _)| *name);
            names.collect::<Vec<_>>().join(", ")
        };
        match (names_of(Alike::No), names_of(Alike::WithinChance)) {
            (no, _) if !no.is_empty() => format!("not {no}"),
            (_, chance) if !chance.is_empty() => format!("yes; {chance} within chance"),
            _ => "yes".into(),
        }
    }
}

fn describe(pairs: &[Pair]) -> String {
    let head = [
        "link",
        "control",
        "Mb/s kernel",
        "ours",
        "queue ms kernel",
        "ours",
        "retransmitted % kernel",
        "ours",
        "alike",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for pair in pairs {
        let (kernel, simulated) = (&pair.kernel, &pair.simulated);
        lines.push(vec![
            pair.link.into(),
            pair.control.into(),
            format!("{:.2}", kernel.goodput_mbps),
            format!("{:.2}", simulated.goodput_mbps),
            format!("{:.1}", kernel.queue_ms),
            format!("{:.1}", simulated.queue_ms),
            format!("{:.3}", 100.0 * kernel.retransmission_share),
            format!("{:.3}", 100.0 * simulated.retransmission_share),
            pair.verdict(),
        ]);
    }
    let mut text = align(&lines, 2);
    for pair in pairs.iter().filter(|pair| pair.connections > 1) {
        text += &format!(
            "{}, {}: Jain index of {} connections: kernel {:.3}, ours {:.3}\n",
            pair.link, pair.control, pair.connections, pair.kernel.jain, pair.simulated.jain
        );
    }
    let late = pairs.iter().map(|pair| pair.lateness_p99_ms).fold(0.0, f64::max);
    text + &format!(
        "alike: goodput within 5% (BBR 10%), mean time in the queue within 15%, retransmissions within a factor of 1.3;\n\
         within chance: the difference is larger and within three standard errors, from ten simulated runs\n\
         lateness of the emulator: up to {late:.2} ms (99th percentile of the worst run)\n"
    )
}

fn to_json(pairs: &[Pair], set: &[String]) -> serde_json::Value {
    let figures = |f: &Figures| {
        json!({"goodput_mbps": f.goodput_mbps, "queue_ms": f.queue_ms,
            "retransmission_share": f.retransmission_share, "jain_index": f.jain})
    };
    let row = |pair: &Pair| {
        json!({"link": pair.link, "control": pair.control, "connections": pair.connections,
            "kernel": figures(&pair.kernel), "simulated": figures(&pair.simulated),
            "three_standard_errors": figures(&pair.chance),
            "emulator_late_p99_ms": pair.lateness_p99_ms, "alike": pair.alike(), "verdict": pair.verdict()})
    };
    json!({"paceline": paceline_study::origin(), "set": set, "rows": pairs.iter().map(row).collect::<Vec<_>>()})
}
