//! Results of an emulation: the kernel's connections, and empty cells for figures that were not measured.

use crate::common::emulation::EmulationHost;
use crate::common::namespace::random_bytes;
use crate::emulate::{ONE, assert_good, summary};
use std::collections::BTreeMap;

/// The rows of a CSV file by the names of their columns.
pub fn rows(host: &EmulationHost, file: &str) -> Vec<BTreeMap<String, String>> {
    let text = host.dir.read(file);
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let names = lines.next().expect("a header");
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// Bytes of a download that lasts for a second. A thread of normal priority reads the kernel, and on a busy
/// machine the loop of real-time priority leaves it 50 ms in a second (sched_rt_runtime_us).
const FILE_BYTES: u64 = 1_500_000;

#[test]
fn each_connection_has_the_congestion_control_that_the_kernel_used() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(FILE_BYTES));
    // A program that chooses the congestion control of its connection itself. Before `connect`, the route's
    // choice would replace it.
    host.dir.write(
        "own.py",
        "import os, socket\ns = socket.socket()\n\
         s.connect((os.environ['PACELINE_HOST'], 8000))\n\
         s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')\n\
         s.sendall(b'GET /file HTTP/1.0\\r\\n\\r\\n')\nn = 0\n\
         while data := s.recv(65536): n += len(data)\nassert n > 1_500_000\n",
    );
    let _server = host.serve_files();
    let script = "curl -sSf -o got http://$PACELINE_HOST:8000/file && \
                  curl -sSf -o got http://[$PACELINE_HOST6]:8000/file && python3 own.py";
    let scenario = ONE.replace("warmup = \"0 s\"", "warmup = \"0 s\"\nsample = \"10 ms\"");
    let output = host.emulate(&scenario, &["--tcp", "cubic", "--out", "out", "--", "sh", "-c", script]);
    assert_good(&output);
    let line = "connections of the kernel, by congestion control: 3 cubic\n";
    assert!(output.stderr.contains(line), "{output:?}");
    let rows = rows(&host, "out/kernel_connections.csv");
    let column = |name: &str| rows.iter().map(|row| row[name].as_str()).collect::<Vec<_>>();
    assert_eq!(column("server"), ["198.18.0.1:8000", "[2001:2::1]:8000", "198.18.0.1:8000"]);
    assert_eq!(column("server_congestion_control"), ["cubic", "cubic", "cubic"]);
    assert_eq!(column("station_congestion_control"), ["cubic", "cubic", "reno"]);
    let number = |name: &str| rows.iter().map(|row| row[name].parse::<f64>().unwrap()).collect::<Vec<_>>();
    // The file, and up to 1 kB of headers.
    let file = FILE_BYTES as f64;
    assert!(number("downloaded").iter().all(|n| (file..file + 1000.0).contains(n)), "{rows:?}");
    assert!(number("uploaded").iter().all(|n| (20.0..500.0).contains(n)), "{rows:?}");
    assert!(number("server_segments").iter().all(|n| *n >= (file / 1448.0).ceil()), "{rows:?}");
    assert!(number("server_min_rtt_ms").iter().all(|ms| *ms >= 10.0), "{rows:?}");
    assert!(number("server_busy_s").iter().all(|seconds| *seconds > 0.0), "{rows:?}");
    assert!(column("verdict").iter().all(|verdict| verdict.contains("% of the time (")), "{rows:?}");
    assert!(output.stderr.contains("\nstation 0, 3 connections of the kernel: TCP is "), "{output:?}");
    let json = summary(&host, "out");
    let connections = json["runs"][0]["kernel_connections"].as_array().unwrap();
    assert_eq!(connections.len(), 3);
    assert_eq!(connections[2]["station_end"]["congestion_control"], "reno");
    assert_eq!(host.dir.paceline(&["report", "out"]).code, 0);
    let report = host.dir.read("out/report.html");
    assert!(report.contains("Connections of real programs") && report.contains(">reno<"), "{report}");
    // The kernel's windows and round-trip times are sampled while connections are open.
    let samples = self::rows(&host, "out/timeseries.csv");
    let sampled: Vec<f64> = samples.iter().filter_map(|row| row["cwnd"].parse().ok()).collect();
    assert!(sampled.iter().any(|bytes| *bytes >= 10.0 * 1448.0), "{samples:?}");
    assert!(samples.iter().any(|row| row["srtt_ms"].parse().is_ok_and(|ms: f64| ms >= 10.0)), "{samples:?}");
    // The document has every column.
    let document = include_str!("../../../../docs/results.md");
    for name in rows[0].keys() {
        let mut forms = [format!("`{name}`"), format!("={name}`")].into_iter();
        assert!(forms.any(|form| document.contains(&form)), "{name} is not in docs/results.md");
    }
}

#[test]
fn figures_that_were_not_measured_are_empty_in_tables_and_pictures() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let scenario = ONE.replace("warmup = \"0 s\"", "warmup = \"5 s\"\nsample = \"100 ms\"");
    let output = host.emulate(&scenario, &["--out", "out", "--", "sleep", "1"]);
    assert_good(&output);
    for word in ["NaN", "RTT", "TCP limited", "UDP"] {
        assert!(!output.stderr.contains(word), "{word}: {output:?}");
    }
    let json = summary(&host, "out");
    for name in ["rtt_mean_ms", "rtt_p95_ms", "congestion_window_share", "udp_loss_share", "rtt_harq_share"] {
        assert!(json["mean"][name].is_null() && json["runs"][0]["totals"][name].is_null(), "{name}");
    }
    // The programs ended within the warm-up: all of it counts.
    assert_eq!(json["runs"][0]["measured_from_s"], 0.0);
    assert_eq!(rows(&host, "out/stations.csv")[0]["rtt_mean_ms"], "");
    let samples = rows(&host, "out/timeseries.csv");
    assert!(samples.iter().all(|row| row["cwnd"].is_empty() && row["srtt_ms"].is_empty()));
    let last: f64 = samples.last().expect("samples")["time_s"].parse().unwrap();
    assert!(last <= json["measured_s"].as_f64().unwrap(), "samples end with the programs: {last}");
    assert_eq!(host.dir.paceline(&["report", "out"]).code, 0);
    let report = host.dir.read("out/report.html");
    assert!(!report.contains("warm-up</text>") && !report.contains("Congestion window"));
    assert!(!report.contains("NaN"));
    // Simulations and emulations side by side.
    let set = ["--set", "station.direction=download", "--set", "run.warmup=0 s", "--set", "run.duration=1s"];
    let run = host.dir.paceline(&[&["run", "radio.toml", "--out", "simulated"], &set[..]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let compared = host.dir.paceline(&["compare", "out", "simulated"]);
    assert!(compared.code == 0 && !compared.stdout.contains("NaN"), "{compared:?}");
    assert!(compared.stdout.contains("RTT after the warm-up, mean"), "{compared:?}");
}

#[test]
fn the_warm_up_of_an_emulation_ends_where_its_figures_begin() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let scenario = ONE
        .replace("warmup = \"0 s\"", "warmup = \"500 ms\"\nsample = \"100 ms\"")
        .replace("direction = \"none\"", "count = 2");
    let output = host.emulate(&scenario, &["--out", "out", "--", "sleep", "2"]);
    assert_good(&output);
    assert_eq!(summary(&host, "out")["runs"][0]["measured_from_s"], 0.5);
    assert_eq!(host.dir.paceline(&["report", "out"]).code, 0);
    assert!(host.dir.read("out/report.html").contains("warm-up"));
}
