//! Links from the command line: runs and sweeps on links, traces, and `paceline reproduce accelerator`.

use crate::common::{PACELINE, TestDir, parse_json};
use serde_json::Value;
use std::process::Command;

const LINK: &str = "[run]\nduration = \"4 s\"\nwarmup = \"1 s\"\n[link]\n[link.trace]\ndownlink = \"own.trace\"\n\
                    uplink_rate = \"5 Mb/s\"\n[[station]]\ncount = 2\n";

#[test]
fn a_run_on_a_trace_is_repeated_from_its_results_folder() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("deep")).unwrap();
    dir.write("deep/link.toml", LINK);
    dir.write("deep/own.trace", "1\n3\n3\n4\n8\n");
    let table = dir.paceline_ok(&["run", "deep/link.toml", "--out", "out"]);
    assert!(table.contains("link capacity downlink") && !table.contains("MCS"), "{table}");
    assert_eq!(dir.read("out/downlink.trace"), "1\n3\n3\n4\n8\n");
    // Five opportunities of 1504 bytes in 8 ms.
    let json: Value = dir.json("out/summary.json");
    let capacity = json["mean"]["link_capacity_mbps"].as_f64().unwrap();
    assert!((capacity - 5.0 * 1504.0 * 8.0 / 8e3).abs() < 0.02, "{capacity}");
    assert!(json["mean"]["goodput_mbps"].as_f64().unwrap() > 0.9 * capacity, "{json}");
    let resolved = dir.read("out/resolved.toml");
    assert!(!resolved.contains("[cell]") && resolved.contains("downlink = \"downlink.trace\""), "{resolved}");
    dir.paceline_ok(&["run", "out/resolved.toml", "--out", "again"]);
    assert_eq!(dir.read("again/timeseries.csv"), dir.read("out/timeseries.csv"));
    dir.paceline_ok(&["report", "out"]);
    let page = dir.read("out/report.html");
    assert!(page.contains("capacity") && page.contains("Time in the downlink queue"), "{page}");
    assert!(!page.contains("NaN"), "{page}");
}

#[test]
fn a_file_of_seconds_and_rates_becomes_a_trace_by_the_command_of_the_message() {
    let dir = TestDir::new();
    dir.write("link.toml", LINK);
    // 8 Mb/s for half a second, 16 for one, none for half, 4 for one: 3 MB in 3 s.
    for rows in ["0\t8\n0.5\t16\n1.5\t0\n2\t4\n3\t4\n", "time, Mb/s\n70.0,8\n70.5,16\n71.5,0\n72,4\n73,4\n"] {
        dir.write("own.trace", rows);
        let refused = dir.paceline(&["check", "link.toml"]);
        assert!(refused.code == 2 && refused.stderr.contains("line 1"), "{refused:?}");
        let command =
            refused.stderr.split("such a trace by: ").nth(1).unwrap_or_else(|| panic!("{refused:?}"));
        let command = command.trim().replace("FILE.trace", "own.trace").replace("FILE", "rows");
        let command = command.replace("paceline ", &format!("{PACELINE} "));
        dir.write("rows", rows);
        std::fs::remove_file(dir.join("own.trace")).unwrap();
        let done = Command::new("sh").args(["-c", &command]).current_dir(dir.path()).status().unwrap();
        assert!(done.success(), "{command}");
        dir.paceline_ok(&["check", "link.toml"]);
        let times: Vec<u64> = dir.read("own.trace").lines().map(|line| line.parse().unwrap()).collect();
        // The last line is the length, 3 s: an opportunity that the rates would fill soon after.
        assert_eq!(times.len(), 3_000_000 / 1504 + 1, "{times:?}");
        let in_pause = times.iter().filter(|at| (1501..=2000).contains(*at)).count();
        assert_eq!((in_pause, times.last()), (0, Some(&3000)), "{times:?}");
    }
}

