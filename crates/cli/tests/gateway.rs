//! The live gateway between namespaces, with programs that we did not write. Needs root; says so and does nothing
//! otherwise, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::PACELINE;
use common::bed::{Bed, PLAIN, SERVER, SERVER6};
use common::outer::{random_bytes, until};
use serde_json::Value;

const HTTP: &str = "http://10.9.0.1:8000";
const HTTP6: &str = "http://[fd09::1]:8000";

fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {counters}"))
}

/// Packets that this machine has dropped since a processor's queue of received ones was full, of all namespaces.
fn dropped_between_devices() -> u64 {
    let all = std::fs::read_to_string("/proc/net/softnet_stat").expect("it can be read");
    let column =
        |line: &str| line.split_whitespace().nth(1).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    all.lines().filter_map(column).sum()
}

#[test]
fn downloads_are_accelerated_and_byte_exact_over_ipv4_and_ipv6() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(20_000_000));
    let _server = bed.serve_files();
    let gateway = bed.gateway(PLAIN);
    bed.download("file", HTTP);
    bed.download("file", HTTP6);
    bed.upload(SERVER);
    bed.upload(SERVER6);
    let counters = bed.stop(gateway);
    assert!(count(&counters, "flows") >= 2, "{counters}");
    assert!(count(&counters, "early-acks") > 10, "{counters}");
    assert!(count(&counters, "bytes-delivered") >= 40_000_000, "{counters}");
    // The bridge is left, and forwards by itself.
    bed.download("file", HTTP);
}

/// Twice on one connection: a file up, the same file down; then up once more, and both ends close. The server lets its
/// window run full at times, which the client then probes.
const MIRROR: &str = "python3 -c 'import socket,sys,time
def take(s, size):
    parts=[]
    while size:
        part=s.recv(min(size,1<<20)); assert part; parts.append(part); size-=len(part)
    return b\"\".join(parts)
