//! Compares simulated TCP with this host's TCP in the emulator, on the same scenario. Both tables are
//! printed: `cargo test -p paceline-cli --test main kernel_parity -- --nocapture`.

use crate::common::emulation::{EmulationHost, was_on_time};
use crate::common::run;
use std::process::Command;

const SINGLE: &str = include_str!("../../../scenarios/single-station.toml");
const LIMITED: &str = include_str!("../../../scenarios/uplink-limited.toml");

/// A mean in the `summary.json` of a results folder.
fn figure(host: &EmulationHost, folder: &str, name: &str) -> f64 {
    let summary = host.dir.json(&format!("{folder}/summary.json"));
    summary["mean"][name].as_f64().unwrap_or_else(|| panic!("{folder} has no {name}"))
}

fn print_comparison(host: &EmulationHost, folders: &[&str]) {
    let mut command = Command::new(crate::common::PACELINE);
    println!("{}", run(command.arg("compare").args(folders).current_dir(host.dir.path())).stdout);
}

/// Emulations of a link at most. Chosen: the kernel's TCP runs in real time, and a pause of some milliseconds
/// on a shared machine ends CUBIC's slow start early. A difference between the two implementations shows in
/// every attempt.
const ATTEMPTS: usize = 3;

#[test]
fn kernel_cubic_agrees_with_simulated_cubic() {
    let Some(host) = EmulationHost::new(&["iperf3"]) else { return };
    let _server = host.serve("iperf3", 5201, &["iperf3", "-s"]);
    // The mean round trip depends on the place of the few losses in these seconds, which leads move.
    let ideal = SINGLE.replace("[cell]", "[cell]\ngnb = \"ideal\"");
    host.dir.write("radio.toml", &ideal);
    let simulated =
        host.dir.paceline(&["run", "radio.toml", "--set", "run.duration=16s", "--out", "simulated"]);
    assert_eq!(simulated.code, 0, "{simulated:?}");
    let mut differences = String::new();
    for attempt in 1..=ATTEMPTS {
        let folder = format!("kernel-{attempt}");
        let options = ["--congestion-control", "cubic", "--out", &folder, "--"];
        let download = ["iperf3", "-c", "198.18.0.1", "-R", "-t", "16"];
        let emulated = host.emulate(&ideal, &[&options[..], &download[..]].concat());
        assert_eq!(emulated.code, 0, "{emulated:?}");
        println!("attempt {attempt}:\n{}", emulated.stderr);
        print_comparison(&host, &["simulated", &folder]);
        let now = differences_from_simulation(&host, &folder);
        if now.is_empty() {
            return;
        }
        println!("attempt {attempt}: {now}");
        if was_on_time(&emulated.stderr) {
            differences = now;
        }
    }
    assert!(differences.is_empty(), "{differences}");
    eprintln!("not judged: the emulator was late in every attempt");
}

/// Describes the means of an emulation with the kernel's CUBIC that differ from the simulated ones; empty if
/// none does.
fn differences_from_simulation(host: &EmulationHost, folder: &str) -> String {
    let mut differences = String::new();
    for name in ["goodput_mbps", "rtt_mean_ms"] {
        let (simulated, kernel) = (figure(host, "simulated", name), figure(host, folder, name));
        if (kernel / simulated - 1.0).abs() >= 0.1 {
            differences += &format!("{name}: simulated {simulated}, kernel {kernel}; ");
        }
    }
    // The peak transport block carries 75,376 bits per TTI.
    let goodput = figure(host, folder, "goodput_mbps");
    if goodput <= 0.9 * 75.376 {
        differences += &format!("goodput_mbps: kernel {goodput} of 75.376; ");
    }
    differences
}

#[test]
fn kernel_and_simulated_tcp_are_alike_on_a_fixed_link() {
    assert_parity("parity-fixed");
}

#[test]
fn kernel_and_simulated_tcp_are_alike_on_a_link_with_losses() {
    assert_parity("parity-loss");
}

#[test]
fn kernel_and_simulated_tcp_are_alike_on_a_trace() {
    assert_parity("parity-trace");
}

#[test]
fn kernel_and_simulated_tcp_are_alike_in_a_cell() {
    assert_parity("parity-cell");
}

