//! `make bench`: simulated seconds per CPU second, nanoseconds of CPU per packet that a node handles, and
//! memory.
//!
//! A row is the median of five seeds in one thread. The cost of a row grows with the packets that it moves,
//! so its throughput is printed too. `cargo bench -p paceline-sim -- WORD` runs the rows whose name contains
//! the word.

mod dumbbell;

use dumbbell::Shape;
use paceline_net::{Instant, Rate};
use paceline_ran::Cell;
use paceline_sim::model::Access;
use paceline_sim::{Model, Scenario, scenario};

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux accounts CPU time");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("its first field is the time")
}

/// Resident memory of this process (`VmRSS`), or its peak since [`reset_peak`] (`VmHWM`), MB.
fn memory_mb(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has a status file per process");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .expect("the status file has the field");
    let kb: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("the field is a number");
    kb / 1024.0
}

/// Resets the peak to the present resident memory.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux resets the peak");
}

/// One run of a row.
struct Run {
    simulated_s: f64,
    cpu_ns: f64,
    packets: u64,
    mbps: f64,
    peak_mb: f64,
    /// Slots of the cell and transport blocks; zero without a cell.
    slots: u64,
    blocks: u64,
}

/// Slots of a scenario's run, of its cell's numerology.
fn slots(scenario: &Scenario) -> u64 {
    let slot_ns = |cell: &scenario::Cell| cell.plan().numerology.slot_ns();
    scenario.cell().map_or(0, |cell| scenario.run.duration.as_nanos() / slot_ns(cell))
}

/// Prints the medians of a row's runs.
fn print(name: &str, runs: &[Run]) {
    let median = |of: &dyn Fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    // Without a cell there are no slots and blocks.
    let per = |value: f64| if value.is_finite() { format!("{value:.0}") } else { "-".to_owned() };
    println!(
        "{name:<52} {:>7.1} {:>7.0} {:>7.1} {:>7.1} {:>7} {:>7}",
        median(&|run| run.simulated_s / (run.cpu_ns / 1e9)),
        median(&|run| run.cpu_ns / run.packets as f64),
        median(&|run| run.mbps),
        median(&|run| run.peak_mb),
        per(median(&|run| run.cpu_ns / run.slots as f64)),
        per(median(&|run| run.cpu_ns / run.blocks as f64)),
    );
}

/// The benchmark; with a word, of the rows whose name contains it.
struct Bench(Option<String>);

impl Bench {
    fn row(&self, name: &str, run: impl Fn(u64) -> Run) {
        if self.0.as_ref().is_none_or(|word| name.contains(word)) {
            print(name, &(1..=5).map(run).collect::<Vec<_>>());
        }
    }

    /// Benchmarks a scenario with changes.
    fn scenario(&self, name: &str, text: &str, changes: &[String]) {
        self.row(name, |seed| {
            let scenario = scenario::load(name, text, changes).expect("the bench's scenarios are valid");
            reset_peak();
            let mut model = Model::new(&scenario, seed, &[]);
            let before = cpu_ns();
            model.engine.run_until(Instant::ZERO + scenario.run.duration);
            let cpu_ns = (cpu_ns() - before) as f64;
            let simulated_s = scenario.run.duration.as_secs_f64();
            let flows = (0..model.stations()).flat_map(|station| model.flows(station));
            let read: u64 =
                flows.map(|(server, station)| server.stats().bytes_read + station.stats().bytes_read).sum();
            let cell = matches!(model.access(), Access::Cell(_)).then(|| model.cell());
            let blocks = |cell: &Cell| {
                let of = |station| [cell.downlink(station), cell.uplink(station)];
                (0..model.stations()).flat_map(of).map(|stats| stats.transport_blocks).sum()
            };
            Run {
                simulated_s,
                cpu_ns,
                packets: model.engine.packets_handled(),
                mbps: read as f64 * 8e-6 / simulated_s,
                peak_mb: memory_mb("VmHWM"),
                slots: cell.map_or(0, |_| slots(&scenario)),
                blocks: cell.map_or(0, blocks),
            }
        });
    }

    /// Benchmarks the packet path without radio.
    fn wired(&self) {
        let rate = |mbps: u64| Rate(mbps * 1_000_000);
        let shapes = [
            ("dumbbell, 10 flows, 50 Mb/s, no radio", dumbbell::USUAL),
            (
                "dumbbell, 100 flows, 500 Mb/s, no radio",
                Shape { flows: 100, rate: rate(500), ..dumbbell::USUAL },
            ),
            ("dumbbell, 10 flows, 500 Mb/s, no radio", Shape { rate: rate(500), ..dumbbell::USUAL }),
        ];
        for (name, shape) in shapes {
            let seconds = 3_000_000_000 / shape.rate.0; // as many segments each
            self.row(name, |seed| {
                reset_peak();
                let (mut engine, core) = dumbbell::dumbbell(shape, seed);
                let before = cpu_ns();
                engine.run_until(Instant::from_millis(1000 * seconds));
                let cpu_ns = (cpu_ns() - before) as f64;
                let mbps = dumbbell::goodput_mbps(&engine, core);
                let used = mbps * 1e6 / shape.rate.0 as f64;
                assert!((0.80..0.92).contains(&used), "seed {seed}: the hop is full, not {used}");
                Run {
                    simulated_s: seconds as f64,
                    cpu_ns,
                    packets: engine.packets_handled(),
                    mbps,
                    peak_mb: memory_mb("VmHWM"),
                    slots: 0,
                    blocks: 0,
                }
            });
        }
    }

