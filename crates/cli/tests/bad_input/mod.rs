//! Bad input to `run`, `check` and `emulate`: exit code 2, a message that says what to change, and no file
//! written.

mod options;

use crate::common::{Output, TestDir};

/// Checks that all of `commands` refuse these arguments with one message that contains all `parts`.
fn refused(dir: &TestDir, commands: &[&str], args: &[&str], parts: &[&str]) {
    for command in commands {
        let mut all = vec![*command];
        all.extend(args);
        if *command != "check" && !args.contains(&"--out") {
            all.extend(["--out", "new/out"]);
        }
        if *command == "emulate" && !args.contains(&"--") {
            all.extend(["--", "true"]);
        }
        let before = dir.paths();
        let output = dir.paceline(&all);
        assert_message(&output, &all, parts);
        assert_eq!(dir.paths(), before, "{all:?} wrote something");
    }
}

fn assert_message(output: &Output, args: &[&str], parts: &[&str]) {
    let message = &output.stderr;
    assert_eq!(output.code, 2, "{args:?}: {output:?}");
    assert_eq!(output.stdout, "", "{args:?}");
    let own = message.starts_with("paceline: ") && message.lines().count() == 1;
    assert!(own || message.starts_with("error: "), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{args:?}: `{part}` is missing in: {message}");
    }
}

const ALL: [&str; 3] = ["run", "check", "emulate"];

/// Checks scenario texts, each with parts of the message that refuses it.
fn refused_texts(cases: &[(&str, &[&str])]) {
    let dir = TestDir::new();
    for (text, parts) in cases {
        dir.write("bad.toml", text);
        refused(&dir, &ALL, &["bad.toml"], parts);
    }
}

/// Checks values set on the command line, each with the allowed range in the message.
fn refused_values(cases: &[(&str, &str)]) {
    let dir = TestDir::new();
    for (set, allowed) in cases {
        let (key, value) = set.split_once('=').expect("key=value");
        refused(&dir, &["check"], &["good.toml", "--set", set], &["good.toml: ", key, value, allowed]);
    }
    let (set, allowed) = cases[0];
    refused(&dir, &ALL, &["good.toml", "--set", set], &[allowed]);
}

#[test]
fn unknown_keys_are_refused() {
    refused_texts(&[
        ("[run]\nsed = 3\n[[station]]\n", &["bad.toml:2: run.sed = 3", "unknown field", "`seed`"]),
        ("[radio]\n[[station]]\n", &["bad.toml:1: radio", "unknown field", "`cell`"]),
        ("colour = 1\n[[station]]\n", &["bad.toml:1: colour = 1", "unknown field"]),
        ("[[station]]\ncuont = 2\n", &["bad.toml:2: station.0.cuont = 2", "did you mean station.count?"]),
        (
            "[[station]]\n[[station]]\nx = \"a\"\n",
            &["bad.toml:3: station.1.x = \"a\"", "paceline check --explain station"],
        ),
        (
            "[core]\nhops = [{ rate = \"1 Gb/s\", delay = \"1 ms\", loss = 1 }]\n[[station]]\n",
            &[
                "bad.toml:2: core.hops.0.loss = 1",
                "`rate`, `delay`, `queue`, `queue_discipline`, `codel`, `ecn_threshold`, `per_cell`",
            ],
        ),
    ]);
}

