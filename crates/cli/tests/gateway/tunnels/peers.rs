//! The two ends of a tunnel that are part of the tests: `gtpu_peer.py` and `pppoe_peer.py`. Inside the tunnel
//! the device has the addresses 10.45.0.2 and fd45::2, and the servers 10.45.0.1 and fd45::1.

use crate::common::namespace::{Namespace, Program, wait_for};
use crate::common::testbed::Testbed;

/// The servers' files inside the tunnel, over both versions of IP.
pub const URLS: [&str; 2] = ["http://10.45.0.1:8000", "http://[fd45::1]:8000"];
const DEVICE: &str = "10.45.0.2/24,fd45::2/64";
const SERVERS: &str = "10.45.0.1/24,fd45::1/64";

/// Starts a Python program at an end, and waits until it is ready.
fn start(testbed: &Testbed, namespace: &Namespace, name: &str, line: &str) -> Program {
    let mut end = testbed.start(namespace, name, &format!("python3 {line}"));
    wait_for(name, || end.output_so_far().stdout.contains("ready").then_some(()));
    end
}

/// The device's end and the servers' end of a GTP-U tunnel. The arguments are their addresses and
/// identifiers, see `gtpu_peer.py`, and options of both.
pub fn gtpu(testbed: &Testbed, sets: [&str; 2], options: &str) -> [Program; 2] {
    testbed.dir.write("gtpu_peer.py", include_str!("gtpu_peer.py"));
    let line =
        |device: &str, inner: &str, sets: &str| format!("gtpu_peer.py {options} {device} {inner} {sets}");
    [
        start(testbed, &testbed.client, "device", &line("ue0", DEVICE, sets[0])),
        start(testbed, &testbed.server, "core", &line("ogstun", SERVERS, sets[1])),
    ]
}

/// The same for a PPPoE session over these interfaces. The server has to be the second value, and is started
/// first.
pub fn pppoe(testbed: &Testbed, [client, server]: [&str; 2]) -> [Program; 2] {
    testbed.dir.write("pppoe_peer.py", include_str!("pppoe_peer.py"));
    let line = format!("pppoe_peer.py server {server} ppp0 {SERVERS}");
    let core = start(testbed, &testbed.server, "concentrator", &line);
    let line = format!("pppoe_peer.py client {client} ppp0 {DEVICE}");
    [start(testbed, &testbed.client, "subscriber", &line), core]
}
