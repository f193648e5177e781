//! What an operator may get wrong, and what changes around a gateway that runs. Needs root; says so and does nothing
//! otherwise, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // real time

mod common;

use common::bed::{Bed, PLAIN};
use common::outer::{random_bytes, until};
use common::{PACELINE, Said};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const HTTP: &str = "http://10.9.0.1:8000";
/// The same server behind a router.
const ROUTED: &str = "http://10.20.0.1:8000";

fn bed(size: u64) -> Option<Bed> {
    let bed = Bed::new(&["curl", "python3"])?;
    bed.place.write("file", random_bytes(size));
    Some(bed)
}
fn config(bed: &Bed, more: &str) -> String {
    format!("control = \"{}\"\n{more}{PLAIN}", bed.place.join("ctl").display())
}
fn status(bed: &Bed) -> Value {
    let said = bed.place.paceline(&["gateway", "status", "--json", "--control", "ctl"]);
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}
fn flows(bed: &Bed) -> u64 {
    status(bed)["counters"]["flows"].as_u64().unwrap()
}
/// What a gateway says that ends by itself, beside one that may run.
fn second(bed: &Bed, config: &str) -> Said {
    bed.place.write("second.toml", config);
    bed.try_shell(&bed.middle, &format!("timeout 10 {PACELINE} gateway second.toml"))
}
/// A client that hardly reads: what is owed to it is owed for long.
fn owed(bed: &Bed) -> common::outer::Program {
    let line = format!("curl -s --limit-rate 20k -o owed {HTTP}/file");
    let owed = bed.start(&bed.client, "owed", &line);
    // Owed, and what was delivered before.
    let look = || {
        let status = status(bed);
        (status["exposure"].as_u64() > Some(100_000), status["counters"]["bytes-delivered"].as_u64().unwrap())
    };
    // While the client's kernel still has room, a debt is short, however often it is looked at.
    until("a debt that stays", || {
        let (owed_at_first, delivered) = look();
        std::thread::sleep(Duration::from_millis(500));
        let (owed, delivered_since) = look();
        (owed_at_first && owed && delivered_since - delivered < 100_000).then_some(())
    });
    owed
}

#[test]
fn an_interface_has_one_gateway_and_a_second_is_refused() {
    let Some(bed) = bed(2_000_000) else { return };
    let _server = bed.serve_files();
    let gateway = bed.gateway(&config(&bed, ""));
    for workers in [1, 2] {
        let said = second(&bed, &format!("workers = {workers}\n{PLAIN}"));
        assert!(said.code == 1 && said.stderr.contains("another gateway works at srv"), "{said:?}");
        bed.download("file", HTTP);
        assert_eq!(flows(&bed), workers);
    }
    bed.stop(gateway);
}

#[test]
fn two_routed_gateways_have_a_pair_of_devices_each() {
    let Some(bed) = bed(2_000_000) else { return };
    bed.route();
    bed.shell(&bed.middle, "ip link add one type veth peer name two; ip link set one up; ip link set two up");
    let _server = bed.serve_files();
    let gateway = bed.gateway(&config(&bed, "mode = \"routed\"\n"));
    let other = "mode = \"routed\"\nserver = \"one\"\nmobile = \"two\"\n";
    let said = second(&bed, other);
    assert!(said.code == 1 && said.stderr.contains("bridge = \"paceline0\""), "{said:?}");
    bed.download("file", ROUTED);
    assert_eq!(flows(&bed), 1);
    // A device that is something else is not taken away either.
    bed.shell(&bed.middle, "ip link add br7 type bridge");
    let said = second(&bed, &format!("bridge = \"br7\"\n{other}"));
    assert!(said.code == 1 && said.stderr.contains("bridge = \"br7\""), "{said:?}");
    bed.shell(&bed.middle, "ip link show br7");
    // One that is shut has no packets.
    bed.shell(&bed.middle, "ip link set one down");
    let said = second(&bed, &format!("bridge = \"pair\"\n{other}"));
    assert!(said.code == 1 && said.stderr.contains("`ip link set one up`"), "{said:?}");
    bed.stop(gateway);
}

