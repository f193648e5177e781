//! The safe ACK policer at the device of a program behind an emulated link: it drops ACKs of wide windows,
//! and every byte arrives.

use crate::common::emulation::EmulationHost;
use crate::common::namespace::random_bytes;
use crate::common::{PACELINE, parse_json};
use crate::emulate::assert_good;

const LINK: &str = r#"
[run]
warmup = "100 ms"

[core]
hops = [{ rate = "1 Gb/s", delay = "0 ms" }]

[link]
delay = "20 ms"
queue = "500 kB"

[link.fixed]
downlink_rate = "100 Mb/s"
uplink_rate = "20 Mb/s"

[[station]]
"#;

#[test]
fn real_clients_get_every_byte_while_the_safe_policer_drops_acks() {
    let Some(host) = EmulationHost::new(&["curl", "python3", "rsync", "iperf3"]) else { return };
    host.dir.write("file", random_bytes(20_000_000));
    let served = host.dir.path().display();
    host.dir.write("rsyncd.conf", format!("use chroot = no\nuid = 0\ngid = 0\n[files]\npath = {served}\n"));
    let _files = host.serve_files();
    let daemon = ["rsync", "--daemon", "--no-detach", "--port=8730", "--config=rsyncd.conf"];
    let _rsync = host.serve("rsync", 8730, &daemon);
    let _iperf3 = host.serve("iperf3", 5201, &["iperf3", "-s"]);
    let script = format!(
        "device=$(ip -o link | grep -v ' lo:' | head -1 | cut -d: -f2 | cut -d@ -f1 | tr -d ' ')
        {PACELINE} police attach $device --direction egress --drop-share 80% 2>attached &
        policer=$!
        for try in $(seq 100); do grep -q attached attached && break; sleep 0.1; done
        curl -sSf -o curled http://$PACELINE_HOST:8000/file || exit 3
        rsync rsync://$PACELINE_HOST:8730/files/file rsynced || exit 4
        iperf3 -c $PACELINE_HOST -R -n 20M -J >iperf3.json || exit 5
        {PACELINE} police show $device --json >shown.json || exit 6
        kill $policer"
    );
    let output = host.emulate(LINK, &["--", "sh", "-c", &script]);
    assert_good(&output);
    for got in ["curled", "rsynced"] {
        host.dir.assert_same("file", got);
    }
    let sums = &host.dir.json("iperf3.json")["end"];
    assert!(sums["sum_received"]["bytes"].as_u64().unwrap() >= 20_000_000, "{sums}");
    let shown = parse_json(&host.dir.read("shown.json"));
    let policer = &shown["policers"][0];
    println!("{} of {} ACKs dropped", policer["dropped"], policer["acks"]);
    assert!(policer["dropped"].as_u64().unwrap() > 100, "{policer}");
}
