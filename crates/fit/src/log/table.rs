//! Tables with a heading and columns of the radio: exports of MobileInsight and QXDM, `metrics_csv` of srsUE
//! (user manual: time, dl_snr, dl_mcs, dl_brate and others between semicolons), and others.

use super::{Radio, Rate, Series, seconds, since_first};

/// Names of columns without case, blanks and marks. The first one that the heading has counts.
const TIME: [&str; 8] = ["timestamp", "time", "times", "timems", "datetime", "ts", "t", "utc"];
const SINR: [&str; 11] = [
    "dlsinr", "sssinr", "nrsssinr", "sinr", "sinrdb", "dlsnr", "snr", "snrdb", "rssinr", "ssbsinr", "csisinr",
];
const UPLINK_SINR: [&str; 6] = ["ulsinr", "ulsnr", "puschsinr", "puschsnr", "puschsnrdb", "ulpuschsnr"];
const MCS: [&str; 6] = ["dlmcs", "mcs", "mcsindex", "pdschmcs", "mcs0", "mcsdl"];
const PRB: [&str; 11] =
    ["dlprb", "prb", "nprb", "numprb", "prbs", "numrb", "numrbs", "rb", "rbs", "dlrb", "pdschprb"];
const RATE: [&str; 12] = [
    "dlbrate",
    "dlbitrate",
    "dltput",
    "dlthroughput",
    "dlrate",
    "throughput",
    "brate",
    "bitrate",
    "tput",
    "pdschtput",
    "dltputmbps",
    "dlthroughputmbps",
];
/// Ends of names that state a unit of rates, and their Mb/s, by definition.
const UNITS: [(&str, f64); 5] = [("gbps", 1e3), ("mbps", 1.0), ("kbps", 1e-3), ("mbs", 1.0), ("bps", 1e-6)];
/// Resource blocks of the widest channel of LTE (TS 36.104 Table 5.6-1).
const MOST_LTE_PRB: f64 = 100.0;
/// Interval where a table has no times, s: the default of srsUE's metrics.
const INTERVAL_S: f64 = 1.0;

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

fn separator(line: &str) -> u8 {
    [b';', b'\t', b',']
        .into_iter()
        .max_by_key(|mark| line.bytes().filter(|byte| byte == mark).count())
        .unwrap_or(b',')
}

/// The first line with text that is no comment.
fn heading(text: &str) -> Option<&str> {
    text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

fn column(names: &[String], known: &[&str]) -> Option<usize> {
    known.iter().find_map(|wanted| {
        names.iter().position(|name| {
            let bare = UNITS.iter().find_map(|(unit, _)| name.strip_suffix(unit));
            name == wanted || bare == Some(*wanted) || name.strip_suffix("ms") == Some(*wanted)
        })
    })
}

/// Whether a text has a heading with a column of the radio.
pub fn is_radio(text: &str) -> bool {
    let Some(line) = heading(text) else { return false };
    let mark = char::from(separator(line));
    let names: Vec<String> = line.split(mark).map(plain).collect();
    names.len() > 1
        && [&SINR[..], &UPLINK_SINR, &MCS, &PRB].iter().any(|known| column(&names, known).is_some())
}

/// A number, also with a suffix of thousands (`17M`); none where a cell has none.
fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim().trim_end_matches('%');
    let (digits, factor) = match cell.chars().last()? {
        'k' => (&cell[..cell.len() - 1], 1e3),
        'M' => (&cell[..cell.len() - 1], 1e6),
        'G' => (&cell[..cell.len() - 1], 1e9),
        _ => (cell, 1.0),
    };
    digits.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value * factor)
}

/// Reads a table.
pub fn read(text: &str) -> Result<Series, String> {
    let line = heading(text).ok_or("no heading")?;
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator(line))
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(text.as_bytes());
    let names: Vec<String> =
        reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    let plain_names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let find = |known: &[&str]| column(&plain_names, known);
    let columns = [find(&SINR), find(&UPLINK_SINR), find(&MCS), find(&PRB)];
    let (time, rate) = (find(&TIME), find(&RATE));
    if columns.iter().all(Option::is_none) {
        return Err(format!("no column of SINR, MCS or PRBs in the heading: {}", names.join(", ")));
    }
    let per_rate = rate.map_or(1.0, |rate| {
        UNITS.iter().find(|(unit, _)| plain_names[rate].ends_with(unit)).map_or(1e-6, |(_, mbps)| *mbps)
    });
    let per_time = time.map_or(1.0, |time| if plain_names[time].ends_with("ms") { 1e-3 } else { 1.0 });
    let (mut times, mut rows, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        let cell = |column: Option<usize>| record.get(column?).and_then(number);
        let [sinr_db, uplink_sinr_db, mcs, prb] = columns.map(cell);
        let stamp = time.and_then(|time| record.get(time)).and_then(seconds);
        if time.is_some() && stamp.is_none() {
            // srsUE ends its file with a line of marks.
            continue;
        }
        let scaled = stamp.map(|stamp| if stamp.abs() < 1e9 { stamp * per_time } else { stamp });
        times.push(scaled.unwrap_or(index as f64 * INTERVAL_S));
        rates.push(cell(rate).map(|rate| rate * per_rate));
        rows.push(Radio { time_s: 0.0, sinr_db, uplink_sinr_db, mcs, prb });
    }
    if rows.is_empty() {
        return Err("no row with a time".into());
    }
    since_first(&mut times);
    let mut series = Series::default();
    for (index, time_s) in times.iter().enumerate() {
        rows[index].time_s = *time_s;
        let span_s = times.get(index + 1).map_or(0.0, |next| next - time_s);
        if let Some(mbps) = rates[index].filter(|_| span_s > 0.0) {
            series.rates.push(Rate { time_s: *time_s, span_s, mbps });
        }
    }
    let most = rows.iter().filter_map(|row| row.prb).fold(0.0, f64::max);
    let says_nr = plain_names.iter().any(|name| name.starts_with("nr") || name.starts_with("ss"));
    series.is_nr = (says_nr || most > MOST_LTE_PRB).then_some(true);
    let used: Vec<&str> =
        columns.into_iter().chain([time, rate]).flatten().map(|at| names[at].as_str()).collect();
    series.notes.push(format!("table of {} rows; columns {}", rows.len(), used.join(", ")));
    series.radio = rows;
    Ok(series)
}
