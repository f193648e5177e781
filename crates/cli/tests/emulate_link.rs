//! Real TCP through a link in place of the cell. Needs root; says so and does nothing otherwise, but fails where
//! `PACELINE_REQUIRE_PRIVILEGED` is set.

mod common;

use common::outer::Outer;
use serde_json::Value;

/// 8 Mb/s and 10 ms each way.
const LINK: &str = "[run]\nwarmup = \"2 s\"\n[core]\nhops = []\nPATH[link]\ndelay = \"10 ms\"\nqueue = \"60 kB\"\n\
                    [link.fixed]\ndownlink_rate = \"8 Mb/s\"\n[[station]]\ndirection = \"none\"\n";

#[test]
fn kernel_tcp_fills_a_fixed_link_and_an_accelerated_one() {
    let Some(outer) = Outer::new(&["iperf3"]) else { return };
    let _server = outer.serve("iperf3", 5201, &["iperf3", "-s"]);
    for (folder, path) in [("direct", ""), ("accelerated", "path = \"accelerator\"\n")] {
        let download = ["--out", folder, "--", "iperf3", "-c", "198.18.0.1", "-R", "-t", "7"];
        let said = outer.emulate(&LINK.replace("PATH", path), &download);
        assert_eq!(said.code, 0, "{said:?}");
        let json: Value =
            serde_json::from_str(&outer.place.read(&format!("{folder}/summary.json"))).expect("it is JSON");
        let mean = |name: &str| json["mean"][name].as_f64().unwrap();
        // Of 1500 bytes 1448 are payload.
        let share = mean("goodput_mbps") / (8.0 * 1448.0 / 1500.0);
        assert!((0.9..1.005).contains(&share), "{folder}: {share} of the link: {json}");
        assert!(mean("rtt_mean_ms") >= 20.0 && mean("rtt_mean_ms") < 90.0, "{folder}: {json}");
        assert!((mean("link_capacity_mbps") - 8.0).abs() < 0.01, "{folder}: {json}");
    }
}
