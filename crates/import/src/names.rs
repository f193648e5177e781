//! Names of columns: their words, and the unit that they state.

use super::units::{RateUnit, TimeUnit};

/// Words in names of columns of times, of durations, of rates, and of either direction, in lower case.
/// Chosen: those of published traces and of measurement tools.
const TIMES: [&str; 13] = [
    "time",
    "timestamp",
    "timestamps",
    "ts",
    "t",
    "epoch",
    "date",
    "datetime",
    "elapsed",
    "at",
    "start",
    "when",
    "clock",
];
/// Ends in "time" of words for other quantities.
const NO_TIMES: [&str; 6] = ["airtime", "downtime", "lifetime", "playtime", "overtime", "onetime"];
pub const DURATIONS: [&str; 4] = ["duration", "interval", "dt", "delta"];
const RATES: [&str; 12] = [
    "throughput",
    "rate",
    "bitrate",
    "bandwidth",
    "bw",
    "capacity",
    "goodput",
    "tput",
    "thrpt",
    "datarate",
    "download",
    "bits",
];
/// A rate, or how fast a vehicle is.
const SPEED: [&str; 1] = ["speed"];
/// Words beside which a speed is that of a movement.
const MOVEMENTS: [&str; 13] = [
    "moving", "movement", "vehicle", "car", "train", "gps", "gnss", "ground", "walking", "driving", "wind",
    "ue", "velocity",
];
/// Quantities that lie beside rates in recordings of radio and place.
const OTHERS: [&str; 22] = [
    "velocity",
    "rsrp",
    "rsrq",
    "rssi",
    "sinr",
    "snr",
    "cqi",
    "mcs",
    "rtt",
    "ping",
    "latency",
    "delay",
    "jitter",
    "loss",
    "latitude",
    "longitude",
    "lat",
    "lon",
    "lng",
    "altitude",
    "temperature",
    "earfcn",
];
/// Words of places, beside which a speed alone is that of a movement.
const PLACES: [&str; 10] =
    ["latitude", "longitude", "lat", "lon", "lng", "altitude", "alt", "bearing", "heading", "compass"];
/// Units of quantities other than data and rates, in lower case.
const OTHER_UNITS: [&str; 27] = [
    "km/h", "kmh", "km_h", "kph", "kmph", "kmhr", "km/hr", "m/s", "mps", "m_s", "mph", "mi/h", "miles/h",
    "knots", "knot", "kn", "kt", "ft/s", "dbm", "db", "ms", "%", "percent", "mhz", "khz", "hz", "deg",
];
const DOWN: [&str; 10] =
    ["dl", "down", "downlink", "download", "rx", "received", "recv", "receive", "in", "ingress"];
const UP: [&str; 10] = ["ul", "up", "uplink", "upload", "tx", "sent", "send", "transmit", "out", "egress"];
/// Directions that are joined to a unit, 1 for the downlink: `rxkB/s`, `dlMbps`. Chosen: those of sar(1) and
/// of modems.
const JOINED: [(&str, i32); 8] =
    [("rx", 1), ("dl", 1), ("down", 1), ("in", 1), ("tx", -1), ("ul", -1), ("up", -1), ("out", -1)];
/// Words of names that end in "k", which are no prefix of a unit.
const WORDS_WITH_K: [&str; 7] = ["link", "network", "peak", "bulk", "track", "disk", "stack"];
/// Words of counters.
const COUNTERS: [&str; 8] =
    ["total", "cumulative", "cumul", "cum", "counter", "accumulated", "overall", "sum"];
/// Words of columns that number the streams whose rows share a time.
const STREAMS: [&str; 18] = [
    "stream",
    "flow",
    "subflow",
    "id",
    "socket",
    "connection",
    "conn",
    "iface",
    "interface",
    "carrier",
    "cc",
    "sim",
    "link",
    "path",
    "port",
    "client",
    "ue",
    "device",
];

/// The lower-case words of a column's name.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in name.chars() {
        // "dlBitrate"
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(c);
        before = c;
    }
    spaced
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether one of a name's words is known.
pub fn has(name: &str, known: &[&str]) -> bool {
    words(name).iter().any(|word| known.contains(&word.as_str()))
}

