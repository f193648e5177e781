//! `mss_clamp = "auto"` in tunnels: the packets of the tunnel fit into the MTU with all of its headers.

use super::peers::{gtpu, pppoe};
use crate::common::namespace::{Program, wait_for};
use crate::common::testbed::Testbed;
use crate::gateway::mtu::{LEAVE, serve_sizes, sizes};

/// Segment sizes inside the tunnel, without the 12 bytes of timestamps: over IPv4 and IPv6.
fn assert_sizes(testbed: &Testbed, (v4, v6): (u32, u32), what: &str) {
    // SYNs that the kernel forwards, and those of a worker.
    for policy in [LEAVE, ""] {
        let gateway = testbed.gateway(&testbed.config(&format!("mss_clamp = \"auto\"\n{policy}")));
        for (address, size) in [("10.45.0.1", v4), ("fd45::1", v6)] {
            assert_eq!(sizes(testbed, address), format!("{size} {size}"), "{what}, {address}, {policy}");
        }
        for name in ["frames-unreadable", "corrupt"] {
            assert_eq!(testbed.counter(name), 0, "{name}: {}", testbed.status());
        }
        testbed.stop(gateway);
    }
}

fn prepare() -> Option<(Testbed, Program)> {
    let testbed = Testbed::new(&["python3"])?;
    let server = serve_sizes(&testbed);
    // The bridge stays.
    testbed.stop(testbed.gateway(&testbed.config("")));
    Some((testbed, server))
}

#[test]
fn the_clamp_leaves_room_for_the_headers_of_gtpu() {
    let Some((testbed, _server)) = prepare() else { return };
    for (options, sets, expected) in [
        ("--mtu 1500", ["10.9.0.2 10.9.0.1 11 21", "10.9.0.1 10.9.0.2 21 11"], (1404, 1384)),
        ("--mtu 1500 --no-checksum", ["10.9.0.2 10.9.0.1 11 21", "10.9.0.1 10.9.0.2 21 11"], (1404, 1384)),
        ("--mtu 1500", ["fd09::2 fd09::1 11 21", "fd09::1 fd09::2 21 11"], (1384, 1364)),
    ] {
        let _ends = gtpu(&testbed, sets, options);
        assert_sizes(&testbed, expected, &format!("GTP-U {} {options}", sets[0]));
    }
}

#[test]
fn the_clamp_leaves_room_for_the_headers_of_pppoe_and_for_a_second_tag() {
    let Some((testbed, _server)) = prepare() else { return };
    let long = |device: &str| {
        for namespace in [&testbed.client, &testbed.server] {
            testbed.shell(namespace, &format!("ip link set {device} mtu 1500"));
        }
    };
    {
        let _ends = pppoe(&testbed, ["cli0", "srv0"]);
        long("ppp0");
        assert_sizes(&testbed, (1440, 1420), "PPPoE");
    }
    testbed.dir.write("tagger.py", include_str!("../../common/tagger.py"));
    let ends = [(&testbed.client, "cli0", 2), (&testbed.server, "srv0", 1)];
    let _taggers = ends.map(|(namespace, device, host)| {
        let line = format!("python3 tagger.py {device} 10.8.0.{host}/24 5 9");
        let mut tagger = testbed.start(namespace, &format!("tagger{host}"), &line);
        wait_for("a tagger", || tagger.output_so_far().stdout.contains("ready").then_some(()));
        tagger
    });
    let _ends = gtpu(&testbed, ["10.8.0.2 10.8.0.1 11 21", "10.8.0.1 10.8.0.2 21 11"], "--mtu 1500");
    assert_sizes(&testbed, (1400, 1380), "GTP-U in two tags");
}
