//! Operating the live gateway: stop, reload, crash, and what it tells of itself. Needs root; says so and does nothing
//! otherwise, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::bed::{Bed, PLAIN, SERVER};
use common::outer::{Program, have, random_bytes, skip, until};
use common::{Said, has, tshark};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Towards the client: what makes transfers last, and keeps bytes in the gateway.
const SLOW: &str = "tc qdisc replace dev mob root tbf rate 200mbit burst 100kb limit 1mb";

fn bed(size: u64) -> Option<Bed> {
    let bed = Bed::new(&["curl", "python3", "tc"])?;
    bed.place.write("file", random_bytes(size));
    bed.shell(&bed.middle, SLOW);
    Some(bed)
}
fn config(bed: &Bed, more: &str) -> String {
    format!("control = \"{}\"\n{PLAIN}{more}", bed.place.join("ctl").display())
}
fn ask(bed: &Bed, args: &[&str]) -> Said {
    bed.place.paceline(&[&["gateway"], args, &["--control", "ctl"]].concat())
}
fn status(bed: &Bed) -> Value {
    let said = ask(bed, &["status", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}
fn count(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {status}"))
}
fn serve(bed: &Bed) -> Program {
    bed.place.write("transfers.py", include_str!("common/transfers.py"));
    bed.serve("transfers", 9000, "python3 transfers.py serve 9000 file")
}
/// Begins so many transfers at once; one that gets nothing for ten seconds hangs.
fn fetch(bed: &Bed, transfers: u64) -> Program {
    fetch_from(bed, SERVER, transfers)
}
fn fetch_from(bed: &Bed, server: &str, transfers: u64) -> Program {
    let line = format!("python3 transfers.py fetch {server} 9000 {transfers} file 10");
    bed.start(&bed.client, "fetch", &line)
}
/// Waits until most of so many connections are accelerated, and something is owed.
fn running(bed: &Bed, transfers: u64) -> Value {
    // By time: a first SYN that waits for a neighbour is sent again after a second.
    until("the transfers to run", || {
        let now = status(bed);
        let owed = now["exposure"].as_u64() > Some(100_000);
        (now["flows"].as_u64() >= Some(transfers * 6 / 10) && owed).then_some(now)
    })
}
/// How the transfers ended: whole and reset ones. None may hang or be wrong.
fn ends(mut fetch: Program) -> (u64, u64) {
    // Long, since only silence is a hang: under an overload, Linux's BBR takes losses for a policer, and keeps to what it
    // got then for 48 round trips.
    let said = fetch.finish(Duration::from_secs(100));
    let ends: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!((&ends["hanging"], &ends["wrong"]), (&0.into(), &0.into()), "{ends}");
    (ends["whole"].as_u64().unwrap(), ends["reset"].as_u64().unwrap())
}

#[test]
fn a_stop_with_running_transfers_harms_none() {
    const TRANSFERS: u64 = 100;
    let Some(bed) = bed(3_000_000) else { return };
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, ""));
    let fetch = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    let said = ask(&bed, &["stop", "--limit", "10s"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(said.stdout.contains(" 0 were reset"), "{said:?}");
    let end = gateway.finish(Duration::from_secs(5));
    assert_eq!(end.code, 0, "{end:?}");
    let counters: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(counters["flows-reset"], 0, "{counters}");
    assert!(counters["flows-detached"].as_u64().unwrap() > 50, "they were running: {counters}");
    assert_eq!(ends(fetch), (TRANSFERS, 0));
    let said = ask(&bed, &["status"]);
    assert!(said.code == 1 && said.stderr.contains("no gateway listens at ctl"), "{said:?}");
}

#[test]
fn sigterm_drains_and_a_second_one_ends_at_once() {
    const TRANSFERS: u64 = 30;
    let Some(bed) = bed(3_000_000) else { return };
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, ""));
    let transfers = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    gateway.signal("TERM");
    let end = gateway.finish(Duration::from_secs(10));
    assert_eq!(end.code, 0, "{end:?}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));

    let mut gateway = bed.gateway(&config(&bed, ""));
    let transfers = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    gateway.signal("TERM");
    until("the first signal", || gateway.so_far().stderr.contains("stopping").then_some(()));
    gateway.signal("INT");
    let end = gateway.finish(Duration::from_secs(2));
    assert!(end.code == 0 && end.stderr.contains("ending now"), "{end:?}");
    let (whole, reset) = ends(transfers);
    assert!(whole + reset == TRANSFERS && reset > 0, "{whole} whole, {reset} reset");
}

#[test]
fn after_kill_9_no_transfer_hangs() {
    const TRANSFERS: u64 = 100;
    let Some(bed) = bed(3_000_000) else { return };
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, ""));
    let quiet = "python3 -c 'import socket,sys,time
