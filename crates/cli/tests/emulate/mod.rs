//! `paceline emulate`: real programs through the modelled radio. Needs root. Without root the tests are
//! skipped, or fail where `PACELINE_REQUIRE_PRIVILEGED` is set.

mod ends;
mod figures;
mod handover;
mod inside;
mod link;
mod police;
mod user;

use crate::common::emulation::EmulationHost;
use crate::common::namespace::{have_programs, random_bytes, wait_for};
use crate::common::{Output, parse_json, tshark};
use serde_json::Value;

/// One station with a good channel for real programs, measured from the start.
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

fn summary(host: &EmulationHost, folder: &str) -> Value {
    host.dir.json(&format!("{folder}/summary.json"))
}

/// Payload bytes that a station has acknowledged.
fn downloaded(summary: &Value, station: usize) -> f64 {
    let rate = summary["runs"][0]["stations"][station]["goodput_mbps"].as_f64().unwrap();
    rate * summary["measured_s"].as_f64().unwrap() * 1e6 / 8.0
}

fn assert_good(output: &Output) {
    assert_eq!(output.code, 0, "{output:?}");
    assert_report(output);
}

/// Checks the report on stderr: figures and lateness.
fn assert_report(output: &Output) {
    for part in ["radio, emulated: ", "real time missed: ", "(99.9%)"] {
        assert!(output.stderr.contains(part), "`{part}` is missing: {output:?}");
    }
}

#[test]
fn datagrams_of_any_size_come_back_over_both_ip_versions() {
    let Some(host) = EmulationHost::new(&["python3"]) else { return };
    host.dir.write(
        "echo.py",
        "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
         s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\ns.bind(('::', 7))\n\
         while True:\n    data, sender = s.recvfrom(65536)\n    s.sendto(data, sender)\n",
    );
    host.dir.write(
        "send.py",
        "import os, socket, time\n\
         for family, host in ((socket.AF_INET, 'PACELINE_HOST'), (socket.AF_INET6, 'PACELINE_HOST6')):\n\
         \x20   s = socket.socket(family, socket.SOCK_DGRAM)\n    s.settimeout(60)\n\
         \x20   for size in (0, 1, 100, 1400, 4000):\n        data = os.urandom(size)\n\
         \x20       start = time.monotonic()\n        s.sendto(data, (os.environ[host], 7))\n\
         \x20       assert s.recv(65536) == data, size\n\
         \x20       print(int(1000 * (time.monotonic() - start)))\n",
    );
    let _echo = host.serve("echo", 7, &["python3", "echo.py"]);
    let output = host.emulate(ONE, &["--", "python3", "send.py"]);
    assert_good(&output);
    let times: Vec<u64> = output.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 10);
    // The core delays by 5 ms each way, the radio by at least 1 ms. `settimeout` is the hang guard.
    assert!(times.iter().all(|ms| *ms >= 11), "round trips in ms: {times:?}");
    println!("round trips in ms: {times:?}");
}

#[test]
fn downloads_are_exact_over_both_ip_versions() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(1_500_000));
    let _server = host.serve_files();
    // `sleep`: time for the last acknowledgment to pass the radio.
    let script = "curl -sSf -o got4 http://$PACELINE_HOST:8000/file && \
                  curl -sSf -o got6 http://[$PACELINE_HOST6]:8000/file && sleep 0.3";
    let output = host.emulate(ONE, &["--out", "out", "--pcap", "--events", "--", "sh", "-c", script]);
    assert_good(&output);
    for got in ["got4", "got6"] {
        host.dir.assert_same("file", got);
    }
    let summary = summary(&host, "out");
    assert_eq!(summary["mode"], "emulated");
    let bytes = downloaded(&summary, 0);
    // Measuring ends with the programs; ACKs of the last window may be in flight then.
    assert!((2_500_000.0..3_020_000.0).contains(&bytes), "{bytes} bytes acknowledged");
    assert!(summary["mean"]["acks_sent_per_s"].as_f64().unwrap() > 0.0);
    let rtt = summary["mean"]["rtt_mean_ms"].as_f64().unwrap();
    assert!(rtt >= 10.0, "{rtt} ms");
    assert!(host.dir.read("out/timeseries.csv").lines().count() > 3);
    let events = host.dir.read("out/events.jsonl");
    assert!(events.lines().next().is_some_and(|header| header.contains("\"mode\":\"emulated\"")));
    for name in ["kernel:metrics_updated", "radio:scheduling_requested"] {
        assert!(events.contains(name), "no {name}");
    }
    assert!(host.dir.paths().iter().all(|name| !name.to_string_lossy().contains(".partial")));
    println!("{}", output.stderr);

    if have_programs(&["tshark"]) {
        assert_capture_is_well_formed(&host.dir.join("out/emulated.pcapng").display().to_string());
    }
}

