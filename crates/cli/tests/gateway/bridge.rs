//! The bridge below the gateway: bridges and ports that are refused, and changes while the gateway runs.

use crate::common::PACELINE;
use crate::common::namespace::{Namespace, random_bytes, wait_for};
use crate::common::testbed::{HTTP, INTERFACES, Testbed, counter, wait_for_message};
use std::thread::sleep;
use std::time::Duration;

/// A host behind a third interface of the middlebox, `lan3`, which is no port of a bridge yet.
fn add_third_host(testbed: &Testbed) -> Namespace {
    let host = Namespace::new();
    let (end, middlebox) = (host.id(), testbed.middlebox.id());
    testbed.shell(&host, &format!("ip link add eth0 netns {end} type veth peer name lan3 netns {middlebox}"));
    testbed.shell(&host, "ip link set eth0 up; ip addr add 10.9.0.3/24 dev eth0");
    testbed.shell(&testbed.middlebox, "ip link set lan3 up");
    host
}

/// Starts a gateway that must refuse to start; gives its message.
fn refusal(testbed: &Testbed) -> String {
    testbed.dir.write("gateway.toml", INTERFACES);
    let output = testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway gateway.toml"));
    assert_eq!(output.code, 1, "{output:?}");
    output.stderr
}

#[test]
fn a_bridge_with_a_third_port_is_refused_and_not_changed() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    let _host = add_third_host(&testbed);
    testbed.shell(
        &testbed.middlebox,
        "ip link add br0 type bridge; ip link set srv master br0; ip link set lan3 master br0",
    );
    let output = refusal(&testbed);
    assert!(output.contains("ports of br0 = ") && output.contains("allowed: srv and mob alone"), "{output}");
    assert!(output.contains("`ip link set lan3 nomaster`"), "{output}");
    let ports = testbed.shell(&testbed.middlebox, "ip -br link show master br0").stdout;
    assert!(!ports.contains("mob"), "{ports}");
    // Only if the kernel is built with VLAN filtering.
    testbed.shell(&testbed.middlebox, "ip link set lan3 nomaster");
    if testbed.try_shell(&testbed.middlebox, "ip link set br0 type bridge vlan_filtering 1").code == 0 {
        let output = refusal(&testbed);
        assert!(output.contains("vlan_filtering of br0 = 1: allowed: 0"), "{output}");
        testbed.shell(&testbed.middlebox, "ip link set br0 type bridge vlan_filtering 0");
    }
    let counters = testbed.stop(testbed.gateway(INTERFACES));
    assert_eq!(counter(&counters, "flows"), 0);
}

#[test]
fn a_port_with_gro_beyond_64_kib_is_refused() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    for mode in ["bridge", "routed"] {
        testbed.dir.write("gateway.toml", format!("mode = \"{mode}\"\n{INTERFACES}"));
        testbed.shell(&testbed.middlebox, "ip link set mob gro_max_size 185000");
        let output = testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway gateway.toml"));
        assert!(
            output.code == 1 && output.stderr.contains("gro_max_size of mob = 185000: allowed: up to 65536")
        );
        let bridges = testbed.shell(&testbed.middlebox, "ip -br link show type bridge").stdout;
        assert_eq!(bridges, "", "a bridge was made");
    }
    testbed.shell(&testbed.middlebox, "ip link set mob gro_max_size 65536");
    testbed.stop(testbed.gateway(INTERFACES));
}

/// While the bridge has a third port, the kernel forwards: the host behind that port can be reached, and
/// accelerated connections are completed.
#[test]
fn the_gateway_pauses_while_the_bridge_has_a_third_port() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(10_000_000));
    let host = add_third_host(&testbed);
    let _server = testbed.serve_files();
    let _third = testbed.serve_in(&host, "third", 8000, "python3 -m http.server 8000");
    let mut gateway = testbed.gateway(&testbed.config(""));
    let flows = || {
        let status = testbed.status();
        (counter(&status["counters"], "flows"), status["flows"].as_u64(), status["paused"].as_bool())
    };
    testbed.download("file", HTTP);
    assert_eq!((flows().0, flows().2), (1, Some(false)));
    let slow = format!("curl -sS --limit-rate 3M -o slow {HTTP}/file");
    let mut slow = testbed.start(&testbed.client, "slow", &slow);
    wait_for("a transfer", || (flows().0 == 2).then_some(()));
    testbed.shell(&testbed.middlebox, "ip link set lan3 master paceline0");
    wait_for_message(&mut gateway, "the kernel forwards meanwhile");
    wait_for("all connections to be detached", || (flows().1 == Some(0)).then_some(()));
    testbed.download("file", "http://10.9.0.3:8000");
    testbed.download("file", HTTP);
    assert_eq!((flows().0, flows().2), (2, Some(true)));
    let output = slow.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    testbed.dir.assert_same("file", "slow");
    testbed.shell(&testbed.middlebox, "ip link set lan3 nomaster");
    wait_for_message(&mut gateway, "the problem is gone");
    let messages = gateway.output_so_far().stderr;
    assert_eq!(messages.matches("ports of paceline0").count(), 1, "the message is printed once");
    wait_for("an accelerated connection", || testbed.accelerates("file", HTTP).then_some(()));
    let counters = testbed.stop(gateway);
    assert_eq!((counter(&counters, "flows"), counter(&counters, "flows-reset")), (3, 0), "{counters}");
}

