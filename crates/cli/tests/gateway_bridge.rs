//! The bridge below the live gateway: what it may be, and what changes while the gateway runs. Needs root; says so and
//! does nothing otherwise, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::PACELINE;
use common::bed::{Bed, PLAIN};
use common::outer::{Holder, random_bytes, until};
use serde_json::Value;

const HTTP: &str = "http://10.9.0.1:8000";

fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {counters}"))
}

/// A host behind a port of the box that is in no bridge yet: `lan3`.
fn third(bed: &Bed) -> Holder {
    let host = Holder::new();
    let (end, middle) = (host.id(), bed.middle.id());
    bed.shell(&host, &format!("ip link add eth0 netns {end} type veth peer name lan3 netns {middle}"));
    bed.shell(&host, "ip link set eth0 up; ip addr add 10.9.0.3/24 dev eth0");
    bed.shell(&bed.middle, "ip link set lan3 up");
    host
}

/// What a gateway says that refuses to start.
fn refusal(bed: &Bed) -> String {
    bed.place.write("box.toml", PLAIN);
    let said = bed.try_shell(&bed.middle, &format!("timeout 10 {PACELINE} gateway box.toml"));
    assert_eq!(said.code, 1, "{said:?}");
    said.stderr
}

#[test]
fn a_bridge_with_a_third_port_is_refused_and_left_as_it_was() {
    let Some(bed) = Bed::new(&[]) else { return };
    let _host = third(&bed);
    bed.shell(
        &bed.middle,
        "ip link add br0 type bridge; ip link set srv master br0; ip link set lan3 master br0",
    );
    let said = refusal(&bed);
    assert!(said.contains("ports of br0 = ") && said.contains("allowed: srv and mob alone"), "{said}");
    assert!(said.contains("`ip link set lan3 nomaster`"), "{said}");
    let ports = bed.shell(&bed.middle, "ip -br link show master br0").stdout;
    assert!(!ports.contains("mob"), "{ports}");
    // Where VLANs can be filtered: not every kernel is built for that.
    bed.shell(&bed.middle, "ip link set lan3 nomaster");
    if bed.try_shell(&bed.middle, "ip link set br0 type bridge vlan_filtering 1").code == 0 {
        let said = refusal(&bed);
        assert!(said.contains("vlan_filtering of br0 = 1: allowed: 0"), "{said}");
        bed.shell(&bed.middle, "ip link set br0 type bridge vlan_filtering 0");
    }
    let counters = bed.stop(bed.gateway(PLAIN));
    assert_eq!(count(&counters, "flows"), 0);
}

#[test]
fn a_port_that_merges_more_than_a_datagram_is_refused() {
    let Some(bed) = Bed::new(&[]) else { return };
    for mode in ["bridge", "routed"] {
        bed.place.write("box.toml", format!("mode = \"{mode}\"\n{PLAIN}"));
        bed.shell(&bed.middle, "ip link set mob gro_max_size 185000");
        let said = bed.try_shell(&bed.middle, &format!("timeout 10 {PACELINE} gateway box.toml"));
        assert!(said.code == 1 && said.stderr.contains("gro_max_size of mob = 185000: allowed: up to 65536"));
        let bridges = bed.shell(&bed.middle, "ip -br link show type bridge").stdout;
        assert_eq!(bridges, "", "nothing was made");
    }
    bed.shell(&bed.middle, "ip link set mob gro_max_size 65536");
    bed.stop(bed.gateway(PLAIN));
}

/// While there is a third port, the kernel forwards: the host behind it is reached, and connections that were accelerated
/// come to their end.
#[test]
fn a_third_port_that_comes_is_stepped_aside_for_and_back_when_it_goes() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(10_000_000));
    let host = third(&bed);
    let _server = bed.serve_files();
    let _third = bed.start(&host, "third", "python3 -m http.server 8000");
    let control = format!("control = \"{}\"\n", bed.place.join("ctl").display());
    let mut gateway = bed.gateway(&format!("{control}{PLAIN}"));
    let flows = || {
        let said = bed.place.paceline(&["gateway", "status", "--json", "--control", "ctl"]);
        let status: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        (count(&status["counters"], "flows"), status["flows"].as_u64(), status["aside"].as_bool())
    };
    bed.download("file", HTTP);
    assert_eq!((flows().0, flows().2), (1, Some(false)));
    let slow = format!("curl -sS --max-time 20 --limit-rate 3M -o slow {HTTP}/file");
    let mut slow = bed.start(&bed.client, "slow", &slow);
    until("a transfer", || (flows().0 == 2).then_some(()));
    bed.shell(&bed.middle, "ip link set lan3 master paceline0");
    until("a word", || gateway.so_far().stderr.contains("the kernel forwards meanwhile").then_some(()));
    until("the kernel to have everything", || (flows().1 == Some(0)).then_some(()));
    bed.download("file", "http://10.9.0.3:8000");
    bed.download("file", HTTP);
    assert_eq!((flows().0, flows().2), (2, Some(true)));
    let said = slow.finish(std::time::Duration::from_secs(20));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    bed.assert_same("file", "slow");
    bed.shell(&bed.middle, "ip link set lan3 nomaster");
    until("a word", || gateway.so_far().stderr.contains("what stood in the way is gone").then_some(()));
    assert_eq!(gateway.so_far().stderr.matches("ports of paceline0").count(), 1, "it is said once");
    std::thread::sleep(std::time::Duration::from_millis(100));
    bed.download("file", HTTP);
    let counters = bed.stop(gateway);
    assert_eq!((count(&counters, "flows"), count(&counters, "flows-reset")), (3, 0), "{counters}");
}

