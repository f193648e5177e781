//! Routed mode at a TUN device, whose packets have no link header.

use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{Testbed, counter};
use crate::operation::{ends, fetch_from, serve, wait_until_exposed};

const V4: &str = "http://10.20.0.1:8000";
const V6: &str = "http://[fd20::1]:8000";

/// The end whose link to the middlebox is a pair of TUN devices instead of Ethernet.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Client,
    Server,
}

/// A routed testbed with TUN devices: `tunm` at the middlebox, and `tune` at one end, with its addresses.
/// `offload`: packets of the TUN devices may be super-packets with unfinished checksums.
fn with_tun(end: End, offload: bool) -> Option<(Testbed, Program)> {
    let testbed = Testbed::new(&["curl", "python3"])?;
    testbed.route();
    testbed.dir.write("tun_pair.py", include_str!("../common/tun_pair.py"));
    let (namespace, ethernet, v4, v6) = match end {
        End::Client => (&testbed.client, "cli0", "10.9.0.2", "fd09::2"),
        End::Server => (&testbed.server, "srv0", "10.20.0.1", "fd20::1"),
    };
    let line =
        format!("python3 tun_pair.py tunm {} tune{}", namespace.id(), if offload { " offload" } else { "" });
    let mut pair = testbed.start(&testbed.middlebox, "tun", &line);
    wait_for("the TUN devices", || pair.output_so_far().stdout.contains("ready").then_some(()));
    testbed.shell(
        namespace,
        &format!(
            "ip addr flush dev {ethernet}; ip link set {ethernet} down; ip addr add {v4}/32 dev tune; \
             ip route add default dev tune; ip -6 addr add {v6}/128 dev tune nodad; ip -6 route add default dev tune"
        ),
    );
    testbed.shell(
        &testbed.middlebox,
        &format!("ip route replace {v4} dev tunm; ip -6 route replace {v6} dev tunm"),
    );
    Some((testbed, pair))
}

/// A configuration for this testbed.
fn config(testbed: &Testbed, end: End, more: &str) -> String {
    let (server, mobile) = if end == End::Client { ("srv", "tunm") } else { ("tunm", "mob") };
    let control = testbed.dir.join("ctl");
    format!(
        "mode = \"routed\"\ncontrol = \"{}\"\nserver = \"{server}\"\nmobile = \"{mobile}\"\n{more}",
        control.display()
    )
}

#[test]
fn connections_over_a_tun_device_are_accelerated_on_either_side() {
    for (end, offload) in
        [(End::Client, false), (End::Client, true), (End::Server, false), (End::Server, true)]
    {
        let Some((testbed, _pair)) = with_tun(end, offload) else { return };
        testbed.dir.write("file", random_bytes(3_000_000));
        let _server = testbed.serve_files();
        let gateway = testbed.gateway(&config(&testbed, end, ""));
        for url in [V4, V6] {
            testbed.download("file", url);
        }
        testbed.upload("10.20.0.1");
        let counters = testbed.stop(gateway);
        assert!(counter(&counters, "flows") >= 2, "{counters}");
        assert!(counter(&counters, "early-acks") > 0, "{counters}");
        assert!(counter(&counters, "bytes-delivered") >= 6_000_000, "{counters}");
        assert_eq!(counter(&counters, "frames-unreadable"), 0, "{counters}");
    }
}

#[test]
fn acks_over_a_tun_device_are_filtered_on_either_side() {
    for end in [End::Client, End::Server] {
        let Some((testbed, _pair)) = with_tun(end, false) else { return };
        testbed.dir.write("file", random_bytes(3_000_000));
        let _server = testbed.serve_files();
        let filter = ["10.0.0.0/8", "::/0"]
            .map(|prefix| format!("[[policy]]\nprefix = \"{prefix}\"\naction = \"filter\"\n"));
        let filter = format!("{}[filter]\nrate = \"300 kb/s\"\nholdout = 0\n", filter.concat());
        let gateway = testbed.gateway(&config(&testbed, end, &filter));
        for url in [V4, V6] {
            testbed.download("file", url);
        }
        let counters = testbed.stop(gateway);
        assert_eq!(counter(&counters, "flows"), 0, "{counters}");
        assert!(counter(&counters, "filter-acks-in") > 100, "{counters}");
        assert_eq!(counter(&counters, "frames-unreadable"), 0, "{counters}");
    }
}

/// The guardian's packets have no link header either: `tun_pair.py` ends with an error at any that has one.
#[test]
fn after_kill_9_no_transfer_over_a_tun_device_hangs() {
    const TRANSFERS: u64 = 10;
    for end in [End::Client, End::Server] {
        let Some((testbed, mut pair)) = with_tun(end, false) else { return };
        testbed.dir.write("file", random_bytes(1_000_000));
        let port = if end == End::Client { "tunm" } else { "mob" };
        testbed.shell(
            &testbed.middlebox,
            &format!("tc qdisc replace dev {port} root tbf rate 30mbit burst 100kb limit 1mb"),
        );
        let _server = serve(&testbed);
        for server in ["10.20.0.1", "fd20::1"] {
            let mut gateway = testbed.gateway(&config(&testbed, end, ""));
            let transfers = fetch_from(&testbed, server, TRANSFERS);
            wait_until_exposed(&testbed, TRANSFERS);
            gateway.signal("KILL");
            let _ = gateway.finish();
            let (complete, reset) = ends(transfers);
            assert!(complete + reset == TRANSFERS && reset > 0, "{complete} complete, {reset} reset");
            pair.output_so_far();
        }
    }
}

/// Segments whose headers are longer than the datagram: the worker cannot parse them.
const UNREADABLE: &str = r#"
import socket, struct, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
for port in range(1000, 1050):
    raw.sendto(struct.pack("!HHIIBBHHH", port, 8000, 1, 1, 15 << 4, 16, 100, 0, 0), (sys.argv[1], 0))
"#;

#[test]
fn segments_that_cannot_be_parsed_are_forwarded_and_counted() {
    let without_tun = || {
        let testbed = Testbed::new(&["curl", "python3"])?;
        testbed.route();
        let config = testbed.config("mode = \"routed\"\n");
        Some((testbed, None, config))
    };
    let with_tun = || {
        let (testbed, pair) = with_tun(End::Client, false)?;
        let config = config(&testbed, End::Client, "");
        Some((testbed, Some(pair), config))
    };
    for make in [&without_tun as &dyn Fn() -> Option<(Testbed, Option<Program>, String)>, &with_tun] {
        let Some((testbed, _pair, config)) = make() else { return };
        testbed.dir.write("unreadable.py", UNREADABLE);
        let gateway = testbed.gateway(&config);
        let segments = || -> u64 {
            let lines = testbed.shell(&testbed.server, "grep ^Tcp: /proc/net/snmp").stdout;
            let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().collect()).collect();
            let at = rows[0].iter().position(|name| *name == "InSegs").expect("a counter of segments");
            rows[1][at].parse().expect("a number")
        };
        let before = segments();
        testbed.shell(&testbed.client, "python3 unreadable.py 10.20.0.1");
        wait_for("all segments at the server", || (segments() - before >= 50).then_some(()));
        let counters = testbed.stop(gateway);
        assert_eq!((counter(&counters, "frames-unreadable"), segments() - before), (50, 50), "{counters}");
    }
}
