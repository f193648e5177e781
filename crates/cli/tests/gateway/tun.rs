//! Routed mode at interfaces whose packets have no link header: TUN devices, also with the link types of PPP,
//! raw-IP modems and tunnels, and WireGuard. Drivers of modems need their hardware and are not tested.

use crate::common::namespace::{Program, have_programs, random_bytes, wait_for};
use crate::common::testbed::{Testbed, counter};
use crate::gateway::operation::{ends, fetch_from, serve, wait_until_exposed};

const V4: &str = "http://10.20.0.1:8000";
const V6: &str = "http://[fd20::1]:8000";

/// The end whose link to the middlebox is a pair of TUN devices instead of Ethernet.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Client,
    Server,
}

/// Link types of linux/if_arp.h. A TUN device has the first.
pub const NONE: u16 = 0xfffe;
const PPP: u16 = 512;
const RAWIP: u16 = 519;
const TUNNEL: u16 = 768;

/// A routed testbed with TUN devices: `tunm` at the middlebox, and `tune` at one end, with its addresses.
/// `link_type`: what the kernel takes them for. `offload`: packets of the TUN devices may be
/// super-packets with unfinished checksums.
pub fn with_tun(end: End, link_type: u16, offload: bool) -> Option<(Testbed, Program)> {
    let testbed = Testbed::new(&["curl", "python3"])?;
    testbed.route();
    testbed.dir.write("tun_pair.py", include_str!("../common/tun_pair.py"));
    let (namespace, ethernet, v4, v6) = match end {
        End::Client => (&testbed.client, "cli0", "10.9.0.2", "fd09::2"),
        End::Server => (&testbed.server, "srv0", "10.20.0.1", "fd20::1"),
    };
    let offload = if offload { " offload" } else { "" };
    let line = format!("python3 tun_pair.py tunm {} tune {link_type}{offload}", namespace.id());
    let mut pair = testbed.start(&testbed.middlebox, "tun", &line);
    wait_for("the TUN devices", || pair.output_so_far().stdout.contains("ready").then_some(()));
    testbed.shell(namespace, &format!("ip addr flush dev {ethernet}; ip link set {ethernet} down"));
    testbed.shell(
        namespace,
        &format!(
            "ip addr add {v4}/32 dev tune; \
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
        let Some((testbed, _pair)) = with_tun(end, NONE, offload) else { return };
        assert_accelerated(&testbed, &config(&testbed, end, ""));
    }
}

#[test]
fn connections_over_interfaces_with_the_link_types_of_ppp_modems_and_tunnels_are_accelerated() {
    for (end, link_type) in
        [(End::Client, PPP), (End::Server, PPP), (End::Client, RAWIP), (End::Client, TUNNEL)]
    {
        let Some((testbed, _pair)) = with_tun(end, link_type, true) else { return };
        assert_accelerated(&testbed, &config(&testbed, end, ""));
    }
}

#[test]
fn connections_over_wireguard_are_accelerated() {
    let Some((testbed, mobile, _programs)) = with_wireguard() else { return };
    let config = config(&testbed, End::Client, "").replace("tunm", &mobile);
    assert_accelerated(&testbed, &config);
}

/// Transfers a file in each direction over both versions of IP through a gateway, which must accelerate them.
fn assert_accelerated(testbed: &Testbed, config: &str) {
    testbed.dir.write("file", random_bytes(3_000_000));
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(config);
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

/// A routed testbed in which client and middlebox are joined by WireGuard over their Ethernet link: the
/// kernel's, or else wireguard-go. Gives the name of the middlebox's interface too.
fn with_wireguard() -> Option<(Testbed, String, Vec<Program>)> {
    let testbed = Testbed::new(&["curl", "python3", "wg"])?;
    let kernel =
        testbed.try_shell(&testbed.middlebox, "ip link add probe type wireguard && ip link del probe");
    let has_kernel = kernel.code == 0;
    if !has_kernel && !have_programs(&["wireguard-go"]) {
        return None;
    }
    testbed.route();
    let ends = [&testbed.middlebox, &testbed.client];
    // wireguard-go's control sockets are files named after the interface, the same for all namespaces.
    let names = ["m", "c"].map(|end| format!("wg{end}{}", testbed.middlebox.id()));
    let programs = ends.iter().zip(&names).filter_map(|(namespace, name)| {
        if has_kernel {
            testbed.shell(namespace, &format!("ip link add {name} type wireguard"));
            return None;
        }
        let program = testbed.start(namespace, name, &format!("wireguard-go --foreground {name}"));
        let is_ready = || testbed.try_shell(namespace, &format!("wg show {name}")).code == 0;
        wait_for("wireguard-go", || is_ready().then_some(()));
        Some(program)
    });
    let programs = programs.collect();
    testbed.shell(
        &testbed.client,
        "wg genkey > m.key; wg pubkey < m.key > m.pub; wg genkey > c.key; wg pubkey < c.key > c.pub",
    );
    let [middlebox, client] = &names;
    let all = "0.0.0.0/0,::/0";
    testbed.shell(
        &testbed.middlebox,
        &format!(
            "wg set {middlebox} listen-port 51820 private-key m.key peer $(cat c.pub) allowed-ips {all}; \
             ip link set {middlebox} up; ip route add 10.30.0.2 dev {middlebox}; \
             ip -6 route add fd30::2 dev {middlebox}"
        ),
    );
    testbed.shell(
        &testbed.client,
        &format!(
            "wg set {client} private-key c.key peer $(cat m.pub) allowed-ips {all} endpoint 10.9.0.254:51820; \
             ip addr add 10.30.0.2/32 dev {client}; ip -6 addr add fd30::2/128 dev {client} nodad; \
             ip link set {client} up; ip route replace 10.20.0.0/24 dev {client} src 10.30.0.2; \
             ip -6 route replace fd20::/64 dev {client} src fd30::2"
        ),
    );
    let [middlebox, _] = names;
    Some((testbed, middlebox, programs))
}

#[test]
fn acks_over_a_tun_device_are_filtered_on_either_side() {
    for end in [End::Client, End::Server] {
        let Some((testbed, _pair)) = with_tun(end, NONE, false) else { return };
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
    for (end, link_type) in [(End::Client, NONE), (End::Client, PPP), (End::Server, NONE)] {
        let Some((testbed, mut pair)) = with_tun(end, link_type, false) else { return };
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
        let (testbed, pair) = with_tun(End::Client, NONE, false)?;
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
