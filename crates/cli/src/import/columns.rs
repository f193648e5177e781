//! Tables with a column of rates, or of bytes, and perhaps one of times: finds the columns by name and unit.
//!
//! A rate holds from its row's time until the next row, and the last row ends the trace. Without a column of
//! times the values are equally far apart, and the last one holds as long as the others.

use super::deliveries::Deliveries;
use super::names::{DOWN, DURATIONS, RATES, UP, has, is_time, unit_in};
use super::options::Options;
use super::table::{Table, number, shown};
use super::units::{RateUnit, TimeUnit};

/// Largest value and median without unit that are taken for Mb/s, and the largest for kb/s. Chosen: 10 Gb/s,
/// a median of 3 Gb/s, and 20 Gb/s.
const MOST_MBPS: f64 = 10_000.0;
const MEDIAN_MBPS: f64 = 3_000.0;
const MOST_KBPS: f64 = 2e7;

/// Reads a table.
pub fn read(table: &Table, options: &Options, notes: &mut Vec<String>) -> Result<Deliveries, String> {
    let time = time_column(table, options)?;
    let rate = rate_column(table, options, time.map(|(column, _)| column))?;
    let values = rates(table, rate, notes);
    let named = table.names.get(rate).and_then(|name| unit_in(name, RateUnit::named));
    let (unit, stated) = match options.rate_unit.or(named) {
        Some(unit) => (unit, ""),
        None => (guess_rate_unit(&values), ", a guess: no unit is stated; --rate-unit changes it"),
    };
    let (rows, columns) = table.size();
    let of =
        if columns > 1 { format!("{columns} columns, {rows} rows; ") } else { format!("{rows} values; ") };
    notes.push(format!("{of}rates: {} in {unit}{stated}", table.name(rate)));
    if let Some(row) = values.iter().position(|value| value.is_some_and(|value| value < 0.0)) {
        return Err(format!(
            "{}: {} is negative: {}",
            table.place(row),
            table.name(rate),
            table.cells(rate)[row]
        ));
    }
    let times = match time {
        Some((column, true)) => durations(table, column, options, notes)?,
        Some((column, false)) => times(table, column, options, notes)?,
        None => {
            let step = options.interval.as_nanos();
            notes.push(format!("no times: a value every {} (--interval changes it)", options.interval));
            (0..=rows as u64).map(|row| row * step).collect()
        }
    };
    deliveries(&times, &values, unit)
}

/// Times, one more than values or as many, and values; a row without value is left out.
fn deliveries(times: &[u64], values: &[Option<f64>], unit: RateUnit) -> Result<Deliveries, String> {
    let end = *times.last().ok_or("no row")?;
    if end == 0 {
        return Err("a single row: a trace needs two rows with times".into());
    }
    let rows = times.iter().zip(values).filter_map(|(at, value)| Some((*at, (*value)?)));
    match unit {
        RateUnit::Rate(bits, _) => {
            Ok(Deliveries::Rates(rows.map(|(at, value)| (at, value * bits)).collect(), end))
        }
        RateUnit::Amount(bytes, _) => {
            // An amount arrived evenly since the row before.
            let rows: Vec<(u64, f64)> = rows.collect();
            let own_end = times.len() > values.len();
            let ends = if own_end { times.get(1..) } else { None };
            let spans = rows.iter().enumerate().map(|(row, (at, value))| {
                let (from, to) = match ends {
                    Some(ends) => (*at, ends.get(row).copied().unwrap_or(end)),
                    None => (if row == 0 { 0 } else { rows[row - 1].0 }, *at),
                };
                (from, value * bytes * 8e9 / (to - from).max(1) as f64, to > from)
            });
            Ok(Deliveries::Rates(
                spans.filter(|(.., long)| *long).map(|(at, rate, _)| (at, rate)).collect(),
                end,
            ))
        }
    }
}

