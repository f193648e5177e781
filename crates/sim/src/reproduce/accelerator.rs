//! K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP Performance in Mobile Data Networks" (2011):
//! the probes' tables and the published quantities 2a to 2g from runs on the two channels that the probes calibrated.
//!
//! A row holds where what was published does: a figure within the tolerance that the row states, an order, or a share.
//! Accelerated rows are given for the published rate control and for the adaptive one.

mod rows;

pub use rows::Experiment;

/// Runs that belong together: a scenario and what changes in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// The built-in scenario.
    pub scenario: &'static str,
    /// What is set in all of them.
    pub set: Vec<String>,
    /// Keys and their values; the last one changes fastest.
    pub over: Vec<(&'static str, Vec<String>)>,
}

/// Rates of the probe on 3G, Mb/s, with published round-trip times (ms) and losses (%).
const PROBE_3G: [(f64, f64, f64); 8] = [
    (0.8, 62.0, 0.02),
    (1.6, 69.0, 0.01),
    (2.4, 68.0, 0.32),
    (3.2, 84.0, 0.14),
    (4.0, 287.0, 1.9),
    (4.8, 792.0, 27.1),
    (5.6, 753.0, 26.5),
    (6.4, 679.0, 35.4),
];
/// The same on LTE.
const PROBE_LTE: [(f64, f64, f64); 8] = [
    (1.6, 25.0, 0.01),
    (4.0, 34.0, 0.01),
    (8.0, 38.0, 0.8),
    (16.0, 51.0, 3.7),
    (28.0, 66.0, 5.5),
    (36.0, 171.0, 10.7),
    (40.0, 964.0, 11.8),
    (80.0, 1466.0, 34.8),
];
/// Rates of the source, Mb/s, and what was published as the accelerated goodput.
const SOURCE: [(f64, f64); 7] =
    [(0.8, 0.80), (1.6, 1.60), (2.4, 2.39), (3.2, 3.19), (4.0, 3.94), (4.8, 4.50), (5.6, 5.19)];
/// Payload of a segment of the source, bytes.
const SEGMENT: f64 = 1460.0;
/// Sizes of files, kB and MB as powers of two.
const FILES: [(&str, u64); 9] = [
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
/// LTE signal conditions (RSRP in dBm, SINR in dB) with the mean rate that gives their UDP goodput, and the published
/// goodput of UDP, plain TCP and accelerated TCP, Mb/s.
const CONDITIONS: [(&str, &str, f64, f64, f64); 4] = [
    ("(-64, 27)", "95 Mb/s", 81.0, 34.0, 74.0),
    ("(-81, 27)", "94.2 Mb/s", 80.0, 36.0, 73.0),
    ("(-90, 27)", "64 Mb/s", 55.0, 30.0, 53.0),
    ("(-110, 15)", "58.1 Mb/s", 50.0, 27.0, 47.0),
];
const CONTROLS: [&str; 3] = ["cubic", "westwood", "veno"];
const PROFILES: [&str; 2] = ["paper", "adaptive"];
/// Small and large window of a 3G client.
const WINDOWS: [&str; 2] = ["17520 B", "64 KiB"];
/// What a probe's figures may differ: round-trip times by a factor, losses by percentage points.
const PROBE_RTT_FACTOR: f64 = 1.25;
const PROBE_LOSS_POINTS: f64 = 3.0;
/// What goodput may differ from the published one, as a share.
const GOODPUT_TOLERANCE: f64 = 0.02;

/// All parts. `over` values are what `paceline sweep --over` takes.
pub fn parts() -> Vec<Part> {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<String>>();
    let rates = |probe: &[(f64, f64, f64)]| probe.iter().map(|(rate, ..)| format!("{rate} Mb/s")).collect();
    let probe = |name, scenario, rates| Part {
        name,
        scenario,
        set: owned(&["station.traffic=udp"]),
        over: vec![("station.udp_rate", rates)],
    };
    let source = || {
        let interval = |(rate, _): &(f64, f64)| format!("{:.0} us", SEGMENT * 8.0 / rate);
        ("station.chunk_interval", SOURCE.iter().map(interval).collect::<Vec<String>>())
    };
    let files = || ("station.file", owned(&FILES.map(|(name, _)| name)));
    let conditions = || ("link.lte_early.rate", owned(&CONDITIONS.map(|(_, rate, ..)| rate)));
    let chunk = "station.chunk=1460 B";
    let accelerated = "core.path=accelerator";
    let whole = ["run.duration=120 s", "run.warmup=0 s", "station.start_spread=0 s"];
    let (small, large) = ("accelerator-3g", "accelerator-lte");
    let part = |name, scenario, set: &[&str], over| Part { name, scenario, set: owned(set), over };
    vec![
        probe("probe-3g", small, rates(&PROBE_3G)),
        probe("probe-lte", large, rates(&PROBE_LTE)),
        part("source-direct", small, &[chunk], vec![("tcp.congestion_control", owned(&CONTROLS)), source()]),
        part(
            "source-accelerated",
            small,
            &[chunk, accelerated],
            vec![("accelerator.profile", owned(&PROFILES)), source()],
        ),
        part("files-direct", small, &whole, vec![("tcp.receive_buffer", owned(&WINDOWS)), files()]),
        part(
            "files-accelerated",
            small,
            &[&whole[..], &[accelerated]].concat(),
            vec![("accelerator.profile", owned(&PROFILES)), files()],
        ),
        part("lte-udp", large, &["station.traffic=udp", "station.udp_rate=150 Mb/s"], vec![conditions()]),
        part("lte-direct", large, &[], vec![conditions()]),
        part(
            "lte-accelerated",
            large,
            &[accelerated],
            vec![("accelerator.profile", owned(&PROFILES)), conditions()],
        ),
        part("window", small, &[], vec![]),
        // A rate that nothing changes: no round-trip time is below alpha or above beta.
        part(
            "window-opportunistic",
            small,
            &[accelerated, "accelerator.alpha=1 ms", "accelerator.beta=10 s"],
            vec![],
        ),
    ]
}
