//! The live gateway's other policies: pacing alone, and the ACK filter. Needs root; says so and does nothing otherwise, but
//! fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

#![allow(clippy::disallowed_methods)] // real time

mod common;

use common::PACELINE;
use common::bed::{Bed, PLAIN, SERVER};
use common::outer::{Program, random_bytes, until};
use paceline_live::clock;
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
    let rules = [
        rule("10.0.0.0/8", "pace"),
        rule("fd09::/64", "filter"),
        "[filter]\nrate = \"200 kb/s\"\nholdout = 0\n".into(),
    ];
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

/// Servers that send again where acknowledgments come thinned: it is found out, by those whose acknowledgments do not.
#[test]
fn a_filter_that_does_harm_is_stopped() {
    let Some(bed) = Bed::new(&["python3"]) else { return };
    bed.place.write("thinned.py", include_str!("common/thinned.py"));
    let filter = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"filter\"\n[filter]\nrate = \"900 kb/s\"\n\
                  queue = \"16 MiB\"\nholdout = 0.4\nperiod = \"100 ms\"\n";
    let config = format!("{PLAIN}{filter}");
    let mut gateway = bed.gateway(&config);
    let status = || -> Value {
        let said = bed.shell(&bed.middle, &format!("{PACELINE} gateway status --json"));
        serde_json::from_str(&said.stdout).unwrap()
    };
    let discarded = || count(&status()["counters"], "filter-acks-discarded");
    let line = format!("python3 thinned.py /proc/{}/ns/net 90", bed.client.id());
    let traffic = bed.start(&bed.server, "thinned", &line);
    until("the filter to work", || (discarded() > 0).then_some(()));
    assert_eq!(status()["filter_stopped"], Value::Null);
    let why = until("the filter to be stopped", || status()["filter_stopped"].as_str().map(str::to_owned));
    assert!(
        why.starts_with("servers sent ") && why.contains("% again to connections that are filtered"),
        "{why}"
    );
    let mut times_said = || gateway.so_far().stderr.matches("the ACK filter is out of use until").count();
    until("it to be said", || (times_said() == 1).then_some(()));
    let before = discarded();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(discarded(), before, "it discards no more");
    // From a reload with other policies on the workers decide, and connections are compared all the same.
    let other = "[[policy]]\nprefix = \"192.0.2.0/24\"\naction = \"leave\"\n";
    bed.place.write("box.toml", format!("{config}{other}"));
    bed.shell(&bed.middle, &format!("{PACELINE} gateway reload"));
    until("the filter to work again", || (discarded() > before).then_some(()));
    until("the filter to be stopped again", || (times_said() == 2).then_some(()));
    traffic.signal("TERM");
    let counters = bed.stop(gateway);
    let groups = |what: &str| {
        ["filtered", "held-out"].map(|group| count(&counters, &format!("compared-{what}-{group}")))
    };
    let ([filtered, held_out], [bytes, other]) = (groups("repeated"), groups("bytes"));
    assert!(filtered > 2 * held_out, "{counters}");
    assert!(bytes < 2 * other && other < 2 * bytes, "{counters}");
    assert!(
        bytes + other < 1_000_000_000,
        "segments that are shorter than their headers do not count: {counters}"
    );
}

/// Super-packets are cut ahead of a queue and a line that are short for them.
#[test]
fn uploads_pass_a_short_queue() {
    let Some(bed) = Bed::new(&["python3"]) else { return };
    bed.place.write("file", random_bytes(3_000_000));
    let rule = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"filter\"\n";
    let gateway = bed.gateway(&format!("{PLAIN}{rule}[filter]\nrate = \"20 Mb/s\"\nqueue = \"200 kB\"\n"));
    let began = clock::now();
    bed.upload(SERVER);
    let took = clock::now().since(began).as_secs_f64();
    let counters = bed.stop(gateway);
    let frames = ["frames-in", "frames-out"].map(|name| count(&counters, name));
    assert!(frames[0] < 1500 && frames[1] > 3_000_000 / 1448, "{counters}");
    // 1.2 s, and what a full queue costs.
    assert!(took < 5.0, "{took} s: {counters}");
}
