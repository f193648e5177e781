//! GTP-U tunnels: the gateway between the two ends of a tunnel, as on S1-U, N3 or Gn. The ends are those of
//! Osmocom: the program osmo-ggsn, and the SGSN emulator sgsnemu, which makes a device's TUN interface.

use super::{peers, ssh};
use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{Testbed, counter};

/// The address of the servers behind the GGSN.
const BEHIND: &str = "192.0.2.1";
pub const URL: &str = "http://192.0.2.1:8000";
/// A GGSN on the server's address that gives devices addresses of 172.16.222.0/24.
const GGSN: &str = "log stderr
line vty
 no login
ggsn ggsn0
 gtp state-dir .
 gtp bind-ip 10.9.0.1
 apn internet
  gtpu-mode tun
  tun-device tun4
  type-support v4
  ip prefix dynamic 172.16.222.0/24
  ip dns 0 192.0.2.1
  ip dns 1 192.0.2.1
  ip ifconfig 172.16.222.0/24
  no shutdown
 default-apn internet
 no shutdown ggsn
";

/// The programs at the ends of the tunnel.
pub struct Ends(#[allow(dead_code)] [Program; 2]);

/// Makes the tunnel: the device's interface is `tun0` of the client.
pub fn make_tunnel(testbed: &Testbed) -> Ends {
    testbed.dir.write("ggsn.cfg", GGSN);
    testbed.shell(&testbed.server, &format!("ip addr add {BEHIND}/32 dev lo"));
    let ggsn = testbed.start(&testbed.server, "ggsn", "osmo-ggsn -c ggsn.cfg");
    let is_up = |line: &str, namespace| testbed.try_shell(namespace, line).code == 0;
    wait_for("the GGSN", || {
        is_up("ip link show tun4 && ss -Hlnu sport = 2152 | grep -q .", &testbed.server).then_some(())
    });
    let sgsn = "sgsnemu --createif -l 10.9.0.2 -r 10.9.0.1 -a internet --statedir=. --pidfile=sgsn.pid";
    let sgsn = testbed.start(&testbed.client, "sgsn", sgsn);
    let has_address = "ip -4 addr show tun0 | grep -q 172.16.222";
    wait_for("the device's address", || is_up(has_address, &testbed.client).then_some(()));
    // GTP-U, UDP and IPv4 take 36 bytes, or 40 with an extension header.
    testbed.shell(&testbed.client, &format!("ip link set tun0 mtu 1450; ip route add {BEHIND} dev tun0"));
    testbed.shell(&testbed.server, "ip link set tun4 mtu 1450");
    Ends([ggsn, sgsn])
}

#[test]
fn connections_in_the_tunnel_of_a_ggsn_are_accelerated_byte_exactly() {
    let programs = ["osmo-ggsn", "sgsnemu", "curl", "python3", "iperf3", "ssh", "sshd", "ssh-keygen"];
    let Some(testbed) = Testbed::new(&programs) else { return };
    testbed.dir.write("file", random_bytes(20_000_000));
    let gateway = testbed.gateway(&testbed.config("workers = 2\n"));
    let _ends = make_tunnel(&testbed);
    let _server = testbed.serve_files();
    assert!(testbed.accelerates("file", URL));
    testbed.upload(BEHIND);
    let _sshd = ssh::serve(&testbed);
    ssh::copy(&testbed, BEHIND);
    let _iperf = testbed.serve("iperf", 5201, "iperf3 -s");
    for direction in ["-R", ""] {
        testbed.shell(&testbed.client, &format!("iperf3 -c {BEHIND} -n 20M -P 4 {direction}"));
    }
    testbed.shell(&testbed.client, &format!("ping -c 3 -i 0.2 {BEHIND}"));
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "flows") >= 9, "{counters}");
    assert!(counter(&counters, "early-acks") > 0 && counter(&counters, "frames-tunnelled") > 10_000);
    for name in ["flows-reset", "frames-unreadable", "corrupt", "unknown-links", "frames-lost-out"] {
        assert_eq!(counter(&counters, name), 0, "{name}: {counters}");
    }
}

/// Connections in the tunnel survive the death of the gateway, or are reset; they do not hang.
#[test]
fn a_killed_gateway_leaves_no_connection_in_a_tunnel_hanging() {
    let Some(testbed) = Testbed::new(&["osmo-ggsn", "sgsnemu", "curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(30_000_000));
    let gateway = testbed.gateway(&testbed.config(""));
    let _ends = make_tunnel(&testbed);
    let _server = testbed.serve_files();
    let slow = format!("curl -sS -m 60 --limit-rate 3M -o slow {URL}/file");
    let mut slow = testbed.start(&testbed.client, "slow", &slow);
    wait_for("early acknowledgments", || (testbed.counter("early-acks") > 20).then_some(()));
    gateway.signal("KILL");
    let output = slow.finish();
    // 28: curl's own time limit.
    assert_ne!(output.code, 28, "the connection hangs: {output:?}");
    if output.code == 0 {
        testbed.dir.assert_same("file", "slow");
    }
    testbed.download("file", URL);
}

/// A tunnel between two small ends of the tests: the device's side changes its address and identifier at
/// SIGUSR1, and so does the tunnel towards it when the other end gets the signal. With a short transfer, the
/// gateway has all data by then, and no packet of the server shows the new tunnel unless it is probed.
fn hand_over(v6: bool, bytes: u64) {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(bytes));
    let (upf, old, new) =
        if v6 { ("fd09::1", "fd09::2", "fd09::3") } else { ("10.9.0.1", "10.9.0.2", "10.9.0.3") };
    let add =
        if v6 { "ip -6 addr add fd09::3/64 dev cli0 nodad" } else { "ip addr add 10.9.0.3/24 dev cli0" };
    testbed.shell(&testbed.client, add);
    let device = format!("{old} {upf} 11 21 {new} {upf} 12 21");
    let core = format!("{upf} {old} 21 11 {upf} {new} 21 12");
    let [device, core] = peers::gtpu(&testbed, [&device, &core], "");
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&testbed.config(""));
    testbed.shell(&testbed.middlebox, "tc qdisc replace dev mob root tbf rate 12mbit burst 30kb limit 200kb");
    let slow = "curl -sS -m 100 -o slow http://10.45.0.1:8000/file";
    let mut slow = testbed.start(&testbed.client, "slow", slow);
    wait_for("data", || (testbed.counter("bytes-delivered") > 1_000_000).then_some(()));
    device.signal("USR1");
    std::thread::sleep(std::time::Duration::from_millis(300));
    core.signal("USR1");
    let output = slow.finish();
    assert_eq!(output.code, 0, "{output:?} {}", testbed.status());
    testbed.dir.assert_same("file", "slow");
    let counters = testbed.stop(gateway);
    assert_eq!(counter(&counters, "flows"), 1, "{counters}");
    for name in ["flows-reset", "frames-unreadable", "corrupt", "unknown-links"] {
        assert_eq!(counter(&counters, name), 0, "{name}: {counters}");
    }
    assert!(counter(&counters, "early-acks") > 100, "{counters}");
    println!("{} probes of the server", counter(&counters, "server-probes"));
}

#[test]
fn a_connection_survives_a_handover_to_another_base_station() {
    hand_over(false, 12_000_000);
}

#[test]
fn a_connection_survives_a_handover_in_a_tunnel_over_ipv6() {
    hand_over(true, 4_000_000);
}
