//! Operation of the gateway: stop, reload, crash, status, metrics and captures.

use crate::common::namespace::{Program, have_programs, random_bytes, wait_for};
use crate::common::testbed::{HTTP, LONG_DRAIN, SERVER, Testbed, counter, wait_for_message};
use crate::common::{PACELINE, parse_json, tshark};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;

/// Makes the link to the client the bottleneck, so that transfers last and bytes wait in the gateway.
const SLOW_LINK: &str = "tc qdisc replace dev mob root tbf rate 200mbit burst 100kb limit 1mb";

fn with_slow_link(size: u64) -> Option<Testbed> {
    let testbed = Testbed::new(&["curl", "python3", "tc"])?;
    testbed.dir.write("file", random_bytes(size));
    testbed.shell(&testbed.middlebox, SLOW_LINK);
    Some(testbed)
}
fn count(status: &Value, name: &str) -> u64 {
    counter(&status["counters"], name)
}
pub fn serve(testbed: &Testbed) -> Program {
    testbed.dir.write("transfers.py", include_str!("../common/transfers.py"));
    testbed.serve("transfers", 9000, "python3 transfers.py serve 9000 file")
}
/// Starts many downloads at once. A download that receives nothing for 60 s counts as hanging.
fn fetch(testbed: &Testbed, transfers: u64) -> Program {
    fetch_from(testbed, SERVER, transfers)
}
pub fn fetch_from(testbed: &Testbed, server: &str, transfers: u64) -> Program {
    let line = format!("python3 transfers.py fetch {server} 9000 {transfers} file 60");
    testbed.start(&testbed.client, "fetch", &line)
}
/// Waits until most of the connections are accelerated and bytes are exposed; gives the status at that time.
pub fn wait_until_exposed(testbed: &Testbed, transfers: u64) -> Value {
    // Most: a SYN that was lost while the neighbour's address was resolved is sent again after a second.
    wait_for("the transfers to run", || {
        let now = testbed.status();
        let exposed = now["exposure"].as_u64() > Some(20_000);
        (now["flows"].as_u64() >= Some(transfers * 6 / 10) && exposed).then_some(now)
    })
}
/// Numbers of complete and of reset transfers. None may hang or differ from the file.
pub fn ends(mut fetch: Program) -> (u64, u64) {
    let output = fetch.finish();
    let ends: Value = parse_json(&output.stdout);
    assert_eq!((&ends["hanging"], &ends["wrong"]), (&0.into(), &0.into()), "{ends}");
    (ends["complete"].as_u64().unwrap(), ends["reset"].as_u64().unwrap())
}

