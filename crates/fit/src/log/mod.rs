//! Logs of other programs: recognised by their content, and read into series over time.
//!
//! ```text
//! text -> Format -> ping | iperf | srsran | oai | table | trace -> Series
//! ```

mod iperf;
mod oai;
mod ping;
mod srsran;
mod table;

use paceline_import::Options;
use paceline_net::trace::Trace;

/// The formats of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// pcap or pcapng.
    Capture,
    /// Output of ping (iputils, BusyBox, macOS, Windows) or fping.
    Ping,
    /// Report of iperf3 in JSON.
    Iperf3,
    /// JSON metrics of srsRAN.
    SrsRan,
    /// MAC statistics of OpenAirInterface.
    Oai,
    /// Table with a heading and columns of SINR, MCS or PRBs, as from MobileInsight, QXDM or srsUE.
    Radio,
    /// Rates over time in a format of `paceline trace import`.
    Trace,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Capture, Self::Ping, Self::Iperf3, Self::SrsRan, Self::Oai, Self::Radio, Self::Trace];
    /// The name in `--as`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Ping => "ping",
            Self::Iperf3 => "iperf3",
            Self::SrsRan => "srsran",
            Self::Oai => "oai",
            Self::Radio => "radio",
            Self::Trace => "trace",
        }
    }
    /// The format of a text.
    pub fn of_text(text: &str) -> Self {
        // Lines of these may begin with a bracket, as lists of JSON.
        if text.contains("dlsch_rounds") {
            return Self::Oai;
        }
        if ping::is_log(text) {
            return Self::Ping;
        }
        let begin = text.trim_start();
        if begin.starts_with(['{', '[']) {
            return match () {
                () if text.contains("\"intervals\"") && text.contains("\"start\"") => Self::Iperf3,
                () if text.contains("\"ue_list\"") => Self::SrsRan,
                () => Self::Trace,
            };
        }
        match () {
            () if table::is_radio(text) => Self::Radio,
            () => Self::Trace,
        }
    }
}

/// A rate that held until the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Start, s.
    pub time_s: f64,
    /// Length, s.
    pub span_s: f64,
    /// Rate, Mb/s.
    pub mbps: f64,
}

/// The radio at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Radio {
    /// Time, s.
    pub time_s: f64,
    /// SINR of the downlink, dB.
    pub sinr_db: Option<f64>,
    /// SINR of the uplink, dB.
    pub uplink_sinr_db: Option<f64>,
    /// MCS index of the downlink.
    pub mcs: Option<f64>,
    /// Resource blocks of the downlink.
    pub prb: Option<f64>,
}

/// The series of one log.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Round trips: s, ms.
    pub pings: Vec<(f64, f64)>,
    /// Pings without an answer.
    pub lost_pings: u64,
    /// Least round trip that a sender reported, ms.
    pub least_rtt_ms: Option<f64>,
    /// Rates.
    pub rates: Vec<Rate>,
    /// Whether the rates are the capacity, by the kind of the file.
    pub is_capacity: bool,
    /// Whether the data went from client to server.
    pub is_upload: bool,
    /// Segments that were sent again, and bytes sent.
    pub repeated: Option<(u64, u64)>,
    /// Largest smoothed round trips and the rates at times of loss: ms, Mb/s.
    pub full: Vec<(f64, f64)>,
    /// The radio.
    pub radio: Vec<Radio>,
    /// Whether the cell is NR, where the file tells.
    pub is_nr: Option<bool>,
    /// Statements about the file.
    pub notes: Vec<String>,
}

/// Reads a log, packed or not, in a format or in that of its content. An error names the place.
pub fn read(file: &[u8], format: Option<Format>) -> Result<(Format, Series), String> {
    if format == Some(Format::Trace) || Trace::is_binary(file) {
        return Ok((Format::Trace, trace(file)?));
    }
    let text = paceline_import::plain_text(file)?;
    if text.trim().is_empty() {
        return Err("is empty".into());
    }
    let format = format.unwrap_or_else(|| Format::of_text(&text));
    let series = match format {
        Format::Capture => return Err("is no capture; allowed: pcap, pcapng".into()),
        Format::Ping => ping::read(&text),
        Format::Iperf3 => iperf::read(&text),
        Format::SrsRan => srsran::read(&text),
        Format::Oai => oai::read(&text),
        Format::Radio => table::read(&text),
        Format::Trace => trace(file),
    };
    Ok((format, series?))
}

/// Milliseconds of a window of a trace. Equals the window of captures.
const WINDOW_MS: u32 = 100;

fn trace(file: &[u8]) -> Result<Series, String> {
    let imported = paceline_import::import(file, &Options::default())?;
    let mut bytes = vec![0.0; (imported.trace.length_ms() as usize).div_ceil(WINDOW_MS as usize)];
    for (at, count) in imported.trace.per_time() {
        let window = (at.saturating_sub(1) / WINDOW_MS) as usize;
        if let Some(bytes) = bytes.get_mut(window) {
            *bytes += f64::from(count) * 1504.0;
        }
    }
    let span_s = f64::from(WINDOW_MS) / 1e3;
    let rate = |(index, bytes): (usize, &f64)| Rate {
        time_s: index as f64 * span_s,
        span_s,
        mbps: bytes * 8.0 / span_s / 1e6,
    };
    let rates = bytes.iter().enumerate().map(rate).collect();
    Ok(Series { rates, is_capacity: true, notes: imported.notes, ..Series::default() })
}

/// Orders of JSON documents that a file may have: one, a list, or one after the other.
fn documents(text: &str) -> Result<Vec<serde_json::Value>, String> {
    let mut list = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>() {
        match document {
            Ok(serde_json::Value::Array(documents)) => list.extend(documents),
            Ok(document) => list.push(document),
            // A log that was cut while it was written ends within a document.
            Err(error) if error.is_eof() && !list.is_empty() => break,
            Err(error) => return Err(format!("JSON: {error}")),
        }
    }
    Ok(list)
}

/// A time of day or a date with one, or seconds, as seconds; milliseconds and less by their size.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('"');
    if let Ok(number) = text.parse::<f64>() {
        // Seconds since 1970 have ten digits before the point, milliseconds 13, and so on.
        return number.is_finite().then(|| match number.abs() {
            1e17.. => number / 1e9,
            1e14.. => number / 1e6,
            1e11.. => number / 1e3,
            _ => number,
        });
    }
    let clock = text.rsplit(['T', ' ']).find(|part| part.contains(':'))?;
    let clock = clock.split(['Z', '+']).next()?;
    let parts: Vec<f64> =
        clock.split(':').map(|part| part.replace(',', ".").parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hours, minutes, seconds] => Some(hours * 3600.0 + minutes * 60.0 + seconds),
        [minutes, seconds] => Some(minutes * 60.0 + seconds),
        _ => None,
    }
}

/// Times since the first one; a clock that goes back passed midnight or was set: the step is left out.
fn since_first(times: &mut [f64]) {
    let mut offset = 0.0;
    let mut last: Option<f64> = None;
    let first = times.first().copied().unwrap_or(0.0);
    for time in times {
        let own = *time;
        if let Some(last) = last.filter(|last| own < *last) {
            offset += last - own;
        }
        last = Some(own);
        *time = own + offset - first;
    }
}