fn assert_capture_is_well_formed(file: &str) {
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
        // With offloads the kernel leaves checksums unfinished; the TUN device has to finish them.
        let wrong = all.iter().filter(|packet| packet[2] == packet[3] && packet[4] != "1").count();
        assert_eq!(wrong, 0, "wrong checksums of whole {version} packets");
        let longest = all.iter().map(|packet| packet[5].parse::<u32>().unwrap()).max();
        assert!(longest <= Some(1448), "{longest:?} bytes in a segment");
    }
}

#[test]
fn segments_have_the_scenarios_size() {
    let Some(host) = EmulationHost::new(&["python3", "curl", "tshark"]) else { return };
    host.dir.write("file", random_bytes(200_000));
    let _server = host.serve_files();
    let scenario = format!("[tcp]\nsegment_size = \"536 B\"\n{ONE}");
    let script = "curl -sSf -o got http://$PACELINE_HOST:8000/file";
    assert_good(&host.emulate(&scenario, &["--out", "out", "--pcap", "--", "sh", "-c", script]));
    let file = host.dir.join("out/emulated.pcapng").display().to_string();
    let lengths = tshark(&file, "tcp.len > 0 && frame.interface_name == servers", &["tcp.len"]);
    assert_eq!(lengths.iter().map(|row| row[0].parse::<u32>().unwrap()).max(), Some(536));
}

#[test]
fn the_congestion_control_that_the_scenario_states_is_set_and_a_capture_ends_at_its_limit() {
    let Some(host) = EmulationHost::new(&["curl"]) else { return };
    host.dir.write("file", random_bytes(200_000));
    let _server = host.serve_files();
    let scenario = format!("[tcp]\ncongestion_control = \"newreno\"\n{ONE}");
    let curl = ["--", "curl", "-sSf", "-o", "got", "http://198.18.0.1:8000/file"];
    let options = ["--out", "out", "--pcap", "--pcap-limit", "20 kB"];
    let output = host.emulate(&scenario, &[&options[..], &curl].concat());
    assert_good(&output);
    host.dir.assert_same("file", "got");
    assert!(output.stderr.contains("by congestion control: 1 reno\n"), "{output:?}");
    let length = std::fs::metadata(host.dir.join("out/emulated.pcapng")).unwrap().len();
    assert!((10_000..=20_500).contains(&length), "{length} bytes");
    let output = host.emulate(ONE, &["--pcap-limit", "20 kB", "--", "true"]);
    assert!(output.code == 2 && output.stderr.contains("--pcap"), "{output:?}");
}

#[test]
fn tls_download_is_exact() {
    let Some(host) = EmulationHost::new(&["openssl", "curl"]) else { return };
    host.dir.write("file", random_bytes(300_000));
    let subject = ["-subj", "/CN=198.18.0.1", "-keyout", "key.pem", "-out", "cert.pem"];
    let make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    assert_eq!(host.run(&[&make[..], &subject].concat()).code, 0);
    let argv = ["openssl", "s_server", "-WWW", "-accept", "4433", "-cert", "cert.pem", "-key", "key.pem"];
    let _server = host.serve("tls", 4433, &argv);
    let output = host.emulate(ONE, &["--", "curl", "-sSfk", "-o", "got", "https://198.18.0.1:4433/file"]);
    assert_good(&output);
    host.dir.assert_same("file", "got");
}

