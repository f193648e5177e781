//! Connections of which every third packet has IP options or an extension header, or is fragmented on the
//! way.

use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::{INTERFACES, Testbed, counter};
use std::time::Instant;

/// Retransmissions by a namespace's TCP.
fn retransmissions(testbed: &Testbed) -> u64 {
    let names = ["TCPFastRetrans", "TCPSlowStartRetrans", "TCPTimeouts"];
    names.iter().map(|name| testbed.kernel_tcp_counter(&testbed.server, name)).sum()
}

/// Transfers 2 MB in both directions over IPv4 and IPv6, down at 16 Mb/s. Prints the time of the downloads,
/// which is 2 s with `plain` packets.
fn transfer(kind: &str) {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    testbed.dir.write("disguise.py", include_str!("../common/disguise.py"));
    testbed.dir.write("file", random_bytes(2_000_000));
    // The program at the ends reads frames of one packet with finished checksums.
    for port in ["mob", "srv"] {
        testbed.shell(&testbed.middlebox, &format!("ethtool -K {port} tso off gso off tx off"));
    }
    testbed.shell(&testbed.middlebox, "tc qdisc replace dev mob root tbf rate 16mbit burst 30kb limit 200kb");
    let mut ends = Vec::new();
    for (namespace, device, host) in [(&testbed.client, "cli0", 2), (&testbed.server, "srv0", 1)] {
        let line = format!("python3 disguise.py {device} {kind} 10.7.0.{host}/24 fd07::{host}/64");
        let mut end = testbed.start(namespace, &format!("end{host}"), &line);
        wait_for("a disguise", || end.output_so_far().stdout.contains("ready").then_some(()));
        ends.push(end);
    }
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(INTERFACES);
    let (before, start) = (retransmissions(&testbed), Instant::now());
    for url in ["http://10.7.0.1:8000", "http://[fd07::1]:8000"] {
        testbed.download("file", url);
    }
    println!("{kind}: {:.2} s", start.elapsed().as_secs_f64());
    let repeated = retransmissions(&testbed) - before;
    for host in ["10.7.0.1", "fd07::1"] {
        testbed.upload(host);
    }
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "flows") >= 2 && counter(&counters, "early-acks") > 10, "{counters}");
    assert!(counter(&counters, "bytes-delivered") >= 4_000_000, "{counters}");
    assert_eq!(counter(&counters, "flows-detached"), 0, "{counters}");
    // A third of 2,900 packets had counted as lost.
    assert!(
        repeated <= 20 && counter(&counters, "server-retransmissions") <= 20,
        "{repeated} retransmissions of the server: {counters}"
    );
}

#[test]
fn plain_packets_are_accelerated_on_this_path() {
    transfer("plain");
}

#[test]
fn packets_with_options_and_extension_headers_are_accelerated() {
    transfer("options");
}

#[test]
fn fragmented_packets_are_accelerated() {
    transfer("fragments");
}
