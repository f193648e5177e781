//! `make bench`: simulated seconds per CPU second, and nanoseconds of CPU per packet that a node handles.

mod dumbbell;

use paceline_net::Instant;
use paceline_sim::{Model, scenario};

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux accounts CPU time");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("its first field is the time")
}

/// The most memory that this process has had, in MB.
fn peak_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells of memory");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is told");
    let kb: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("it is a number");
    kb / 1024.0
}

/// The medians of five seeds: simulated seconds, CPU nanoseconds and packets handled, of each run.
fn report(name: &str, mut runs: Vec<(f64, f64, u64)>) {
    let mut median = |of: &dyn Fn(&(f64, f64, u64)) -> f64| {
        runs.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&runs[runs.len() / 2])
    };
    let rate = median(&|(seconds, ns, _)| seconds / (ns / 1e9));
    let per_packet = median(&|(_, ns, packets)| ns / *packets as f64);
    println!("{name:<44} {rate:>8.1} simulated s / CPU s  {per_packet:>6.0} ns / packet handled");
}

/// One case: name, scenario, changes to it.
fn case(name: &str, text: &str, overrides: &[&str]) {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let runs = (1..=5).map(|seed| {
        let scenario = scenario::load(name, text, &overrides).expect("the bench's scenarios are valid");
        let mut model = Model::new(&scenario, seed, &[]);
        let before = cpu_ns();
        model.engine.run_until(Instant::ZERO + scenario.run.duration);
        let spent = (cpu_ns() - before) as f64;
        (scenario.run.duration.as_secs_f64(), spent, model.engine.packets_handled())
    });
    report(name, runs.collect());
}

/// The packet path without radio.
fn wired() {
    let runs = (1..=5).map(|seed| {
        let (mut engine, core) = dumbbell::dumbbell(seed);
        let before = cpu_ns();
        engine.run_until(Instant::from_millis(60_000));
        let spent = (cpu_ns() - before) as f64;
        let goodput = dumbbell::goodput_mbps(&engine, core);
        assert!((43.0..46.0).contains(&goodput), "seed {seed}: the hop is full, not {goodput} Mb/s");
        (60.0, spent, engine.packets_handled())
    });
    report("dumbbell, 10 flows, 50 Mb/s, no radio", runs.collect());
}

/// The paper's cell without and with what costs: fading, and neighbours with full buffers.
fn deployments(text: &str) {
    const RADIO: [(&str, &str, &str); 3] = [
        ("no fading, quiet neighbours", "none", "0.0"),
        ("EPA, quiet neighbours", "epa", "0.0"),
        ("EPA, full buffers", "epa", "1.0"),
    ];
    for stations in ["10", "20", "40", "60"] {
        for (name, fading, load) in RADIO {
            let set = [
                "run.duration=10 s".to_owned(),
                "run.warmup=1 s".to_owned(),
                format!("station.count={stations}"),
                format!("deployment.fading={fading}"),
                format!("deployment.neighbour_load={load}"),
            ];
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            case(&format!("7 sites, {stations} stations, {name}"), text, &set);
        }
    }
}

fn main() {
    let single = include_str!("../../../../scenarios/single-station.toml");
    let limited = include_str!("../../../../scenarios/uplink-limited.toml");
    println!("median of five seeds, one thread");
    wired();
    case("single station, 72 Mb/s", single, &[]);
    case("uplink-limited, 10 stations, basic", limited, &[]);
    case("uplink-limited, 10 stations, hybrid-opt", limited, &["ack_filter.scheme=hybrid-opt"]);
    case(
        "uplink-limited, 40 stations, hybrid-opt",
        limited,
        &["ack_filter.scheme=hybrid-opt", "station.count=40"],
    );
    case("uplink-limited, 60 stations, safe", limited, &["ack_filter.scheme=safe", "station.count=60"]);
    deployments(include_str!("../../../../scenarios/ack-filter-paper.toml"));
    println!("{:<44} {:>8.1} MB", "peak memory of all of these", peak_mb());
}