#[test]
fn iperf3_downloads_uploads_and_does_both_at_once() {
    let Some(host) = EmulationHost::new(&["iperf3"]) else { return };
    // Each test has its own server: a server that has not received the end of a test refuses the next one.
    for (port, direction, sums) in [
        (5201, "-R", &["sum_received"][..]),
        (5202, "-4", &["sum_received"]),
        (5203, "--bidir", &["sum_received", "sum_received_bidir_reverse"]),
    ] {
        let number = port.to_string();
        let _server = host.serve("iperf3", port, &["iperf3", "-s", "-p", &number]);
        let argv = ["iperf3", "-c", "198.18.0.1", "-p", &number, "-t", "3", "-J", direction];
        let output = host.emulate(ONE, &[&["--"], &argv[..]].concat());
        assert_good(&output);
        let json: Value = parse_json(&output.stdout);
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
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(400_000));
    let _server = host.serve_files();
    let scenario = ONE.replace("direction = \"none\"", "count = 3");
    let script = "curl -sSf -o got$PACELINE_STATION http://$PACELINE_HOST:8000/file; sleep 0.3";
    let output = host.emulate(&scenario, &["--station", "0,2", "--out", "out", "--", "sh", "-c", script]);
    assert_good(&output);
    for got in ["got0", "got2"] {
        host.dir.assert_same("file", got);
    }
    assert!(!host.dir.join("got1").exists());
    let summary = summary(&host, "out");
    for station in [0, 2] {
        assert!(downloaded(&summary, station) >= 100_000.0, "{station}: {}", downloaded(&summary, station));
    }
    assert!(downloaded(&summary, 1) > 100_000.0, "the simulated one: {}", downloaded(&summary, 1));
    assert!(host.dir.read("out/flows.csv").lines().skip(1).all(|line| line.starts_with("1,1,")));
}

#[test]
fn data_sent_by_a_program_before_it_ended_arrive() {
    let Some(host) = EmulationHost::new(&["python3"]) else { return };
    host.dir.write(
        "sink.py",
        "import socket\ns = socket.create_server(('', 9))\nwhile True:\n    c, _ = s.accept()\n    n = 0\n\
         \x20   while data := c.recv(65536): n += len(data)\n    print(n, flush=True)\n",
    );
    host.dir.write(
        "send.py",
        "import os, socket\ns = socket.create_connection((os.environ['PACELINE_HOST'], 9))\n\
         s.sendall(bytes(700_000))\n", // ends with most of the data in the kernel's send buffer
    );
    let mut sink = host.serve("sink", 9, &["python3", "sink.py"]);
    assert_good(&host.emulate(ONE, &["--", "python3", "send.py"]));
    let output = wait_for("the received bytes", || {
        Some(sink.output_so_far()).filter(|output| output.stdout.ends_with('\n'))
    });
    assert_eq!(output.stdout, "700000\n", "{output:?}");
}

#[test]
fn real_connections_use_the_congestion_control_of_the_option() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(20_000_000));
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    for (control, kernel) in
        [("cubic", "cubic"), ("reno", "reno"), ("newreno", "reno"), ("westwood+", "westwood")]
    {
        if !available.split_whitespace().any(|name| name == kernel) {
            continue;
        }
        let _server = host.serve_files(); // a new server for each control, without old connections
        let options = ["--tcp", control, "--"];
        let curl = ["curl", "-sSf", "-o", "got", "http://198.18.0.1:8000/file"];
        let mut paceline = host.start(ONE, &[&options[..], &curl].concat());
        let used = wait_for("a connection", || {
            let sockets = host.run(&["ss", "-Htin", "state", "established", "sport = :8000"]).stdout;
            sockets.lines().nth(1).map(|line| line.trim().to_owned())
        });
        assert!(used.starts_with(kernel), "{control}: {used}");
        paceline.signal("TERM");
        paceline.finish();
    }
    let output = host.emulate(ONE, &["--tcp", "warp", "--out", "out", "--", "true"]);
    assert!(output.code == 2 && output.stderr.lines().count() == 1, "{output:?}");
    for part in ["--tcp", "warp", "allowed", "cubic"] {
        assert!(output.stderr.contains(part), "{output:?}");
    }
    // Congestion controls that the simulator has and Linux does not.
    for name in ["tahoe", "bbr3"] {
        let output = host.emulate(ONE, &["--tcp", name, "--", "true"]);
        assert!(output.code == 2 && output.stderr.contains(&format!("Linux has no {name}")), "{output:?}");
    }
    for name in ["", "cubic dev lo", "../cubic"] {
        let output = host.emulate(ONE, &["--tcp", name, "--", "true"]);
        assert!(output.code == 2 && output.stderr.contains("--tcp"), "{output:?}");
    }
    assert_eq!(host.tun_devices(), "");
}