/// The column of times, and whether it has durations.
fn time_column(table: &Table, options: &Options) -> Result<Option<(usize, bool)>, String> {
    let (rows, columns) = table.size();
    if let Some(name) = &options.time {
        let column = table.find("--time", name)?;
        return Ok(Some((column, table.names.get(column).is_some_and(|name| has(name, &DURATIONS)))));
    }
    if table.names.is_empty() {
        let rises = || {
            table.numbers(0).is_ok_and(|values| values.is_sorted()) || instant(&table.cells(0)[0]).is_some()
        };
        return Ok((columns == 2 && rows > 1 && rises()).then_some((0, false)));
    }
    let at = |test: &dyn Fn(&str) -> bool| {
        let mut found = table.names.iter().enumerate().filter(|(_, name)| test(name)).map(|(index, _)| index);
        found.find(|column| {
            table.cells(*column).iter().take(1).any(|cell| number(cell).is_some() || instant(cell).is_some())
        })
    };
    let is_rate = |name: &str| unit_in(name, RateUnit::named).is_some() || has(name, &RATES);
    let time = at(&|name| is_time(name) && !is_rate(name)).map(|column| (column, false));
    Ok(time.or_else(|| at(&|name| has(name, &DURATIONS) && !is_rate(name)).map(|column| (column, true))))
}

/// The column of rates: the option's; or by name and unit, the downlink before the uplink.
fn rate_column(table: &Table, options: &Options, time: Option<usize>) -> Result<usize, String> {
    if let Some(name) = &options.rate {
        return table.find("--rate", name);
    }
    let (_, columns) = table.size();
    let others: Vec<usize> = (0..columns).filter(|column| Some(*column) != time).collect();
    if let [only] = others[..] {
        return Ok(only);
    }
    let score = |column: &usize| {
        let name = table.names.get(*column)?;
        let unit = unit_in(name, RateUnit::named);
        let known = match (unit, has(name, &RATES)) {
            (Some(RateUnit::Rate(..)), true) => 40,
            (Some(RateUnit::Rate(..)), false) => 30,
            (_, true) => 20,
            (Some(RateUnit::Amount(..)), false) => 10,
            (None, false) => return None,
        };
        Some(known + i32::from(has(name, &DOWN)) - i32::from(has(name, &UP)))
    };
    let scores: Vec<(i32, usize)> =
        others.iter().filter_map(|column| Some((score(column)?, *column))).collect();
    let best = scores.iter().map(|(score, _)| *score).max();
    let found: Vec<usize> =
        scores.iter().filter(|(score, _)| Some(*score) == best).map(|(_, column)| *column).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(format!("no column is known to be a rate; name it by --rate: {}", table.listed())),
        _ => {
            let names: Vec<String> = found.iter().map(|column| table.name(*column)).collect();
            Err(format!("several columns may be the rate; name one by --rate: {}", names.join(", ")))
        }
    }
}

/// The values of a column; rows without one are counted in a note.
fn rates(table: &Table, column: usize, notes: &mut Vec<String>) -> Vec<Option<f64>> {
    let values: Vec<Option<f64>> = table.cells(column).iter().map(|cell| number(cell)).collect();
    let without = values.iter().filter(|value| value.is_none()).count();
    if without > 0 {
        let row = values.iter().position(Option::is_none).unwrap_or_default();
        let cell = shown(&table.cells(column)[row]);
        let rows = if without == 1 { "row" } else { "rows" };
        notes.push(format!(
            "{without} {rows} without a rate (first {}: `{cell}`): the rate before holds on",
            table.place(row)
        ));
    }
    values
}