/// Whether a column's name is that of a time.
pub fn is_time(name: &str) -> bool {
    let words = words(name);
    // `datetimestamp_utc`, `localtime`
    let joined = |word: &String| {
        word.contains("timestamp")
            || word.contains("datetime")
            || (word.ends_with("time") && !NO_TIMES.contains(&word.as_str()))
    };
    has(name, &TIMES)
        || words.iter().any(joined)
        || (!words.is_empty() && words.iter().all(|word| TimeUnit::named(word).is_some()))
}

/// Whether a column's name is that of a rate.
pub fn is_rate(name: &str) -> bool {
    rate_rank(name).is_some()
}

/// How certainly a name is that of a rate, before those of amounts and of speeds; none if it is not.
pub fn rate_rank(name: &str) -> Option<i32> {
    let rank = match (rate_unit(name).map(|stated| stated.unit), has(name, &RATES)) {
        (Some(unit), false) if unit.is_packets() => 8,
        (Some(RateUnit::Rate(..)), true) => 40,
        (Some(RateUnit::Rate(..)), false) => 30,
        (_, true) => 20,
        (Some(RateUnit::Amount(..)), false) => 10,
        (None, false) if has(name, &SPEED) && !is_other(name) => 4,
        (None, false) => return None,
    };
    Some(rank + direction(name))
}

/// Whether only "speed" makes a name that of a rate.
pub fn is_speed(name: &str) -> bool {
    rate_unit(name).is_none() && has(name, &SPEED) && !has(name, &RATES)
}

/// Whether a name is that of a place or of a direction of movement.
pub fn is_place(name: &str) -> bool {
    has(name, &PLACES)
}

/// Whether a name is that of another quantity than data or rates, by a word or by its unit.
pub fn is_other(name: &str) -> bool {
    let moves = has(name, &SPEED) && has(name, &MOVEMENTS);
    let named = |text: &str| OTHER_UNITS.contains(&text.to_lowercase().as_str()).then_some(());
    rate_unit(name).is_none()
        && !has(name, &RATES)
        && (moves || has(name, &OTHERS) || unit_in(name, named).is_some())
}

/// 1 for the downlink, -1 for the uplink, 0 if a name states neither.
fn direction(name: &str) -> i32 {
    let by_words = i32::from(has(name, &DOWN)) - i32::from(has(name, &UP));
    let joined = || rate_unit(name).map_or(0, |stated| stated.direction);
    if by_words == 0 { joined() } else { by_words }
}

/// Whether a name is that of a counter.
pub fn is_counter(name: &str) -> bool {
    has(name, &COUNTERS)
}

/// Whether a name is that of a column which numbers streams.
pub fn is_stream(name: &str) -> bool {
    has(name, &STREAMS)
}

/// Whether a name is that of a time, of a duration or of a rate.
pub fn is_known(name: &str) -> bool {
    is_time(name) || is_rate(name) || has(name, &DURATIONS)
}

/// A unit of rates or amounts in a column's name.
pub struct Stated {
    pub unit: RateUnit,
    /// The reason for a reading that other tools' names do not have.
    pub why: Option<&'static str>,
    /// Direction that is joined to the unit.
    direction: i32,
}

/// The unit of rates or amounts that a name states.
pub fn rate_unit(name: &str) -> Option<Stated> {
    let name = name.trim_end();
    for (text, is_inner) in candidates(name) {
        // The capital of `downlinkThroughputBps` and of `Downlink_Bps` is that of its word.
        if text == "Bps" && is_inner && is_titled(&name[..name.len() - text.len()]) {
            let why = "the capital B of `Bps` is that of its word";
            return Some(Stated { unit: RateUnit::named("bps")?, why: Some(why), direction: 0 });
        }
        if let Some(unit) = RateUnit::named(text) {
            return Some(Stated { unit, why: None, direction: 0 });
        }
        if let Some(stated) = JOINED.iter().find_map(|(prefix, direction)| joined(text, prefix, *direction)) {
            return Some(stated);
        }
    }
    None
}

/// The unit behind a direction that is joined to it.
fn joined(text: &str, prefix: &str, direction: i32) -> Option<Stated> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    let unit = RateUnit::named(rest).filter(|_| start.eq_ignore_ascii_case(prefix) && rest.len() > 1)?;
    // sar(1) divides by 1024.
    match rest {
        "kB/s" => Some(Stated { unit: RateUnit::named("KiB/s")?, why: Some("as sar counts"), direction }),
        _ => Some(Stated { unit, why: None, direction }),
    }
}