#[test]
fn a_stop_lets_all_transfers_complete() {
    const TRANSFERS: u64 = 100;
    let Some(testbed) = with_slow_link(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(""));
    let fetch = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    let output = testbed.control(&["stop", "--limit", "120s"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert!(output.stdout.contains(" 0 were reset"), "{output:?}");
    let end = gateway.finish();
    assert_eq!(end.code, 0, "{end:?}");
    let counters: Value = parse_json(&end.stdout);
    assert_eq!(counters["flows-reset"], 0, "{counters}");
    // On a busy machine many have ended until the command runs.
    assert!(
        counters["flows-detached"].as_u64().unwrap() > 0,
        "the transfers were over before the stop: {counters}"
    );
    assert_eq!(ends(fetch), (TRANSFERS, 0));
    let output = testbed.control(&["status"]);
    assert!(output.code == 1 && output.stderr.contains("no gateway listens at ctl"), "{output:?}");
}

#[test]
fn sigterm_drains_and_a_second_signal_ends_at_once() {
    const TRANSFERS: u64 = 30;
    let Some(testbed) = with_slow_link(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(LONG_DRAIN));
    let transfers = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    gateway.signal("TERM");
    let end = gateway.finish();
    assert_eq!(end.code, 0, "{end:?}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));

    let mut gateway = testbed.gateway(&testbed.config(""));
    let transfers = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    gateway.signal("TERM");
    wait_for_message(&mut gateway, "stopping");
    gateway.signal("INT");
    let end = gateway.finish();
    assert!(end.code == 0 && end.stderr.contains("ending now"), "{end:?}");
    let (complete, reset) = ends(transfers);
    assert!(complete + reset == TRANSFERS && reset > 0, "{complete} complete, {reset} reset");
}

#[test]
fn after_kill_9_no_transfer_hangs() {
    const TRANSFERS: u64 = 100;
    let Some(testbed) = with_slow_link(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(""));
    let idle = "python3 -c 'import socket,sys,time
c=socket.create_connection((\"10.9.0.1\",9001)); c.sendall(b\"a\"); assert c.recv(1)==b\"a\"; print(\"ready\",flush=True)
time.sleep(6); c.sendall(b\"b\"); assert c.recv(1)==b\"b\"; print(\"went on\")'";
    let _echo = testbed.serve(
        "echo",
        9001,
        "python3 -c 'import socket
s=socket.create_server((\"\",9001)); c,_=s.accept()
while b:=c.recv(1): c.sendall(b)'",
    );
    let mut idle = testbed.start(&testbed.client, "idle", idle);
    wait_for("the idle connection", || idle.output_so_far().stdout.contains("ready").then_some(()));
    let transfers = fetch(&testbed, TRANSFERS);
    let before = wait_until_exposed(&testbed, TRANSFERS);
    gateway.signal("KILL");
    let _ = gateway.finish();
    let (complete, reset) = ends(transfers);
    eprintln!("killed with {} exposed: {complete} complete, {reset} reset", before["exposure"]);
    assert_eq!(complete + reset, TRANSFERS);
    assert!(reset > 0, "no connection was exposed: {before}");
    let output = idle.finish();
    assert!(
        output.code == 0 && output.stdout.contains("went on"),
        "an idle connection without exposure was reset: {output:?}"
    );
    // The guardian reports when it has handled all connections.
    let report = wait_for("the guardian's report", || {
        let output = testbed.dir.read("gateway.stderr");
        output.contains("the gateway left").then_some(output)
    });
    eprintln!("{report}");
    // Another gateway can start, and accelerates.
    let gateway = testbed.gateway(&testbed.config(""));
    assert_eq!(ends(fetch(&testbed, 5)), (5, 0));
    assert!(testbed.stop(gateway)["flows"].as_u64().unwrap() >= 4);
}

/// In routed mode, over IPv4 and IPv6.
#[test]
fn after_kill_9_of_a_router_no_transfer_hangs() {
    const TRANSFERS: u64 = 40;
    let Some(testbed) = with_slow_link(3_000_000) else { return };
    testbed.route();
    let _server = serve(&testbed);
    for server in ["10.20.0.1", "fd20::1"] {
        let mut gateway = testbed.gateway(&testbed.config("mode = \"routed\"\n"));
        let transfers = fetch_from(&testbed, server, TRANSFERS);
        let before = wait_until_exposed(&testbed, TRANSFERS);
        gateway.signal("KILL");
        let _ = gateway.finish();
        let (complete, reset) = ends(transfers);
        eprintln!("{server}: killed with {} exposed: {complete} complete, {reset} reset", before["exposure"]);
        assert!(complete + reset == TRANSFERS && reset > 0, "{before}");
        // The kernel routes new connections.
        assert_eq!(ends(fetch_from(&testbed, server, 3)), (3, 0));
    }
}

#[test]
fn a_reload_under_load_touches_no_connection() {
    const TRANSFERS: u64 = 40;
    let Some(testbed) = with_slow_link(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config("[limits]\nmax_flows = 1000\n"));
    let transfers = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    // All settings that may change, most of them with values that exclude the running connections.
    let leave = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n";
    let less = "[limits]\nmax_flows = 1\nmax_openings = 1\n[accelerator]\nprofile = \"paper\"\n\
                flow_buffer = \"64 KiB\"\nexposure = \"32 KiB\"\novershoot = false\n";
    testbed
        .dir
        .write("gateway.toml", testbed.config(&format!("tick = \"1 ms\"\ndrain = \"9 s\"\n{leave}{less}")));
    let output = testbed.control(&["reload"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    // A reload that changes other settings is refused with their names, and none of its settings applies.
    testbed.dir.write("gateway.toml", testbed.config("workers = 3\nmetrics = \"127.0.0.1:9464\"\n"));
    let output = testbed.control(&["reload"]);
    assert!(output.code == 2 && output.stderr.contains("metrics, workers"), "{output:?}");
    testbed.dir.write("gateway.toml", testbed.config("workers = 0\n"));
    gateway.signal("HUP");
    wait_for_message(&mut gateway, "stays as it was: ");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
    // The first reload's settings apply to new connections.
    let before = testbed.status();
    assert_eq!(ends(fetch(&testbed, 3)), (3, 0));
    let after = testbed.status();
    assert_eq!(count(&after, "flows"), count(&before, "flows"), "{after}");
    testbed.dir.write("gateway.toml", testbed.config(""));
    gateway.signal("HUP");
    wait_for_message(&mut gateway, "was read again");
    assert_eq!(ends(fetch(&testbed, 3)), (3, 0));
    assert!(count(&testbed.status(), "flows") > count(&after, "flows"));
    assert_eq!(testbed.stop(gateway)["flows-reset"], 0);
}

/// The series of a Prometheus text by `name{labels}`.
fn metric_series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(pair).collect()
}

#[test]
fn metrics_status_flows_and_captures_describe_a_running_gateway() {
    const TRANSFERS: u64 = 5;
    let Some(testbed) = with_slow_link(60_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config("metrics = \"127.0.0.1:9464\"\n"));
    let transfers = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    let get = |path: &str| {
        testbed
            .shell(&testbed.middlebox, &format!("curl -sS --max-time 5 http://127.0.0.1:9464{path}"))
            .stdout
    };
    let scrape = get("/metrics");
    testbed.dir.write("scrape.txt", &scrape);
    // promtool fails if it finds any fault in the text.
    if have_programs(&["promtool"]) {
        testbed.shell(&testbed.middlebox, "promtool check metrics <scrape.txt 2>&1");
    }
    let metrics = metric_series(&scrape);
    let value = |name: &str| *metrics.get(&format!("paceline_{name}")).unwrap_or_else(|| panic!("no {name}"));
    assert!(value("flows_active") >= 4.0 && value("exposure_bytes") > 0.0 && value("held_bytes") > 0.0);
    assert!(value("early_acks_total") > 0.0 && value("frame_bytes_from_servers_total") > 1e5);
    assert!(value("rtt_seconds_count") > 0.0 && value("rate_bytes_per_second_count") > 0.0);
    assert_eq!((value("guardian_up"), value("bypassed_total{reason=\"mptcp\"}")), (1.0, 0.0));
    assert!(metrics.keys().any(|name| name.starts_with("paceline_build_info{version=")));
    let devices: Value = parse_json(&get("/devices"));
    assert_eq!(devices["devices"][0]["address"], "10.9.0.2", "{devices}");
    assert!(get("/other").contains("/metrics"));

    let output = testbed.control(&["flows", "--json"]);
    let flows: Value = parse_json(&output.stdout);
    let flow = &flows["flows"][0];
    assert!(flow["server"] == "10.9.0.1:9000" && flow["rtt_ms"].as_f64().unwrap() > 0.0, "{flow}");
    // Rates are measured: those of the connections are together what the link carries, 200 Mb/s.
    let rates: Vec<u64> =
        flows["flows"].as_array().unwrap().iter().map(|flow| flow["rate"].as_u64().unwrap()).collect();
    let sum: u64 = rates.iter().sum();
    assert!((1_000_000..300_000_000).contains(&sum) && flow["allowed"].as_u64() > Some(0), "{rates:?}");
    let name = flow["flow"].as_str().unwrap();
    let table = testbed.control(&["flows"]);
    assert!(table.code == 0 && table.stdout.contains(name), "{table:?}");

    let output = testbed.control(&[
        "capture",
        name,
        "--out",
        "one.pcapng",
        "--packets",
        "800",
        "--events",
        "one.jsonl",
    ]);
    assert!(output.code == 0 && output.stderr.contains("800 packets"), "{output:?}");
    let events = testbed.dir.read("one.jsonl");
    let mut events = events.lines().map(parse_json);
    let header = events.next().expect("a header");
    assert!(header["mode"] == "gateway" && header["device"] == "10.9.0.2", "{header}");
    let metrics: Vec<Value> = events
        .filter(|event| event["name"] == "accelerator:metrics_updated" && event["flow"] == name)
        .collect();
    assert!(metrics.iter().any(|event| event["data"]["exposure"].as_u64() > Some(0)), "{metrics:?}");
    let output = testbed.control(&["capture", "10.9.0.1:1-10.9.0.2:2", "--out", "none.pcapng"]);
    assert!(output.code == 1 && output.stderr.contains("no such connection"), "{output:?}");
    let output = testbed.control(&["capture", "nonsense", "--out", "none.pcapng"]);
    assert!(output.code == 2 && output.stderr.contains("SERVER:PORT-DEVICE:PORT"), "{output:?}");

    let top = testbed.dir.paceline(&["top", "--control", "ctl"]);
    assert!(top.code == 0 && top.stdout.contains("10.9.0.2") && top.stdout.contains(name), "{top:?}");
    let text = testbed.control(&["status"]).stdout;
    assert!(text.contains("guardian is running") && text.contains("srv to mob"), "{text}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
    gateway.output_so_far();
    testbed.stop(gateway);
    check_capture(&testbed, name);
}

/// The capture has the connection's packets on both interfaces in both directions.
fn check_capture(testbed: &Testbed, flow: &str) {
    if !have_programs(&["tshark"]) {
        return;
    }
    let file = testbed.dir.join("one.pcapng");
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
    let now: f64 = testbed.shell(&testbed.middlebox, "date +%s").stdout.trim().parse().unwrap();
    let at = |packet: &Vec<String>| packet[4].parse::<f64>().unwrap();
    assert!(
        packets.iter().all(|packet| (now - at(packet)).abs() < 3600.0),
        "times are not those of the wall clock"
    );
}

#[test]
fn four_capabilities_are_enough_for_gateway_and_guardian() {
    let Some(testbed) = with_slow_link(2_000_000) else { return };
    if !have_programs(&["setpriv"]) {
        return;
    }
    let _server = serve(&testbed);
    // The gateway runs as the user nobody. That user has to be able to enter the folder.
    testbed.shell(&testbed.middlebox, "chmod 777 .");
    testbed.dir.write("gateway.toml", testbed.config(""));
    let caps = "+net_admin,+net_raw,+bpf,+perfmon";
    let line = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,{caps} --ambient-caps -all,{caps} \
         --bounding-set -all,{caps} --no-new-privs {} gateway gateway.toml --json",
        PACELINE
    );
    let gateway = testbed.start_gateway(&line);
    assert_eq!(ends(fetch(&testbed, 3)), (3, 0));
    assert_eq!(testbed.status()["guarded"], true);
    let counters = testbed.stop(gateway);
    assert!(counters["flows"].as_u64().unwrap() >= 2, "{counters}");
}

/// Sends a SYN with the addresses and ports of every open connection to port 9000, and prints the number of
/// SYNs.
const SYNS: &str = "python3 -c 'import socket,struct,subprocess
s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_TCP)
own,server=[socket.inet_aton(a) for a in (\"10.9.0.2\",\"10.9.0.1\")]
listed=subprocess.check_output([\"ss\",\"-Hnt\",\"dport\",\"=\",\":9000\"],text=True)
for line in listed.splitlines():
    port=int(line.split()[3].rsplit(\":\",1)[1])
    head=lambda c: struct.pack(\">HHIIBBHHH\",port,9000,12345,0,5<<4,2,8192,c,0)
    total=sum(struct.unpack(\">16H\",own+server+struct.pack(\">HH\",6,20)+head(0)))
    total=(total&65535)+(total>>16); total=(total&65535)+(total>>16)
    s.sendto(head(65535-total),(\"10.9.0.1\",0))
print(len(listed.splitlines()))'";

/// While the gateway stops, SYNs bypass the workers. A SYN with the addresses of an accelerated connection
/// must not make the kernel forward that connection past its worker.
#[test]
fn a_syn_during_a_stop_does_not_detach_a_live_connection() {
    const TRANSFERS: u64 = 20;
    let Some(testbed) = with_slow_link(1_000_000) else { return };
    testbed.shell(&testbed.middlebox, &SLOW_LINK.replace("200mbit", "20mbit"));
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(LONG_DRAIN));
    let transfers = fetch(&testbed, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    gateway.signal("TERM");
    wait_for_message(&mut gateway, "stopping");
    // The worker's next pulse, every 5 ms, tells the kernel program that no connection is taken in.
    sleep(Duration::from_millis(500));
    let before = testbed.status();
    let sent: u64 = testbed.shell(&testbed.client, SYNS).stdout.trim().parse().unwrap();
    assert!(before["flows"].as_u64() > Some(TRANSFERS / 2) && sent >= TRANSFERS / 2, "{sent}: {before}");
    let end = gateway.finish();
    assert_eq!(end.code, 0, "{end:?}");
    let counters: Value = parse_json(&end.stdout);
    assert!(counters["packets-left-by-overload"].as_u64() >= Some(sent), "{counters}");
    assert_eq!(counters["flows-reset"], 0, "{counters}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
}

#[test]
fn the_kernel_forwards_connections_that_begin_during_a_stop() {
    let Some(testbed) = with_slow_link(10_000_000) else { return };
    let _server = testbed.serve_files();
    let upload_server = "python3 -c 'import socket
c,_=socket.create_server((\"\",9000)).accept()
while c.recv(1<<20): pass
c.sendall(b\"all\")'";
    let _upload_server = testbed.serve("upload-server", 9000, upload_server);
    let mut gateway = testbed.gateway(&testbed.config(""));
    // The stop takes as long as data are exposed.
    let _exposed = testbed.exposed_download();
    gateway.signal("TERM");
    wait_for_message(&mut gateway, "stopping");
    sleep(Duration::from_millis(500));
    let before = testbed.status();
    let upload = "python3 -c 'import socket; c=socket.create_connection((\"10.9.0.1\",9000))
c.sendfile(open(\"file\",\"rb\")); c.shutdown(1); print(c.recv(3).decode())'";
    assert_eq!(testbed.shell(&testbed.client, upload).stdout, "all\n");
    testbed.download("file", HTTP);
    let after = testbed.status();
    let grown = |name: &str| count(&after, name) - count(&before, name);
    assert_eq!(grown("packets-left-by-overload"), 2, "{before} {after}");
    assert!(grown("packets-left-by-connection") > 100 && grown("packets-taken") < 50, "{before} {after}");
    gateway.signal("TERM");
    assert_eq!(gateway.finish().code, 0);
}
