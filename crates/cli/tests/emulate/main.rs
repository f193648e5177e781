//! Real programs through the modelled radio. Needs root; says so and does nothing otherwise, but fails where
//! `PACELINE_REQUIRE_PRIVILEGED` is set.

#[path = "../common/mod.rs"]
mod common;
mod ends;

use common::outer::{Outer, have, random_bytes, until};
use common::{Said, tshark};
use serde_json::Value;
use std::time::Duration;

/// One good station for real programs, everything counted.
const ONE: &str = r#"
[run]
warmup = "0 s"

[core]
hops = [{ rate = "1 Gb/s", delay = "5 ms" }]

[[station]]
downlink_sinr = "25 dB"
uplink_sinr = "12 dB"
direction = "none"
"#;
const SHORTLY: Duration = Duration::from_secs(3);

fn http(outer: &Outer) -> common::outer::Program {
    outer.serve("http", 8000, &["python3", "-m", "http.server", "--bind", "::", "8000"])
}

fn summary(outer: &Outer, folder: &str) -> Value {
    serde_json::from_str(&outer.place.read(&format!("{folder}/summary.json"))).expect("it is JSON")
}

/// Payload bytes that a station acknowledged.
fn downloaded(summary: &Value, station: usize) -> f64 {
    let rate = summary["runs"][0]["stations"][station]["goodput_mbps"].as_f64().unwrap();
    rate * summary["measured_s"].as_f64().unwrap() * 1e6 / 8.0
}

fn assert_good(said: &Said) {
    assert_eq!(said.code, 0, "{said:?}");
    assert_report(said);
}

/// The report on stderr: figures and lateness.
fn assert_report(said: &Said) {
    for part in ["radio, emulated: ", "real time missed: ", "(99.9%)", "up to   1000 us"] {
        assert!(said.stderr.contains(part), "`{part}` is missing: {said:?}");
    }
}

#[test]
fn datagrams_of_any_size_come_back_over_both_ip_versions() {
    let Some(outer) = Outer::new(&["python3"]) else { return };
    outer.place.write(
        "echo.py",
        "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
         s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\ns.bind(('::', 7))\n\
         while True:\n    data, sender = s.recvfrom(65536)\n    s.sendto(data, sender)\n",
    );
    outer.place.write(
        "send.py",
        "import os, socket, time\n\
         for family, host in ((socket.AF_INET, 'PACELINE_HOST'), (socket.AF_INET6, 'PACELINE_HOST6')):\n\
         \x20   s = socket.socket(family, socket.SOCK_DGRAM)\n    s.settimeout(5)\n\
         \x20   for size in (0, 1, 100, 1400, 4000):\n        data = os.urandom(size)\n\
         \x20       start = time.monotonic()\n        s.sendto(data, (os.environ[host], 7))\n\
         \x20       assert s.recv(65536) == data, size\n\
         \x20       print(int(1000 * (time.monotonic() - start)))\n",
    );
    let _echo = outer.serve("echo", 7, &["python3", "echo.py"]);
    let said = outer.emulate(ONE, &["--", "python3", "send.py"]);
    assert_good(&said);
    let times: Vec<u64> = said.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 10);
    // Twice 5 ms of wire, and the radio.
    assert!(times.iter().all(|ms| (11..1000).contains(ms)), "round trips in ms: {times:?}");
    println!("round trips in ms: {times:?}");
}

#[test]
fn downloads_are_exact_over_both_ip_versions() {
    let Some(outer) = Outer::new(&["python3", "curl"]) else { return };
    let file = random_bytes(1_500_000);
    outer.place.write("file", &file);
    let _http = http(&outer);
    // The last acknowledgment needs some time on the radio.
    let script = "curl -sSf -o got4 http://$PACELINE_HOST:8000/file && \
                  curl -sSf -o got6 http://[$PACELINE_HOST6]:8000/file && sleep 0.3";
    let said = outer.emulate(ONE, &["--out", "out", "--pcap", "--", "sh", "-c", script]);
    assert_good(&said);
    for got in ["got4", "got6"] {
        let got = std::fs::read(outer.place.join(got)).unwrap();
        assert!(got == file, "{} bytes instead of {}, or others", got.len(), file.len());
    }
    let summary = summary(&outer, "out");
    assert_eq!(summary["mode"], "emulated");
    let bytes = downloaded(&summary, 0);
    // The figures end with the programs: the ACKs of the last window are on their way.
    assert!((2_500_000.0..3_020_000.0).contains(&bytes), "{bytes} bytes acknowledged");
    assert!(summary["mean"]["acks_sent_per_s"].as_f64().unwrap() > 0.0);
    let rtt = summary["mean"]["rtt_mean_ms"].as_f64().unwrap();
    assert!((10.0..1000.0).contains(&rtt), "{rtt} ms");
    assert!(outer.place.read("out/timeseries.csv").lines().count() > 3);
    assert!(outer.place.names().iter().all(|name| !name.to_string_lossy().contains(".partial")));
    println!("{}", said.stderr);

    if have(&["tshark"]) {
        capture_is_good(&outer.place.join("out/emulated.pcapng").display().to_string());
    }
}