size=20_000_000
if sys.argv[1]==\"serve\":
    s=socket.create_server((\"::\",9000),family=socket.AF_INET6,dualstack_ipv6=True)
    for _ in range(2):
        c,_=s.accept()
        for _ in range(2): time.sleep(.5); c.sendall(take(c,size))
        time.sleep(.5); take(c,size); assert c.recv(1)==b\"\"; c.close()
else:
    s=socket.create_connection((sys.argv[1],9000)); sent=open(\"file\",\"rb\").read()
    for _ in range(2):
        s.sendall(sent); assert take(s,size)==sent
    s.sendall(sent); s.shutdown(1); assert s.recv(1)==b\"\"; print(\"whole\")' ";

#[test]
fn the_kernel_has_uploads_and_what_comes_back_on_the_same_connection_is_accelerated() {
    let Some(bed) = Bed::new(&["python3"]) else { return };
    bed.place.write("file", random_bytes(20_000_000));
    let mut server = bed.serve("mirror", 9000, &format!("{MIRROR} serve"));
    let dropped = dropped_between_devices();
    let gateway = bed.gateway(PLAIN);
    for address in [SERVER, SERVER6] {
        assert_eq!(bed.shell(&bed.client, &format!("{MIRROR} {address}")).stdout, "whole\n");
    }
    assert_eq!(server.finish(std::time::Duration::from_secs(10)).code, 0);
    let counters = bed.stop(gateway);
    let dropped = dropped_between_devices() - dropped;
    if dropped > 0 && count(&counters, "flows-detached") > 0 {
        // What ends a rest may be among them, and then the connection goes on end to end.
        return eprintln!("not judged: this machine dropped {dropped} packets between its devices meanwhile");
    }
    assert!(count(&counters, "uploads-left-alone") >= 6, "{counters}");
    assert!(count(&counters, "packets-sent-across") > 100, "{counters}");
    assert!(count(&counters, "frame-bytes-from-devices") < 60_000_000, "half of it and more: {counters}");
    assert_eq!((count(&counters, "flows"), count(&counters, "flows-detached")), (2, 0), "{counters}");
    assert_eq!(count(&counters, "flows-ended"), 2, "{counters}");
    assert_eq!(count(&counters, "bytes-delivered"), 80_000_000, "{counters}");
    assert!(count(&counters, "early-acks") > 10, "{counters}");
}

#[test]
fn the_mobile_side_is_learned_from_who_opens_connections() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(2_000_000));
    let _server = bed.serve_files();
    // The wrong way round.
    bed.place.write("box.toml", "sides = \"learned\"\nserver = \"mob\"\nmobile = \"srv\"\n");
    let start = || {
        let mut gateway = bed.start(&bed.middle, "gateway", &format!("{PACELINE} gateway box.toml --json"));
        until("a look", || gateway.so_far().stderr.contains("looking whether").then_some(()));
        gateway
    };
    let mut idle = start();
    idle.signal("TERM");
    assert_eq!(idle.finish(std::time::Duration::from_secs(5)).code, 0);
    let mut gateway = start();
    // The bridge may take a moment to be there, and those that look a moment more.
    let fetch = format!("curl -sS --retry 5 --retry-all-errors --max-time 10 -o first {HTTP}/file");
    until("accelerating", || {
        bed.shell(&bed.client, &fetch);
        gateway.so_far().stderr.contains("accelerating from srv to mob").then_some(())
    });
    bed.download("file", HTTP);
    bed.download("file", HTTP6);
    gateway.signal("HUP");
    until("a reload", || gateway.so_far().stderr.contains("was read again").then_some(()));
    let counters = bed.stop(gateway);
    assert!(count(&counters, "flows") >= 2 && count(&counters, "early-acks") > 0, "{counters}");
}

#[test]
fn without_offloads_packets_are_single_and_the_same() {
    let Some(bed) = Bed::new(&["curl", "python3", "ethtool"]) else { return };
    for (place, device) in
        [(&bed.client, "cli0"), (&bed.server, "srv0"), (&bed.middle, "mob"), (&bed.middle, "srv")]
    {
        bed.shell(place, &format!("ethtool -K {device} tso off gso off gro off tx off rx off"));
    }
    bed.place.write("file", random_bytes(10_000_000));
    let _server = bed.serve_files();
    let gateway = bed.gateway(PLAIN);
    bed.download("file", HTTP);
    bed.download("file", HTTP6);
    bed.upload(SERVER);
    let counters = bed.stop(gateway);
    assert!(count(&counters, "early-acks") > 10 && count(&counters, "corrupt") == 0, "{counters}");
}

#[test]
fn a_killed_gateway_is_bypassed_at_once() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(5_000_000));
    let _server = bed.serve_files();
    let mut gateway = bed.gateway(PLAIN);
    bed.download("file", HTTP);
    gateway.signal("KILL");
    let _ = gateway.finish(std::time::Duration::from_secs(5));
    let said =
        bed.shell(&bed.client, &format!("curl -s --max-time 2 -o got -w '%{{time_total}}' {HTTP}/file"));
    assert!(said.stdout.parse::<f64>().unwrap() < 1.0, "{said:?}");
    bed.assert_same("file", "got");
}

#[test]
fn a_prefix_that_is_left_alone_is_not_touched() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(5_000_000));
    let _server = bed.serve_files();
    let policy = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n";
    let gateway = bed.gateway(&format!("{PLAIN}{policy}"));
    bed.download("file", HTTP);
    let counters = bed.stop(gateway);
    assert_eq!((count(&counters, "packets-taken"), count(&counters, "flows")), (0, 0), "{counters}");
    assert!(count(&counters, "packets-left-by-policy") > 10, "{counters}");
}