#[test]
fn wrong_units_are_refused() {
    refused_texts(&[
        (
            "[run]\nduration = \"5 Mb/s\"\n[[station]]\n",
            &["bad.toml:2: run.duration", "5 Mb/s", "ms, s, min"],
        ),
        ("[run]\nduration = 5\n[[station]]\n", &["bad.toml:2: run.duration = 5", "unit", "\"5 ms\""]),
        ("[run]\nduration = 5.5\n[[station]]\n", &["bad.toml:2: run.duration = 5.5", "unit"]),
        ("[run]\nduration = \"5\"\n[[station]]\n", &["bad.toml:2: run.duration = \"5\"", "ms, s, min"]),
        ("[run]\nduration = \"-5 s\"\n[[station]]\n", &["bad.toml:2: run.duration = \"-5 s\"", "ms, s, min"]),
        ("[cell]\nbandwidth = \"20 mhz\"\n[[station]]\n", &["bad.toml:2: cell.bandwidth", "20 mhz", "MHz"]),
        (
            "[tcp]\nsend_buffer = \"4 Mb\"\n[[station]]\n",
            &["bad.toml:2: tcp.send_buffer", "4 Mb", "MB, GB, KiB"],
        ),
        ("[[station]]\nuplink_sinr = \"10\"\n", &["bad.toml:2: station.0.uplink_sinr = \"10\"", "dB"]),
        ("[[station]]\nuplink_sinr = 10\n", &["bad.toml:2: station.0.uplink_sinr = 10", "\"15 dB\""]),
        ("[[station]]\nfading = \"nan dB\"\n", &["bad.toml:2: station.0.fading", "nan dB", "-3.5 dB"]),
        (
            "[core]\nhops = [{ rate = \"1 GB/s\", delay = \"1 ms\" }]\n[[station]]\n",
            &["bad.toml:2: core.hops.0.rate", "1 GB/s", "Mb/s, Gb/s"],
        ),
        (
            "[run]\nduration = \"99999999999999999999999999999999999999999999 s\"\n[[station]]\n",
            &["bad.toml:2: run.duration", "duration"],
        ),
    ]);
}

#[test]
fn wrong_types_are_refused() {
    refused_texts(&[
        ("[run]\nseed = \"one\"\n[[station]]\n", &["bad.toml:2: run.seed = \"one\"", "whole number"]),
        ("[run]\nseed = 1.5\n[[station]]\n", &["bad.toml:2: run.seed = 1.5", "whole number"]),
        ("[run]\nseed = -1\n[[station]]\n", &["bad.toml:2: run.seed = -1", "whole number"]),
        ("run = 1\n[[station]]\n", &["bad.toml:1: run = 1"]),
        ("station = 1\n", &["bad.toml:1: station = 1"]),
        ("[station]\ncount = 1\n", &["bad.toml:1: station", "write [[station]]"]),
        (
            "[tcp]\nautotune = \"yes\"\n[[station]]\n",
            &["bad.toml:2: tcp.autotune = \"yes\"", "true or false"],
        ),
        ("[tcp]\nhystart = true\n[[station]]\n", &["bad.toml:2: tcp.hystart", "string"]),
        ("[tcp]\nabc = \"l3\"\n[[station]]\n", &["bad.toml:2: tcp.abc", "`l2`"]),
        ("[tcp]\ncwnd_unit = \"mss\"\n[[station]]\n", &["bad.toml:2: tcp.cwnd_unit", "`bytes`"]),
        ("[tcp]\nhystart = \"yes\"\n[[station]]\n", &["bad.toml:2: tcp.hystart", "`hystart++`"]),
        (
            "[tcp]\ncongestion_control = \"bbr2\"\n[[station]]\n",
            &["bad.toml:2: tcp.congestion_control", "did you mean bbr, bbr3?"],
        ),
        ("[cell]\nscheduler = \"fair\"\n[[station]]\n", &["bad.toml:2: cell.scheduler", "`round-robin`"]),
        ("[[station]]\ndirection = \"up\"\n", &["bad.toml:2: station.0.direction = \"up\"", "`upload`"]),
        ("[[station]]\nuplink_sinr = [\"1 dB\"]\n", &["bad.toml:2: station.0.uplink_sinr", "length 1"]),
        (
            "[[station]]\nuplink_sinr = [\"1 dB\", \"2 dB\", \"3 dB\"]\n",
            &["bad.toml:2", "uplink_sinr", "length 3"],
        ),
        (
            "[ack_filter]\nscheme = \"hybird\"\n[[station]]\n",
            &["bad.toml:2: ack_filter.scheme", "hybrid-opt"],
        ),
        ("[cell]\npucch_prb = 256\n[[station]]\n", &["bad.toml:2: cell.pucch_prb = 256"]),
    ]);
}

