//! Transfers through the gateway: accelerated, byte-exact, and forwarded by the kernel when the gateway dies
//! or hangs.

use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::{HTTP, HTTP6, INTERFACES, SERVER, SERVER6, Testbed, counter, wait_for_message};
use crate::common::{PACELINE, parse_json};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

/// Packets that the kernel has dropped because a processor's backlog queue was full, in all namespaces
/// (second column of `/proc/net/softnet_stat`).
fn backlog_drops() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").expect("it can be read");
    let column =
        |line: &str| line.split_whitespace().nth(1).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    text.lines().filter_map(column).sum()
}

#[test]
fn downloads_are_accelerated_and_byte_exact_over_ipv4_and_ipv6() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(20_000_000));
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(INTERFACES);
    testbed.download("file", HTTP);
    testbed.download("file", HTTP6);
    testbed.upload(SERVER);
    testbed.upload(SERVER6);
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "flows") >= 2, "{counters}");
    assert!(counter(&counters, "early-acks") > 10, "{counters}");
    assert!(counter(&counters, "bytes-delivered") >= 40_000_000, "{counters}");
    // The bridge stays when the gateway has ended, and the kernel forwards.
    testbed.download("file", HTTP);
}

/// Client and server that do this twice on one connection: upload a file, download the same file. Then the
/// file is uploaded once more, and both ends close. The server pauses before it reads, so that its receive
/// window closes and the client sends window probes.
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
    s.sendall(sent); s.shutdown(1); assert s.recv(1)==b\"\"; print(\"complete\")' ";

#[test]
fn the_kernel_forwards_uploads_and_downloads_on_the_same_connection_are_accelerated() {
    let Some(testbed) = Testbed::new(&["python3"]) else { return };
    testbed.dir.write("file", random_bytes(20_000_000));
    let mut server = testbed.serve("mirror", 9000, &format!("{MIRROR} serve"));
    let drops_before = backlog_drops();
    let gateway = testbed.gateway(INTERFACES);
    for address in [SERVER, SERVER6] {
        assert_eq!(testbed.shell(&testbed.client, &format!("{MIRROR} {address}")).stdout, "complete\n");
    }
    assert_eq!(server.finish().code, 0);
    let counters = testbed.stop(gateway);
    let drops = backlog_drops() - drops_before;
    if drops > 0 && counter(&counters, "flows-detached") > 0 {
        // If the server's first data after an upload are lost, the connection is detached: it goes on end to
        // end.
        return eprintln!("not judged: the kernel dropped {drops} packets in its backlog queues meanwhile");
    }
    assert!(counter(&counters, "uploads-left-alone") >= 6, "{counters}");
    assert!(counter(&counters, "packets-sent-across") > 100, "{counters}");
    assert!(
        counter(&counters, "frame-bytes-from-devices") < 60_000_000,
        "the gateway saw more than half of the uploads: {counters}"
    );
    assert_eq!((counter(&counters, "flows"), counter(&counters, "flows-detached")), (2, 0), "{counters}");
    assert_eq!(counter(&counters, "flows-ended"), 2, "{counters}");
    assert_eq!(counter(&counters, "bytes-delivered"), 80_000_000, "{counters}");
    assert!(counter(&counters, "early-acks") > 10, "{counters}");
}

#[test]
fn the_mobile_side_is_learned_from_the_direction_of_connections() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(2_000_000));
    let _server = testbed.serve_files();
    // The two interfaces in the wrong order.
    testbed.dir.write("gateway.toml", "sides = \"learned\"\nserver = \"mob\"\nmobile = \"srv\"\n");
    let start = || {
        let line = format!("{PACELINE} gateway gateway.toml --json");
        let mut gateway = testbed.start(&testbed.middlebox, "gateway", &line);
        wait_for_message(&mut gateway, "looking whether");
        gateway
    };
    let mut idle = start();
    idle.signal("TERM");
    assert_eq!(idle.finish().code, 0);
    let mut gateway = start();
    // The first attempts may come before the bridge and the observing sockets are ready.
    let fetch = format!("curl -sS --retry 5 --retry-all-errors --max-time 10 -o first {HTTP}/file");
    wait_for("accelerating", || {
        testbed.shell(&testbed.client, &fetch);
        gateway.output_so_far().stderr.contains("accelerating from srv to mob").then_some(())
    });
    testbed.download("file", HTTP);
    testbed.download("file", HTTP6);
    gateway.signal("HUP");
    wait_for_message(&mut gateway, "was read again");
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "flows") >= 2 && counter(&counters, "early-acks") > 0, "{counters}");
}

