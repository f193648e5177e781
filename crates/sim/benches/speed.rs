//! `make bench`: simulated seconds per CPU second, and nanoseconds of CPU per packet that a node handles.

use paceline_net::Instant;
use paceline_sim::{Model, scenario};

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux accounts CPU time");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("its first field is the time")
}

/// One case: name, scenario, simulated seconds, stations.
fn case(name: &str, text: &str, overrides: &[&str]) {
    let mut rates = Vec::new();
    let mut per_packet = Vec::new();
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    for seed in 1..=5 {
        let scenario = scenario::load(name, text, &overrides).expect("the bench's scenarios are valid");
        let seconds = scenario.run.duration.as_secs_f64();
        let mut model = Model::new(&scenario, seed, &[]);
        let before = cpu_ns();
        model.engine.run_until(Instant::ZERO + scenario.run.duration);
        let spent = (cpu_ns() - before) as f64;
        rates.push(seconds / (spent / 1e9));
        per_packet.push(spent / model.engine.packets_handled() as f64);
    }
    rates.sort_by(f64::total_cmp);
    per_packet.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.1} simulated s / CPU s  {:>6.0} ns / packet handled", rates[2], per_packet[2]);
}

/// The paper's cell without and with what costs: fading, and neighbours with full buffers.
fn deployments(text: &str) {
    const RADIO: [(&str, &str, &str); 3] = [
        ("no fading, quiet neighbours", "none", "0.0"),
        ("EPA, quiet neighbours", "epa", "0.0"),
        ("EPA, full buffers", "epa", "1.0"),
    ];
    for stations in ["10", "40"] {
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
    let single = include_str!("../../../scenarios/single-station.toml");
    let limited = include_str!("../../../scenarios/uplink-limited.toml");
    println!("median of five seeds, one thread");
    case("single station, 72 Mb/s", single, &[]);
    case("uplink-limited, 10 stations, basic", limited, &[]);
    case("uplink-limited, 10 stations, hybrid-opt", limited, &["ack_filter.scheme=hybrid-opt"]);
    case(
        "uplink-limited, 40 stations, hybrid-opt",
        limited,
        &["ack_filter.scheme=hybrid-opt", "station.count=40"],
    );
    case("uplink-limited, 60 stations, safe", limited, &["ack_filter.scheme=safe", "station.count=60"]);
    deployments(include_str!("../../../scenarios/ack-filter-paper.toml"));
}