fn capture_is_good(file: &str) {
    let bad =
        tshark(file, "_ws.malformed || _ws.expert.severity >= 8388608", &["frame.number", "_ws.expert"]);
    assert!(bad.is_empty(), "{} bad packets, such as {:?}", bad.len(), bad[0]);
    let fields = ["frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len"];
    for version in ["ip", "ipv6"] {
        let checked = [&fields[..], &["tcp.checksum.status", "tcp.len"]].concat();
        let all = tshark(file, &format!("{version} && tcp"), &checked);
        let times: Vec<f64> = all.iter().map(|packet| packet[0].parse().unwrap()).collect();
        assert!(times.is_sorted(), "{version}");
        for interface in ["servers", "station-0"] {
            let payload = |packet: &&Vec<String>| packet[1] == interface && packet[5] != "0";
            assert!(all.iter().filter(payload).count() > 1000, "{version} on {interface}");
        }
        // Offloads: the kernel leaves checksums to the device, which must have finished them.
        let wrong = all.iter().filter(|packet| packet[2] == packet[3] && packet[4] != "1").count();
        assert_eq!(wrong, 0, "wrong checksums of whole {version} packets");
        let longest = all.iter().map(|packet| packet[5].parse::<u32>().unwrap()).max();
        assert!(longest <= Some(1448), "{longest:?} bytes in a segment");
    }
}

#[test]
fn segments_are_as_long_as_the_scenario_says() {
    let Some(outer) = Outer::new(&["python3", "curl", "tshark"]) else { return };
    outer.place.write("file", random_bytes(200_000));
    let _http = http(&outer);
    let scenario = format!("[tcp]\nsegment_size = \"536 B\"\n{ONE}");
    let script = "curl -sSf -o got http://$PACELINE_HOST:8000/file";
    assert_good(&outer.emulate(&scenario, &["--out", "out", "--pcap", "--", "sh", "-c", script]));
    let file = outer.place.join("out/emulated.pcapng").display().to_string();
    let lengths = tshark(&file, "tcp.len > 0 && frame.interface_name == servers", &["tcp.len"]);
    assert_eq!(lengths.iter().map(|row| row[0].parse::<u32>().unwrap()).max(), Some(536));
}

#[test]
fn tls_download_is_exact() {
    let Some(outer) = Outer::new(&["openssl", "curl"]) else { return };
    let file = random_bytes(300_000);
    outer.place.write("file", &file);
    let subject = ["-subj", "/CN=198.18.0.1", "-keyout", "key.pem", "-out", "cert.pem"];
    let make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    assert_eq!(outer.run(&[&make[..], &subject].concat()).code, 0);
    let argv = ["openssl", "s_server", "-WWW", "-accept", "4433", "-cert", "cert.pem", "-key", "key.pem"];
    let _server = outer.serve("tls", 4433, &argv);
    let said = outer.emulate(ONE, &["--", "curl", "-sSfk", "-o", "got", "https://198.18.0.1:4433/file"]);
    assert_good(&said);
    assert!(std::fs::read(outer.place.join("got")).unwrap() == file);
}

#[test]
fn iperf3_down_up_and_both() {
    let Some(outer) = Outer::new(&["iperf3"]) else { return };
    // A server each: one that has not heard the end of a test refuses the next.
    for (port, direction, sums) in [
        (5201, "-R", &["sum_received"][..]),
        (5202, "-4", &["sum_received"]),
        (5203, "--bidir", &["sum_received", "sum_received_bidir_reverse"]),
    ] {
        let number = port.to_string();
        let _server = outer.serve("iperf3", port, &["iperf3", "-s", "-p", &number]);
        let argv = ["iperf3", "-c", "198.18.0.1", "-p", &number, "-t", "3", "-J", direction];
        let said = outer.emulate(ONE, &[&["--"], &argv[..]].concat());
        assert_good(&said);
        let json: Value = serde_json::from_str(&said.stdout).expect("iperf3 -J prints JSON");
        for sum in sums {
            let rate = json["end"][sum]["bits_per_second"].as_f64();
            let rate = rate.unwrap_or_else(|| panic!("no {sum}: {json}")) / 1e6;
            println!("iperf3 {direction} {sum}: {rate:.1} Mb/s");
            assert!((1.0..76.0).contains(&rate), "{direction} {sum}: {rate} Mb/s");
        }
    }
}

