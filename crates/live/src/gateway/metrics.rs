//! What a monitoring system reads: Prometheus' text format, and the busiest devices as JSON.
//!
//! Devices are no labels: their number has no bound, and a series for each that ever came would stay in the
//! monitoring system's memory.

use super::desk::Desk;
use super::requests::Snapshot;
use crate::clock;
use paceline_net::Duration;
use paceline_pep::accelerator::Histogram;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time;

/// A request's head has at most so many bytes.
const MAX_REQUEST: usize = 8192;
/// A client that is slower is left: others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// Devices that are told of.
pub const TOP: usize = 20;

/// Counters that are one metric with a label, by the beginning of their names.
const LABELLED: [(&str, &str, &str, &str); 7] = [
    ("bypassed-", "bypassed", "reason", "Connections that pass untouched (mid-flow: their data segments)"),
    ("packets-left-by-", "packets_left", "by", "Packets left to the kernel"),
    (
        "compared-bytes-",
        "filter_compared_bytes",
        "group",
        "Payload bytes that servers sent to connections that are compared",
    ),
    (
        "compared-repeated-",
        "filter_repeated_bytes",
        "group",
        "Of the bytes that servers sent to connections that are compared, such as had been sent before",
    ),
    (
        "compared-timeouts-",
        "filter_timeouts",
        "group",
        "Times that servers sent something again to connections that are compared, after a silence",
    ),
    (
        "kept-",
        "filter_acks_kept",
        "reason",
        "Acknowledgments that the ACK filter let through, by the rule that spoke for them last",
    ),
    (
        "packets-left-without-",
        "packets_left_without",
        "missing",
        "Packets left to the kernel, a worker being absent",
    ),
];

/// What the others count, by the name that `paceline gateway status` shows.
pub const HELP: [(&str, &str); 45] = [
    ("flows", "Connections taken into acceleration"),
    ("flows-ended", "Accelerated connections that ended"),
    ("flows-detached", "Accelerated connections that went on end to end"),
    ("flows-reset", "Connections reset at both ends by the gateway"),
    ("bytes-in", "Payload bytes taken from servers"),
    ("bytes-delivered", "Payload bytes acknowledged by mobile devices"),
    ("acks-sent", "Acknowledgments sent to servers"),
    ("early-acks", "Acknowledgments sent to servers for what devices did not have yet"),
    ("acks-absorbed", "Empty acknowledgments of devices that were not passed on"),
    ("duplicates-suppressed", "Duplicate acknowledgments of devices that were not passed on"),
    ("segments-sent", "Segments sent to devices for the first time"),
    ("retransmissions", "Segments sent to devices again"),
    ("timeouts", "Retransmission timeouts"),
    ("tail-probes", "Probes of a tail that was not acknowledged"),
    ("window-probes", "Probes of devices' zero windows"),
    ("server-retransmissions", "Segments of servers that brought nothing new"),
    ("conflicts", "Segments of servers that brought other bytes under known numbers"),
    ("corrupt", "Segments with a wrong checksum"),
    ("invalid", "Segments with numbers that no endpoint would accept"),
    ("optimistic-acks", "Acknowledgments of bytes that were never sent"),
    ("refused", "Segments not taken because buffers were full"),
    ("overshoot-drops", "Times that a device dropped what was sent past its window"),
    ("black-holes", "Connections whose full segments were swallowed on the way to the device"),
    ("openings-forgotten", "Handshakes forgotten to make room"),
    ("frames-in", "Frames received by the workers"),
    ("frames-out", "Frames sent by the workers"),
    ("frame-bytes-in", "Bytes of frames received by the workers"),
    ("frame-bytes-from-servers", "Bytes of frames received on the servers' side"),
    ("frame-bytes-from-devices", "Bytes of frames received on the devices' side"),
    ("frames-lost-in", "Frames lost because a worker was too slow"),
    ("frames-lost-out", "Frames lost because an interface was too slow"),
    ("connections-left-alone", "Connections handed back to the kernel"),
    ("uploads-left-alone", "Times that the kernel was given a connection's upload"),
    ("ambiguous-networks", "Packets of two networks under the same addresses and ports"),
    ("unknown-links", "Packets made for a connection whose link header is forgotten"),
    ("absences", "Times that a worker was away for so long that packets may have passed it"),
    ("turns", "Turns of the workers"),
    ("packets-taken", "Packets taken out of the kernel's way"),
    ("packets-sent-across", "Packets of uploads sent from port to port in the kernel, past the bridge"),
    ("filter-acks-in", "Empty acknowledgments that came to the ACK filter"),
    ("filter-acks-discarded", "Acknowledgments that the ACK filter took out"),
    ("filter-queue-drops", "Packets dropped because the filtered line's queue was full"),
    ("flows-detached-at-end", "Connections that went on end to end while the gateway was being stopped"),
    ("flows-reset-at-end", "Connections reset while the gateway was being stopped"),
    ("journal-writes", "Records written to the journal of exposed connections"),
];

