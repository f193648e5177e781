//! Columns of clock times: dates with a time of day (ISO 8601, RFC 3339, and the orders of spreadsheets),
//! times of day, and elapsed times with colons.

use super::date::{date, of_words};
use super::zone::{self, Zone};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Nanoseconds in a second and in a day of a clock, by definition.
const SECOND_NS: i128 = 1_000_000_000;
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// The allowed forms, for messages.
pub const ALLOWED: &str = "numbers, dates with times (2024-05-01T12:34:56.789Z, 2024-05-01 12:34:56 CEST), or times of \
                           day (12:34:56.789)";

/// A clock time.
struct Stamp {
    /// By the local clock: since 1970 with a date, otherwise since midnight or the begin. Nanoseconds.
    local_ns: i128,
    zone: Option<Zone>,
    has_date: bool,
}

impl Stamp {
    /// Since 1970 in UTC, where the cell states a zone whose offset is known. Nanoseconds.
    fn utc_ns(&self) -> Option<i128> {
        let offset_s = self.zone.as_ref().filter(|_| self.has_date)?.offset_s?;
        Some(self.local_ns - i128::from(offset_s) * SECOND_NS)
    }
}

/// A column of clock times.
pub struct Clock {
    /// Seconds since the first row.
    pub seconds: Vec<f64>,
    /// The form of the times, for a note.
    pub form: &'static str,
    /// How often a time of day passed midnight.
    pub midnights: u32,
}

/// Whether a cell is a clock time.
pub fn is_clock(cell: &str) -> bool {
    stamp(cell).is_some()
}

/// Whether a cell is a date without a time of day.
pub fn is_date(cell: &str) -> bool {
    date(cell.trim()).is_some()
}

/// Reads a column. An error is the index of the first cell that is no clock time, or of another form.
pub fn read(cells: &[String]) -> Result<Clock, usize> {
    let stamps = cells.iter().enumerate().map(|(row, cell)| stamp(cell).ok_or(row));
    let stamps: Vec<Stamp> = stamps.collect::<Result<_, _>>()?;
    let has_dates = stamps.first().is_some_and(|stamp| stamp.has_date);
    if let Some(row) = stamps.iter().position(|stamp| stamp.has_date != has_dates) {
        return Err(row);
    }
    // Zones count only if all rows have one. A zone whose offset is not known is the same in all rows.
    let utc: Option<Vec<i128>> = stamps.iter().map(Stamp::utc_ns).collect();
    let has_unknown =
        stamps.iter().any(|stamp| stamp.zone.as_ref().is_some_and(|zone| zone.offset_s.is_none()));
    if let Some(row) = stamps.iter().position(|stamp| has_unknown && stamp.zone != stamps[0].zone) {
        return Err(row);
    }
    let mut ns = utc.unwrap_or_else(|| stamps.iter().map(|stamp| stamp.local_ns).collect());
    let mut midnights = 0;
    if !has_dates {
        let mut before = 0;
        for at in &mut ns {
            let own = *at;
            // A fall by more than half a day is midnight; a smaller one is an error of the file.
            midnights += u32::from(before - own > DAY_NS / 2);
            before = own;
            *at += i128::from(midnights) * DAY_NS;
        }
    }
    let first = ns.first().copied().unwrap_or_default();
    let seconds = ns.iter().map(|at| (at - first) as f64 / SECOND_NS as f64).collect();
    Ok(Clock { seconds, form: if has_dates { "dates" } else { "times of day" }, midnights })
}

fn stamp(cell: &str) -> Option<Stamp> {
    let cell = cell.trim();
    // Numbers, which are most cells, end here.
    if cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Some(in_digits) = of_words(cell) {
        return stamp_of_digits(&in_digits);
    }
    stamp_of_digits(cell)
}

fn stamp_of_digits(cell: &str) -> Option<Stamp> {
    if !cell.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let Some((day, rest)) =
        cell.split_once(['T', 't', ' ', '_']).and_then(|(day, rest)| Some((date(day)?, rest)))
    else {
        let (time, zone) = zone::split(cell).ok()?;
        return Some(Stamp { local_ns: time_of_day(time)?, zone, has_date: false });
    };
    let (time, zone) = zone::split(rest).ok()?;
    let time = iso_time(time)?;
    let local: DateTime = format!("{day}T{time}").parse().ok()?;
    let local_ns = TimeZone::UTC.to_timestamp(local).ok()?.as_nanosecond();
    Some(Stamp { local_ns, zone, has_date: true })
}

/// A time of day of a date in the form of ISO 8601: of `8:30:00,25`, `08.30.00`, `08-30-00` and `8:30:00 PM`.
fn iso_time(text: &str) -> Option<String> {
    let text = if text.contains(':') { text.to_owned() } else { text.replacen(['.', '-'], ":", 2) };
    let (text, afternoon) = half_day(&text);
    let (hour, rest) = text.split_once(':')?;
    let hour = hour_of(hour.parse().ok()?, afternoon)?;
    Some(format!("{hour:02}:{}", rest.replace(',', ".")))
}

