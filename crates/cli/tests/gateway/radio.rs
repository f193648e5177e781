//! The gateway ahead of the emulated radio, on each kind of link that the accelerator is made for.

use crate::common::namespace::{random_bytes, skip};
use crate::common::testbed::{CLIENT, INTERFACES, SERVER, Testbed, counter};
use crate::common::{PACELINE, run};
use std::process::Command;

/// Scenarios with different segment sizes, with and without TCP timestamps.
const LINKS: [&str; 4] = ["single-station", "accelerator-3g", "accelerator-lte", "accelerator-trace"];

/// Downloads a file to a station on the emulated link; it must arrive byte-exact.
fn download(testbed: &Testbed, link: &str, file: &str) {
    let fetch = format!("curl -sS -o got http://{SERVER}:8000/{file}");
    testbed.shell(&testbed.client, &format!("{PACELINE} emulate {link} --set core.proxy=none -- {fetch}"));
    testbed.dir.assert_same(file, "got");
}

#[test]
fn stations_of_every_link_download_through_the_gateway() {
    let doctor = run(Command::new(PACELINE).arg("doctor"));
    if !doctor.stdout.lines().any(|line| line == "emulate: yes") {
        return skip("this host cannot emulate");
    }
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.shell(&testbed.client, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    testbed.shell(&testbed.server, &format!("ip route add 198.18.0.0/15 via {CLIENT}"));
    testbed.dir.write("file", random_bytes(2_000_000));
    let _server = testbed.serve_files();
    for link in LINKS {
        let gateway = testbed.gateway(INTERFACES);
        download(&testbed, link, "file");
        let counters = testbed.stop(gateway);
        let count = |name: &str| counter(&counters, name);
        // The number of early ACKs depends on how much a turn receives: the file is thirty super-packets.
        assert!(count("early-acks") > 0, "{link}: {counters}");
        // The gateway has sent the whole file, in segments of up to 1460 bytes.
        assert!(count("segments-sent") >= 2_000_000 / 1460, "{link}: {counters}");
        assert_eq!((count("flows"), count("bytes-delivered") / 2_000_000), (1, 1), "{link}: {counters}");
    }
}
