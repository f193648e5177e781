//! The live gateway's other policies: pacing alone, and the ACK filter. Needs root; says so and does nothing otherwise, but
//! fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::bed::{Bed, PLAIN};
use common::outer::{Program, random_bytes, until};
use serde_json::Value;

const HTTP: &str = "http://10.9.0.1:8000";
const HTTP6: &str = "http://[fd09::1]:8000";

fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {counters}"))
}

/// ACKs that were let through, whatever spoke for them.
fn kept(counters: &Value) -> u64 {
    let all = counters.as_object().unwrap().iter();
    all.filter(|(name, _)| name.starts_with("kept-")).map(|(_, value)| value.as_u64().unwrap()).sum()
}

#[test]
fn paced_connections_get_no_early_acknowledgments_and_filtered_ones_lose_acks_only() {
    let Some(bed) = Bed::new(&["curl", "python3", "ethtool"]) else { return };
    // Super-packets have one ACK each, of which none is too many.
    for (place, device) in [(&bed.client, "cli0"), (&bed.server, "srv0")] {
        bed.shell(place, &format!("ethtool -K {device} tso off gso off gro off"));
    }
    // Reno has no HyStart, which may end slow start at the first ACKs that wait, and then hardly any do.
    bed.shell(&bed.server, "echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
    bed.place.write("file", random_bytes(10_000_000));
    let _server = bed.serve_files();
    let rule =
        |prefix: &str, action: &str| format!("[[policy]]\nprefix = \"{prefix}\"\naction = \"{action}\"\n");
    let rules =
        [rule("10.0.0.0/8", "pace"), rule("fd09::/64", "filter"), "[filter]\nrate = \"200 kb/s\"\n".into()];
    let gateway = bed.gateway(&format!("{PLAIN}{}", rules.concat()));
    bed.download("file", HTTP);
    bed.download("file", HTTP6);
    let counters = bed.stop(gateway);
    assert_eq!((count(&counters, "flows"), count(&counters, "early-acks")), (1, 0), "{counters}");
    assert!(count(&counters, "bytes-delivered") >= 10_000_000, "{counters}");
    assert!(count(&counters, "filter-acks-discarded") > 100, "{counters}");
    assert!(kept(&counters) > 100, "and why the others went: {counters}");
}

/// What the filter's queue holds when the gateway is told to stop goes on ahead of what the kernel takes over.
#[test]
fn a_stop_lets_go_of_what_the_filter_holds() {
    let Some(bed) = Bed::new(&["curl", "python3"]) else { return };
    bed.place.write("file", random_bytes(20_000_000));
    bed.shell(&bed.middle, "tc qdisc replace dev mob root tbf rate 50mbit burst 100kb limit 1mb");
    let _server = bed.serve_files();
    // Slower than its acknowledgments and requests come.
    let filter = "[[policy]]\nprefix = \"::/0\"\naction = \"filter\"\n[filter]\nrate = \"300 kb/s\"\n";
    let gateway = bed.gateway(&format!("{PLAIN}{filter}"));
    let fetch = |number: u32| {
        let line = format!("curl -sS --speed-time 10 --speed-limit 1 -o got{number} '{HTTP6}/file'");
        bed.start(&bed.client, &format!("curl{number}"), &line)
    };
    let mut fetches: Vec<Program> = (0..4).map(fetch).collect();
    until("a part of the files", || {
        let size = |number: u32| {
            std::fs::metadata(bed.place.join(&format!("got{number}"))).map_or(0, |file| file.len())
        };
        ((0..4).map(size).sum::<u64>() > 5_000_000).then_some(())
    });
    let counters = bed.stop(gateway);
    let came = count(&counters, "filter-acks-in");
    assert!(came > 100, "{counters}");
    assert_eq!(
        count(&counters, "filter-acks-discarded") + kept(&counters),
        came,
        "none stays behind: {counters}"
    );
    assert_eq!(count(&counters, "filter-queue-drops"), 0, "{counters}");
    for (number, fetch) in fetches.iter_mut().enumerate() {
        let said = fetch.finish(std::time::Duration::from_secs(60));
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
        bed.assert_same("file", &format!("got{number}"));
    }
}