/// Nanoseconds of a time of day without a date, or of an elapsed time: hours, minutes and perhaps seconds; or
/// minutes and seconds with a fraction.
fn time_of_day(text: &str) -> Option<i128> {
    let (text, afternoon) = half_day(text);
    let text = text.replace(',', ".");
    let fields: Vec<&str> = text.split(':').collect();
    let whole = |field: &str, end: i128| {
        let is_whole = (1..=4).contains(&field.len()) && field.bytes().all(|byte| byte.is_ascii_digit());
        field.parse().ok().filter(|value| is_whole && *value < end)
    };
    let second = |field: &str| {
        let plain = field.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        // 60 is a leap second.
        let value: f64 = field.parse().ok().filter(|value| plain && *value < 61.0)?;
        Some((value * 1e9).round() as i128)
    };
    let (hours, minutes, ns) = match fields[..] {
        [hours, minutes, seconds] => (whole(hours, 10_000)?, whole(minutes, 60)?, second(seconds)?),
        [minutes, seconds] if seconds.contains('.') => (0, whole(minutes, 60)?, second(seconds)?),
        [hours, minutes] => (whole(hours, 10_000)?, whole(minutes, 60)?, 0),
        _ => return None,
    };
    let hours = hour_of(hours, afternoon)?;
    Some((hours * 3600 + minutes * 60) * SECOND_NS + ns)
}

/// A time without AM or PM, and which of them it had.
fn half_day(text: &str) -> (&str, Option<bool>) {
    for (mark, afternoon) in [("AM", false), ("PM", true)] {
        let at = text.len().saturating_sub(2);
        if text.is_char_boundary(at) && text[at..].eq_ignore_ascii_case(mark) {
            return (text[..at].trim_end(), Some(afternoon));
        }
    }
    (text, None)
}

/// The hour of a day of 24; none if the hour of a half day is above 12.
fn hour_of(hour: i128, afternoon: Option<bool>) -> Option<i128> {
    match afternoon {
        None => Some(hour),
        Some(_) if !(1..=12).contains(&hour) => None,
        Some(afternoon) => Some(hour % 12 + if afternoon { 12 } else { 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_clock, is_date, read};

    fn seconds(cells: &[&str]) -> Result<Vec<f64>, usize> {
        read(&cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()).map(|clock| clock.seconds)
    }

    #[test]
    fn clock_times_of_all_forms_are_read() {
        for cells in [
            ["2024-05-01T12:34:56.5Z", "2024-05-01T12:34:58Z"],
            ["2024-05-01 12:34:56,5", "2024-05-01 12:34:58,000"],
            ["2024-05-01T23:59:59.5", "2024-05-02T00:00:01"],
            ["2024-05-01T12:34:56.5+02:00", "2024-05-01T11:34:58+0100"],
            ["2024.05.01_12.34.56.5", "2024.05.01_12.34.58"],
            ["30.4.2024 23:59:59.5", "1.5.2024 0:00:01"],
            ["4/30/2024 11:59:59.5 PM", "5/1/2024 12:00:01 AM"],
            ["12:34:56.5", "12:34:58"],
            ["23:59:59.5", "00:00:01"],
            ["11:59:59.5 pm", "12:00:01 am"],
            ["99:59:59.5", "100:00:01"],
            ["0:59.5", "1:01.0"],
            ["2021-01-25 03:48:00.544 CDT", "2021-01-25 03:48:02.044 CDT"],
            ["2021-03-14 01:59:59.5 CST", "2021-03-14 03:00:01 CDT"],
            ["2021-01-25 03:48:00.5 IST", "2021-01-25 03:48:02 IST"],
            ["2021-01-25 03:48:00.5 Europe/Berlin", "2021-01-25 03:48:02 Europe/Berlin"],
            ["2021-01-25T03:48:00.5-06:00[America/Chicago]", "2021-01-25T03:48:02-06:00[America/Chicago]"],
            ["Mon Jan 25 03:48:00.5 CST 2021", "Mon Jan 25 03:48:02 CST 2021"],
            ["Mon, 25 Jan 2021 03:48:00.5 -0600", "Mon, 25 Jan 2021 03:48:02 -0600"],
            ["Jan 25, 2021 11:59:59.5 AM", "Jan 25, 2021 12:00:01 PM"],
            ["25-Jan-2021 03:48:00.5", "25-Jan-2021 03:48:02"],
            ["03:48:00.5 CDT", "03:48:02 CDT"],
        ] {
            assert_eq!(seconds(&cells), Ok(vec![0.0, 1.5]), "{cells:?}");
        }
        assert_eq!(seconds(&["12:34", "12:35"]), Ok(vec![0.0, 60.0]));
        // A fall by less than half a day remains, and is an error of the column.
        assert_eq!(seconds(&["12:00:05", "12:00:01"]), Ok(vec![0.0, -4.0]));
        assert_eq!(seconds(&["12:00:05", "2024-05-01 12:00:06"]), Err(1));
        assert_eq!(seconds(&["12:00:05", ""]), Err(1));
        assert_eq!(seconds(&["2021-01-25 03:48:00 IST", "2021-01-25 03:48:00 AST"]), Err(1));
    }

    #[test]
    fn other_cells_are_no_clock_times() {
        for cell in [
            "",
            "12",
            "12.5",
            "1,5",
            "2024-05-01",
            "2024-02-31 12:00:00",
            "2024-05-01 25:00:00",
            "12:60:00",
            "12:00:61",
            "13:00 PM",
            "a:b",
            "1:2:3:4",
            "10.0.0.1",
            "fe80::1",
            ":",
            "12:",
            "2024-05-01T",
            "1900-01-01 00:00:00",
            "-1:00:00",
            "12:00:1e1",
            "µ",
            "1µ",
        ] {
            assert!(!is_clock(cell), "{cell}");
        }
        assert!(is_date("2024-05-01") && !is_date("12.5") && !is_date("2024-05-01 12:00:00"));
    }
}
