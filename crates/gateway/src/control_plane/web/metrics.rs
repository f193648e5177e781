//! Metrics in Prometheus' text exposition format 0.0.4.
//!
//! There are no labels for devices: their number has no bound, and the monitoring system would keep a series
//! for every device that ever had a connection.

use super::process::Process;
use crate::control_plane::requests::Snapshot;
use crate::counter::{CounterValues, Family};
use crate::crash_recovery::rescuer::Rescue;
use crate::experiment::ExperimentStatus;
use paceline_experiment::{Finding, Measure, Row, State};
use paceline_pep::accelerator::Histogram;
use std::fmt::Write as _;

/// A text under construction.
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP paceline_{name} {help}.\n# TYPE paceline_{name} {kind}");
    }
    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "paceline_{name}{labels} {value}");
    }
    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help);
        self.value(name, "", value);
    }
    /// `unit`: one unit of the histogram's values, in the unit of the metric.
    fn histogram<const FIRST: u64>(
        &mut self,
        name: &str,
        help: &str,
        histogram: &Histogram<FIRST>,
        unit: f64,
    ) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        for (bound, count) in histogram.buckets() {
            sum += count;
            let bound = bound.map_or("+Inf".to_owned(), |bound| format!("{}", bound as f64 * unit));
            self.value(&bucket, &format!("{{le=\"{bound}\"}}"), sum);
        }
        self.value(&format!("{name}_sum"), "", histogram.sum() as f64 * unit);
        self.value(&format!("{name}_count"), "", sum);
    }
    fn counters(&mut self, counters: &CounterValues) {
        for family in Family::ALL {
            let (name, label) = family.metric();
            let name = format!("{name}_total");
            self.head(&name, "counter", family.help());
            for (counter, value) in counters.iter().filter(|(counter, _)| counter.family() == Some(family)) {
                let label_value = counter.name().trim_start_matches(family.prefix());
                self.value(&name, &format!("{{{label}=\"{label_value}\"}}"), value);
            }
        }
        for (counter, value) in counters.iter().filter(|(counter, _)| counter.family().is_none()) {
            let name = format!("{}_total", counter.name().replace('-', "_"));
            self.head(&name, "counter", counter.help());
            self.value(&name, "", value);
        }
    }
}

/// The metrics of the experiment. They exist without one too, so that queries find them; a value that is not
/// known is NaN.
fn experiment(text: &mut Text, status: Option<&ExperimentStatus>) {
    let running = status.is_some_and(|status| status.state == State::Running);
    text.gauge("experiment_running", "1 while an experiment compares devices", u8::from(running));
    let off = status.is_some_and(|status| status.switched_off);
    let help = "1 if an experiment found that acceleration does harm, and it is switched off";
    text.gauge("experiment_harmful", help, u8::from(off));
    text.head("experiment_transfers", "gauge", "Finished transfers of the experiment");
    let transfers = status.map_or([0; 2], |status| status.transfers);
    for (arm, count) in ["accelerated", "untouched"].into_iter().zip(transfers) {
        text.value("experiment_transfers", &format!("{{arm=\"{arm}\"}}"), count);
    }
    let report = status.and_then(|status| status.report.as_ref());
    let help = "Goodput of accelerated devices by that of untouched ones, at the experiment's last look";
    ratio(text, "experiment_goodput_ratio", help, report.and_then(|report| report.overall(Measure::Goodput)));
    let help =
        "Goodput of untouched devices beside accelerated ones by that without, at the experiment's last look";
    let neighbours = report.and_then(|report| report.neighbours.as_ref());
    ratio(text, "experiment_untouched_ratio", help, neighbours);
}

fn ratio(text: &mut Text, name: &str, help: &str, row: Option<&Row>) {
    let row = row.filter(|row| row.finding != Finding::TooFewDevices);
    text.head(name, "gauge", help);
    let [low, high] = row.map_or([f64::NAN; 2], |row| row.interval);
    let estimate = row.map_or(f64::NAN, |row| row.change);
    for (bound, change) in [("estimate", estimate), ("low", low), ("high", high)] {
        text.value(name, &format!("{{bound=\"{bound}\"}}"), 1.0 + change);
    }
}

/// The state of the process and of its guardian.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Health {
    /// Start, processor time and memory.
    pub process: Process,
    /// A guardian is there.
    pub guarded: bool,
    /// Guardians that died and were replaced.
    pub guardian_restarts: u64,
    /// The gateway before this one did not end in order.
    pub after_crash: bool,
    /// The result of the last guardian's work.
    pub rescue: Option<Rescue>,
}

/// The metrics of the process, under the names that monitoring systems expect of every program.
fn process(text: &mut Text, process: &Process) {
    for (name, kind, help, value) in [
        ("start_time_seconds", "gauge", "Start time of the process since the Unix epoch", process.started),
        ("cpu_seconds_total", "counter", "Processor time of the process", process.cpu),
        ("resident_memory_bytes", "gauge", "Resident memory of the process", process.resident as f64),
    ] {
        let _ = writeln!(
            text.0,
            "# HELP process_{name} {help}.\n# TYPE process_{name} {kind}\nprocess_{name} {value}"
        );
    }
}