#[test]
fn without_offloads_transfers_are_byte_exact() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    for (namespace, device) in [
        (&testbed.client, "cli0"),
        (&testbed.server, "srv0"),
        (&testbed.middlebox, "mob"),
        (&testbed.middlebox, "srv"),
    ] {
        testbed.shell(namespace, &format!("ethtool -K {device} tso off gso off gro off tx off rx off"));
    }
    testbed.dir.write("file", random_bytes(10_000_000));
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(INTERFACES);
    testbed.download("file", HTTP);
    testbed.download("file", HTTP6);
    testbed.upload(SERVER);
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "early-acks") > 10 && counter(&counters, "corrupt") == 0, "{counters}");
}

#[test]
fn packets_bypass_a_killed_gateway_without_loss() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(5_000_000));
    let _server = testbed.serve_files();
    let mut gateway = testbed.gateway(INTERFACES);
    testbed.download("file", HTTP);
    gateway.signal("KILL");
    let _ = gateway.finish();
    let repeated_syns = || testbed.kernel_tcp_counter(&testbed.client, "TCPSynRetrans");
    let before = repeated_syns();
    testbed.download("file", HTTP);
    assert_eq!(repeated_syns(), before, "the first SYN was lost");
}

#[test]
fn the_policy_leave_keeps_a_prefix_away_from_the_gateway() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(5_000_000));
    let _server = testbed.serve_files();
    let policy = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"leave\"\n";
    let gateway = testbed.gateway(&format!("{INTERFACES}{policy}"));
    testbed.download("file", HTTP);
    let counters = testbed.stop(gateway);
    assert_eq!((counter(&counters, "packets-taken"), counter(&counters, "flows")), (0, 0), "{counters}");
    assert!(counter(&counters, "packets-left-by-policy") > 10, "{counters}");
}

/// Hosts in VLAN 7, and in VLAN 9 inside VLAN 5.
#[test]
fn vlan_tags_are_kept() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    testbed.dir.write("tagger.py", include_str!("../common/tagger.py"));
    testbed.dir.write("file", random_bytes(2_000_000));
    // The taggers read frames of one packet with finished checksums.
    for port in ["mob", "srv"] {
        testbed.shell(&testbed.middlebox, &format!("ethtool -K {port} tso off gso off tx off"));
    }
    let mut taggers = Vec::new();
    for (namespace, device, host) in [(&testbed.client, "cli0", 2), (&testbed.server, "srv0", 1)] {
        for (network, tags) in [(7, "7"), (8, "5 9")] {
            let line = format!("python3 tagger.py {device} 10.{network}.0.{host}/24 {tags}");
            let mut tagger = testbed.start(namespace, &format!("tagger{network}{host}"), &line);
            wait_for("a tagger", || tagger.output_so_far().stdout.contains("ready").then_some(()));
            taggers.push(tagger);
        }
    }
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(INTERFACES);
    for url in ["http://10.7.0.1:8000", "http://10.8.0.1:8000", "http://10.7.0.1:8000"] {
        testbed.download("file", url);
    }
    for host in ["10.7.0.1", "10.8.0.1"] {
        testbed.upload(host);
    }
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "packets-sent-across") > 1000, "{counters}");
    assert!(counter(&counters, "flows") >= 3 && counter(&counters, "early-acks") > 10, "{counters}");
    assert_eq!(counter(&counters, "ambiguous-networks"), 0, "{counters}");
}

#[test]
fn packets_bypass_a_hanging_gateway_until_it_goes_on() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(5_000_000));
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&testbed.config(""));
    testbed.download("file", HTTP);
    gateway.signal("STOP");
    testbed.download("file", HTTP);
    gateway.signal("CONT");
    // The workers' first pulse ends the bypass; new connections are accelerated again.
    wait_for("an accelerated connection", || testbed.accelerates("file", HTTP).then_some(()));
    let counters = testbed.stop(gateway);
    assert_eq!(counter(&counters, "flows"), 2, "{counters}");
    assert!(counter(&counters, "packets-left-without-pulse") > 10, "{counters}");
}

#[test]
fn both_directions_of_a_connection_reach_the_same_worker() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(1_000_000));
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&format!("workers = 4\n{INTERFACES}"));
    for host in 10..26 {
        testbed.shell(&testbed.client, &format!("ip addr add 10.9.0.{host}/24 dev cli0"));
        testbed.download_from(Some(&format!("10.9.0.{host}")), "file", HTTP);
    }
    let counters = testbed.stop(gateway);
    assert_eq!((counter(&counters, "flows"), counter(&counters, "flows-ended")), (16, 16), "{counters}");
    let bypassed: u64 = counters
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("bypassed"))
        .map(|(_, value)| value.as_u64().unwrap())
        .sum();
    assert_eq!(bypassed, 0, "a worker saw one direction of a connection only: {counters}");
}