/// Without its way back to the kernel a router's gateway would take packets and lose them.
#[test]
fn a_router_that_does_not_take_the_gateways_packets_is_stepped_aside_for() {
    let Some(bed) = bed(2_000_000) else { return };
    bed.route();
    let _server = bed.serve_files();
    let mut gateway = bed.gateway(&config(&bed, "mode = \"routed\"\n"));
    bed.download("file", ROUTED);
    let changes = [
        ("echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter", "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter"),
        (
            "echo 1 > /proc/sys/net/ipv4/conf/paceline0r/rp_filter",
            "echo 0 > /proc/sys/net/ipv4/conf/paceline0r/rp_filter",
        ),
        ("ip link set paceline0r down", "ip link set paceline0r up"),
    ];
    for (n, (change, back)) in (1..).zip(changes) {
        bed.shell(&bed.middle, change);
        until("a word", || {
            (gateway.so_far().stderr.matches("the kernel forwards meanwhile").count() == n).then_some(())
        });
        std::thread::sleep(Duration::from_millis(100));
        bed.download("file", ROUTED);
        assert_eq!(flows(&bed), n as u64, "the kernel has it");
        bed.shell(&bed.middle, back);
        until("a word", || {
            (gateway.so_far().stderr.matches("what stood in the way is gone").count() == n).then_some(())
        });
        std::thread::sleep(Duration::from_millis(100));
        bed.download("file", ROUTED);
        assert_eq!(flows(&bed), n as u64 + 1);
    }
    bed.shell(&bed.middle, "ip link del paceline0");
    let said = gateway.finish(Duration::from_secs(5));
    assert!(said.code == 1 && said.stderr.contains("an interface is gone"), "{said:?}");
    bed.download("file", ROUTED);
}

#[test]
fn interfaces_that_cannot_be_bridged_are_left_as_they_were() {
    let Some(bed) = bed(1) else { return };
    let said = second(&bed, &format!("bridge = \"lo\"\n{PLAIN}"));
    assert!(said.code == 1 && said.stderr.contains("bridge = \"lo\": allowed: a bridge"), "{said:?}");
    let loopback = "server = \"srv\"\nmobile = \"lo\"\n";
    for (made, bridge) in [("true", ""), ("ip link add br5 type bridge", "bridge = \"br5\"\n")] {
        bed.shell(&bed.middle, made);
        let said = second(&bed, &format!("{bridge}{loopback}"));
        assert!(said.code == 1 && said.stderr.contains("cannot make lo a port"), "{said:?}");
        let links = bed.shell(&bed.middle, "ip -br link; ip -d link show srv").stdout;
        assert!(!links.contains("paceline0") && !links.contains("master"), "{links}");
        assert_eq!(links.contains("br5"), !bridge.is_empty(), "{links}");
    }
}

#[test]
fn a_port_that_is_taken_out_of_the_bridge_is_stepped_aside_for() {
    let Some(bed) = bed(1_000_000) else { return };
    let _server = bed.serve_files();
    let mut gateway = bed.gateway(&config(&bed, ""));
    for (n, port) in (1..).zip(["mob", "srv"]) {
        bed.shell(&bed.middle, &format!("ip link set {port} nomaster"));
        let word = format!("{port} is in no bridge any more; the kernel forwards meanwhile");
        until("a word", || gateway.so_far().stderr.contains(&word).then_some(()));
        assert_eq!(status(&bed)["aside"], true);
        bed.shell(&bed.middle, &format!("ip link set {port} master paceline0"));
        until("a word", || {
            (gateway.so_far().stderr.matches("what stood in the way is gone").count() == n).then_some(())
        });
        std::thread::sleep(Duration::from_millis(100));
        bed.download("file", HTTP);
        assert_eq!(flows(&bed), n as u64);
    }
    bed.stop(gateway);
}

