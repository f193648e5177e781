//! Kernel TCP through an emulated link in place of the cell.

use crate::common::emulation::{EmulationHost, was_on_time};
use crate::emulate::summary;

/// 8 Mb/s and 10 ms each way.
const LINK: &str = "[run]\nwarmup = \"2 s\"\n[core]\nhops = []\nPATH[link]\ndelay = \"10 ms\"\nqueue = \"60 kB\"\n\
                    [link.fixed]\ndownlink_rate = \"8 Mb/s\"\n[[station]]\ndirection = \"none\"\n";

#[test]
fn kernel_tcp_fills_a_fixed_link_and_an_accelerated_one() {
    let Some(host) = EmulationHost::new(&["iperf3"]) else { return };
    let _server = host.serve("iperf3", 5201, &["iperf3", "-s"]);
    for (folder, path) in [("direct", ""), ("accelerated", "proxy = \"accelerator\"\n")] {
        let download = ["--out", folder, "--", "iperf3", "-c", "198.18.0.1", "-R", "-t", "7"];
        let output = host.emulate(&LINK.replace("PATH", path), &download);
        assert_eq!(output.code, 0, "{output:?}");
        let json = summary(&host, folder);
        let mean = |name: &str| json["mean"][name].as_f64().unwrap();
        assert!((mean("link_capacity_mbps") - 8.0).abs() < 0.01, "{folder}: {json}");
        assert!(mean("rtt_mean_ms") >= 20.0, "{folder}: {json}");
        if !was_on_time(&output.stderr) {
            eprintln!("{folder}: not judged: the emulator was late");
            continue;
        }
        // 1448 of 1500 bytes are payload.
        let share = mean("goodput_mbps") / (8.0 * 1448.0 / 1500.0);
        assert!((0.9..1.005).contains(&share), "{folder}: {share} of the link: {json}");
        assert!(mean("rtt_mean_ms") < 90.0, "{folder}: {json}");
    }
}