/// Hosts in VLAN 7, and in VLAN 9 within VLAN 5.
#[test]
fn vlan_tags_come_out_as_they_went_in() {
    let Some(bed) = Bed::new(&["curl", "python3", "ethtool"]) else { return };
    bed.place.write("tagger.py", include_str!("common/tagger.py"));
    bed.place.write("file", random_bytes(2_000_000));
    // What the taggers read is to be single packets with their checksums.
    for port in ["mob", "srv"] {
        bed.shell(&bed.middle, &format!("ethtool -K {port} tso off gso off tx off"));
    }
    let mut taggers = Vec::new();
    for (place, device, host) in [(&bed.client, "cli0", 2), (&bed.server, "srv0", 1)] {
        for (network, tags) in [(7, "7"), (8, "5 9")] {
            let line = format!("python3 tagger.py {device} 10.{network}.0.{host}/24 {tags}");
            let mut tagger = bed.start(place, &format!("tagger{network}{host}"), &line);
            until("a tagger", || tagger.so_far().stdout.contains("ready").then_some(()));
            taggers.push(tagger);
        }
    }
    let _server = bed.serve_files();
    let gateway = bed.gateway(PLAIN);
    for url in ["http://10.7.0.1:8000", "http://10.8.0.1:8000", "http://10.7.0.1:8000"] {
        bed.download("file", url);
    }
    for host in ["10.7.0.1", "10.8.0.1"] {
        bed.upload(host);
    }
    let counters = bed.stop(gateway);
    assert!(count(&counters, "packets-sent-across") > 1000, "{counters}");
    assert!(count(&counters, "flows") >= 3 && count(&counters, "early-acks") > 10, "{counters}");
    assert_eq!(count(&counters, "ambiguous-networks"), 0, "{counters}");
}

#[test]
fn a_gateway_that_hangs_is_bypassed_and_comes_back() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(5_000_000));
    let _server = bed.serve_files();
    let gateway = bed.gateway(PLAIN);
    bed.download("file", HTTP);
    gateway.signal("STOP");
    let said = bed.shell(&bed.client, &format!("curl -s --max-time 5 -o got {HTTP}/file"));
    assert_eq!(said.stderr, "");
    bed.assert_same("file", "got");
    gateway.signal("CONT");
    // The pulse is back at once, and new connections are accelerated again.
    std::thread::sleep(std::time::Duration::from_millis(100));
    bed.download("file", HTTP);
    let counters = bed.stop(gateway);
    assert_eq!(count(&counters, "flows"), 2, "{counters}");
    assert!(count(&counters, "packets-left-without-pulse") > 10, "{counters}");
}

#[test]
fn several_workers_share_devices_and_ends_are_told_apart() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(1_000_000));
    let _server = bed.serve_files();
    let gateway = bed.gateway(&format!("workers = 4\n{PLAIN}"));
    for host in 10..26 {
        bed.shell(&bed.client, &format!("ip addr add 10.9.0.{host}/24 dev cli0"));
        let said = bed.shell(
            &bed.client,
            &format!("curl -sS --max-time 10 --interface 10.9.0.{host} -o got {HTTP}/file"),
        );
        assert_eq!(said.stderr, "");
        bed.assert_same("file", "got");
    }
    let counters = bed.stop(gateway);
    assert_eq!((count(&counters, "flows"), count(&counters, "flows-ended")), (16, 16), "{counters}");
    let bypassed: u64 = counters
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("bypassed"))
        .map(|(_, value)| value.as_u64().unwrap())
        .sum();
    assert_eq!(bypassed, 0, "both directions of a connection are in one worker: {counters}");
}

#[test]
fn an_interface_that_goes_ends_the_gateway_with_an_error() {
    let Some(bed) = Bed::new(&[]) else { return };
    let mut gateway = bed.gateway(PLAIN);
    bed.shell(&bed.middle, "ip link set srv down; sleep 0.3; ip link set srv up");
    assert!(gateway.so_far().stderr.contains("accelerating"), "one that is shut may be opened again");
    bed.shell(&bed.middle, "ip link del mob");
    let said = gateway.finish(std::time::Duration::from_secs(5));
    assert!(said.code == 1 && said.stderr.contains("an interface is gone"), "{said:?}");
}

#[test]
fn iperf3_runs_both_ways_at_once() {
    let Some(bed) = Bed::new(&["iperf3"]) else { return };
    let _server = bed.serve("iperf3", 5201, "iperf3 -s");
    let gateway = bed.gateway(PLAIN);
    for direction in ["-R", "", "--bidir", "-R -P 8"] {
        let said = bed.shell(&bed.client, &format!("iperf3 -c {SERVER} -t 3 -J {direction}"));
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        let rate = |end: &str| json["end"][end]["bits_per_second"].as_f64();
        // Far below what an idle machine does; it is to run, not to race.
        assert!(rate("sum_received").unwrap() > 50e6, "{direction}: {json}");
        assert!(rate("sum_received_bidir_reverse").is_none_or(|rate| rate > 50e6), "{direction}: {json}");
    }
    let counters = bed.stop(gateway);
    assert!(count(&counters, "early-acks") > 100 && count(&counters, "flows-reset") == 0, "{counters}");
}

