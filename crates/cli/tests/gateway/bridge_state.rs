//! The state of the bridge holds for taken frames too: ports that a spanning tree blocks, further addresses
//! of this machine, and hosts behind one port.

use crate::common::namespace::{Namespace, random_bytes, wait_for};
use crate::common::testbed::Testbed;
use std::thread::sleep;
use std::time::Duration;

/// `frames.py DEVICE SOURCE DESTINATION`: sends a TCP segment; `frames.py DEVICE`: prints each destination.
const FRAMES: &str = "import socket, struct, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind((sys.argv[1], 0))
if len(sys.argv) > 2:
    source, destination = (bytes.fromhex(one.replace(':', '')) for one in sys.argv[2:])
    def total(data):
        one = sum(struct.unpack('!%dH' % (len(data) // 2), data))
        return 0xffff ^ ((one & 0xffff) + (one >> 16))
    hosts = bytes([10, 9, 0, 77, 10, 9, 0, 78])
    tcp = struct.pack('!HHIIBBHHH', 5, 80, 1, 1, 0x50, 0x18, 500, 0, 0) + b'x' * 20
    tcp = tcp[:16] + struct.pack('!H', total(hosts + struct.pack('!HH', 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 40 + 20, 7, 0x4000, 64, 6, 0) + hosts
    ip = ip[:10] + struct.pack('!H', total(ip)) + ip[12:]
    raw.send(destination + source + b'\\x08\\x00' + ip + tcp)
else:
    print('ready', flush=True)
    while True:
        frame, address = raw.recvfrom(65536)
        if address[2] != 4 and frame[12:14] == b'\\x08\\x00':
            print(frame[:6].hex(':'), flush=True)
";
/// Longer than a frame needs through the gateway, in which one that must not arrive would.
const PASSAGE: Duration = Duration::from_millis(300);

fn send(testbed: &Testbed, from: &Namespace, device: &str, source: u8, destination: u8) {
    let line =
        format!("python3 frames.py {device} 02:00:00:00:00:{source:02} 02:00:00:00:00:{destination:02}");
    testbed.shell(from, &line);
}

/// `bpdu.py DEVICE PORT`: announces a better root bridge (IEEE 802.1D, configuration BPDU) from a port of it.
const BPDU: &str = "import socket, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((sys.argv[1], 0))
root = bytes.fromhex('0000020000000007')
body = bytes.fromhex('424203' + '00000000' + '00') + root + bytes(4) + root + bytes([0x80, int(sys.argv[2])])
body += bytes.fromhex('0000' + '1400' + '0200' + '0200')
frame = bytes.fromhex('0180c2000000' + '020000000007') + len(body).to_bytes(2, 'big') + body
while True:
    raw.send(frame.ljust(60, bytes(1)))
    time.sleep(0.3)
";

/// A bridge with a spanning tree: its ports listen and learn before they forward, and of two ways to a better
/// root bridge it blocks one.
#[test]
fn nothing_is_taken_from_or_for_a_port_that_does_not_forward() {
    let Some(testbed) = Testbed::new(&["python3", "bridge"]) else { return };
    testbed.dir.write("frames.py", FRAMES);
    testbed.dir.write("bpdu.py", BPDU);
    testbed.shell(
        &testbed.middlebox,
        "ip link add paceline0 type bridge stp_state 1 forward_delay 200; ip link set srv master paceline0; \
         ip link set mob master paceline0; ip link set paceline0 up",
    );
    let gateway = testbed.gateway(&testbed.config(""));
    let mut seen = testbed.start(&testbed.client, "seen", "python3 frames.py cli0");
    wait_for("a listener", || seen.output_so_far().stdout.contains("ready").then_some(()));
    let mut count = |n: u8| seen.output_so_far().stdout.matches(&format!("02:00:00:00:00:{n:02}")).count();
    let forwarding =
        || testbed.shell(&testbed.middlebox, "bridge link").stdout.matches("state forwarding").count();
    assert_eq!(forwarding(), 0, "the ports listen or learn");
    send(&testbed, &testbed.server, "srv0", 1, 91);
    wait_for("a note", || {
        testbed.status()["notes"][0].as_str().map(|note| note.contains("does not forward"))
    });
    wait_for("ports that forward", || (forwarding() == 2).then_some(()));
    sleep(PASSAGE);
    assert_eq!((count(91), testbed.counter("packets-taken")), (0, 0));
    send(&testbed, &testbed.server, "srv0", 1, 92);
    wait_for("a flooded frame", || (count(92) == 1).then_some(()));
    assert_eq!(testbed.counter("packets-taken"), 1);
    let _bpdus =
        [(&testbed.server, "srv0", 1), (&testbed.client, "cli0", 2)].map(|(namespace, device, port)| {
            testbed.start(namespace, device, &format!("python3 bpdu.py {device} {port}"))
        });
    let blocked =
        || testbed.shell(&testbed.middlebox, "bridge link").stdout.contains("state blocking").then_some(());
    wait_for("a blocked port", blocked);
    sleep(PASSAGE);
    send(&testbed, &testbed.server, "srv0", 1, 93);
    send(&testbed, &testbed.client, "cli0", 2, 94);
    sleep(PASSAGE);
    assert_eq!((count(93), testbed.counter("packets-taken")), (0, 1));
    testbed.stop(gateway);
}

#[test]
fn a_second_address_of_the_bridge_is_this_machines() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(300_000));
    let gateway = testbed.gateway(&testbed.config(""));
    let add = "ip link add link paceline0 name mv0 type macvlan mode bridge && ip addr add 10.9.0.200/24 dev mv0 && \
               ip link set mv0 up";
    if testbed.try_shell(&testbed.middlebox, add).code != 0 {
        return testbed.stop(gateway).as_object().map_or((), |_| println!("no macvlan on this host"));
    }
    let _own = testbed.serve_in(&testbed.middlebox, "own", 8001, "python3 -m http.server 8001");
    sleep(PASSAGE);
    testbed.download("file", "http://10.9.0.200:8001");
    // An entry by hand, as for VRRP.
    testbed.shell(&testbed.middlebox, "bridge fdb add 02:00:00:00:00:55 dev mob master permanent");
    sleep(PASSAGE);
    testbed.dir.write("frames.py", FRAMES);
    send(&testbed, &testbed.client, "cli0", 2, 55);
    sleep(PASSAGE);
    assert_eq!(testbed.counter("packets-taken"), 0);
    testbed.stop(gateway);
}

#[test]
fn frames_between_hosts_behind_one_port_are_not_copied_to_the_other() {
    let Some(testbed) = Testbed::new(&["python3", "bridge"]) else { return };
    testbed.dir.write("frames.py", FRAMES);
    let gateway = testbed.gateway(&testbed.config(""));
    let mut seen = testbed.start(&testbed.server, "seen", "python3 frames.py srv0");
    wait_for("a listener", || seen.output_so_far().stdout.contains("ready").then_some(()));
    let mut count = |n: u8| seen.output_so_far().stdout.matches(&format!("02:00:00:00:00:{n:02}")).count();
    // The bridge hears the host 1 on the devices' side.
    let broadcast = |from, device: &str| {
        testbed.shell(from, &format!("python3 frames.py {device} 02:00:00:00:00:01 ff:ff:ff:ff:ff:ff"));
        sleep(PASSAGE);
    };
    broadcast(&testbed.client, "cli0");
    let before = testbed.counter("packets-taken");
    send(&testbed, &testbed.client, "cli0", 2, 1);
    sleep(PASSAGE);
    assert_eq!((count(1), testbed.counter("packets-taken")), (0, before));
    // The host moves to the servers' side.
    broadcast(&testbed.server, "srv0");
    send(&testbed, &testbed.client, "cli0", 2, 1);
    wait_for("a frame for the host that moved", || (count(1) == 1).then_some(()));
    testbed.stop(gateway);
}
