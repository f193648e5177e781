//! Tables with a column of rates, or of bytes, and perhaps one of times: finds the columns by name and unit.
//!
//! A rate holds from its row's time until the next row, and the last row ends the trace. Without a column of
//! times the values are equally far apart, and the last one holds as long as the others.

use super::clock;
use super::deliveries::Deliveries;
use super::names::{DOWN, DURATIONS, RATES, UP, has, is_rate, is_time, unit_in};
use super::numbers::{number, shown};
use super::options::Options;
use super::plausible;
use super::table::{Table, is_value};
use super::times;
use super::units::RateUnit;

/// Reads a table.
pub fn read(table: &Table, options: &Options, notes: &mut Vec<String>) -> Result<Deliveries, String> {
    let (rows, columns) = table.size();
    if rows == 0 {
        return Err("no row with values".into());
    }
    let named = options.rate.as_ref().map(|name| table.find("--rate", name)).transpose()?;
    let time = time_column(table, options, named)?;
    let rate = match named {
        Some(column) => column,
        None => rate_column(table, time.map(|(column, _)| column))?,
    };
    let values = rates(table, rate, notes)?;
    let named = table.names.get(rate).and_then(|name| unit_in(name, RateUnit::named));
    let (unit, stated) = match options.rate_unit.or(named) {
        Some(unit) => (unit, String::new()),
        None => {
            let (unit, why) =
                plausible::rate_unit(&values).map_err(|error| format!("{}: {error}", table.name(rate)))?;
            (unit, format!(", a guess: no unit is stated; --rate-unit changes it ({why})"))
        }
    };
    let of =
        if columns > 1 { format!("{columns} columns, {rows} rows; ") } else { format!("{rows} values; ") };
    notes.push(format!("{of}rates: {} in {unit}{stated}", table.name(rate)));
    let times = match time {
        Some((column, true)) => times::of_durations(table, column, options, notes)?,
        Some((column, false)) => times::of_rows(table, column, options, notes)?,
        None => {
            let step = options.interval.as_nanos();
            if step == 0 {
                return Err("--interval 0 s: allowed: above 0".into());
            }
            notes.push(format!("no times: a value every {} (--interval changes it)", options.interval));
            (0..=rows as u64).map(|row| row.saturating_mul(step)).collect()
        }
    };
    deliveries(&times, &values, unit)
}

/// Times, one more than values or as many, and values; a row without value is left out.
fn deliveries(times: &[u64], values: &[Option<f64>], unit: RateUnit) -> Result<Deliveries, String> {
    let end = *times.last().ok_or("no row")?;
    if end == 0 {
        return Err("a single row, or all at one time: a trace needs two rows with times that differ".into());
    }
    let rows =
        times.iter().zip(values).enumerate().filter_map(|(row, (at, value))| Some((row, *at, (*value)?)));
    let rates = match unit {
        RateUnit::Rate(bits, _) => rows.map(|(_, at, value)| (at, value * bits)).collect(),
        RateUnit::Amount(bytes, _) => {
            let has_ends = times.len() > values.len();
            let mut before = 0;
            // An amount arrived evenly in its own row where rows have ends, otherwise since the row before.
            let spans = rows.map(|(row, at, value)| {
                let (from, to) = if has_ends { (at, times[row + 1]) } else { (before, at) };
                before = to;
                (from, to, value * bytes * 8e9 / (to - from).max(1) as f64)
            });
            spans.filter(|(from, to, _)| to > from).map(|(from, _, rate)| (from, rate)).collect()
        }
    };
    Ok(Deliveries::Rates(rates, end))
}

/// The column of times, and whether it has durations. `rate` is the column that the option names.
fn time_column(
    table: &Table,
    options: &Options,
    rate: Option<usize>,
) -> Result<Option<(usize, bool)>, String> {
    let (_, columns) = table.size();
    if let Some(name) = &options.time {
        let column = table.find("--time", name)?;
        if rate == Some(column) {
            return Err(format!("--time {name}: is the column of --rate too; name another one"));
        }
        return Ok(Some((column, table.names.get(column).is_some_and(|name| has(name, &DURATIONS)))));
    }
    if table.names.is_empty() {
        let is_free = columns == 2 && rate != Some(0) && table.cells(0).iter().all(|cell| is_value(cell));
        return Ok(is_free.then_some((0, false)));
    }
    let named = |test: &dyn Fn(&str) -> bool| {
        let columns = (0..columns).filter(|column| rate != Some(*column));
        columns
            .filter(|column| test(&table.names[*column]) && !is_rate(&table.names[*column]))
            .collect::<Vec<_>>()
    };
    let is_readable = |column: &&usize| table.cells(**column).iter().any(|cell| is_value(cell));
    let changes = |column: &&usize| table.cells(**column).windows(2).any(|pair| pair[0] != pair[1]);
    let of_times = named(&is_time);
    let readable: Vec<usize> = of_times.iter().filter(is_readable).copied().collect();
    // A date beside the time of day may be a number that is the same in all rows.
    if let Some(column) = readable.iter().find(changes).or(readable.first()) {
        return Ok(Some((*column, false)));
    }
    if let Some(column) = named(&|name| has(name, &DURATIONS)).iter().find(is_readable) {
        return Ok(Some((*column, true)));
    }
    let has_digits = |cell: &String| cell.contains(|c: char| c.is_ascii_digit()) && !clock::is_date(cell);
    for column in of_times {
        if let Some(row) = table.cells(column).iter().position(has_digits) {
            return Err(format!(
                "{}: {}: `{}` is not a time; allowed: {}; --time names another column",
                table.place(row),
                table.name(column),
                shown(&table.cells(column)[row]),
                clock::ALLOWED
            ));
        }
    }
    Ok(None)
}

/// The column of rates by name and unit, the downlink before the uplink.
fn rate_column(table: &Table, time: Option<usize>) -> Result<usize, String> {
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
fn rates(table: &Table, column: usize, notes: &mut Vec<String>) -> Result<Vec<Option<f64>>, String> {
    let cells = table.cells(column);
    let values: Vec<Option<f64>> = cells.iter().map(|cell| number(cell)).collect();
    let cell = |row: usize| format!("{}: {}: `{}`", table.place(row), table.name(column), shown(&cells[row]));
    if let Some(row) = values.iter().position(|value| value.is_some_and(|value| value < 0.0)) {
        return Err(format!("{} is negative; allowed: rates from 0 on", cell(row)));
    }
    let without = values.iter().filter(|value| value.is_none()).count();
    let Some(row) = values.iter().position(Option::is_none) else { return Ok(values) };
    if without == values.len() {
        let first = cell(row);
        return Err(format!(
            "{first} is not a number, and no other row has one; allowed: finite numbers from 0 on"
        ));
    }
    let rows = if without == 1 { "row" } else { "rows" };
    let before = if row == 0 { "; nothing is sent before the first rate" } else { "" };
    notes.push(format!(
        "{without} {rows} without a rate (first {}: `{}`): the rate before holds on{before}",
        table.place(row),
        shown(&cells[row])
    ));
    Ok(values)
}