#[test]
fn a_stations_own_tcp_sets_segments_and_congestion_control_of_the_kernel() {
    let Some(host) = EmulationHost::new(&["python3", "curl", "tshark"]) else { return };
    host.dir.write("file", random_bytes(300_000));
    let _server = host.serve_files();
    let own = "tcp = { segment_size = \"536 B\", congestion_control = \"newreno\" }";
    let scenario = format!("{ONE}{own}\n{}", &ONE[ONE.find("[[station]]").unwrap()..]);
    let script = "ip route show default > route$PACELINE_STATION; \
                  curl -sSf -o got{station} http://$PACELINE_HOST:8000/file";
    let args = ["--station", "0-1", "--out", "out", "--pcap", "--", "sh", "-c", script];
    let output = host.emulate(&scenario, &args);
    assert_good(&output);
    assert!(output.stderr.ends_with("\nresults: out\n"), "{output:?}");
    let file = host.dir.join("out/emulated.pcapng").display().to_string();
    for (station, longest) in [(0, 536), (1, 1448)] {
        host.dir.assert_same("file", &format!("got{station}"));
        let filter =
            format!("tcp.len > 0 && tcp.srcport == 8000 && frame.interface_name == station-{station}");
        let lengths = tshark(&file, &filter, &["tcp.len"]);
        assert_eq!(lengths.iter().map(|row| row[0].parse::<u32>().unwrap()).max(), Some(longest));
        let reno = host.dir.read(&format!("route{station}")).contains("congctl reno");
        assert_eq!(reno, station == 0, "station {station}");
    }
    // A congestion control that Linux has not.
    let output = host.emulate(&scenario.replace("newreno", "tahoe"), &["--", "true"]);
    let message = "station.0.tcp.congestion_control tahoe: Linux has no tahoe";
    assert!(output.code == 2 && output.stderr.contains(message), "{output:?}");
}

#[test]
fn programs_of_two_stations_write_two_files() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(20_000));
    let _server = host.serve_files();
    let scenario = ONE.replace("direction", "count = 4\ndirection");
    let url = "http://198.18.0.1:8000/file";
    let output = host.emulate(&scenario, &["--station", "0,3", "--", "curl", "-sSfo", "got-{station}", url]);
    assert_good(&output);
    assert!(!output.stderr.contains("note:"), "{output:?}");
    for station in [0, 3] {
        host.dir.assert_same("file", &format!("got-{station}"));
    }
    // Programs that may overwrite each other's files.
    let output = host.emulate(&scenario, &["--station", "0,3", "--", "curl", "-sSfo", "both", url]);
    assert_good(&output);
    assert!(output.stderr.starts_with("note: all stations run this command in this folder; {station}"));
    let output = host.emulate(&scenario, &["--station", "0", "--", "curl", "-sSfo", "both", url]);
    assert!(!output.stderr.contains("note:"), "{output:?}");
}

#[test]
fn the_shell_reads_commands_from_standard_input() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    host.dir.write("radio.toml", ONE);
    let line =
        format!("echo 'ip -br addr show ue0; exit 3' | {} emulate radio.toml", crate::common::PACELINE);
    let output = host.run(&["sh", "-c", &line]);
    assert!(output.code == 1 && output.stderr.contains("exit status: 3"), "{output:?}");
    assert!(output.stdout.contains("198.18.128.1") && output.stdout.contains("2001:2:0:2::1"), "{output:?}");
}