/// Sends the file at 2 MB/s, and waits until the other end has it.
const SLOW_UPLOAD: &str = "python3 -c 'import socket,time
s=socket.create_connection((\"10.9.0.1\",9000))
with open(\"file\",\"rb\") as f:
    while part:=f.read(20_000): s.sendall(part); time.sleep(.01)
s.shutdown(1); print(s.recv(3).decode())'";
const SINK: &str = "python3 -c 'import socket
c,_=socket.create_server((\"\",9000)).accept(); f=open(\"uploaded\",\"wb\")
while part:=c.recv(1<<20): f.write(part)
f.close(); c.sendall(b\"all\")'";

/// An upload goes from port to port in the kernel, but not what the bridge would drop, and it does not mind a crash.
#[test]
fn an_upload_goes_past_the_bridge_and_no_further_than_by_it() {
    let Some(bed) = Bed::new(&["python3", "ethtool"]) else { return };
    bed.place.write("file", random_bytes(20_000_000));
    bed.shell(&bed.client, "ethtool -K cli0 tso off gso off");
    let _sink = bed.serve("sink", 9000, SINK);
    let control = format!("control = \"{}\"\n", bed.place.join("ctl").display());
    let gateway = bed.gateway(&format!("{control}{PLAIN}"));
    let mut upload = bed.start(&bed.client, "upload", SLOW_UPLOAD);
    let counted = |name: &str| {
        let said = bed.place.paceline(&["gateway", "status", "--json", "--control", "ctl"]);
        let status: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        count(&status["counters"], name)
    };
    let until_more = |name: &str, more: u64| {
        let before = counted(name);
        until(name, || (counted(name) > before + more).then_some(()));
    };
    until_more("packets-sent-across", 1000);
    // Shorter than the client's packets: the machine is looked at every second.
    bed.shell(&bed.middle, "ip link set srv mtu 1300");
    until_more("packets-left-by-connection", 0);
    std::thread::sleep(std::time::Duration::from_millis(1000));
    let received = || std::fs::metadata(bed.place.join("uploaded")).unwrap().len();
    let before = received();
    until_more("packets-left-by-connection", 0); // sent again
    assert_eq!(received(), before, "the port carries no such packets");
    bed.shell(&bed.middle, "ip link set srv mtu 1500");
    until_more("packets-sent-across", 1000);
    assert!(received() < 18_000_000, "the crash is in its middle");
    gateway.signal("KILL");
    let said = upload.finish(std::time::Duration::from_secs(30));
    assert_eq!((said.code, said.stdout.as_str()), (0, "all\n"), "{said:?}");
    bed.assert_same("file", "uploaded");
}

#[test]
fn a_bridge_whose_address_changes_is_reached_by_the_new_one() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(1_000_000));
    let gateway = bed.gateway(PLAIN);
    bed.shell(&bed.middle, "ip addr add 10.9.0.254/24 dev paceline0");
    let _own = bed.start(&bed.middle, "own", "python3 -m http.server 8001");
    until("a listener", || {
        let said = bed.shell(&bed.middle, "ss -Hlnt 'sport = :8001'").stdout;
        (!said.is_empty()).then_some(())
    });
    let own = "http://10.9.0.254:8001";
    bed.download("file", own);
    bed.shell(&bed.middle, "ip link set paceline0 address 02:00:00:00:77:01");
    bed.shell(&bed.client, "ip neigh flush dev cli0");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    bed.download("file", own);
    let counters = bed.stop(gateway);
    assert_eq!(count(&counters, "packets-taken"), 0, "{counters}");
}
