//! Simulated TCP against this host's own, on the same scenario file and the same cell. Both tables are printed
//! (`cargo test -p paceline-cli --test kernel_parity -- --nocapture`).

mod common;

use common::outer::Outer;
use common::said;
use std::process::Command;

const SINGLE: &str = include_str!("../../../scenarios/single-station.toml");
const LIMITED: &str = include_str!("../../../scenarios/uplink-limited.toml");

/// One figure of a results folder.
fn figure(outer: &Outer, folder: &str, name: &str) -> f64 {
    let text = outer.place.read(&format!("{folder}/summary.json"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["mean"][name].as_f64().unwrap_or_else(|| panic!("{folder} has no {name}"))
}

fn compare(outer: &Outer, folders: &[&str]) {
    let mut command = Command::new(common::PACELINE);
    println!("{}", said(command.arg("compare").args(folders).current_dir(outer.place.path())).stdout);
}

/// Times that a link is looked at: the kernel's TCP runs in real time, and what else a shared machine does shows in it
/// (a pause of some milliseconds ends CUBIC's slow start early). Two programs that really differ do so each time.
const LOOKS: usize = 3;

#[test]
fn kernel_cubic_agrees_with_simulated_cubic() {
    let Some(outer) = Outer::new(&["iperf3"]) else { return };
    let _server = outer.serve("iperf3", 5201, &["iperf3", "-s"]);
    outer.place.write("radio.toml", SINGLE);
    let simulated =
        outer.place.paceline(&["run", "radio.toml", "--set", "run.duration=16s", "--out", "simulated"]);
    assert_eq!(simulated.code, 0, "{simulated:?}");
    let mut apart = String::new();
    for look in 1..=LOOKS {
        let folder = format!("kernel-{look}");
        let options = ["--congestion-control", "cubic", "--out", &folder, "--"];
        let download = ["iperf3", "-c", "198.18.0.1", "-R", "-t", "16"];
        let emulated = outer.emulate(SINGLE, &[&options[..], &download[..]].concat());
        assert_eq!(emulated.code, 0, "{emulated:?}");
        println!("look {look}:\n{}", emulated.stderr);
        compare(&outer, &["simulated", &folder]);
        apart = unlike(&outer, &folder);
        if apart.is_empty() {
            return;
        }
        println!("look {look}: {apart}");
    }
    panic!("{apart}");
}

/// What differs between the simulated run and one with the kernel's CUBIC.
fn unlike(outer: &Outer, folder: &str) -> String {
    let mut apart = String::new();
    for name in ["goodput_mbps", "rtt_mean_ms"] {
        let (simulated, kernel) = (figure(outer, "simulated", name), figure(outer, folder, name));
        if (kernel / simulated - 1.0).abs() >= 0.1 {
            apart += &format!("{name}: simulated {simulated}, kernel {kernel}; ");
        }
    }
    // The peak transport block carries 75,376 bits per TTI.
    let goodput = figure(outer, folder, "goodput_mbps");
    if goodput <= 0.9 * 75.376 {
        apart += &format!("goodput_mbps: kernel {goodput} of 75.376; ");
    }
    apart
}

/// The short form of `paceline parity`: each link and control once, eight seconds.
#[test]
fn kernel_and_simulated_tcp_are_alike_on_every_link() {
    let Some(outer) = Outer::new(&[]) else { return };
    let mut open: Vec<String> =
        ["parity-fixed", "parity-loss", "parity-trace", "parity-cell"].map(String::from).into();
    for look in 1..=LOOKS {
        let mut unlike = Vec::new();
        for link in std::mem::take(&mut open) {
            let rows = parity(&outer, &link);
            let apart: Vec<&serde_json::Value> = rows.iter().filter(|row| !alike(row)).collect();
            assert!(apart.is_empty() || look < LOOKS, "{link}, look {look}: {apart:?}");
            if !apart.is_empty() {
                println!("{link}, look {look}: {apart:?}");
                unlike.push(link);
            }
        }
        open = unlike;
    }
}

fn parity(outer: &Outer, link: &str) -> Vec<serde_json::Value> {
    let mut command = Command::new(common::PACELINE);
    command.args(["parity", "--quick", "--link", link, "--out", "parity.json"]);
    println!("{}", said(command.current_dir(outer.place.path())).stdout);
    let json: serde_json::Value = serde_json::from_str(&outer.place.read("parity.json")).unwrap();
    let rows = json["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), if link == "parity-fixed" { 4 } else { 3 });
    rows
}

/// The long form judges retransmissions too, and the cell's queue; here they are too few, and an emulator that is late
/// shifts them.
fn alike(row: &serde_json::Value) -> bool {
    let of = |side: &str, name: &str| row[side][name].as_f64().unwrap();
    let differ = |name: &str| of("simulated", name) - of("kernel", name);
    let within = |name: &str, share: f64, chance: f64| {
        differ(name).abs() <= share * of("kernel", name) + of("three_standard_errors", name).max(chance)
    };
    // BBR believes the best rate of ten round trips: what comes late, and then in one go, makes it fill the queue.
    let late = if row["control"] == "bbr" { 0.3 } else { 1.0 };
    let judged = row["link"] != "LTE cell" && row["emulator_late_p99_ms"].as_f64().unwrap() < late;
    within("goodput_mbps", 0.1, 0.0)
        && (!judged || within("queue_ms", 0.15, 5.0))
        && (row["connections"] == 1 || differ("jain_index").abs() <= 0.1)
}

#[test]
fn the_filter_saves_a_third_of_the_acks_at_no_cost_simulated_and_with_kernel_tcp() {
    let Some(outer) = Outer::new(&["curl", "python3"]) else { return };
    outer.place.write("large", vec![0; 60_000_000]);
    let _server = outer.serve("http", 8000, &["python3", "-m", "http.server", "8000"]);
    let download = "curl -s --max-time 14 -o /dev/null http://198.18.0.1:8000/large || test $? = 28";
    for scheme in ["basic", "hybrid-opt"] {
        let set = format!("ack_filter.scheme={scheme}");
        let folder = format!("simulated-{scheme}");
        let run = outer.place.path().join("limited.toml");
        std::fs::write(&run, LIMITED).unwrap();
        let args = ["run", "limited.toml", "--set", &set, "--set", "run.duration=14s", "--out", &folder];
        let simulated = outer.place.paceline(&args);
        assert_eq!(simulated.code, 0, "{simulated:?}");
        let folder = format!("kernel-{scheme}");
        let args = ["--station", "0-9", "--congestion-control", "cubic", "--set", &set, "--out", &folder];
        let emulated = outer.emulate(LIMITED, &[&args[..], &["--", "sh", "-c", download]].concat());
        assert_eq!(emulated.code, 0, "{emulated:?}");
    }
    compare(&outer, &["simulated-basic", "simulated-hybrid-opt", "kernel-basic", "kernel-hybrid-opt"]);
    for mode in ["simulated", "kernel"] {
        let of = |name: &str| {
            let [basic, optimum] =
                ["basic", "hybrid-opt"].map(|s| figure(&outer, &format!("{mode}-{s}"), name));
            (basic, optimum)
        };
        let (basic, optimum) = of("acks_sent_per_s");
        assert!(optimum <= basic * 2.0 / 3.0, "{mode}: {optimum} of {basic} ACKs per second are sent");
        let (basic, optimum) = of("goodput_mbps");
        assert!(optimum >= basic, "{mode}: goodput fell from {basic} to {optimum} Mb/s");
    }
}
