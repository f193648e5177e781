//! The gateway's other policies: connections without early ACKs, and the ACK filter.

use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{HTTP, HTTP6, INTERFACES, SERVER, Testbed, counter};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

/// ACKs that the filter forwarded, for any reason.
fn kept(counters: &Value) -> u64 {
    let all = counters.as_object().unwrap().iter();
    all.filter(|(name, _)| name.starts_with("kept-")).map(|(_, value)| value.as_u64().unwrap()).sum()
}

#[test]
fn relayed_connections_get_no_early_acknowledgments_and_filtered_ones_lose_acks_only() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    // A client sends one ACK for a super-packet: too few for the filter to discard any.
    for (namespace, device) in [(&testbed.client, "cli0"), (&testbed.server, "srv0")] {
        testbed.shell(namespace, &format!("ethtool -K {device} tso off gso off gro off"));
    }
    // Reno has no HyStart, which ends slow start when round trips grow: then hardly any ACK waits in the
    // filter's queue.
    testbed.shell(&testbed.server, "echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
    testbed.dir.write("file", random_bytes(10_000_000));
    let _server = testbed.serve_files();
    let rule =
        |prefix: &str, action: &str| format!("[[policy]]\nprefix = \"{prefix}\"\naction = \"{action}\"\n");
    let rules = [
        rule("10.0.0.0/8", "relay"),
        rule("fd09::/64", "filter"),
        "[filter]\nrate = \"200 kb/s\"\nholdout = 0\n".into(),
    ];
    let gateway = testbed.gateway(&format!("{INTERFACES}{}", rules.concat()));
    testbed.download("file", HTTP);
    testbed.download("file", HTTP6);
    let counters = testbed.stop(gateway);
    assert_eq!((counter(&counters, "flows"), counter(&counters, "early-acks")), (1, 0), "{counters}");
    assert!(counter(&counters, "bytes-delivered") >= 10_000_000, "{counters}");
    assert!(counter(&counters, "filter-acks-discarded") > 100, "{counters}");
    assert!(kept(&counters) > 100, "the reasons of forwarded ACKs are counted: {counters}");
}

/// The packets in the filter's queue are sent before the kernel forwards later packets.
#[test]
fn a_stop_sends_the_packets_in_the_filters_queue() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(20_000_000));
    testbed.shell(&testbed.middlebox, "tc qdisc replace dev mob root tbf rate 50mbit burst 100kb limit 1mb");
    let _server = testbed.serve_files();
    // A rate below that of the client's ACKs and requests.
    let filter = "[[policy]]\nprefix = \"::/0\"\naction = \"filter\"\n[filter]\nrate = \"300 kb/s\"\n";
    let gateway = testbed.gateway(&format!("{INTERFACES}{filter}"));
    let fetch = |number: u32| {
        let line = format!("curl -sS -o got{number} '{HTTP6}/file'");
        testbed.start(&testbed.client, &format!("curl{number}"), &line)
    };
    let mut fetches: Vec<Program> = (0..4).map(fetch).collect();
    wait_for("a part of the files", || {
        let size = |number: u32| {
            std::fs::metadata(testbed.dir.join(&format!("got{number}"))).map_or(0, |file| file.len())
        };
        ((0..4).map(size).sum::<u64>() > 5_000_000).then_some(())
    });
    let counters = testbed.stop(gateway);
    let received = counter(&counters, "filter-acks-in");
    assert!(received > 100, "{counters}");
    assert_eq!(
        counter(&counters, "filter-acks-discarded") + kept(&counters),
        received,
        "an ACK was neither forwarded nor discarded: {counters}"
    );
    assert_eq!(counter(&counters, "filter-queue-drops"), 0, "{counters}");
    for (number, fetch) in fetches.iter_mut().enumerate() {
        let output = fetch.finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        testbed.dir.assert_same("file", &format!("got{number}"));
    }
}