#[test]
fn real_and_simulated_stations_share_a_cell() {
    let Some(outer) = Outer::new(&["python3", "curl"]) else { return };
    let file = random_bytes(400_000);
    outer.place.write("file", &file);
    let _http = http(&outer);
    let scenario = ONE.replace("direction = \"none\"", "count = 3");
    let script = "curl -sSf -o got$PACELINE_STATION http://$PACELINE_HOST:8000/file; sleep 0.3";
    let said = outer.emulate(&scenario, &["--station", "0,2", "--out", "out", "--", "sh", "-c", script]);
    assert_good(&said);
    for got in ["got0", "got2"] {
        assert!(std::fs::read(outer.place.join(got)).unwrap() == file, "{got}");
    }
    assert!(!outer.place.join("got1").exists());
    let summary = summary(&outer, "out");
    for station in [0, 2] {
        assert!(downloaded(&summary, station) >= 100_000.0, "{station}: {}", downloaded(&summary, station));
    }
    assert!(downloaded(&summary, 1) > 100_000.0, "the simulated one: {}", downloaded(&summary, 1));
    assert!(outer.place.read("out/flows.csv").lines().skip(1).all(|line| line.starts_with("1,1,")));
}

#[test]
fn data_of_a_program_that_has_ended_arrives() {
    let Some(outer) = Outer::new(&["python3"]) else { return };
    outer.place.write(
        "sink.py",
        "import socket\ns = socket.create_server(('', 9))\nwhile True:\n    c, _ = s.accept()\n    n = 0\n\
         \x20   while data := c.recv(65536): n += len(data)\n    print(n, flush=True)\n",
    );
    outer.place.write(
        "send.py",
        "import os, socket\ns = socket.create_connection((os.environ['PACELINE_HOST'], 9))\n\
         s.sendall(bytes(700_000))\n", // and ends, with much of it in the kernel's buffer
    );
    let mut sink = outer.serve("sink", 9, &["python3", "sink.py"]);
    assert_good(&outer.emulate(ONE, &["--", "python3", "send.py"]));
    let said = until("what arrived", || Some(sink.so_far()).filter(|said| said.stdout.ends_with('\n')));
    assert_eq!(said.stdout, "700000\n", "{said:?}");
}

#[test]
fn congestion_control_is_the_one_asked_for() {
    let Some(outer) = Outer::new(&["python3", "curl"]) else { return };
    outer.place.write("file", random_bytes(20_000_000));
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    for (control, kernel) in
        [("cubic", "cubic"), ("reno", "reno"), ("newreno", "reno"), ("westwood+", "westwood")]
    {
        if !available.split_whitespace().any(|name| name == kernel) {
            continue;
        }
        let _http = http(&outer); // a new one each time, without old connections
        let options = ["--congestion-control", control, "--"];
        let curl = ["curl", "-sSf", "-o", "got", "http://198.18.0.1:8000/file"];
        let mut paceline = outer.start(ONE, &[&options[..], &curl].concat());
        let used = until("a connection", || {
            let sockets = outer.run(&["ss", "-Htin", "state", "established", "sport = :8000"]).stdout;
            sockets.lines().nth(1).map(|line| line.trim().to_owned())
        });
        assert!(used.starts_with(kernel), "{control}: {used}");
        paceline.signal("TERM");
        paceline.finish(SHORTLY);
    }
    let said = outer.emulate(ONE, &["--congestion-control", "warp", "--out", "out", "--", "true"]);
    assert!(said.code == 2 && said.stderr.lines().count() == 1, "{said:?}");
    for part in ["--congestion-control", "warp", "allowed", "cubic"] {
        assert!(said.stderr.contains(part), "{said:?}");
    }
    // Laws that the kernel lacks, by Paceline's names.
    for name in ["tahoe", "bbr3"] {
        let said = outer.emulate(ONE, &["--congestion-control", name, "--", "true"]);
        assert!(said.code == 2 && said.stderr.contains(&format!("Linux has no {name}")), "{said:?}");
    }
    for name in ["", "cubic dev lo", "../cubic"] {
        let said = outer.emulate(ONE, &["--congestion-control", name, "--", "true"]);
        assert!(said.code == 2 && said.stderr.contains("--congestion-control"), "{said:?}");
    }
    assert_eq!(outer.devices(), "");
}

#[test]
fn a_shell_reads_from_standard_input() {
    let Some(outer) = Outer::new(&[]) else { return };
    outer.place.write("radio.toml", ONE);
    let line = format!("echo 'ip -br addr show ue0; exit 3' | {} emulate radio.toml", common::PACELINE);
    let said = outer.run(&["sh", "-c", &line]);
    assert!(said.code == 1 && said.stderr.contains("exit status: 3"), "{said:?}");
    assert!(said.stdout.contains("198.18.128.1") && said.stdout.contains("2001:2:0:2::1"), "{said:?}");
}
