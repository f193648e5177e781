//! Logs of iperf3 and of iperf2 as text: the lines of intervals, without those of sums at the end.

use super::table::Table;
use crate::notes::Notes;
use std::collections::{BTreeMap, BTreeSet};

/// Prefixes of units in these logs, whose bits have powers of 1000 and whose bytes have powers of 1024
/// (`unit_snprintf` of iperf3).
const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];
/// Part of an interval by which ends of two lines may differ. Chosen: far below one interval, above rounding.
const ROUNDING_S: f64 = 0.011;

/// A line of an interval.
#[derive(Clone, PartialEq, Debug)]
struct Line<'a> {
    /// Stream, such as `5` or `SUM`.
    id: &'a str,
    /// Role in a test of both directions: `TX-C`, `RX-S`.
    role: &'a str,
    start: f64,
    end: f64,
    bits_per_second: f64,
    /// The text behind the rate.
    rest: &'a str,
}

/// Whether a text is such a log: it has the heading, or begins with an interval.
pub fn is_log(text: &str) -> bool {
    // A log begins with some lines on the connection. Chosen: a screen of them.
    let has_heading =
        text.lines().take(50).any(|line| line.contains("Interval") && line.contains("Transfer"));
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    if has_heading {
        lines.any(|line| line_of(line).is_some())
    } else {
        lines.next().and_then(line_of).is_some()
    }
}

