//! A full queue on the gateway's own interface: frames wait, and one device's queue holds no other device up.

use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{SERVER, Testbed};
use crate::gateway::operation::{ends, serve};
use serde_json::Value;

/// A transfer of the file for each of `devices`, from their own addresses 10.9.0.11 and up.
fn fetch(testbed: &Testbed, name: &str, devices: std::ops::Range<u8>) -> Program {
    let addresses: Vec<String> = devices.map(|n| format!("10.9.0.{n}")).collect();
    for address in &addresses {
        testbed.shell(&testbed.client, &format!("ip addr replace {address}/24 dev cli0"));
    }
    let (count, sources) = (addresses.len(), addresses.join(" "));
    let line = format!("python3 transfers.py fetch {SERVER} 9000 {count} file 60 {sources}");
    testbed.start(&testbed.client, name, &line)
}

#[test]
fn a_full_queue_of_the_own_interface_refuses_frames_that_are_kept() {
    let Some(testbed) = Testbed::new(&["python3", "tc"]) else { return };
    testbed.dir.write("file", random_bytes(2_000_000));
    // Less than the smallest windows of eight devices together: it is full however slow the machine is.
    testbed.shell(&testbed.middlebox, "tc qdisc replace dev mob root tbf rate 50mbit burst 10kb limit 30kb");
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(""));
    let transfers = fetch(&testbed, "fetch", 11..19);
    let status: Value = wait_for("a note", || {
        let status = testbed.status();
        status.get("notes").is_some().then_some(status)
    });
    assert!(status["notes"][0].as_str().unwrap().contains("refuses frames"), "{status}");
    let frames = |status: &Value, name: &str| status["counters"][name].as_u64().unwrap();
    assert_eq!(ends(transfers), (8, 0));
    let status = testbed.status();
    let [refused, sent, lost] =
        ["frames-refused", "frames-out", "frames-lost-out"].map(|name| frames(&status, name));
    assert!(refused > 0 && refused < sent, "{refused} refusals of {sent} frames");
    assert_eq!((lost, frames(&status, "flows-reset")), (0, 0), "{status}");
    assert!(gateway.output_so_far().stderr.contains("refuses frames"));
    testbed.stop(gateway);
}

#[test]
fn a_full_queue_of_one_device_holds_no_other_device_up() {
    let Some(testbed) = Testbed::new(&["python3", "tc"]) else { return };
    testbed.dir.write("file", random_bytes(4_000_000));
    // The device with the address 10.9.0.11 has a queue of 20 kB at 1 Mb/s.
    testbed.shell(
        &testbed.middlebox,
        "tc qdisc replace dev mob root handle 1: htb default 20 && \
         tc class add dev mob parent 1: classid 1:10 htb rate 1mbit && \
         tc class add dev mob parent 1: classid 1:20 htb rate 1gbit && \
         tc qdisc add dev mob parent 1:10 bfifo limit 20kb && \
         tc filter add dev mob parent 1: protocol ip u32 match ip dst 10.9.0.11 flowid 1:10",
    );
    let _server = serve(&testbed);
    let gateway = testbed.gateway(&testbed.config(""));
    let mut slow = fetch(&testbed, "slow", 11..12);
    wait_for("refusals", || (testbed.counter("frames-refused") > 0).then_some(()));
    assert_eq!(ends(fetch(&testbed, "fast", 12..16)), (4, 0));
    // 500 kB would be four seconds of the slow queue.
    assert_eq!(slow.output_so_far().stdout, "", "the slow transfer has not ended");
    assert_eq!(testbed.counter("frames-lost-out"), 0);
    slow.signal("KILL");
    testbed.stop(gateway);
}