/// The short form of `paceline parity`: each control, eight seconds. The link is emulated again while one of
/// its rows has differed in every attempt.
fn assert_parity(link: &str) {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let mut different: Option<Vec<serde_json::Value>> = None;
    for attempt in 1..=ATTEMPTS {
        let mut rows = parity(&host, link);
        rows.retain(|row| !alike(row));
        if let Some(before) = different {
            rows.retain(|row| before.iter().any(|other| names(other) == names(row)));
        }
        if rows.is_empty() {
            return;
        }
        println!("{link}, attempt {attempt}: {rows:?}");
        different = Some(rows);
    }
    panic!("{link}, in every attempt: {different:?}");
}

/// Identity of a row among those of its link.
fn names(row: &serde_json::Value) -> (&serde_json::Value, &serde_json::Value) {
    (&row["control"], &row["connections"])
}

fn parity(host: &EmulationHost, link: &str) -> Vec<serde_json::Value> {
    let mut command = Command::new(crate::common::PACELINE);
    command.args(["parity", "--quick", "--link", link, "--out", "parity.json"]);
    println!("{}", run(command.current_dir(host.dir.path())).stdout);
    let rows = host.dir.json("parity.json")["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), if link == "parity-fixed" { 4 } else { 3 });
    rows
}

/// Whether kernel and simulation agree in goodput, time in the queue and fairness. Retransmissions and the
/// cell's queue are judged by the long form of `paceline parity` alone: runs of eight seconds have too few of
/// them.
fn alike(row: &serde_json::Value) -> bool {
    let of = |side: &str, name: &str| row[side][name].as_f64().unwrap();
    let difference = |name: &str| of("simulated", name) - of("kernel", name);
    let within = |name: &str, share: f64, chance: f64| {
        difference(name).abs() <= share * of("kernel", name) + of("three_standard_errors", name).max(chance)
    };
    // Figures of an emulator that was late are those of an overloaded machine. The limit is lower for BBR's
    // queue: BBR takes the highest delivery rate of ten round trips, which a burst of late packets raises.
    let late_ms = row["emulator_late_p99_ms"].as_f64().unwrap();
    let judge_queue = row["link"] != "LTE cell" && late_ms < if row["control"] == "bbr" { 0.3 } else { 1.0 };
    (late_ms > 1.0 || within("goodput_mbps", 0.1, 0.0))
        && (!judge_queue || within("queue_ms", 0.15, 5.0))
        && (row["connections"] == 1 || difference("jain_index").abs() <= 0.1)
}

#[test]
fn hybrid_opt_sends_a_third_fewer_acks_without_loss_of_goodput_simulated_and_with_kernel_tcp() {
    let Some(host) = EmulationHost::new(&["curl", "python3"]) else { return };
    host.dir.write("large", vec![0; 60_000_000]);
    let _server = host.serve("http", 8000, &["python3", "-m", "http.server", "8000"]);
    let download = "curl -s --max-time 14 -o /dev/null http://198.18.0.1:8000/large || test $? = 28";
    let mut on_time = true;
    for scheme in ["basic", "hybrid-opt"] {
        let set = format!("ack_filter.scheme={scheme}");
        let folder = format!("simulated-{scheme}");
        host.dir.write("limited.toml", LIMITED);
        let args = ["run", "limited.toml", "--set", &set, "--set", "run.duration=14s", "--out", &folder];
        let simulated = host.dir.paceline(&args);
        assert_eq!(simulated.code, 0, "{simulated:?}");
        let folder = format!("kernel-{scheme}");
        let args = ["--station", "0-9", "--congestion-control", "cubic", "--set", &set, "--out", &folder];
        let emulated = host.emulate(LIMITED, &[&args[..], &["--", "sh", "-c", download]].concat());
        assert_eq!(emulated.code, 0, "{emulated:?}");
        on_time &= was_on_time(&emulated.stderr);
    }
    print_comparison(
        &host,
        &["simulated-basic", "simulated-hybrid-opt", "kernel-basic", "kernel-hybrid-opt"],
    );
    for mode in ["simulated", "kernel"] {
        if mode == "kernel" && !on_time {
            eprintln!("not judged with kernel TCP: the emulator was late");
            continue;
        }
        let of = |name: &str| {
            let [basic, optimum] =
                ["basic", "hybrid-opt"].map(|s| figure(&host, &format!("{mode}-{s}"), name));
            (basic, optimum)
        };
        let (basic, optimum) = of("acks_sent_per_s");
        assert!(optimum <= basic * 2.0 / 3.0, "{mode}: {optimum} of {basic} ACKs per second are sent");
        let (basic, optimum) = of("goodput_mbps");
        assert!(optimum >= basic, "{mode}: goodput fell from {basic} to {optimum} Mb/s");
    }
}
