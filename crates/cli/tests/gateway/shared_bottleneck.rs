//! Devices behind one full queue: the gateway notices that they share it, and says so.

use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::{SERVER, Testbed};
use crate::gateway::operation::serve;
use serde_json::Value;

const METRICS: &str = "metrics = \"127.0.0.1:9464\"\n";

/// Eight devices behind a bridge whose port towards them carries 50 Mb/s from a queue of 100 kB.
#[test]
fn a_queue_that_devices_share_is_a_note_and_a_metric() {
    let Some(testbed) = Testbed::new(&["python3", "tc", "curl"]) else { return };
    testbed.dir.write("file", random_bytes(8_000_000));
    let addresses: String = (100..108).map(|n| format!("ip addr add 10.9.0.{n}/24 dev end && ")).collect();
    testbed.shell(
        &testbed.client,
        &format!(
            "ip addr flush dev cli0 && ip link add port type bridge && ip link add end type veth peer name line && \
             ip link set cli0 master port && ip link set line master port && \
             echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore && {addresses} \
             ip link set end up && ip link set line up && ip link set port up && \
             tc qdisc replace dev line root tbf rate 50mbit burst 20kb limit 100kb"
        ),
    );
    testbed.dir.write("devices.py", include_str!("../common/devices.py"));
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(METRICS));
    let line = format!("python3 devices.py {SERVER} 9000 10.9.0.100 8 15");
    let devices = testbed.start(&testbed.client, "devices", &line);
    let status: Value = wait_for("a note", || {
        let status = testbed.status();
        status.get("notes").is_some().then_some(status)
    });
    assert!(status["notes"][0].as_str().unwrap().contains("share a bottleneck"), "{status}");
    assert!(status["shared_devices"].as_u64() >= Some(2), "{status}");
    let metrics = testbed.shell(&testbed.middlebox, "curl -sS http://127.0.0.1:9464/metrics").stdout;
    let found = metrics.lines().find_map(|line| line.strip_prefix("paceline_shared_bottleneck_devices "));
    assert!(found.is_some_and(|count| count.parse::<u32>().unwrap() >= 2), "{metrics}");
    devices.signal("KILL");
    assert!(gateway.output_so_far().stderr.contains("share a bottleneck"));
    testbed.stop(gateway);
}
