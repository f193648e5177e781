//! Connections inside tunnels of all kinds arrive byte-exact: over both versions of IP, with and without
//! outer checksums, in VLANs, in outer fragments and in super-packets, which are not accelerated, and in
//! PPPoE sessions.

use super::peers::{URLS, gtpu, pppoe};
use crate::common::PACELINE;
use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{LONG_DRAIN, Testbed, counter, wait_for_message};
use serde_json::Value;

const FILE_BYTES: u64 = 1_500_000;
/// Addresses and identifiers of the device's end and the servers' end.
const V4: [&str; 2] = ["10.9.0.2 10.9.0.1 11 21", "10.9.0.1 10.9.0.2 21 11"];
const V6: [&str; 2] = ["fd09::2 fd09::1 11 21", "fd09::1 fd09::2 21 11"];

/// Downloads and uploads over both versions of IP inside the tunnel; gives the counters.
fn transfer(testbed: &Testbed, gateway: Program) -> Value {
    for url in URLS {
        testbed.download("file", url);
    }
    for host in ["10.45.0.1", "fd45::1"] {
        testbed.upload(host);
    }
    let counters = testbed.stop(gateway);
    for name in ["flows-reset", "corrupt", "unknown-links", "ambiguous-networks", "frames-lost-out"] {
        assert_eq!(counter(&counters, name), 0, "{name}: {counters}");
    }
    counters
}

fn prepare() -> Option<(Testbed, Program)> {
    let testbed = Testbed::new(&["curl", "python3"])?;
    testbed.dir.write("file", random_bytes(FILE_BYTES));
    let server = testbed.serve_files();
    Some((testbed, server))
}

fn assert_accelerated(counters: &Value) {
    // Uploads have no data of the server. The learning of sides may end within a further download.
    assert!(counter(counters, "flows") >= 2 && counter(counters, "early-acks") > 50, "{counters}");
    assert!(counter(counters, "bytes-delivered") > 2 * FILE_BYTES, "{counters}");
    assert_eq!(counter(counters, "frames-unreadable"), 0, "{counters}");
}

#[test]
fn connections_over_both_versions_of_ip_are_accelerated_with_and_without_outer_checksums() {
    for (sets, options) in [(V4, ""), (V4, "--no-checksum"), (V6, "")] {
        let Some((testbed, _server)) = prepare() else { return };
        let _ends = gtpu(&testbed, sets, options);
        let gateway = testbed.gateway(&testbed.config(""));
        assert_accelerated(&transfer(&testbed, gateway));
    }
}

/// Drivers leave what follows the outer UDP header in pages, as the kernel does with data that a program
/// sends without a copy.
#[test]
fn connections_whose_inner_headers_are_in_pages_are_accelerated() {
    for sets in [V4, V6] {
        let Some((testbed, _server)) = prepare() else { return };
        let _ends = gtpu(&testbed, sets, "--paged");
        let gateway = testbed.gateway(&testbed.config(""));
        assert_accelerated(&transfer(&testbed, gateway));
    }
}

/// The sides are learned from connections inside the tunnel. The interfaces are in the wrong order.
#[test]
fn the_mobile_side_is_learned_inside_a_tunnel() {
    let Some((testbed, _server)) = prepare() else { return };
    let _ends = gtpu(&testbed, V6, "");
    let ctl = testbed.dir.join("ctl").display().to_string();
    let config = format!("control = \"{ctl}\"\nsides = \"learned\"\nserver = \"mob\"\nmobile = \"srv\"\n");
    testbed.dir.write("gateway.toml", config);
    let line = format!("{PACELINE} gateway gateway.toml --json");
    let mut gateway = testbed.start(&testbed.middlebox, "gateway", &line);
    wait_for_message(&mut gateway, "looking whether");
    let fetch = format!("curl -sS --retry 5 --retry-all-errors --max-time 10 -o first {}/file", URLS[1]);
    wait_for("accelerating", || {
        testbed.shell(&testbed.client, &fetch);
        gateway.output_so_far().stderr.contains("accelerating from srv to mob").then_some(())
    });
    assert_accelerated(&transfer(&testbed, gateway));
}

/// The link's MTU is too small for the outer packets. Handshakes pass the workers, and full segments do not.
#[test]
fn connections_whose_outer_packets_are_fragmented_go_on() {
    for (sets, order) in [(V4, "ordered"), (V4, "reversed"), (V6, "ordered"), (V6, "reversed")] {
        let Some((testbed, _server)) = prepare() else { return };
        let _ends = gtpu(&testbed, sets, &format!("--mtu 1500 --fragments {order}"));
        let gateway = testbed.gateway(&testbed.config(LONG_DRAIN));
        let counters = transfer(&testbed, gateway);
        assert_eq!(counter(&counters, "bypassed-unseen"), 2, "{counters}");
    }
}

#[test]
fn connections_in_super_packets_of_udp_go_on() {
    for sets in [V4, V6] {
        let Some((testbed, _server)) = prepare() else { return };
        let _ends = gtpu(&testbed, sets, "--merged");
        let gateway = testbed.gateway(&testbed.config(LONG_DRAIN));
        let counters = transfer(&testbed, gateway);
        assert_eq!(counter(&counters, "bypassed-unseen"), 2, "{counters}");
    }
}

/// Link control and discovery pass while connections of the session are accelerated.
#[test]
fn connections_in_a_session_of_pppoe_are_accelerated() {
    let Some((testbed, _server)) = prepare() else { return };
    let gateway = testbed.gateway(&testbed.config(""));
    let [mut subscriber, _concentrator] = pppoe(&testbed, ["cli0", "srv0"]);
    let mut echoes = || subscriber.output_so_far().stdout.matches("echo number").count();
    wait_for("an answered echo request", || (echoes() > 0).then_some(()));
    let before = echoes();
    assert_accelerated(&transfer(&testbed, gateway));
    wait_for("more answers", || (echoes() > before + 3).then_some(()));
}

/// One tag and two, by `tagger.py`, and the tunnel's ends in the tagged network.
#[test]
fn connections_in_tunnels_inside_vlans_are_accelerated() {
    let Some((testbed, _server)) = prepare() else { return };
    testbed.dir.write("tagger.py", include_str!("../../common/tagger.py"));
    let mut taggers = Vec::new();
    for (namespace, device, host) in [(&testbed.client, "cli0", 2), (&testbed.server, "srv0", 1)] {
        for (network, tags) in [(7, "7"), (8, "5 9")] {
            let line = format!("python3 tagger.py {device} 10.{network}.0.{host}/24 {tags}");
            let mut tagger = testbed.start(namespace, &format!("tagger{network}{host}"), &line);
            wait_for("a tagger", || tagger.output_so_far().stdout.contains("ready").then_some(()));
            taggers.push(tagger);
        }
    }
    for network in [7, 8] {
        let (device, core) = (format!("10.{network}.0.2"), format!("10.{network}.0.1"));
        let sets = [format!("{device} {core} 11 21"), format!("{core} {device} 21 11")];
        let _ends = gtpu(&testbed, [&sets[0], &sets[1]], "");
        let gateway = testbed.gateway(&testbed.config(""));
        assert_accelerated(&transfer(&testbed, gateway));
    }
    // PPPoE inside a tag.
    let gateway = testbed.gateway(&testbed.config(""));
    let _ends = pppoe(&testbed, ["tagged7", "tagged7"]);
    assert_accelerated(&transfer(&testbed, gateway));
}
