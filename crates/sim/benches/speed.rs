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
}