    /// Benchmarks the published scenario: seven three-sector sites, 20 MHz, segments of 536 bytes,
    /// proportional fair, RLC AM, without and with fading and interference. First with the published windows,
    /// then with auto-tuned windows, which keep more packets in flight, behind one link of 50 Mb/s and with
    /// one link per cell.
    fn published_cell(&self, text: &str) {
        const RADIO: [(&str, &str, &str); 4] = [
            ("no fading, quiet", "none", "0.0"),
            ("EPA, quiet", "epa", "0.0"),
            ("no fading, full buffers", "none", "1.0"),
            ("EPA, full buffers", "epa", "1.0"),
        ];
        let sets: [(&str, &[(&str, &str)]); 3] = [
            ("as published", &[]),
            ("one link", &[AUTOTUNED[0], AUTOTUNED[1], ("core.hops.3.per_cell", "false")]),
            ("link per cell", &AUTOTUNED),
        ];
        for (name, set) in sets {
            for stations in ["10", "20", "40", "60"] {
                for (radio, fading, load) in RADIO {
                    let own = [
                        ("station.count", stations),
                        ("deployment.fading", fading),
                        ("deployment.neighbour_load", load),
                    ];
                    let changes = deployment(&[&own[..], set].concat());
                    self.scenario(&format!("7 sites, {stations} stations, {radio}, {name}"), text, &changes);
                }
            }
        }
    }

    /// Benchmarks an NR carrier of 100 MHz: ten stations with 50 Mb/s each, one station at the peak rate, and
    /// stations without data.
    fn nr(&self) {
        let text = include_str!("../../../../scenarios/private-5g.toml");
        let usual = ["run.duration=3 s", "run.warmup=1 s", "station.fading=0 dB"];
        let rows: [(&str, &[&str]); 2] = [
            (
                "nr 100 MHz, 10 stations, 500 Mb/s",
                &["core.hops=[{rate=\"500 Mb/s\",delay=\"5 ms\"}]", "station.downlink_sinr=30 dB"],
            ),
            (
                "nr 100 MHz, 1 station, peak rate",
                &["station.count=1", "station.downlink_sinr=45 dB", "cell.downlink_buffer=12 MB"],
            ),
        ];
        for (name, own) in rows {
            let changes: Vec<String> = usual.iter().chain(own).map(|change| (*change).to_owned()).collect();
            self.scenario(name, text, &changes);
        }
    }

    /// Benchmarks the cost of interfering sites, and of fully simulated cells and stations.
    fn scale(&self, text: &str) {
        for sites in ["1", "7", "19"] {
            let own = [("deployment.sites", sites), ("station.count", "40")];
            let changes = deployment(&[&own[..], &AUTOTUNED].concat());
            self.scenario(&format!("{sites} sites, 40 stations, EPA, full buffers"), text, &changes);
        }
        for stations in ["100", "300", "1000"] {
            let wide = "[{rate=\"10 Gb/s\",delay=\"8 ms\"}]";
            let own = [
                ("deployment.served_sites", "7"),
                ("station.count", stations),
                ("core.hops", wide),
                ("run.duration", "3 s"),
            ];
            let changes = deployment(&[&own[..], &AUTOTUNED].concat());
            self.scenario(&format!("21 cells served, {stations} stations, EPA"), text, &changes);
        }
    }
}

/// Auto-tuned receive windows.
const AUTOTUNED: [(&str, &str); 2] = [("tcp.receive_buffer", "6 MiB"), ("tcp.autotune", "true")];

/// Changes to the published scenario for a run of ten seconds.
fn deployment(changes: &[(&str, &str)]) -> Vec<String> {
    let common = [("run.duration", "10 s"), ("run.warmup", "1 s")];
    common.iter().chain(changes).map(|(key, value)| format!("{key}={value}")).collect()
}

fn main() {
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let bench = Bench(word);
    println!("{:<52} sim s /  ns per    Mb/s    peak  ns per  ns per", "median of five seeds, one thread");
    println!("{:<52}  CPU s   packet   moved      MB    slot   block", "");
    bench.wired();
    bench.scenario("single station, 72 Mb/s", include_str!("../../../../scenarios/single-station.toml"), &[]);
    let limited = include_str!("../../../../scenarios/uplink-limited.toml");
    for (stations, scheme) in [("10", "basic"), ("10", "hybrid-opt"), ("40", "hybrid-opt"), ("60", "safe")] {
        let changes = [format!("station.count={stations}"), format!("ack_filter.scheme={scheme}")];
        bench.scenario(&format!("uplink-limited, {stations} stations, {scheme}"), limited, &changes);
    }
    let published = include_str!("../../../../scenarios/ack-filter-paper.toml");
    bench.nr();
    bench.published_cell(published);
    bench.scale(published);
}
