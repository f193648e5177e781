//! Reports of iperf3 in JSON (`-J`, `--json-stream`).

use super::{Rate, Series, documents};
use serde_json::Value;

/// Reads a report.
pub fn read(text: &str) -> Result<Series, String> {
    let documents = documents(text)?;
    let report = documents.first().ok_or("iperf3: no JSON")?;
    let mut series = Series::default();
    // --json-stream has one event in a line.
    let streamed =
        || documents.iter().filter(|event| event["event"] == "interval").map(|event| &event["data"]);
    let intervals: Vec<&Value> = match report["intervals"].as_array() {
        Some(intervals) => intervals.iter().collect(),
        None => streamed().collect(),
    };
    let start = documents
        .iter()
        .find(|event| event["event"] == "start")
        .map_or(&report["start"], |event| &event["data"]);
    let reverse = start["test_start"]["reverse"].as_u64() == Some(1);
    // The client is the station: it sends unless the test is reversed.
    series.is_upload = !reverse;
    let (mut repeated, mut bytes) = (0, 0);
    for interval in &intervals {
        let sum = &interval["sum"];
        let (Some(from), Some(to), Some(rate)) =
            (sum["start"].as_f64(), sum["end"].as_f64(), sum["bits_per_second"].as_f64())
        else {
            continue;
        };
        if sum["omitted"].as_bool() == Some(true) {
            continue;
        }
        series.rates.push(Rate { time_s: from, span_s: to - from, mbps: rate / 1e6 });
        bytes += sum["bytes"].as_u64().unwrap_or(0);
        let lost = sum["retransmits"].as_u64().unwrap_or(0);
        repeated += lost;
        // Microseconds, of each stream.
        let rtts = interval["streams"].as_array().into_iter().flatten();
        let rtts: Vec<f64> =
            rtts.filter_map(|stream| Some(stream["rtt"].as_f64()? / 1e3)).filter(|ms| *ms > 0.0).collect();
        for rtt in &rtts {
            series.pings.push((to, *rtt));
        }
        if let Some(most) = rtts.iter().copied().reduce(f64::max).filter(|_| lost > 0) {
            series.full.push((most, rate / 1e6));
        }
    }
    if series.rates.is_empty() {
        let error = report["error"].as_str().map_or(String::new(), |error| format!(": {error}"));
        return Err(format!("iperf3: no intervals with \"sum\"{error}"));
    }
    let end =
        documents.iter().find(|event| event["event"] == "end").map_or(&report["end"], |event| &event["data"]);
    let streams = end["streams"].as_array().into_iter().flatten();
    let least =
        streams.filter_map(|stream| Some(stream["sender"]["min_rtt"].as_f64()? / 1e3)).filter(|ms| *ms > 0.0);
    series.least_rtt_ms = least.reduce(f64::min);
    series.repeated = Some((repeated, bytes));
    let way = if reverse { "download (-R)" } else { "upload" };
    series
        .notes
        .push(format!("iperf3: {way}, {} intervals; smoothed round trips of the sender", series.rates.len()));
    Ok(series)
}