/// Uploads the file at 2 MB/s, and waits for the server's answer.
const SLOW_UPLOAD: &str = "python3 -c 'import socket,time
s=socket.create_connection((\"10.9.0.1\",9000))
with open(\"file\",\"rb\") as f:
    while part:=f.read(20_000): s.sendall(part); time.sleep(.01)
s.shutdown(1); print(s.recv(3).decode())'";
const UPLOAD_SERVER: &str = "python3 -c 'import socket
c,_=socket.create_server((\"\",9000)).accept(); f=open(\"uploaded\",\"wb\")
while part:=c.recv(1<<20): f.write(part)
f.close(); c.sendall(b\"all\")'";

/// The kernel program forwards an upload from port to port. Packets longer than the port's MTU are dropped,
/// as by the bridge. The upload survives a crash of the gateway.
#[test]
fn an_upload_is_forwarded_past_the_bridge_and_obeys_the_ports_mtu() {
    let Some(testbed) = Testbed::new(&["python3", "ethtool"]) else { return };
    testbed.dir.write("file", random_bytes(20_000_000));
    testbed.shell(&testbed.client, "ethtool -K cli0 tso off gso off");
    let _server = testbed.serve("upload-server", 9000, UPLOAD_SERVER);
    let gateway = testbed.gateway(&testbed.config(""));
    let mut upload = testbed.start(&testbed.client, "upload", SLOW_UPLOAD);
    let wait_for_more = |name: &str, more: u64| {
        let before = testbed.counter(name);
        wait_for(name, || (testbed.counter(name) > before + more).then_some(()));
    };
    wait_for_more("packets-sent-across", 1000);
    // Shorter than the client's packets. The gateway checks the ports' MTU every second.
    testbed.shell(&testbed.middlebox, "ip link set srv mtu 1300");
    wait_for_more("packets-left-by-connection", 0);
    sleep(Duration::from_millis(1000));
    let received = || std::fs::metadata(testbed.dir.join("uploaded")).unwrap().len();
    let before = received();
    wait_for_more("packets-left-by-connection", 0); // a retransmission
    assert_eq!(received(), before, "a packet longer than the MTU was forwarded");
    testbed.shell(&testbed.middlebox, "ip link set srv mtu 1500");
    wait_for_more("packets-sent-across", 1000);
    assert!(received() < 18_000_000, "the upload is over before the crash");
    gateway.signal("KILL");
    let output = upload.finish();
    assert_eq!((output.code, output.stdout.as_str()), (0, "all\n"), "{output:?}");
    testbed.dir.assert_same("file", "uploaded");
}

#[test]
fn the_bridge_is_reached_by_its_new_link_layer_address() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(1_000_000));
    let gateway = testbed.gateway(&testbed.config(""));
    testbed.shell(&testbed.middlebox, "ip addr add 10.9.0.254/24 dev paceline0");
    let _own = testbed.serve_in(&testbed.middlebox, "own", 8001, "python3 -m http.server 8001");
    let url = "http://10.9.0.254:8001";
    testbed.download("file", url);
    assert_eq!(testbed.counter("packets-taken"), 0);
    testbed.shell(&testbed.middlebox, "ip link set paceline0 address 02:00:00:00:77:01");
    testbed.shell(&testbed.client, "ip neigh flush dev cli0");
    // The gateway reads the address every second; until then a worker takes the packets.
    let fetch = format!("curl -sS --max-time 1 -o fetched {url}/file");
    wait_for("an answer of the bridge", || {
        (testbed.try_shell(&testbed.client, &fetch).code == 0).then_some(())
    });
    let taken = testbed.counter("packets-taken");
    testbed.download("file", url);
    let counters = testbed.stop(gateway);
    assert_eq!(counter(&counters, "packets-taken"), taken, "{counters}");
}