#[test]
fn broken_files_are_refused() {
    refused_texts(&[
        ("[cell\n", &["bad.toml:1: "]),
        ("[[station]]\ncount = \n", &["bad.toml:2: "]),
        ("[[station]]\ncount = 1\ncount = 2\n", &["bad.toml:3: ", "duplicate key", "count"]),
        ("[run]\n[[station]]\n[run]\n", &["bad.toml:3: ", "duplicate key", "run"]),
        ("[[station]]\ncount = 1 seed\n", &["bad.toml:2: "]),
        ("{\"station\": 1}\n", &["bad.toml:1: "]),
        ("\0\0\0\0", &["bad.toml:1: "]),
        ("", &["bad.toml: ", "empty", "[[station]]"]),
        (" \n\t\n", &["bad.toml: ", "empty", "[[station]]"]),
        ("# only a comment\n", &["bad.toml: station: ", "at least one [[station]] table"]),
    ]);
    let dir = TestDir::new();
    dir.write(
        "garbage",
        (0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>(),
    );
    let built_in = "the name of a built-in one (`paceline check --list`)";
    refused(&dir, &ALL, &["garbage"], &["garbage: ", "UTF-8"]);
    refused(&dir, &ALL, &["missing.toml"], &["missing.toml: ", "No such file", built_in]);
    refused(&dir, &ALL, &["."], &[".: ", "directory", built_in]);
    refused(&dir, &ALL, &["good.toml/x"], &["good.toml/x: ", "directory"]);
    refused(&dir, &ALL, &[""], &[built_in]);
    refused(&dir, &ALL, &["/dev/null"], &["/dev/null: ", "empty"]);
    dir.write("deep.toml", format!("x = {}", "[".repeat(100_000)));
    refused(&dir, &ALL, &["deep.toml"], &["deep.toml:1: "]);
    dir.write("many.toml", "[[station]]\n".repeat(100_000));
    refused(&dir, &ALL, &["many.toml"], &["many.toml", "station.count = 100000", "1 to 1000"]);
}

#[test]
fn wrong_numbers_of_stations_are_refused() {
    const U64_MAX: &str = "18446744073709551615";
    const I64_MAX: &str = "9223372036854775807";
    let twice = |count: &str| format!("[[station]]\ncount = {count}\n[[station]]\ncount = {count}\n");
    refused_texts(&[
        ("[[station]]\ncount = 0\n", &["bad.toml:2: station.0.count = 0", "1 to 1000"]),
        (
            "[[station]]\ncount = 1\n[[station]]\ncount = 0\n",
            &["bad.toml:4: station.1.count = 0", "1 to 1000"],
        ),
        ("[[station]]\ncount = 100000\n", &["bad.toml:2: station.0.count = 100000", "1 to 1000"]),
        ("[run]\nseed = 1\n", &["bad.toml: station: ", "at least one [[station]] table"]),
        (&twice(U64_MAX), &["bad.toml:2: "]),
        (&twice(I64_MAX), &["bad.toml:2: station.0.count = 9223372036854775807", "1 to 1000"]),
        (&twice("600"), &["bad.toml", "station.count = 1200", "1 to 1000"]),
    ]);
}

#[test]
fn run_and_core_values_out_of_range_are_refused() {
    refused_values(&[
        ("run.duration=0 s", "1 ms to 86400 s"),
        ("run.duration=86401 s", "1 ms to 86400 s"),
        ("run.warmup=300 ms", "less than run.duration"),
        ("run.warmup=18446744073 s", "less than run.duration"),
        ("run.sample=1 us", "1 ms or more"),
    ]);
    let dir = TestDir::new();
    for (hop, parts) in [
        ("{rate=\"1 b/s\",delay=\"0 s\"}", ["core.hops.0.rate = 1 b/s", "1 kb/s to 1000 Gb/s"]),
        ("{rate=\"1001 Gb/s\",delay=\"0 s\"}", ["core.hops.0.rate = 1001 Gb/s", "1 kb/s to 1000 Gb/s"]),
        ("{rate=\"1 Gb/s\",delay=\"11 s\"}", ["core.hops.0.delay = 11 s", "0 s to 10 s"]),
        ("{rate=\"1 Gb/s\",delay=\"1 s\",queue=\"1 B\"}", ["core.hops.0.queue = 1 B", "at least 1500 B"]),
        ("{rate=\"1 Gb/s\"}", ["core.hops.0", "missing field `delay`"]),
        (
            "{rate=\"1 Gb/s\",delay=\"1 s\",per_cell=\"yes\"}",
            ["core.hops.0.per_cell", "expected true or false"],
        ),
        (
            "{rate=\"1 Gb/s\",delay=\"1 s\",per_cell=true},{rate=\"1 Gb/s\",delay=\"1 s\"}",
            ["core.hops.1.per_cell = false", "hops that all cells share come first"],
        ),
    ] {
        refused(&dir, &["check"], &["good.toml", "--set", &format!("core.hops=[{hop}]")], &parts);
    }
}

#[test]
fn cell_values_out_of_range_are_refused() {
    refused_values(&[
        ("cell.bandwidth=21 MHz", "1.4, 3, 5, 10, 15 or 20 MHz"),
        ("cell.bandwidth=0 Hz", "1.4, 3, 5, 10, 15 or 20 MHz"),
        ("cell.bandwidth=18446744073709551615 Hz", "1.4, 3, 5, 10, 15 or 20 MHz"),
        ("cell.uplink_bandwidth=2 MHz", "1.4, 3, 5, 10, 15 or 20 MHz"),
        ("cell.pucch_prb=100", "0 to 99, less than the uplink's 100 resource blocks"),
        ("cell.pucch_prb=255", "0 to 99"),
        ("cell.downlink_grants=0", "1 to 40"),
        ("cell.uplink_grants=41", "1 to 40"),
        ("cell.max_harq_tx=0", "1 to 8"),
        ("cell.t_reordering=201 ms", "0 to 200 ms"),
        ("cell.t_reordering=1500 us", "whole milliseconds"),
        ("cell.decode_delay=11 ms", "0 to 10 ms"),
        ("cell.cqi_period=0 ns", "1 to 160 ms"),
        ("cell.cqi_delay=41 ms", "0 to 40 ms"),
        ("cell.downlink_buffer=1999 B", "2000 B to 1 GiB"),
        ("cell.uplink_buffer=2 GiB", "2000 B to 1 GiB"),
        ("cell.sr_period=3 ms", "one of 1, 2, 5, 10, 20, 40, 80 ms"),
        ("cell.sr_prohibit=8", "0 to 7"),
        ("cell.sr_detection=0", "more than 0, at most 1"),
        ("cell.sr_detection=1.1", "more than 0, at most 1"),
        ("cell.dsr_trans_max=5", "one of 4, 8, 16, 32, 64"),
        ("cell.initial_access=perhaps", "true"),
        ("cell.prach_config_index=16", "0 to 15"),
        ("cell.ra_preambles=50", "4 to 64 in steps of 4"),
        ("cell.preamble_trans_max=9", "one of 3, 4, 5, 6, 7, 8, 10"),
        ("cell.ra_response_window=9 ms", "one of 2, 3, 4, 5, 6, 7, 8, 10 ms"),
        ("cell.ra_responses=0", "1 to 16"),
        ("cell.backoff_indicator=50 ms", "one of 0, 10, 20, 30, 40, 60"),
        ("cell.contention_resolution_timer=50 ms", "one of 8, 16, 24"),
        ("cell.max_harq_msg3_tx=9", "1 to 8"),
        ("cell.connection_setup=11 s", "0 to 10000 ms"),
        ("cell.reestablishment_delay=100 ms", "did you mean cell.reestablishment_signalling?"),
        ("cell.periodic_bsr_timer=6 ms", "one of 5, 10, 16"),
        ("cell.retx_bsr_timer=1 s", "one of 320, 640"),
        ("cell.sr_grant=6 B", "7 B"),
        ("ack_filter.header=0 B", "1 B to 1000 B"),
        ("ack_filter.scheme=hybrid(0)", "T from 1"),
        ("ack_filter.scheme=passive(2)", "RATIO from 0 to 1"),
    ]);
    let dir = TestDir::new();
    let narrow = ["good.toml", "--set", "cell.uplink_bandwidth=1.4 MHz", "--set", "cell.pucch_prb=6"];
    refused(&dir, &ALL, &narrow, &["cell.pucch_prb = 6", "0 to 5", "uplink's 6 resource blocks"]);
}

#[test]
fn tcp_and_station_values_out_of_range_are_refused() {
    refused_values(&[
        ("tcp.segment_size=63 B", "64 B to 8948 B"),
        ("tcp.segment_size=8949 B", "64 B to 8948 B"),
        ("tcp.initial_window=0", "1 to 1000 segments"),
        ("tcp.min_rto=0 ns", "1 ms to 60 s"),
        ("tcp.receive_buffer=1447 B", "tcp.segment_size to 1 GiB"),
        ("tcp.send_buffer=2 GiB", "tcp.segment_size to 1 GiB"),
        ("tcp.delayed_ack_segments=0", "1 to 64"),
        ("tcp.delayed_ack_timeout=501 ms", "0 to 500 ms"),
    ]);
    refused_values(&[
        ("station.0.count=1001", "1 to 1000"),
        ("station.0.downlink_sinr=61 dB", "-30 dB to 60 dB"),
        ("station.0.uplink_sinr=-31 dB", "-30 dB to 60 dB"),
        ("station.0.fading=-1 dB", "0 dB to 20 dB"),
        ("station.0.coherence=101 s", "1 ms to 100 s"),
        ("station.0.flows=0", "1 to 1000 connections per station"),
        ("station.0.flows=4294967296", "4294967295"),
        ("station.0.file=0 B", "1 B to 1024 GiB"),
        ("station.0.request=0 B", "1 B to 1 MiB"),
        ("core.proxy_after=2", "0 to 1, the hops in core.hops"),
        ("station.0.start=86401 s", "0 s to 86400 s"),
        ("station.0.start_spread=86401 s", "0 s to 86400 s"),
    ]);
    let dir = TestDir::new();
    let reversed = ["good.toml", "--set", "station.uplink_sinr=[\"5 dB\", \"1 dB\"]"];
    refused(&dir, &ALL, &reversed, &["[\"5 dB\", \"1 dB\"]", "the lower end of a range first"]);
}

#[test]
fn malformed_settings_are_refused() {
    let dir = TestDir::new();
    for (set, part) in [
        ("", "write key=value"),
        ("cell.bandwidth", "write key=value"),
        ("=", "a part of the key is empty"),
        ("=3", "a part of the key is empty"),
        ("cell..bandwidth=3", "a part of the key is empty"),
        (".=3", "a part of the key is empty"),
        ("station.7.count=1", "there is no station.7"),
        ("station.18446744073709551616.count=1", "unknown field"),
        ("station.count.x=1", "not inside a table"),
        ("cell.nothing=1", "unknown field"),
        ("a=b", "unknown field"),
        ("cell=3", "cell = 3"),
        ("station=3", "station = 3"),
        ("run.seed=18446744073709551615", "run.seed"),
        ("cell.bandwidth=\"10 MHz", "cell.bandwidth"),
        ("run.seed=1\nrun.duration=\"1 s\"", "run.seed"),
    ] {
        refused(&dir, &ALL, &["good.toml", "--set", set], &["good.toml: ", part]);
    }
    refused(&dir, &ALL, &["good.toml", "--set"], &["--set"]);
    dir.write("two.toml", "[[station]]\n[[station]]\n");
    refused(&dir, &ALL, &["two.toml", "--set", "station.count=2"], &["write station.0 to station.1"]);
}

/// Values at the ends of their ranges are simulated without a panic, a hang or infinite figures.
#[test]
fn extreme_valid_values_are_simulated() {
    let dir = TestDir::new();
    for sets in [
        &["run.sample=18446744073 s"][..],
        &["run.seed=9223372036854775807"],
        &["run.warmup=0 s", "run.duration=1 ms"],
        &["station.start=86400 s", "station.start_spread=86400 s"],
        &["station.file=1024 GiB"],
        &["station.file=1 B", "station.flows=1000"],
        &["station.file=1 B", "station.request=1 MiB"],
        &["station.count=1000", "cell.pucch_prb=24"],
        &["tcp.receive_buffer=1 GiB", "tcp.send_buffer=1 GiB", "tcp.initial_window=1000"],
        &["cell.downlink_buffer=1 GiB", "cell.uplink_buffer=1 GiB"],
        &["ack_filter.scheme=hybrid(4294967295)"],
        &["core.hops=[]"],
        &["core.hops=[{rate=\"1 kb/s\",delay=\"10 s\",queue=\"18446744073709551615 B\"}]"],
        &["core.hops=[{rate=\"1000 Gb/s\",delay=\"0 s\",queue=\"1500 B\"}]"],
        &[
            "station.downlink_sinr=[\"-30 dB\",\"60 dB\"]",
            "station.uplink_sinr=-30 dB",
            "station.fading=20 dB",
        ],
        &["station.coherence=1 ms", "station.fading=20 dB", "station.flows=10"],
        &["tcp.segment_size=64 B", "tcp.receive_buffer=64 B", "tcp.send_buffer=64 B"],
        &["tcp.segment_size=8948 B", "tcp.receive_buffer=8948 B", "cell.uplink_buffer=2000 B"],
        &["cell.bandwidth=1.4 MHz", "cell.pucch_prb=5", "station.count=100", "station.direction=upload"],
        &["cell.sr_period=80 ms", "cell.sr_prohibit=7", "cell.retx_bsr_timer=10240 ms"],
        &["cell.max_harq_tx=1", "cell.t_reordering=0 s", "station.downlink_sinr=-10 dB"],
        &["cell.cqi_period=160 ms", "cell.cqi_delay=40 ms", "cell.decode_delay=10 ms"],
        &["tcp.delayed_ack_segments=64", "tcp.delayed_ack_timeout=0 s", "tcp.min_rto=1 ms"],
    ] {
        let mut args = vec!["run", "good.toml"];
        sets.iter().for_each(|set| args.extend(["--set", set]));
        let output = dir.paceline(&args);
        // Some values leave no time for a handshake, which `run` says.
        let warned = output.stderr.contains("no connection opened") && output.stderr.lines().count() == 1;
        assert!(output.code == 0 && (output.stderr.is_empty() || warned), "{sets:?}: {output:?}");
        assert!(output.stdout.starts_with("good, simulated: "), "{sets:?}: {output:?}");
        assert!(!output.stdout.contains("NaN") && !output.stdout.contains("inf"), "{sets:?}: {output:?}");
    }
}

#[test]
fn bad_arguments_of_parity_are_refused_before_a_run() {
    let dir = TestDir::new();
    refused(&dir, &["parity"], &["--link", "parity-none"], &["parity-none", "parity-fixed"]);
    for args in [["parity", "--out", "missing/parity.json"], ["parity", "--seeds", "0"]] {
        let output = dir.paceline(&args);
        assert_message(&output, &args, &args[2..]);
    }
}