#[test]
fn a_folder_of_files_is_imported_and_each_file_says_what_it_was_taken_for() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("in")).unwrap();
    dir.write("in/walk.csv", "time_s,dl_mbps\n0,12.032\n2,12.032\n");
    dir.write("in/fast.txt", "2000\n".repeat(10).as_bytes());
    // Files beside the traces are skipped; a trace with an error is one in the end.
    dir.write("in/README.md", "# Walks\n\nRecorded by hand.\n");
    dir.write("in/.DS_Store", b"\0\0\0\x01Bud1".as_slice());
    dir.write("in/damaged.csv", "time_s,dl_mbps\n0,8\n1\n");
    let output = dir.paceline(&["trace", "import", "in", "--out", "out"]);
    assert!(output.code == 2 && output.stderr.contains("1 of 5 files not imported"), "{output:?}");
    assert!(output.stderr.contains("in/damaged.csv: line 3: 1 of 2 columns"), "{output:?}");
    for name in ["in/README.md: ", "in/.DS_Store: "] {
        assert!(output.stderr.contains(&format!("skipped, no trace: {name}")), "{output:?}");
    }
    std::fs::remove_file(dir.join("in/damaged.csv")).unwrap();
    assert_eq!(dir.paceline(&["trace", "import", "in", "--out", "again"]).code, 0);
    std::fs::create_dir(dir.join("none")).unwrap();
    dir.write("none/README.md", "# Walks\n");
    let none = dir.paceline(&["trace", "import", "none", "--out", "never"]);
    assert!(
        none.code == 2 && none.stderr.contains("none: a folder without traces: 1 file is none"),
        "{none:?}"
    );
    assert!(!dir.join("never").exists());
    assert!(output.stdout.contains("in/walk.csv: times: `time_s` in s; 2.000 s"), "{output:?}");
    assert!(
        output.stdout.contains("in/walk.csv: 2000 opportunities in 2.000 s, mean 12.032 Mb/s"),
        "{output:?}"
    );
    // Ten seconds of 2 Gb/s: 13 MB of text. A scenario takes the binary form as it takes the text.
    let fast: Vec<u8> = std::fs::read(dir.join("out/fast.txt.trace")).unwrap();
    assert!(fast.starts_with(b"PLTRACE") && fast.len() < 50_000, "{} bytes", fast.len());
    let text = dir.paceline_ok(&["trace", "convert", "out/fast.txt.trace", "--form", "text"]);
    assert_eq!(text.lines().count(), 1_662_234);
    dir.write("link.toml", LINK.replace("own.trace", "out/fast.txt.trace").replace("4 s", "1500 ms"));
    dir.paceline_ok(&["run", "link.toml", "--out", "results"]);
    assert_eq!(std::fs::read(dir.join("results/downlink.trace")).unwrap(), fast);
    // On stdout the trace alone; a trace that repeats within a second has its rate in every second.
    let done = dir.paceline(&["trace", "import", "in/walk.csv"]);
    assert!(done.stdout.starts_with("1\n2\n") && done.stderr.contains("resampled"), "{done:?}");
    dir.write("short.trace", "1\n3\n3\n4\n8\n");
    let json = parse_json(&dir.paceline_ok(&["trace", "info", "short.trace", "--json"]));
    for key in ["mean_mbps", "least_second_mbps", "most_second_mbps"] {
        assert!((json[key].as_f64().unwrap() - 7.52).abs() < 1e-9, "{json}");
    }
    for args in [
        &["trace", "import", "in"][..],
        &["trace", "import", "missing"],
        &["trace", "import", "in/walk.csv", "--rate-unit", "x"],
    ] {
        assert_eq!(dir.paceline(args).code, 2, "{args:?}");
    }
}

#[test]
fn a_sweep_over_paths_shows_throughput_against_delay() {
    let dir = TestDir::new();
    dir.write("link.toml", LINK);
    dir.write("own.trace", "1\n3\n3\n4\n8\n");
    let over = [
        "--over",
        "core.proxy=none,split-tcp,accelerator",
        "--over",
        "link.trace.downlink=own.trace,generated:walking:3",
    ];
    dir.paceline_ok(&[&["sweep", "link.toml", "--out", "grid"][..], &over].concat());
    dir.paceline_ok(&["report", "grid"]);
    let page = dir.read("grid/report.html");
    assert_eq!(page.matches("<figcaption><span>Throughput against delay: ").count(), 2, "{page}");
    assert!(page.contains("split-tcp") && !page.contains("NaN"));
}