#[test]
fn a_router_accelerates_what_it_forwards_and_keeps_what_is_its_own() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.route();
    bed.place.write("file", random_bytes(10_000_000));
    let _server = bed.serve_files();
    let own = bed.start(&bed.middle, "own", "python3 -m http.server --bind :: 8001");
    let gateway = bed.gateway(&format!("mode = \"routed\"\n{PLAIN}"));
    bed.download("file", "http://10.20.0.1:8000");
    bed.download("file", "http://[fd20::1]:8000");
    bed.upload("10.20.0.1");
    // The box's own server is not the gateway's business.
    bed.download("file", "http://10.9.0.254:8001");
    bed.download("file", "http://[fd20::fe]:8001");
    let counters = bed.stop(gateway);
    assert!(count(&counters, "flows") >= 2 && count(&counters, "early-acks") > 10, "{counters}");
    assert!(count(&counters, "flows") <= 3, "what is its own is not accelerated: {counters}");
    let links = bed.shell(&bed.middle, "ip -br link").stdout;
    assert!(!links.contains("paceline0"), "{links}");
    bed.download("file", "http://10.20.0.1:8000");
    drop(own);
}

/// The four capabilities alone, under another user, between interfaces that are in a bridge already.
#[test]
fn four_capabilities_are_enough() {
    let Some(bed) = Bed::new(&["curl", "python3", "setpriv"]) else { return };
    bed.shell(
        &bed.middle,
        "ip link add br0 type bridge; ip link set mob master br0; ip link set srv master br0; ip link set br0 up",
    );
    bed.place.write("file", random_bytes(5_000_000));
    bed.place.write("box.toml", PLAIN);
    bed.shell(&bed.middle, "chmod 755 . && chmod 644 box.toml");
    let _server = bed.serve_files();
    let caps = "net_admin,net_raw,bpf,perfmon";
    let changed = caps.replace(',', ",+");
    let line = |caps: &str| {
        format!(
            "setpriv --reuid 65534 --clear-groups --bounding-set -all,+{caps} --inh-caps -all,+{caps} \
             --ambient-caps -all,+{caps} {} gateway box.toml --json",
            common::PACELINE
        )
    };
    let few = bed.try_shell(&bed.middle, &line("net_admin,+net_raw,+perfmon"));
    assert!(few.code == 1 && few.stderr.contains("needs CAP_BPF"), "{few:?}");
    let mut gateway = bed.start(&bed.middle, "gateway", &line(&changed));
    until("the gateway", || gateway.so_far().stderr.contains("accelerating").then_some(()));
    bed.download("file", HTTP);
    let counters = bed.stop(gateway);
    assert_eq!(count(&counters, "flows"), 1, "{counters}");
}

#[test]
fn transfers_survive_hangs_in_their_middle() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(60_000_000));
    // The line is what is slow: clients that read slowly may leave nothing to be said during a hang.
    bed.shell(&bed.middle, "tc qdisc replace dev mob root tbf rate 500mbit burst 100kb limit 4mb");
    let _server = bed.serve_files();
    let gateway = bed.gateway(PLAIN);
    let download = |n: u32| {
        let line = format!("curl -sS --max-time 40 -o got{n} {HTTP}/file");
        bed.start(&bed.client, &format!("curl{n}"), &line)
    };
    let mut downloads: Vec<_> = (0..4).map(download).collect();
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(700));
        gateway.signal("STOP");
        // Servers repeat something after 200 ms, and more after 400 more.
        std::thread::sleep(std::time::Duration::from_millis(500));
        gateway.signal("CONT");
    }
    for (n, download) in downloads.iter_mut().enumerate() {
        let said = download.finish(std::time::Duration::from_secs(30));
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
        bed.assert_same("file", &format!("got{n}"));
    }
    let counters = bed.stop(gateway);
    assert!(count(&counters, "absences") >= 3 && count(&counters, "flows-reset") == 0, "{counters}");
    assert!(count(&counters, "packets-left-without-pulse") > 10, "{counters}");
}