c=socket.create_connection((\"10.9.0.1\",9001)); c.sendall(b\"a\"); assert c.recv(1)==b\"a\"; print(\"ready\",flush=True)
time.sleep(6); c.sendall(b\"b\"); assert c.recv(1)==b\"b\"; print(\"went on\")'";
    let _echo = bed.serve(
        "echo",
        9001,
        "python3 -c 'import socket
s=socket.create_server((\"\",9001)); c,_=s.accept()
while b:=c.recv(1): c.sendall(b)'",
    );
    let mut idle = bed.start(&bed.client, "idle", quiet);
    until("the idle connection", || idle.so_far().stdout.contains("ready").then_some(()));
    let transfers = fetch(&bed, TRANSFERS);
    let before = running(&bed, TRANSFERS);
    gateway.signal("KILL");
    let _ = gateway.finish(Duration::from_secs(5));
    let (whole, reset) = ends(transfers);
    eprintln!("killed with {} exposed: {whole} whole, {reset} reset", before["exposure"]);
    assert_eq!(whole + reset, TRANSFERS);
    assert!(reset > 0, "none was exposed: {before}");
    let said = idle.finish(Duration::from_secs(10));
    assert!(said.code == 0 && said.stdout.contains("went on"), "exposure 0 goes on: {said:?}");
    // The guardian ends when it has nothing more to do.
    let report = until("the guardian's report", || {
        let said = bed.place.read("gateway.stderr");
        said.contains("the gateway left").then_some(said)
    });
    eprintln!("{report}");
    // Another gateway can start at once, and connections are accelerated as before.
    let gateway = bed.gateway(&config(&bed, ""));
    assert_eq!(ends(fetch(&bed, 5)), (5, 0));
    assert!(bed.stop(gateway)["flows"].as_u64().unwrap() >= 4);
}

/// As a router, and over IPv6.
#[test]
fn after_kill_9_of_a_router_no_transfer_hangs() {
    const TRANSFERS: u64 = 40;
    let Some(bed) = bed(3_000_000) else { return };
    bed.route();
    let _server = serve(&bed);
    for server in ["10.20.0.1", "fd20::1"] {
        let mut gateway = bed.gateway(&config(&bed, "mode = \"routed\"\n"));
        let transfers = fetch_from(&bed, server, TRANSFERS);
        let before = running(&bed, TRANSFERS);
        gateway.signal("KILL");
        let _ = gateway.finish(Duration::from_secs(5));
        let (whole, reset) = ends(transfers);
        eprintln!("{server}: killed with {} exposed: {whole} whole, {reset} reset", before["exposure"]);
        assert!(whole + reset == TRANSFERS && reset > 0, "{before}");
        // The kernel's routes carry what is new.
        assert_eq!(ends(fetch_from(&bed, server, 3)), (3, 0));
    }
}

#[test]
fn a_reload_under_load_touches_no_connection() {
    const TRANSFERS: u64 = 40;
    let Some(bed) = bed(3_000_000) else { return };
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, "[limits]\nmax_flows = 1000\n"));
    let transfers = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    // Everything that may change, most of it against the connections that run.
    let leave = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n";
    let less = "[limits]\nmax_flows = 1\nmax_openings = 1\n[accelerator]\nprofile = \"paper\"\n\
                flow_buffer = \"64 KiB\"\nexposure = \"32 KiB\"\novershoot = false\n";
    bed.place.write("box.toml", config(&bed, &format!("tick = \"1 ms\"\ndrain = \"9 s\"\n{leave}{less}")));
    let said = ask(&bed, &["reload"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    // What cannot change is refused by name, and nothing of it counts.
    bed.place.write("box.toml", config(&bed, "workers = 3\nmetrics = \"127.0.0.1:9464\"\n"));
    let said = ask(&bed, &["reload"]);
    assert!(said.code == 2 && said.stderr.contains("metrics, workers"), "{said:?}");
    bed.place.write("box.toml", config(&bed, "workers = 0\n"));
    gateway.signal("HUP");
    until("the refusal", || gateway.so_far().stderr.contains("stays as it was: ").then_some(()));
    assert_eq!(ends(transfers), (TRANSFERS, 0));
    // New connections are treated by what counts now.
    let before = status(&bed);
    assert_eq!(ends(fetch(&bed, 3)), (3, 0));
    let after = status(&bed);
    assert_eq!(count(&after, "flows"), count(&before, "flows"), "{after}");
    bed.place.write("box.toml", config(&bed, ""));
    gateway.signal("HUP");
    until("the reload", || gateway.so_far().stderr.contains("was read again").then_some(()));
    assert_eq!(ends(fetch(&bed, 3)), (3, 0));
    assert!(count(&status(&bed), "flows") > count(&after, "flows"));
    assert_eq!(bed.stop(gateway)["flows-reset"], 0);
}

/// `name{labels}` and value of every series.
fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(pair).collect()
}

#[test]
fn a_running_gateway_tells_what_it_does() {
    const TRANSFERS: u64 = 5;
    let Some(bed) = bed(20_000_000) else { return };
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, "metrics = \"127.0.0.1:9464\"\n"));
    let transfers = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    let get = |path: &str| {
        bed.shell(&bed.middle, &format!("curl -sS --max-time 5 http://127.0.0.1:9464{path}")).stdout
    };
    let scrape = get("/metrics");
    bed.place.write("scrape.txt", &scrape);
    // Prometheus' own tool, where it is installed, ends with an error for whatever it finds wrong.
    let checked =
        bed.shell(&bed.middle, "if command -v promtool; then promtool check metrics <scrape.txt 2>&1; fi");
    if checked.stdout.is_empty() {
        eprintln!("promtool is not installed: its check is skipped");
    }
    let metrics = series(&scrape);
    let value = |name: &str| *metrics.get(&format!("paceline_{name}")).unwrap_or_else(|| panic!("no {name}"));
    assert!(value("flows_active") >= 4.0 && value("exposure_bytes") > 0.0 && value("held_bytes") > 0.0);
    assert!(value("early_acks_total") > 0.0 && value("frame_bytes_from_servers_total") > 1e5);
    assert!(value("rtt_seconds_count") > 0.0 && value("rate_bytes_per_second_count") > 0.0);
    assert_eq!((value("guardian_up"), value("bypassed_total{reason=\"mptcp\"}")), (1.0, 0.0));
    assert!(metrics.keys().any(|name| name.starts_with("paceline_build_info{version=")));
    let devices: Value = serde_json::from_str(&get("/devices")).unwrap();
    assert_eq!(devices["devices"][0]["address"], "10.9.0.2", "{devices}");
    assert!(get("/other").contains("/metrics"));

    let said = ask(&bed, &["flows", "--json"]);
    let flows: Value = serde_json::from_str(&said.stdout).unwrap();
    let flow = &flows["flows"][0];
    assert!(flow["server"] == "10.9.0.1:9000" && flow["rtt_ms"].as_f64().unwrap() > 0.0, "{flow}");
    let name = flow["flow"].as_str().unwrap();
    let table = ask(&bed, &["flows"]);
    assert!(table.code == 0 && table.stdout.contains(name), "{table:?}");

    let said = ask(&bed, &["capture", name, "--out", "one.pcapng", "--packets", "800"]);
    assert!(said.code == 0 && said.stderr.contains("800 packets"), "{said:?}");
    let said = ask(&bed, &["capture", "10.9.0.1:1-10.9.0.2:2", "--out", "none.pcapng"]);
    assert!(said.code == 1 && said.stderr.contains("no such connection"), "{said:?}");
    let said = ask(&bed, &["capture", "nonsense", "--out", "none.pcapng"]);
    assert!(said.code == 2 && said.stderr.contains("SERVER:PORT-DEVICE:PORT"), "{said:?}");

    let top = bed.place.paceline(&["top", "--control", "ctl"]);
    assert!(top.code == 0 && top.stdout.contains("10.9.0.2") && top.stdout.contains(name), "{top:?}");
    let text = ask(&bed, &["status"]).stdout;
    assert!(text.contains("guardian stands by") && text.contains("srv to mob"), "{text}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
    gateway.so_far();
    bed.stop(gateway);
    check_capture(&bed, name);
}

/// The capture has the connection's packets on both sides, in and out, in the order of time.
fn check_capture(bed: &Bed, flow: &str) {
    if !has("tshark") {
        return skip("no tshark on this host");
    }
    let file = bed.place.join("one.pcapng");
    let fields =
        ["frame.interface_name", "frame.packet_flags_direction", "ip.src", "tcp.dstport", "frame.time_epoch"];
    let packets = tshark(file.to_str().unwrap(), "tcp", &fields);
    assert_eq!(packets.len(), 800);
    let port = flow.rsplit(':').next().unwrap();
    let of = |side: &str, from: &str| {
        packets
            .iter()
            .filter(|packet| packet[0] == side && packet[2] == from)
            .map(|packet| packet[1].as_str())
            .collect::<BTreeSet<_>>()
    };
    let inbound = of("server", SERVER);
    let outbound = of("mobile", SERVER);
    assert!(inbound.len() == 1 && outbound.len() == 1 && inbound != outbound, "{packets:?}");
    assert_eq!((of("mobile", "10.9.0.2"), of("server", "10.9.0.2")), (inbound, outbound));
    assert!(packets.iter().all(|packet| packet[3] == port || packet[3] == "9000"));
    let now: f64 = bed.shell(&bed.middle, "date +%s").stdout.trim().parse().unwrap();
    let at = |packet: &Vec<String>| packet[4].parse::<f64>().unwrap();
    assert!(packets.iter().all(|packet| (now - at(packet)).abs() < 120.0), "times are of today");
}

#[test]
fn four_capabilities_are_enough() {
    let Some(bed) = bed(2_000_000) else { return };
    if !have(&["setpriv"]) {
        return;
    }
    let _server = serve(&bed);
    // As nobody, with nothing else; the folder has to let it in.
    bed.shell(&bed.middle, "chmod 777 .");
    bed.place.write("box.toml", config(&bed, ""));
    let caps = "+net_admin,+net_raw,+bpf,+perfmon";
    let line = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,{caps} --ambient-caps -all,{caps} \
         --bounding-set -all,{caps} --no-new-privs {} gateway box.toml --json",
        common::PACELINE
    );
    let mut gateway = bed.start(&bed.middle, "gateway", &line);
    until("the gateway", || gateway.so_far().stderr.contains("accelerating").then_some(()));
    assert_eq!(ends(fetch(&bed, 3)), (3, 0));
    assert_eq!(status(&bed)["guarded"], true);
    let counters = bed.stop(gateway);
    assert!(counters["flows"].as_u64().unwrap() >= 2, "{counters}");
}

/// A SYN under the addresses and ports of every connection to port 9000, from whom it may be.
const SYNS: &str = "python3 -c 'import socket,struct,subprocess
s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_TCP)
own,server=[socket.inet_aton(a) for a in (\"10.9.0.2\",\"10.9.0.1\")]
said=subprocess.check_output([\"ss\",\"-Hnt\",\"dport\",\"=\",\":9000\"],text=True)
for line in said.splitlines():
    port=int(line.split()[3].rsplit(\":\",1)[1])
    head=lambda c: struct.pack(\">HHIIBBHHH\",port,9000,12345,0,5<<4,2,8192,c,0)
    total=sum(struct.unpack(\">16H\",own+server+struct.pack(\">HH\",6,20)+head(0)))
    total=(total&65535)+(total>>16); total=(total&65535)+(total>>16)
    s.sendto(head(65535-total),(\"10.9.0.1\",0))
print(len(said.splitlines()))'";

/// While no connection is taken in, a SYN goes past the workers; connections that they have stay theirs.
#[test]
fn a_syn_on_a_live_connection_does_not_take_it_away_during_a_stop() {
    const TRANSFERS: u64 = 20;
    let Some(bed) = bed(1_000_000) else { return };
    bed.shell(&bed.middle, &SLOW.replace("200mbit", "20mbit"));
    let _server = serve(&bed);
    let mut gateway = bed.gateway(&config(&bed, ""));
    let transfers = fetch(&bed, TRANSFERS);
    running(&bed, TRANSFERS);
    gateway.signal("TERM");
    until("the stop", || gateway.so_far().stderr.contains("stopping").then_some(()));
    // The pulse tells the kernel's part within some milliseconds.
    std::thread::sleep(Duration::from_millis(30));
    let before = status(&bed);
    let sent: u64 = bed.shell(&bed.client, SYNS).stdout.trim().parse().unwrap();
    assert!(before["flows"].as_u64() > Some(TRANSFERS / 2) && sent >= TRANSFERS / 2, "{sent}: {before}");
    let end = gateway.finish(Duration::from_secs(40));
    assert_eq!(end.code, 0, "{end:?}");
    let counters: Value = serde_json::from_str(&end.stdout).unwrap();
    assert!(counters["packets-left-by-overload"].as_u64() >= Some(sent), "{counters}");
    assert_eq!(counters["flows-reset"], 0, "{counters}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
}

#[test]
fn a_connection_that_begins_during_a_stop_is_the_kernels_from_its_handshake_on() {
    let Some(bed) = bed(10_000_000) else { return };
    let _server = bed.serve_files();
    let sink = "python3 -c 'import socket
c,_=socket.create_server((\"\",9000)).accept()
while c.recv(1<<20): pass
c.sendall(b\"all\")'";
    let _sink = bed.serve("sink", 9000, sink);
    let mut gateway = bed.gateway(&config(&bed, ""));
    // A client that hardly reads is owed something for long.
    let _owed = bed.start(&bed.client, "owed", "curl -s --limit-rate 20k -o owed http://10.9.0.1:8000/file");
    until("a debt", || (status(&bed)["exposure"].as_u64() > Some(100_000)).then_some(()));
    gateway.signal("TERM");
    until("the stop", || gateway.so_far().stderr.contains("stopping").then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    let before = status(&bed);
    let upload = "python3 -c 'import socket; c=socket.create_connection((\"10.9.0.1\",9000))
c.sendfile(open(\"file\",\"rb\")); c.shutdown(1); print(c.recv(3).decode())'";
    assert_eq!(bed.shell(&bed.client, upload).stdout, "all\n");
    bed.download("file", "http://10.9.0.1:8000");
    let after = status(&bed);
    let grown = |name: &str| count(&after, name) - count(&before, name);
    assert_eq!(grown("packets-left-by-overload"), 2, "{before} {after}");
    assert!(grown("packets-left-by-connection") > 100 && grown("packets-taken") < 50, "{before} {after}");
    gateway.signal("TERM");
    assert_eq!(gateway.finish(Duration::from_secs(5)).code, 0);
}