#[test]
fn an_interface_that_goes_while_the_sides_are_learned_ends_the_gateway() {
    let Some(bed) = bed(1) else { return };
    bed.place.write("box.toml", format!("sides = \"learned\"\n{PLAIN}"));
    let mut gateway = bed.start(&bed.middle, "gateway", &format!("{PACELINE} gateway box.toml"));
    until("the bridge", || {
        let ports = bed.try_shell(&bed.middle, "ip -br link show master paceline0").stdout;
        (ports.contains("mob") && ports.contains("srv")).then_some(())
    });
    std::thread::sleep(Duration::from_millis(300));
    gateway.so_far();
    bed.shell(&bed.middle, "ip link del mob");
    let said = gateway.finish(Duration::from_secs(5));
    assert!(said.code == 1 && said.stderr.contains("an interface is gone"), "{said:?}");
}

#[test]
fn a_stop_that_takes_too_long_is_shortened_by_another() {
    let Some(bed) = bed(10_000_000) else { return };
    let _server = bed.serve_files();
    let mut gateway = bed.gateway(&config(&bed, "drain = \"40 s\"\n"));
    let _owed = owed(&bed);
    gateway.signal("TERM");
    until("the stop", || gateway.so_far().stderr.contains("stopping").then_some(()));
    let before = Instant::now();
    let said = bed.place.paceline(&["gateway", "stop", "--limit", "1s", "--control", "ctl"]);
    assert!(said.code == 1 && said.stdout.contains(" 1 were reset"), "{said:?}");
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    assert_eq!(gateway.finish(Duration::from_secs(5)).code, 0);
}

#[test]
fn who_waits_for_a_stop_is_told_when_another_gateway_can_start() {
    let Some(bed) = bed(1) else { return };
    for mode in ["", "mode = \"routed\"\n"] {
        if !mode.is_empty() {
            bed.shell(&bed.middle, "ip link del paceline0");
            bed.route();
        }
        let mut gateway = bed.gateway(&config(&bed, &format!("workers = 8\n{mode}")));
        let mut stream = UnixStream::connect(bed.place.join("ctl")).unwrap();
        stream.write_all(b"{\"stop\":{}}\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let said: Vec<String> = lines.take(2).collect();
        assert!(!bed.place.join("ctl").exists(), "{said:?}");
        assert!(said[1].contains("ended"), "{said:?}");
        if !mode.is_empty() {
            let links = bed.shell(&bed.middle, "ip -br link").stdout;
            assert!(!links.contains("paceline0"), "{links}");
        }
        assert_eq!(gateway.finish(Duration::from_secs(5)).code, 0);
    }
}

/// A monitoring system takes a counter that falls for one that began anew.
#[test]
fn counters_do_not_fall_while_one_worker_has_ended_and_another_has_not() {
    let Some(bed) = bed(10_000_000) else { return };
    let _server = bed.serve_files();
    let mut gateway = bed.gateway(&config(&bed, "workers = 4\n"));
    for host in 10..20 {
        bed.shell(&bed.client, &format!("ip addr add 10.9.0.{host}/24 dev cli0"));
        let get = format!("curl -sS --max-time 10 --interface 10.9.0.{host} -o got {HTTP}/file");
        bed.shell(&bed.client, &get);
    }
    let _owed = owed(&bed);
    let before = status(&bed);
    gateway.signal("TERM");
    until("the stop", || gateway.so_far().stderr.contains("stopping").then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    let after = status(&bed);
    assert!(after["draining"] == true && after["exposure"].as_u64() > Some(0), "{after}");
    for (name, value) in before["counters"].as_object().unwrap() {
        assert!(after["counters"][name].as_u64() >= value.as_u64(), "{name}: {before} {after}");
    }
    gateway.signal("TERM");
    assert_eq!(gateway.finish(Duration::from_secs(5)).code, 0);
}

#[test]
fn a_prefix_of_ipv6_leaves_ipv4_as_it_is() {
    let Some(bed) = bed(1_000_000) else { return };
    let _server = bed.serve_files();
    let rule = "[[policy]]\nprefix = \"::/0\"\naction = \"leave\"\n";
    let gateway = bed.gateway(&format!("{}{rule}", config(&bed, "")));
    bed.download("file", HTTP);
    bed.download("file", "http://[fd09::1]:8000");
    let counters = bed.stop(gateway);
    assert_eq!(counters["flows"], 1, "{counters}");
    assert!(counters["packets-left-by-policy"].as_u64() > Some(10), "{counters}");
}
