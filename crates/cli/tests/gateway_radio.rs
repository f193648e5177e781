//! The live gateway in front of the emulated radio, on each link that the accelerator is for. Needs root; says so and does
//! nothing otherwise, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::PACELINE;
use common::bed::{Bed, CLIENT, PLAIN, SERVER};
use common::outer::{random_bytes, skip};
use common::said;
use std::process::Command;

/// Scenarios whose packets are of different lengths, with and without timestamps.
const LINKS: [&str; 4] = ["single-station", "accelerator-3g", "accelerator-lte", "accelerator-trace"];

/// A station downloads through the emulated link, as long as that takes at the latest; the file has to come as it was.
fn download(bed: &Bed, link: &str, file: &str) {
    let fetch = format!("curl -sS --max-time 20 -o got http://{SERVER}:8000/{file}");
    bed.shell(&bed.client, &format!("{PACELINE} emulate {link} --set core.path=direct -- {fetch}"));
    bed.assert_same(file, "got");
}

#[test]
fn stations_of_every_link_download_through_the_gateway() {
    let doctor = said(Command::new(PACELINE).arg("doctor"));
    if !doctor.stdout.lines().any(|line| line == "emulate: yes") {
        return skip("this host cannot emulate");
    }
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.shell(&bed.client, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    bed.shell(&bed.server, &format!("ip route add 198.18.0.0/15 via {CLIENT}"));
    bed.place.write("file", random_bytes(2_000_000));
    let _server = bed.serve_files();
    for link in LINKS {
        let gateway = bed.gateway(PLAIN);
        download(&bed, link, "file");
        let counters = bed.stop(gateway);
        let count = |name: &str| counters[name].as_u64().unwrap_or_else(|| panic!("{name}: {counters}"));
        // How many they are depends on how much comes in a turn: all of the file is thirty super-packets.
        assert!(count("early-acks") > 0, "{link}: {counters}");
        // The gateway itself has sent all of it, in segments of 1460 bytes at most.
        assert!(count("segments-sent") >= 2_000_000 / 1460, "{link}: {counters}");
        assert_eq!((count("flows"), count("bytes-delivered") / 2_000_000), (1, 1), "{link}: {counters}");
    }
}
