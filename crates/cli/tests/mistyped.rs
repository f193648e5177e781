//! Mistyped lines, options and names, each with the sentence that answers it, as snapshots.

use crate::common::TestDir;
use insta::assert_snapshot;

/// Lines of a scenario's tables.
const LINES: [(&str, &str); 38] = [
    ("cell", "buffer = \"1 MB\""),
    ("cell", "patern = \"DDDSU\""),
    ("cell", "scs = \"30 kHz\""),
    ("cell", "bw = \"10 MHz\""),
    ("cell", "band = 78"),
    ("cell", "bandwidth = 100"),
    ("cell", "rat = \"5g\""),
    ("cell", "rat = \"NR\""),
    ("cell", "rat = \"lte\"\npattern = \"DDDSU\""),
    ("cell", "rat = \"lte\"\nbandwidth = \"100 MHz\""),
    ("cell", "scheduler = \"rr\""),
    ("cell", "duplex = \"TDD\""),
    ("cell", "uplink_bandwith = \"5 MHz\""),
    ("tcp", "cc = \"bbr\""),
    ("tcp", "mss = \"1460 B\""),
    ("tcp", "iw = 10"),
    ("tcp", "congestion_control = \"bbr2\""),
    ("core", "rtt = \"20 ms\""),
    ("core", "latency = \"5 ms\""),
    ("core", "delay = \"5 ms\""),
    ("core.hops", "rate = \"1 Gb/s\""),
    ("run", "time = \"10 s\""),
    ("run", "seeds = 3"),
    ("run", "duration = 10"),
    ("run", "warmup = \"30 s\""),
    ("ackfilter", "scheme = \"basic\""),
    ("ack_filter", "sheme = \"basic\""),
    ("link", "trace = \"f\""),
    ("link", "loss = 1.0"),
    ("link.fixed", "rate = \"10 Mb/s\""),
    ("link.fixed", "downlink_rate = \"10 Mbps\""),
    ("accelerator", "profil = \"adaptive\""),
    ("station.0", "users = 3"),
    ("station.0", "tcp = \"bbr\""),
    ("station.0", "snr = \"20 dB\""),
    ("station.0", "proxy = true"),
    ("station.0", "traffic = \"web\""),
    ("station.0", "name = \"a,b\""),
];

/// Command lines.
const ARGUMENTS: [&[&str]; 18] = [
    &["check", "single.toml"],
    &["check", "good.tml"],
    &["run", "private5g"],
    &["check", "--explain", "rtt"],
    &["run", "good.toml", "--duration", "5"],
    &["run", "good.toml", "--sed", "3"],
    &["gateway", "experiment", "--share", "50", "--for", "24h"],
    &["check", "empty.toml"],
    &["check", "good.toml", "--set", "core.hops.1.delay=5ms"],
    &["check", "good.toml", "--set", "cell.buffer=1MB"],
    &["check", "good.toml", "--set", "station.cuont=2"],
    &["check", "good.toml", "--set", "ack_filter.sheme=basic"],
    &["check", "good.toml", "--set", "ack_filter.scheme=hybird-opt"],
    &["check", "good.toml", "--set", "tcp.congestion_control=cubik"],
    &["check", "good.toml", "--set", "cell.zzzz=1"],
    &["run", "uplink-limted"],
    &["sweep", "good.toml", "--over", "station.cuont=1", "--out", "x"],
    &["swep"],
];

#[test]
fn mistyped_lines_have_an_answer() {
    let dir = TestDir::new();
    let mut answers = String::new();
    for (table, line) in LINES {
        let text = match table {
            "station.0" => format!("[[station]]\n{line}\n"),
            table => format!("[{table}]\n{line}\n[[station]]\n"),
        };
        dir.write("bad.toml", &text);
        let output = dir.paceline(&["check", "bad.toml"]);
        assert_eq!(output.code, 2, "{text}: {output:?}");
        answers += &format!("[{table}] {}\n    {}", line.replace('\n', "; "), output.stderr);
    }
    assert_snapshot!(answers);
}

#[test]
fn mistyped_arguments_have_an_answer() {
    let dir = TestDir::new();
    dir.write("single.toml", "[station]\ncount = 1\n");
    dir.write("empty.toml", "[run]\nduration = \"2 s\"\n");
    let mut answers = String::new();
    for args in ARGUMENTS {
        let output = dir.paceline(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        answers += &format!("$ paceline {}\n{}\n", args.join(" "), output.stderr);
    }
    assert_snapshot!(answers);
}

#[test]
fn seed_and_duration_are_options_and_a_trace_is_a_scenario() {
    let dir = TestDir::new();
    let short = ["--duration", "600 ms", "--set", "run.warmup=100 ms", "--seed", "7", "--json"];
    let json = dir.paceline_ok(&[&["run", "good.toml"][..], &short].concat());
    assert!(json.contains("\"seed\": 7") && json.contains("\"measured_s\": 0.5"), "{json}");
    let times: String = (1..=200).map(|ms| format!("{ms}\n")).collect();
    dir.write("walk.trace", &times);
    dir.write("drive.csv", "time_s,mbps\n0,10\n1,20\n2,5\n");
    for (file, name) in [("walk.trace", "\"scenario\": \"walk\""), ("drive.csv", "\"scenario\": \"drive\"")] {
        let output = dir.paceline(&[&["run", file][..], &short].concat());
        assert!(output.code == 0 && output.stdout.contains(name), "{output:?}");
    }
    dir.write("bad.csv", "a,b\nc,d\n");
    let output = dir.paceline(&["run", "bad.csv"]);
    assert!(output.code == 2 && output.stderr.contains("bad.csv: "), "{output:?}");
    let list = dir.paceline_ok(&["check", "--list"]);
    assert!(list.lines().any(|line| line.starts_with("private-5g ")), "{list}");
}