#[test]
fn traces_are_read_generated_and_exported_from_links() {
    let dir = TestDir::new();
    let constant = dir.paceline_ok(&["trace", "constant", "12.032 Mb/s"]);
    assert_eq!(constant.lines().take(3).collect::<Vec<_>>(), ["1", "2", "3"]);
    dir.write("constant.trace", &constant);
    dir.write("crlf.trace", constant.replace('\n', "\r\n"));
    assert_eq!(dir.paceline_ok(&["trace", "convert", "crlf.trace"]), constant);
    let info = dir.paceline_ok(&["trace", "info", "constant.trace", "--json"]);
    let json: Value = parse_json(&info);
    assert_eq!((json["opportunities"].as_u64(), json["longest_pause_ms"].as_u64()), (Some(1000), Some(1)));
    assert!((json["mean_mbps"].as_f64().unwrap() - 12.032).abs() < 1e-9, "{json}");
    // A greedy station on a link with the constant trace receives that trace, except during slow start.
    dir.write("link.toml", LINK.replace("count = 2", "count = 1").replace("own.trace", "constant.trace"));
    dir.paceline_ok(&["trace", "export", "link.toml", "--out", "delivered.trace"]);
    let info = dir.paceline_ok(&["trace", "info", "delivered.trace", "--json"]);
    let json: Value = parse_json(&info);
    assert!((json["most_second_mbps"].as_f64().unwrap() / 12.032 - 1.0).abs() < 0.01, "{json}");
    assert_eq!(json["length_s"].as_f64(), Some(4.0));
    // The same for a cell, and for the uplink.
    dir.write("cell.toml", "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n[[station]]\n");
    for more in [&[][..], &["--uplink"], &["--station", "0"]] {
        let trace = dir.paceline_ok(&[&["trace", "export", "cell.toml"][..], more].concat());
        assert!(trace.lines().count() > 10 && trace.ends_with("2000\n"), "{more:?}");
    }
    dir.write("bad.trace", "1\n2\nthree\n");
    for (args, part) in [
        (&["trace", "info", "bad.trace"][..], "bad.trace: line 3: `three`"),
        (&["trace", "info", "missing.trace"], "missing.trace"),
        (&["trace", "info", "generated:flying"], "stationary, walking, driving"),
        (&["trace", "constant", "100 b/s"], "opportunity"),
        (&["trace", "constant", "9000000 Gb/s"], "allowed: up to 100 Gb/s"),
        (&["trace", "convert", "constant.trace", "--out", "constant.trace"], "exists"),
        (&["trace", "export", "link.toml", "--station", "7"], "allowed: 0 to 0"),
        (&["run", "link.toml", "--set", "link.trace.downlink=bad.trace"], "bad.trace: line 3"),
        (&["run", "link.toml", "--set", "cell.bandwidth=20 MHz"], "not both"),
        (&["emulate", "link.toml", "--set", "core.proxy=split-tcp", "--", "true"], "split-tcp"),
    ] {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}, {part:?}: {output:?}");
    }
}

#[test]
fn the_accelerators_rows_compare_published_values_with_ours() {
    let dir = TestDir::new();
    let short = ["--seeds", "1", "--set", "run.duration=3 s", "--set", "run.warmup=1 s"];
    let args = [&["reproduce", "accelerator", "--quick", "--out", "out"][..], &short].concat();
    let table = dir.paceline_ok(&args);
    assert!(table.starts_with("accelerator, published beside ours: 1 seed"), "{table}");
    let json: Value = dir.json("out/summary.json");
    let rows = json["rows"].as_array().unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let claims = ["2a", "2a-adaptive", "2b", "2c", "2c-adaptive", "2d", "2e", "2f", "2f-adaptive", "2g"];
    assert_eq!(ids, [&["3G-rtt", "3G-loss", "LTE-rtt", "LTE-loss"][..], &claims].concat());
    for row in rows {
        assert!(
            row["holds"].is_boolean() && row["why"].as_str().is_some_and(|why| !why.contains("NaN")),
            "{row}"
        );
        assert!(row["values"].as_array().is_some_and(|ours| !ours.is_empty()), "{row}");
    }
    // The second time, the finished parts are used.
    assert_eq!(dir.paceline_ok(&args), table);
    dir.paceline_ok(&["report", "out"]);
    let page = dir.read("out/report.html");
    assert!(page.contains("time-lte-adaptive") && page.matches("<svg").count() > 20 && !page.contains("NaN"));
}