/// The metrics of crashes.
fn crashes(text: &mut Text, health: &Health) {
    text.gauge("guardian_up", "1 while the guardian process runs", u8::from(health.guarded));
    text.head("guardian_restarts_total", "counter", "Guardians that died and were replaced");
    text.value("guardian_restarts_total", "", health.guardian_restarts);
    let help = "1 if the gateway before this one did not end in order";
    text.gauge("started_after_crash", help, u8::from(health.after_crash));
    let help = "Exposed connections that the last crash left, by their end with the guardian";
    text.head("rescued_connections", "gauge", help);
    let Rescue { exposed, whole, reset } = health.rescue.unwrap_or_default();
    for (end, count) in [("whole", whole), ("reset", reset), ("none", exposed - (whole + reset).min(exposed))]
    {
        text.value("rescued_connections", &format!("{{end=\"{end}\"}}"), count);
    }
}

/// The text of a scrape: all metrics.
pub fn text(snapshot: &Snapshot, version: &str, health: &Health) -> String {
    let mut text = Text(String::new());
    text.head("build_info", "gauge", "The program's version and commit");
    let version = version.replace(['\\', '"', '\n'], "");
    text.value("build_info", &format!("{{version=\"{version}\"}}"), 1);
    text.gauge("flows_active", "Connections being accelerated", snapshot.flow_count);
    text.gauge("openings_active", "Handshakes and connections without data", snapshot.openings);
    text.gauge(
        "exposure_bytes",
        "Bytes acknowledged to servers that devices have not acknowledged",
        snapshot.exposure,
    );
    text.gauge("held_bytes", "Bytes buffered for devices", snapshot.held);
    let help = "Devices that were found to share a queue with others, and yield to them";
    text.gauge("sharing_devices", help, snapshot.sharing_devices);
    process(&mut text, &health.process);
    crashes(&mut text, health);
    let stopped = u8::from(snapshot.filter_stopped);
    text.gauge("filter_stopped", "1 if the ACK filter was found to do harm and is switched off", stopped);
    experiment(&mut text, snapshot.experiment.as_ref());
    let help = "Round-trip times between gateway and devices";
    text.histogram("rtt_seconds", help, &snapshot.round_trips, 1e-9);
    let help = "Round-trip times between gateway and devices, less the connection's minimum";
    text.histogram("queue_delay_seconds", help, &snapshot.queue_delays, 1e-9);
    let help = "Times for which data had been stored when they were first sent to devices";
    text.histogram("stored_seconds", help, &snapshot.ages, 1e-9);
    let help = "Sending rates towards devices, at each measured round-trip time";
    // The histogram is in bit/s; Prometheus' base unit is the byte.
    text.histogram("rate_bytes_per_second", help, &snapshot.rates, 0.125);
    let help = "How late workers woke from their pauses";
    text.histogram("worker_lateness_seconds", help, &snapshot.lateness, 1e-9);
    text.counters(&snapshot.counters);
    text.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Counter;
    use paceline_pep::AcceleratorStats;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_text_follows_the_exposition_format() {
        let mut counters = CounterValues::default();
        counters.add_accelerator(&AcceleratorStats::default());
        counters.extend([(Counter::LeftByPolicy, 3), (Counter::LeftWithoutPulse, 1), (Counter::Turns, 7)]);
        let mut snapshot = Snapshot { counters, flow_count: 5, ..Snapshot::default() };
        [900_000, 2_500_000, u64::MAX / 4].iter().for_each(|rtt| snapshot.round_trips.record(*rtt));
        let rescue = Some(Rescue { exposed: 7, whole: 4, reset: 2 });
        let health =
            Health { rescue, process: Process { cpu: 1.5, ..Process::default() }, ..Health::default() };
        let text = text(&snapshot, "0.1 (\"x\")", &health);
        let (mut types, mut helps, mut series) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                assert!(helps.insert(rest.split(' ').next().unwrap().to_owned()), "twice: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
            } else {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(series.insert(name.to_owned()), "twice: {line}");
                let plain = name.split('{').next().unwrap();
                let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let own = ["paceline_", "process_"].iter().any(|start| plain.starts_with(start));
                assert!(own && plain.chars().all(valid), "{line}");
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| plain.strip_suffix(end));
                let base = base.filter(|base| types.get(*base).is_some_and(|kind| kind == "histogram"));
                let kind = types.get(base.unwrap_or(plain)).unwrap_or_else(|| panic!("no type: {line}"));
                assert_eq!(kind == "counter", plain.ends_with("_total"), "{line}");
            }
        }
        assert_eq!(helps.len(), types.len());
        assert!(text.contains("paceline_rtt_seconds_bucket{le=\"0.001\"} 1\n"), "{text}");
        assert!(text.contains("paceline_rtt_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("paceline_bypassed_total{reason=\"mptcp\"} 0\n"), "{text}");
        assert!(text.contains("paceline_packets_left_total{by=\"policy\"} 3\n"), "{text}");
        assert!(text.contains("paceline_build_info{version=\"0.1 (x)\"} 1\n"), "{text}");
        assert!(text.contains("\nprocess_cpu_seconds_total 1.5\n"), "{text}");
        for (end, count) in [("whole", 4), ("reset", 2), ("none", 1)] {
            let line = format!("paceline_rescued_connections{{end=\"{end}\"}} {count}\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