fn guess_rate_unit(values: &[Option<f64>]) -> RateUnit {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().filter(|value| *value > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let (most, median) =
        (sorted.last().copied().unwrap_or(0.0), sorted.get(sorted.len() / 2).copied().unwrap_or(0.0));
    let name = if most <= MOST_MBPS && median <= MEDIAN_MBPS {
        "Mb/s"
    } else if most <= MOST_KBPS {
        "kb/s"
    } else {
        "b/s"
    };
    RateUnit::named(name).expect("a known unit")
}

/// Times from the first row on, ns.
fn times(
    table: &Table,
    column: usize,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<u64>, String> {
    let cells = table.cells(column);
    let dates: Option<Vec<f64>> = cells.iter().map(|cell| instant(cell)).collect();
    let (values, unit, how) = match (table.numbers(column), dates) {
        (Ok(values), _) => {
            let named = table.names.get(column).and_then(|name| unit_in(name, TimeUnit::named));
            let guessed = || TimeUnit::since_1970(values[0]).unwrap_or_else(|| guess_time_unit(&values));
            match options.time_unit.or_else(|| TimeUnit::since_1970(values[0])).or(named) {
                Some(unit) => (values, unit, ""),
                None => {
                    let unit = guessed();
                    (values, unit, ", a guess: no unit is stated; --time-unit changes it")
                }
            }
        }
        (Err(_), Some(dates)) => (dates, TimeUnit::Second, ", from dates"),
        (Err(error), None) => return Err(error),
    };
    let first = values[0];
    if let Some(row) = values.windows(2).position(|pair| pair[1] < pair[0]) {
        let place = table.place(row + 1);
        return Err(format!("{place}: {}: times must not decrease", table.name(column)));
    }
    let seconds = (values[values.len() - 1] - first) * unit.nanos() / 1e9;
    let from = if first == 0.0 { String::new() } else { format!(", from {}", shown(&cells[0])) };
    notes.push(format!("times: {} in {unit}{how}{from}; {seconds:.3} s", table.name(column)));
    Ok(values.iter().map(|value| ((value - first) * unit.nanos()).round() as u64).collect())
}

/// Times from the durations of the rows, ns; one more than rows.
fn durations(
    table: &Table,
    column: usize,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<u64>, String> {
    let values = table.numbers(column)?;
    let named = table.names.get(column).and_then(|name| unit_in(name, TimeUnit::named));
    let unit = options.time_unit.or(named).unwrap_or_else(|| {
        if values.iter().all(|value| *value >= 50.0) { TimeUnit::Millisecond } else { TimeUnit::Second }
    });
    if let Some(row) = values.iter().position(|value| *value < 0.0) {
        return Err(format!("{}: {} is negative", table.place(row), table.name(column)));
    }
    let mut at = 0.0;
    let ends = values.iter().map(|value| {
        at += value * unit.nanos();
        at.round() as u64
    });
    let times: Vec<u64> = std::iter::once(0).chain(ends).collect();
    let seconds = times.last().map_or(0.0, |end| *end as f64 / 1e9);
    notes.push(format!("durations: {} in {unit}; {seconds:.3} s", table.name(column)));
    Ok(times)
}

/// The unit of times by the median of their steps: recorders write ten or so values a second or fewer.
fn guess_time_unit(values: &[f64]) -> TimeUnit {
    let mut steps: Vec<f64> =
        values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    match steps.get(steps.len() / 2).copied().unwrap_or(1.0) {
        step if step >= 1e8 => TimeUnit::Nanosecond,
        step if step >= 1e5 => TimeUnit::Microsecond,
        step if step >= 50.0 => TimeUnit::Millisecond,
        _ => TimeUnit::Second,
    }
}

/// Seconds since 1970 of a date and time of day, such as `2026-11-26T08:30:00.25Z` or `2026.11.26_08.30.00`.
/// The zone is left out, since only differences count.
fn instant(cell: &str) -> Option<f64> {
    let mut fields = cell.split(|c: char| !c.is_ascii_digit()).filter(|field| !field.is_empty());
    let mut next = |range: std::ops::RangeInclusive<i64>| -> Option<i64> {
        fields.next()?.parse().ok().filter(|value| range.contains(value))
    };
    let (year, month, day) = (next(1970..=2100)?, next(1..=12)?, next(1..=31)?);
    let (hour, minute, second) = (next(0..=23)?, next(0..=59)?, next(0..=60)?);
    // A fraction follows a point or comma; a zone does not.
    let fraction = cell.rsplit_once(['.', ',']).map(|(_, rest)| rest);
    let digits: String = fraction.unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
    let has_fraction = cell.contains(':') && !digits.is_empty();
    let fraction = if has_fraction { format!("0.{digits}").parse().ok()? } else { 0.0 };
    // Days since 1970 in the Gregorian calendar; the year begins in March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) as f64 + fraction)
}