#[test]
fn iperf3_transfers_down_up_and_both_ways_at_once() {
    let Some(testbed) = Testbed::new(&["iperf3"]) else { return };
    let _server = testbed.serve("iperf3", 5201, "iperf3 -s");
    let gateway = testbed.gateway(INTERFACES);
    for direction in ["-R", "", "--bidir", "-R -P 8"] {
        let output = testbed.shell(&testbed.client, &format!("iperf3 -c {SERVER} -n 100M -J {direction}"));
        let json: Value = parse_json(&output.stdout);
        assert!(json["error"].is_null(), "{direction}: {json}");
        // With --bidir the transfer ends as soon as one direction has sent all its bytes.
        let bytes = |sum: &str| json["end"][sum]["bytes"].as_f64();
        let (received, reverse) = (bytes("sum_received").unwrap(), bytes("sum_received_bidir_reverse"));
        assert!(received + reverse.unwrap_or(0.0) > 50e6, "{direction}: {json}");
        assert!(received > 0.0 && reverse.is_none_or(|bytes| bytes > 0.0), "{direction}: {json}");
    }
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "early-acks") > 100 && counter(&counters, "flows-reset") == 0, "{counters}");
}

#[test]
fn a_router_accelerates_forwarded_connections_and_not_its_own() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.route();
    testbed.dir.write("file", random_bytes(10_000_000));
    let _server = testbed.serve_files();
    let _own = testbed.serve_in(&testbed.middlebox, "own", 8001, "python3 -m http.server --bind :: 8001");
    let gateway = testbed.gateway(&format!("mode = \"routed\"\n{INTERFACES}"));
    testbed.download("file", "http://10.20.0.1:8000");
    testbed.download("file", "http://[fd20::1]:8000");
    testbed.upload("10.20.0.1");
    // Connections to the middlebox itself are not accelerated.
    testbed.download("file", "http://10.9.0.254:8001");
    testbed.download("file", "http://[fd20::fe]:8001");
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "flows") >= 2 && counter(&counters, "early-acks") > 10, "{counters}");
    assert!(counter(&counters, "flows") <= 3, "connections to the middlebox were accelerated: {counters}");
    let links = testbed.shell(&testbed.middlebox, "ip -br link").stdout;
    assert!(!links.contains("paceline0"), "{links}");
    testbed.download("file", "http://10.20.0.1:8000");
}

/// As another user with four capabilities only, between interfaces that are ports of a bridge already.
#[test]
fn four_capabilities_are_enough_on_an_existing_bridge() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "setpriv"]) else { return };
    testbed.shell(
        &testbed.middlebox,
        "ip link add br0 type bridge; ip link set mob master br0; ip link set srv master br0; ip link set br0 up",
    );
    testbed.dir.write("file", random_bytes(5_000_000));
    testbed.dir.write("gateway.toml", INTERFACES);
    testbed.shell(&testbed.middlebox, "chmod 755 . && chmod 644 gateway.toml");
    let _server = testbed.serve_files();
    let line = |caps: &str| {
        format!(
            "setpriv --reuid 65534 --clear-groups --bounding-set -all,+{caps} --inh-caps -all,+{caps} \
             --ambient-caps -all,+{caps} {} gateway gateway.toml --json",
            PACELINE
        )
    };
    let few = testbed.try_shell(&testbed.middlebox, &line("net_admin,+net_raw,+perfmon"));
    assert!(few.code == 1 && few.stderr.contains("needs CAP_BPF"), "{few:?}");
    let gateway = testbed.start_gateway(&line("net_admin,+net_raw,+bpf,+perfmon"));
    testbed.download("file", HTTP);
    let counters = testbed.stop(gateway);
    assert_eq!(counter(&counters, "flows"), 1, "{counters}");
}

#[test]
fn transfers_survive_hangs_of_the_gateway() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(60_000_000));
    // The link to the client is the bottleneck. With slow readers instead, no packets might come during a
    // hang.
    testbed.shell(&testbed.middlebox, "tc qdisc replace dev mob root tbf rate 500mbit burst 100kb limit 4mb");
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(INTERFACES);
    let download = |n: u32| {
        let line = format!("curl -sS -o got{n} {HTTP}/file");
        testbed.start(&testbed.client, &format!("curl{n}"), &line)
    };
    let mut downloads: Vec<_> = (0..4).map(download).collect();
    for _ in 0..3 {
        sleep(Duration::from_millis(700));
        gateway.signal("STOP");
        // The servers' first retransmission timeout is after 200 ms, the second 400 ms later.
        sleep(Duration::from_millis(500));
        gateway.signal("CONT");
    }
    for (n, download) in downloads.iter_mut().enumerate() {
        let output = download.finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        testbed.dir.assert_same("file", &format!("got{n}"));
    }
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "absences") >= 3 && counter(&counters, "flows-reset") == 0, "{counters}");
    assert!(counter(&counters, "packets-left-without-pulse") > 10, "{counters}");
}
