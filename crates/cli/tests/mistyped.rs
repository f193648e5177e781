//! Mistyped lines, options and names, each with the sentence that answers it.

use crate::common::TestDir;

/// A line of a scenario's table, and a part of the message that answers it.
const LINES: [(&str, &str, &str); 38] = [
    (
        "cell",
        "buffer = \"1 MB\"",
        "unknown field `buffer`; did you mean cell.downlink_buffer, cell.uplink_buffer,",
    ),
    (
        "cell",
        "patern = \"DDDSU\"",
        "did you mean cell.pattern? `paceline check --explain cell` lists the keys of [cell]",
    ),
    ("cell", "scs = \"30 kHz\"", "unknown field `scs`; did you mean cell.subcarrier_spacing? "),
    ("cell", "bw = \"10 MHz\"", "unknown field `bw`; did you mean cell.bandwidth? "),
    ("cell", "band = 78", "did you mean cell.frequency"),
    ("cell", "bandwidth = 100", "expected a quantity with its unit in quotes, such as \"20 MHz\""),
    ("cell", "rat = \"5g\"", "unknown variant `5g`, expected `lte` or `nr`"),
    ("cell", "rat = \"NR\"", "expected `lte` or `nr`; did you mean nr?"),
    ("cell", "rat = \"lte\"\npattern = \"DDDSU\"", "rat = \"nr\" has it"),
    (
        "cell",
        "rat = \"lte\"\nbandwidth = \"100 MHz\"",
        "1.4, 3, 5, 10, 15 or 20 MHz; others with rat = \"nr\"",
    ),
    ("cell", "scheduler = \"rr\"", "did you mean round-robin?"),
    ("cell", "duplex = \"TDD\"", "expected `fdd` or `tdd`; did you mean tdd?"),
    ("cell", "uplink_bandwith = \"5 MHz\"", "did you mean cell.uplink_bandwidth"),
    ("tcp", "cc = \"bbr\"", "unknown field `cc`; did you mean tcp.congestion_control"),
    ("tcp", "mss = \"1460 B\"", "did you mean tcp.segment_size? "),
    ("tcp", "iw = 10", "did you mean tcp.initial_window"),
    (
        "tcp",
        "congestion_control = \"bbr2\"",
        "unknown variant `bbr2`; did you mean bbr, bbr3? `paceline check --explain tcp.congestion_control` lists",
    ),
    ("core", "rtt = \"20 ms\"", "did you mean core.hops.delay"),
    ("core", "latency = \"5 ms\"", "did you mean core.hops.delay?"),
    ("core", "delay = \"5 ms\"", "did you mean core.hops.delay,"),
    (
        "core.hops",
        "rate = \"1 Gb/s\"",
        "core.hops: invalid type: table, expected an array; write [[core.hops]]",
    ),
    ("run", "time = \"10 s\"", "did you mean run.duration"),
    ("run", "seeds = 3", "did you mean run.seed?"),
    ("run", "duration = 10", "expected a quantity with its unit in quotes, such as \"5 ms\""),
    ("run", "warmup = \"30 s\"", "run.warmup = 30 s: allowed: less than run.duration"),
    ("ackfilter", "scheme = \"basic\"", "did you mean ack_filter?"),
    ("ack_filter", "sheme = \"basic\"", "did you mean ack_filter.scheme?"),
    (
        "link",
        "trace = \"f\"",
        "invalid type: string \"f\", expected a table; write [link.trace] downlink = \"f\"",
    ),
    ("link", "loss = 1.0", "did you mean link.loss_percent,"),
    ("link.fixed", "rate = \"10 Mb/s\"", "did you mean link.fixed.downlink_rate, link.fixed.uplink_rate,"),
    ("link.fixed", "downlink_rate = \"10 Mbps\"", "one of b/s, kb/s, Mb/s, Gb/s, such as \"50 Mb/s\""),
    ("accelerator", "profil = \"adaptive\"", "did you mean accelerator.profile"),
    ("station.0", "users = 3", "did you mean station.count? "),
    ("station.0", "tcp = \"bbr\"", "expected a table; write [station.tcp]"),
    ("station.0", "snr = \"20 dB\"", "did you mean station.downlink_sinr? "),
    ("station.0", "proxy = true", "it acts with core.proxy other than \"none\""),
    (
        "station.0",
        "traffic = \"web\"",
        "station.0.traffic = \"web\": unknown variant `web`, expected one of ",
    ),
    (
        "station.0",
        "name = \"a,b\"",
        "allowed: 1 to 32 letters, digits, spaces, -, _ and +, a letter or digit first, no space last",
    ),
];

/// Arguments, and a part of the message that answers them.
const ARGUMENTS: [(&[&str], &str); 10] = [
    (
        &["check", "single.toml"],
        "single.toml:1: station: invalid type: table, expected an array; write [[station]]",
    ),
    (&["check", "good.tml"], "(`paceline check --list`); did you mean good.toml?"),
    (&["run", "private5g"], "did you mean private-5g"),
    (&["check", "--explain", "rtt"], "did you mean core.hops.delay"),
    (&["run", "good.toml", "--duration", "5"], "one of ns, us, ms, s, min, such as \"5 ms\""),
    (&["run", "good.toml", "--sed", "3"], "'--seed'"),
    (&["gateway", "experiment", "--share", "50", "--for", "24h"], "write 50%; allowed: 5% to 95%"),
    (&["check", "empty.toml"], "empty.toml: station: a scenario needs at least one [[station]] table"),
    (&["check", "good.toml", "--set", "core.hops.1.delay=5ms"], "`hops` has 1 elements, there is no hops.1"),
    (&["check", "good.toml", "--set", "cell.buffer=1MB"], "did you mean cell.downlink_buffer,"),
];

#[test]
fn mistyped_lines_have_an_answer() {
    let dir = TestDir::new();
    for (table, line, answer) in LINES {
        let text = match table {
            "station.0" => format!("[[station]]\n{line}\n"),
            table => format!("[{table}]\n{line}\n[[station]]\n"),
        };
        dir.write("bad.toml", &text);
        let output = dir.paceline(&["check", "bad.toml"]);
        assert!(output.code == 2 && output.stderr.contains(answer), "{text}: {}", output.stderr);
    }
}

#[test]
fn mistyped_arguments_have_an_answer() {
    let dir = TestDir::new();
    dir.write("single.toml", "[station]\ncount = 1\n");
    dir.write("empty.toml", "[run]\nduration = \"2 s\"\n");
    for (args, answer) in ARGUMENTS {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(answer), "{args:?}: {}", output.stderr);
    }
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
