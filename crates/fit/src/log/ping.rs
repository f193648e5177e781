//! Output of ping: of iputils, BusyBox, macOS and Windows, with or without times (`-D`), and of fping.

use super::{Series, seconds};

/// Interval where a log has no times, s. Chosen: the default of ping(8).
const INTERVAL_S: f64 = 1.0;

/// Whether most lines are answers or losses of pings.
pub fn is_log(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(200).collect();
    lines.iter().filter(|line| rtt(line).is_some() || is_loss(line)).count() >= 1.max(lines.len() / 3)
}

/// The round trip of an answer, ms.
fn rtt(line: &str) -> Option<f64> {
    let lower = line.to_lowercase();
    let is_ping = lower.contains("bytes") && (lower.contains("from") || lower.contains(" : ["));
    if !is_ping {
        return None;
    }
    let number = |text: &str| {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
        text[..end].trim_end_matches(',').replace(',', ".").parse::<f64>().ok()
    };
    for mark in ["time=", "time<", "zeit=", "zeit<", "temps=", "tiempo="] {
        if let Some((_, rest)) = lower.split_once(mark) {
            let value = number(rest)?;
            let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c)).trim_start();
            return Some(if unit.starts_with("us") { value / 1e3 } else { value });
        }
    }
    // fping: "host : [0], 84 bytes, 35.1 ms (...)"
    let (_, rest) = lower.split_once("bytes,")?;
    rest.contains("ms").then(|| number(rest)).flatten()
}

fn is_loss(line: &str) -> bool {
    let lower = line.to_lowercase();
    ["no answer yet", "request timeout", "request timed out", "timed out (", "unreachable"]
        .iter()
        .any(|loss| lower.contains(loss))
}

/// The sequence number of an answer.
fn sequence(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("seq=").or_else(|| line.split_once(" : ["))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Reads a log.
pub fn read(text: &str) -> Result<Series, String> {
    let mut series = Series::default();
    let (mut first, mut last): (Option<u64>, Option<u64>) = (None, None);
    let (mut start, mut losses) = (None, 0);
    for line in text.lines() {
        losses += u64::from(is_loss(line));
        let Some(rtt) = rtt(line) else { continue };
        let stamp = line.trim_start().strip_prefix('[').and_then(|rest| seconds(rest.split(']').next()?));
        let sequence = sequence(line);
        let index = match (sequence, first) {
            (Some(sequence), Some(first)) => sequence.saturating_sub(first) as f64,
            _ => series.pings.len() as f64,
        };
        first = first.or(sequence);
        last = last.max(sequence);
        let time = match stamp {
            // The time is that of the answer.
            Some(stamp) => stamp - *start.get_or_insert(stamp),
            None => index * INTERVAL_S,
        };
        series.pings.push((time, rtt));
    }
    if series.pings.is_empty() {
        return Err(
            "no answer of a ping, such as \"64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=35.1 ms\"".into(),
        );
    }
    let sent = match (first, last) {
        (Some(first), Some(last)) => last - first + 1,
        _ => series.pings.len() as u64 + losses,
    };
    series.lost_pings = sent.saturating_sub(series.pings.len() as u64).max(losses.min(sent));
    series.notes.push(format!("{} answers of {sent} pings", series.pings.len()));
    Ok(series)
}