/// The text of a scrape.
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
    /// `unit` is what one of the histogram's numbers is in the unit of the metric.
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
    fn counters(&mut self, counters: &[(&'static str, u64)]) {
        for (prefix, name, label, help) in LABELLED {
            let name = format!("{name}_total");
            self.head(&name, "counter", help);
            for (counter, value) in counters {
                if let Some(rest) = counter.strip_prefix(prefix) {
                    self.value(&name, &format!("{{{label}=\"{rest}\"}}"), value);
                }
            }
        }
        for (counter, value) in counters {
            if LABELLED.iter().any(|(prefix, ..)| counter.starts_with(prefix)) {
                continue;
            }
            let name = format!("{}_total", counter.replace('-', "_"));
            let help = HELP.iter().find(|(known, _)| known == counter).map_or(*counter, |(_, help)| help);
            self.head(&name, "counter", help);
            self.value(&name, "", value);
        }
    }
}

/// All metrics.
pub fn text(snapshot: &Snapshot, version: &str, guarded: bool) -> String {
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
    text.gauge("held_bytes", "Bytes held for devices", snapshot.held);
    text.gauge("guardian_up", "A guardian stands by for a crash", u8::from(guarded));
    let stopped = u8::from(snapshot.filter_stopped);
    text.gauge("filter_stopped", "The ACK filter was found to do harm, and is out of use", stopped);
    let help = "Round-trip times of the mobile segment";
    text.histogram("rtt_seconds", help, &snapshot.round_trips, 1e-9);
    let help = "Round-trip times of the mobile segment above the connection's shortest";
    text.histogram("queue_delay_seconds", help, &snapshot.queue_delays, 1e-9);
    let help = "Rates towards devices when their round-trip time was measured";
    // Kept in bit/s; Prometheus' base unit is the byte.
    text.histogram("rate_bytes_per_second", help, &snapshot.rates, 0.125);
    let help = "How late workers woke for their turns";
    text.histogram("worker_lateness_seconds", help, &snapshot.lateness, 1e-9);
    text.counters(&snapshot.counters);
    text.0
}

/// Answers HTTP requests, one at a time.
pub fn serve(listener: TcpListener, desk: Arc<Desk>) -> io::Result<()> {
    thread::Builder::new().name("metrics".into()).spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => drop(answer(stream, &desk)), // who asked may be gone
                // Out of descriptors, perhaps: not in a circle.
                Err(_) => clock::pause(Duration::from_millis(100)),
            }
        }
    })?;
    Ok(())
}

fn answer(mut stream: TcpStream, desk: &Desk) -> io::Result<()> {
    stream.set_write_timeout(Some(time::Duration::from_nanos(PATIENCE.as_nanos())))?;
    let head = read_head(&mut stream)?;
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, kind, body) = match (method, path.split('?').next().unwrap_or("")) {
        ("GET", "/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", desk.metrics()),
        ("GET", "/devices") => ("200 OK", "application/json", format!("{}\n", desk.top_devices(TOP))),
        ("GET", _) => ("404 Not Found", "text/plain", "there are /metrics and /devices\n".into()),
        _ => ("405 Method Not Allowed", "text/plain", "GET alone is allowed\n".into()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    let until = clock::now() + PATIENCE;
    // The first line is what is wanted, but a client may not like to be cut off before it has said all.
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST {
        let wait = until.since(clock::now());
        if wait.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(time::Duration::from_nanos(wait.as_nanos())))?;
        match stream.read(&mut part)? {
            0 => break,
            len => head.extend_from_slice(&part[..len]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_pep::AcceleratorStats;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_text_keeps_the_rules_of_the_format() {
        let mut counters = AcceleratorStats::default().counters();
        counters.extend([("packets-left-by-policy", 3), ("packets-left-without-pulse", 1), ("turns", 7)]);
        let mut snapshot = Snapshot { counters, flow_count: 5, ..Snapshot::default() };
        [900_000, 2_500_000, u64::MAX / 4].iter().for_each(|rtt| snapshot.round_trips.record(*rtt));
        let text = text(&snapshot, "0.1 (\"x\")", true);
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
                assert!(plain.starts_with("paceline_") && plain.chars().all(valid), "{line}");
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
    }

    #[test]
    fn a_client_that_says_a_byte_now_and_then_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let slow = thread::spawn(move || {
            while client.write_all(b"G").is_ok() {
                clock::pause(Duration::from_millis(100));
            }
        });
        let began = clock::now();
        let head = read_head(&mut stream);
        let took = clock::now().since(began);
        drop(stream);
        slow.join().unwrap();
        assert!(head.is_err() && took < Duration::from_secs(4), "{took}: {head:?}");
    }

    #[test]
    fn every_counter_of_the_accelerator_is_explained() {
        for (name, _) in AcceleratorStats::default().counters() {
            let labelled = LABELLED.iter().any(|(prefix, ..)| name.starts_with(prefix));
            assert!(labelled || HELP.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