/// Reads a log as a table of durations and rates.
pub fn read(text: &str, notes: &mut Notes) -> Result<Table, String> {
    let mut lines: Vec<(usize, Line<'_>)> = Vec::new();
    let mut test = 0;
    // Of several tests in a log each begins with such a line.
    let begins = ["Connecting to", "Accepted connection", "Client connecting to", "Server listening on"];
    for text in text.lines() {
        test += usize::from(begins.iter().any(|begin| text.contains(begin)));
        let Some(line) = line_of(text) else { continue };
        let is_left_out = ["(omitted)", "sender", "receiver"].iter().any(|word| line.rest.contains(word));
        if !is_left_out {
            lines.push((test, line));
        }
    }
    let roles = |role: &str| lines.iter().any(|(_, line)| line.role.starts_with(role));
    let side = if roles("RX") {
        lines.retain(|(_, line)| line.role.starts_with("RX"));
        "the receiver's of both directions"
    } else if text.contains("Reverse mode, remote host") || text.contains("Accepted connection") {
        "the receiver's"
    } else {
        "the sender's, which count data given to its socket"
    };
    let sums = lines.iter().filter(|(_, line)| line.id == "SUM").count();
    // iperf's own sums, where it prints them for the intervals too.
    if sums > 1 {
        lines.retain(|(_, line)| line.id == "SUM");
    }
    let intervals = intervals(&lines);
    if intervals.is_empty() {
        return Err("iperf's log without intervals: run iperf3 with -i 1".into());
    }
    let ids = lines.iter().map(|(_, line)| line.id).collect::<BTreeSet<_>>().len();
    let streams = if ids > 1 { format!(", the sum of {ids} streams") } else { String::new() };
    notes.push(format!("iperf's log, {} intervals: {side}{streams}", intervals.len()));
    let row = |(start, end, rate): &(f64, f64, f64)| vec![(end - start).to_string(), rate.to_string()];
    Ok(Table::of_rows(
        vec!["duration_s".into(), "bits_per_second".into()],
        intervals.iter().map(row).collect(),
    ))
}

/// Start, end and rate of the intervals, over the streams of a test. A line of the whole test, which begins
/// before the end of the line above, is left out.
fn intervals(lines: &[(usize, Line<'_>)]) -> Vec<(f64, f64, f64)> {
    let mut all: Vec<(usize, f64, f64, f64)> = Vec::new();
    let mut ends: BTreeMap<(usize, &str), f64> = BTreeMap::new();
    for (test, line) in lines {
        let end = ends.entry((*test, line.id)).or_default();
        if line.start < *end - ROUNDING_S {
            continue;
        }
        *end = line.end;
        let is_same = |(_, start, end, _): &&mut (usize, f64, f64, f64)| {
            (*start - line.start).abs() < ROUNDING_S && (*end - line.end).abs() < ROUNDING_S
        };
        match all.iter_mut().rev().take_while(|(own, ..)| own == test).find(is_same) {
            Some((.., rate)) => *rate += line.bits_per_second,
            None => all.push((*test, line.start, line.end, line.bits_per_second)),
        }
    }
    all.into_iter().map(|(_, start, end, rate)| (start, end, rate)).collect()
}

/// The parts of a line such as `[  5]   0.00-1.00   sec  2.71 MBytes  22.7 Mbits/sec`; none for others.
fn line_of(text: &str) -> Option<Line<'_>> {
    let (_, behind) = text.split_once('[')?;
    let (id, mut behind) = behind.split_once(']')?;
    let mut role = "";
    if let Some((inner, rest)) = behind.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        (role, behind) = (inner, rest);
    }
    let (interval, rest) = behind.split_once(" sec ")?;
    let (start, end) = interval.split_once('-')?;
    let (start, end): (f64, f64) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
    let at = rest.find("/sec")?;
    let mut words = rest[..at].split_whitespace();
    let (_, unit, number) =
        (words.next_back(), rest[..at].split_whitespace().next_back()?, words.next_back()?);
    let rate: f64 = number.parse().ok()?;
    let (prefix, bytes) = match (unit.strip_suffix("bits"), unit.strip_suffix("Bytes")) {
        (Some(prefix), _) => (prefix, false),
        (None, Some(prefix)) => (prefix, true),
        (None, None) => return None,
    };
    let power = PREFIXES.iter().position(|known| *known == prefix)?;
    let unit =
        (0..power).fold(if bytes { 8.0 } else { 1.0 }, |unit, _| unit * if bytes { 1024.0 } else { 1e3 });
    let is_interval = end > start && start >= 0.0 && rate >= 0.0 && (rate * unit).is_finite();
    is_interval.then(|| Line {
        id: id.trim(),
        role,
        start,
        end,
        bits_per_second: rate * unit,
        rest: &rest[at + "/sec".len()..],
    })
}

#[cfg(test)]
mod tests {
    use super::{Line, line_of};

    #[test]
    fn lines_of_all_versions_are_read() {
        let line = |id, role, start, end, bits_per_second, rest| {
            Some(Line { id, role, start, end, bits_per_second, rest })
        };
        for (text, expected) in [
            (
                "[  5]   0.00-1.00   sec  2.71 MBytes  22.7 Mbits/sec                  ",
                line("5", "", 0.0, 1.0, 22.7e6, "                  "),
            ),
            (
                "[  5]   1.00-2.00   sec   384 KBytes  3.15 Mbits/sec    0   14.1 KBytes       (omitted)",
                line("5", "", 1.0, 2.0, 3.15e6, "    0   14.1 KBytes       (omitted)"),
            ),
            (
                "[SUM]   0.00-1.00   sec  2.00 MBytes  2.00 MBytes/sec",
                line("SUM", "", 0.0, 1.0, 16_777_216.0, ""),
            ),
            ("[  3]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec", line("3", "", 0.0, 1.0, 10.5e6, "")),
            ("[  7][RX-C]   0.00-1.00   sec  1 GBytes  8.0 Gbits/sec", line("7", "RX-C", 0.0, 1.0, 8e9, "")),
            (
                "Mon Jan 25 03:48:00 2021 [  5] 0.00-1.00 sec  0.00 Bytes  0.00 bits/sec",
                line("5", "", 0.0, 1.0, 0.0, ""),
            ),
            ("[  5] local 10.0.0.2 port 41366 connected to 10.0.0.1 port 5201", None),
            ("[ ID] Interval           Transfer     Bitrate", None),
            ("[  5]   0.00-60.00  sec", None),
        ] {
            assert_eq!(line_of(text), expected, "{text}");
        }
    }
}
