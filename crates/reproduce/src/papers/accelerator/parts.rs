//! Runs of the experiment, with the published values that they are compared with.

use crate::plan::{Part, strings};

/// Probe on 3G as published: rate (Mb/s), round-trip time (ms), loss (percent).
pub(super) const PROBE_3G: [(f64, f64, f64); 8] = [
    (0.8, 62.0, 0.02),
    (1.6, 69.0, 0.01),
    (2.4, 68.0, 0.32),
    (3.2, 84.0, 0.14),
    (4.0, 287.0, 1.9),
    (4.8, 792.0, 27.1),
    (5.6, 753.0, 26.5),
    (6.4, 679.0, 35.4),
];
/// Probe on LTE as published: rate (Mb/s), round-trip time (ms), loss (percent).
pub(super) const PROBE_LTE: [(f64, f64, f64); 8] = [
    (1.6, 25.0, 0.01),
    (4.0, 34.0, 0.01),
    (8.0, 38.0, 0.8),
    (16.0, 51.0, 3.7),
    (28.0, 66.0, 5.5),
    (36.0, 171.0, 10.7),
    (40.0, 964.0, 11.8),
    (80.0, 1466.0, 34.8),
];
/// Rate of the source and published accelerated goodput, Mb/s.
pub(super) const SOURCE: [(f64, f64); 7] =
    [(0.8, 0.80), (1.6, 1.60), (2.4, 2.39), (3.2, 3.19), (4.0, 3.94), (4.8, 4.50), (5.6, 5.19)];
/// Payload of a segment of the source: an Ethernet packet of 1500 bytes (IEEE 802.3) without TCP options.
const SEGMENT_BYTES: f64 = 1460.0;
/// Published file sizes: name and bytes.
pub(super) const FILES: [(&str, u64); 9] = [
    ("32 KiB", 32 << 10),
    ("64 KiB", 64 << 10),
    ("128 KiB", 128 << 10),
    ("256 KiB", 256 << 10),
    ("512 KiB", 512 << 10),
    ("1 MiB", 1 << 20),
    ("2 MiB", 2 << 20),
    ("5 MiB", 5 << 20),
    ("10 MiB", 10 << 20),
];
/// LTE signal conditions (RSRP in dBm, SINR in dB), the mean channel rate that gives the published UDP
/// goodput, and the published goodput of UDP, plain TCP and accelerated TCP, Mb/s.
pub(super) const CONDITIONS: [(&str, &str, f64, f64, f64); 4] = [
    ("(-64, 27)", "95 Mb/s", 81.0, 34.0, 74.0),
    ("(-81, 27)", "94.2 Mb/s", 80.0, 36.0, 73.0),
    ("(-90, 27)", "64 Mb/s", 55.0, 30.0, 53.0),
    ("(-110, 15)", "58.1 Mb/s", 50.0, 27.0, 47.0),
];
/// Published range of the goodput of plain TCP on 3G at sources of 2.4 Mb/s and more, Mb/s.
pub(super) const PLATEAU_MBPS: (f64, f64) = (1.45, 1.65);
/// Published range of the goodput of plain TCP in the best of [`CONDITIONS`], Mb/s.
pub(super) const BEST_CONDITION_MBPS: (f64, f64) = (30.0, 44.0);
/// Congestion controls of the runs without accelerator.
pub(super) const CONTROLS: [&str; 3] = ["cubic", "westwood", "veno"];
/// Rate controls of the accelerator.
pub(super) const PROFILES: [&str; 2] = ["paper", "adaptive"];
/// Receive buffers of a 3G client: that of Windows XP and a large one.
const WINDOWS: [&str; 2] = ["17520 B", "64 KiB"];
/// Tolerance of a probe's round-trip times: a factor. Chosen; the row states it.
pub(super) const PROBE_RTT_FACTOR: f64 = 1.25;
/// Tolerance of a probe's losses, percentage points. Chosen; the row states it.
pub(super) const PROBE_LOSS_POINTS: f64 = 3.0;
/// Tolerance of goodput, as a share of the published value. Chosen; the rows state it.
pub(super) const GOODPUT_TOLERANCE: f64 = 0.02;

/// All parts of the experiment.
pub fn parts() -> Vec<Part> {
    let rates = |probe: &[(f64, f64, f64)]| probe.iter().map(|(rate, ..)| format!("{rate} Mb/s")).collect();
    let probe = |name: &str, scenario, rates| Part {
        name: name.to_owned(),
        scenario,
        set: strings(&["station.traffic=udp"]),
        over: vec![("station.udp_rate", rates)],
    };
    let source = || {
        let interval = |(rate, _): &(f64, f64)| format!("{:.0} us", SEGMENT_BYTES * 8.0 / rate);
        ("station.chunk_interval", SOURCE.iter().map(interval).collect::<Vec<String>>())
    };
    let files = || ("station.file", strings(&FILES.map(|(name, _)| name)));
    let conditions = || ("link.lte_early.rate", strings(&CONDITIONS.map(|(_, rate, ..)| rate)));
    let chunk = "station.chunk=1460 B";
    let accelerated = "core.proxy=accelerator";
    let whole_run = ["run.duration=120 s", "run.warmup=0 s", "station.start_spread=0 s"];
    let (small, large) = ("accelerator-3g", "accelerator-lte");
    let part = |name: &str, scenario, set: &[&str], over| Part {
        name: name.to_owned(),
        scenario,
        set: strings(set),
        over,
    };
    vec![
        probe("probe-3g", small, rates(&PROBE_3G)),
        probe("probe-lte", large, rates(&PROBE_LTE)),
        part(
            "source-direct",
            small,
            &[chunk],
            vec![("tcp.congestion_control", strings(&CONTROLS)), source()],
        ),
        part(
            "source-accelerated",
            small,
            &[chunk, accelerated],
            vec![("accelerator.profile", strings(&PROFILES)), source()],
        ),
        part("files-direct", small, &whole_run, vec![("tcp.receive_buffer", strings(&WINDOWS)), files()]),
        part(
            "files-accelerated",
            small,
            &[&whole_run[..], &[accelerated]].concat(),
            vec![("accelerator.profile", strings(&PROFILES)), files()],
        ),
        part("lte-udp", large, &["station.traffic=udp", "station.udp_rate=150 Mb/s"], vec![conditions()]),
        part("lte-direct", large, &[], vec![conditions()]),
        part(
            "lte-accelerated",
            large,
            &[accelerated],
            vec![("accelerator.profile", strings(&PROFILES)), conditions()],
        ),
        part("window", small, &[], vec![]),
        // A constant rate: no round-trip time is below alpha or above beta.
        part(
            "window-opportunistic",
            small,
            &[accelerated, "accelerator.alpha=1 ms", "accelerator.beta=10 s"],
            vec![],
        ),
    ]
}