/// Servers that retransmit when ACKs are missing. The filter stops itself, since servers of connections that
/// are not filtered retransmit less.
// keeps: ack-filter.20
#[test]
fn a_filter_that_causes_retransmissions_is_stopped() {
    let Some(testbed) = Testbed::new(&["python3"]) else { return };
    testbed.dir.write("thinned.py", include_str!("../common/thinned.py"));
    let filter = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"filter\"\n[filter]\nrate = \"900 kb/s\"\n\
                  queue = \"16 MiB\"\nholdout = 0.4\nperiod = \"100 ms\"\n";
    let config = testbed.config(filter);
    let mut gateway = testbed.gateway(&config);
    let discarded = || testbed.counter("filter-acks-discarded");
    let line = format!("python3 thinned.py /proc/{}/ns/net 600", testbed.client.id());
    let traffic = testbed.start(&testbed.server, "thinned", &line);
    wait_for("the filter to work", || (discarded() > 0).then_some(()));
    assert_eq!(testbed.status()["filter_stopped"], Value::Null);
    let reason = wait_for("the filter to be stopped", || {
        testbed.status()["filter_stopped"].as_str().map(str::to_owned)
    });
    assert!(
        reason.starts_with("servers sent ") && reason.contains("% again to connections that are filtered"),
        "{reason}"
    );
    let mut messages = || gateway.output_so_far().stderr.matches("the ACK filter is stopped until").count();
    wait_for("the message", || (messages() == 1).then_some(()));
    let before = discarded();
    sleep(Duration::from_secs(1));
    assert_eq!(discarded(), before, "ACKs are discarded after the stop");
    // After a reload with other policies the workers decide on packets, not the kernel program; they compare
    // connections in the same way.
    let other = "[[policy]]\nprefix = \"192.0.2.0/24\"\naction = \"leave\"\n";
    testbed.dir.write("gateway.toml", format!("{config}{other}"));
    assert_eq!(testbed.control(&["reload"]).code, 0);
    wait_for("the filter to work again", || (discarded() > before).then_some(()));
    wait_for("the filter to be stopped again", || (messages() == 2).then_some(()));
    traffic.signal("TERM");
    let counters = testbed.stop(gateway);
    let groups = |quantity: &str| {
        ["filtered", "held-out"].map(|group| counter(&counters, &format!("compared-{quantity}-{group}")))
    };
    let [repeated, repeated_held_out] = groups("repeated");
    // Pauses of the machine cause repetitions in both groups.
    assert!(repeated > repeated_held_out, "{counters}");
    let [bytes, bytes_held_out] = groups("bytes");
    assert!(bytes < 2 * bytes_held_out && bytes_held_out < 2 * bytes, "{counters}");
    assert!(
        bytes + bytes_held_out < 1_000_000_000,
        "segments whose header length exceeds their length were counted: {counters}"
    );
}

/// Super-packets are segmented ahead of the filter's queue, which has room for few of them.
#[test]
fn super_packets_are_segmented_ahead_of_a_short_queue() {
    let Some(testbed) = Testbed::new(&["python3"]) else { return };
    testbed.dir.write("file", random_bytes(3_000_000));
    let rule = "[[policy]]\nprefix = \"10.0.0.0/8\"\naction = \"filter\"\n";
    let gateway =
        testbed.gateway(&format!("{INTERFACES}{rule}[filter]\nrate = \"20 Mb/s\"\nqueue = \"200 kB\"\n"));
    testbed.upload(SERVER);
    let counters = testbed.stop(gateway);
    let frames = ["frames-in", "frames-out"].map(|name| counter(&counters, name));
    assert!(frames[0] < 1500 && frames[1] > 3_000_000 / 1448, "{counters}");
    // Whole super-packets would overflow the queue again and again: most of the file would be sent several
    // times.
    assert!(frames[1] < 2 * 3_000_000 / 1448, "{counters}");
}
