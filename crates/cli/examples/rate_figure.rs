//! `make rate-figure`: quantities of the accelerator's rate control around two steps of the capacity, to the
//! file `docs/rate-control.svg`. Its states on stdout.

use paceline_report::html::standalone;
use paceline_report::picture::{Chart, Kind, Mark, Series, Style, below_one_another};
use paceline_sim::results::Sample;
use paceline_sim::{scenario, simulate};

/// Capacity in Mb/s until a time in ms, of 1504-byte opportunities in mahimahi's format.
const STEPS: [(u64, u64); 3] = [(2_000, 24), (3_000, 72), (4_000, 24)];

const SCENARIO: &str = r#"
[run]
duration = "4 s"
warmup = "1500 ms"
sample = "10 ms"
[core]
proxy = "accelerator"
hops = [{ rate = "1 Gb/s", delay = "5 ms" }]
[tcp]
receive_buffer = "16 MiB"
send_buffer = "16 MiB"
[link]
delay = "15 ms"
queue = "1 MB"
[link.trace]
downlink = "steps"
uplink_rate = "20 Mb/s"
[[station]]
"#;

/// The opportunities of the steps.
fn trace() -> Vec<u8> {
    let (mut text, mut due) = (String::new(), 0.0);
    for ms in 0..STEPS[STEPS.len() - 1].0 {
        let mbps = STEPS.iter().find(|(until, _)| ms < *until).map_or(0, |(_, mbps)| *mbps);
        due += mbps as f64 * 1e3 / (8.0 * 1504.0);
        while due >= 1.0 {
            due -= 1.0;
            text += &format!("{ms}\n");
        }
    }
    text.into_bytes()
}

fn main() {
    let scenario = scenario::load_with("rate control", SCENARIO, &[], &|_| Ok(trace()))
        .unwrap_or_else(|error| panic!("{error}"));
    let result = simulate(&scenario, 1, None, &mut |_| ());
    let samples: Vec<&Sample> = result.samples.iter().filter(|s| s.at.as_millis() >= 1_500).collect();
    let line = |name: &str, kind: Kind, value: &dyn Fn(usize) -> Option<f64>| Series {
        name: name.to_owned(),
        marks: (1..samples.len())
            .filter_map(|n| Some(Mark { x: samples[n].at.as_secs_f64(), y: value(n)?, half: None }))
            .collect(),
        kind,
    };
    let control = |n: usize| samples[n].accelerator.map(|device| device.control);
    // Over 50 ms: five samples.
    let capacity = |n: usize| {
        let before = samples[n.checked_sub(5)?];
        let bytes = samples[n].capacity? - before.capacity?;
        Some(8e-6 * bytes as f64 / samples[n].at.since(before.at).as_secs_f64())
    };
    let chart = |title: &str, y: &str, series: Vec<Series>| Chart {
        title: title.to_owned(),
        x: String::from("time, s"),
        y: y.to_owned(),
        categories: Vec::new(),
        series,
        style: Style::Lines,
        most: f64::INFINITY,
        from_zero: true,
        counts_from: None,
    };
    let rates = vec![
        line("the link's capacity", Kind::Published, &capacity),
        line("estimate of it", Kind::Ours, &|n| Some(control(n)?.capacity.0 as f64 / 1e6)),
    ];
    let bytes = vec![
        line("window", Kind::Ours, &|n| Some(control(n)?.window as f64 / 1e3)),
        line("in flight", Kind::Ours, &|n| Some(samples[n].accelerator?.in_flight as f64 / 1e3)),
        line("queue of the link", Kind::Ours, &|n| Some(samples[n].downlink_queue as f64 / 1e3)),
        line("minimum RTT's bytes", Kind::Published, &|n| {
            let control = control(n)?;
            Some(control.capacity.0 as f64 / 8e3 * control.min_rtt.as_secs_f64())
        }),
    ];
    let target = vec![line("target delay", Kind::Ours, &|n| Some(control(n)?.target_delay.as_millis_f64()))];
    let charts = [chart("", "Mb/s", rates), chart("", "kB", bytes), chart("", "ms", target)];
    let heading = "24, 72 and 24 Mb/s; 30 ms to the device and back";
    let file = "docs/rate-control.svg";
    std::fs::write(file, standalone(&below_one_another(heading, &charts)))
        .unwrap_or_else(|e| panic!("{file}: {e}"));
    for sample in samples.iter().step_by(10) {
        let state = sample.accelerator.map_or("none", |device| device.control.state.name());
        println!("{:.2} s {state}", sample.at.as_secs_f64());
    }
}