/// Whether the words before a unit make its capital that of a word: `rateBps`, `Downlink_Rate_Bps`.
fn is_titled(before: &str) -> bool {
    let mut words = before.split(|c: char| !c.is_alphanumeric()).filter_map(|word| word.chars().next());
    let has_marks = before.contains(['(', '[', '{', '/']);
    before.ends_with(char::is_alphanumeric) || (!has_marks && words.all(char::is_uppercase))
}

/// The parts of a name that may be a unit: its end behind each separator, and the text in brackets.
pub fn unit_in<U>(name: &str, named: impl Fn(&str) -> Option<U>) -> Option<U> {
    candidates(name).into_iter().find_map(|(text, _)| named(text))
}

/// Those parts, from the most to the least certain, and whether they begin behind another word.
fn candidates(name: &str) -> Vec<(&str, bool)> {
    let bracket = name.split(['(', '[', '{']).nth(1).and_then(|rest| rest.split([')', ']', '}']).next());
    let starts = name.char_indices().filter(|(_, c)| !c.is_alphanumeric()).map(|(at, c)| at + c.len_utf8());
    let camel = name.char_indices().zip(name.chars().skip(1));
    let camel = camel.filter(|((_, a), b)| a.is_lowercase() && b.is_uppercase()).map(|((at, a), b)| {
        // `ratekB`, and not `downlinkBytes`.
        let is_prefix = a == 'k' && b == 'B' && !WORDS_WITH_K.iter().any(|word| name[..=at].ends_with(word));
        if is_prefix { at } else { at + a.len_utf8() }
    });
    let mut ends: Vec<usize> = starts.chain(camel).chain([0]).collect();
    ends.sort_unstable();
    let ends = ends.into_iter().map(|at| (name[at..].trim(), at > 0));
    bracket.map(|text| (text.trim(), false)).into_iter().chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_other, is_rate, is_time, rate_rank, rate_unit};

    #[test]
    fn units_are_found_in_names_of_all_cases() {
        for (name, unit) in [
            ("downlinkThroughputBps", "b/s"),
            ("DownlinkThroughputBps", "b/s"),
            ("Downlink_Throughput_Bps", "b/s"),
            ("rate_Bps", "B/s"),
            ("rate (Bps)", "B/s"),
            ("Rate [Bps]", "B/s"),
            ("Bps", "B/s"),
            ("uplinkMbps", "Mb/s"),
            ("rateMBps", "MB/s"),
            ("dlKbps", "kb/s"),
            ("rxkB/s", "KiB/s"),
            ("txkB/s", "KiB/s"),
            ("rxMbps", "Mb/s"),
            ("rxB/s", "B/s"),
            ("ratekB/s", "kB/s"),
            ("downlinkBytes", "bytes"),
            ("uplinkBps", "b/s"),
            ("rxbytes", "bytes"),
            ("rxBytes", "bytes"),
            ("ifInOctets", "bytes"),
            ("rx_bytes_sec", "B/s"),
            ("throughput (MiB/s)", "MiB/s"),
            ("Throughput..KB.s.", "kB/s"),
            ("throughput_mibit_s", "Mibit/s"),
            ("wlan0 kB/s in", ""),
        ] {
            let found = rate_unit(name).map_or(String::new(), |stated| stated.unit.to_string());
            assert_eq!(found, unit, "{name}");
        }
        assert!(rate_rank("rxkB/s") > rate_rank("txkB/s"));
        assert!(rate_rank("uplinkThroughputBps") < rate_rank("downlinkThroughputBps"));
    }

    #[test]
    fn speeds_of_movements_are_no_rates_and_joined_words_are_times() {
        for name in
            ["Speed (km/h)", "speed_kmh", "movingSpeed", "speed m/s", "GPS speed", "velocity", "speed_mph"]
        {
            assert!(is_other(name) && !is_rate(name), "{name}");
        }
        for name in ["Speed (Mbps)", "download_speed", "speed", "throughput_ms"] {
            assert!(is_rate(name) && !is_other(name), "{name}");
        }
        for name in ["datetimestamp_utc", "DateTimeStamp", "localtime", "unixtime", "Time_Stamp", "t"] {
            assert!(is_time(name), "{name}");
        }
        for name in ["airtime", "rtt", "timeout", "counter"] {
            assert!(!is_time(name), "{name}");
        }
    }
}
