//! Tables with a column of rates, or of bytes, and perhaps one of times: finds the columns by name and unit.
//!
//! A rate holds from its row's time until the next row, and the last row ends the trace. Without a column of
//! times the values are equally far apart, and the last one holds as long as the others.

use super::deliveries::Deliveries;
use super::names::{DURATIONS, has, is_other, is_place, is_rate, is_speed, is_time, rate_rank, rate_unit};
use super::notes::Notes;
use super::options::Options;
use super::plausible;
use super::rows::Rows;
use super::text::clock;
use super::text::numbers::{number, shown};
use super::text::table::{Table, is_value};
use super::time;
use super::units::RateUnit;

/// Reads a table.
pub fn read(table: &Table, options: &Options, notes: &mut Notes) -> Result<Deliveries, String> {
    let (rows, _) = table.size();
    if rows == 0 {
        return Err("no row with values".into());
    }
    let named = options.rate.as_ref().map(|name| table.find("--rate", name)).transpose()?;
    let time = time_column(table, options, named, notes)?;
    let column = match named {
        Some(column) => column,
        None => rate_column(table, time.map(|(column, _)| column))?,
    };
    let values = rates(table, column, notes)?;
    let unit = unit(table, column, &values, options, notes)?;
    let times = match time {
        Some((column, true)) => time::of_durations(table, column, options, notes)?,
        Some((column, false)) => time::of_rows(table, column, options, notes)?,
        None => {
            let step = options.interval.as_nanos();
            if step == 0 {
                return Err("--interval 0 s: allowed: above 0".into());
            }
            notes.push(format!("no times: a value every {} (--interval changes it)", options.interval));
            notes.guess("the time between values");
            (0..=rows as u64).map(|row| row.saturating_mul(step)).collect()
        }
    };
    Rows { table, column, values, unit, times }.deliveries(options, notes)
}

/// The unit of the rates: as stated by the option or by the name, or the most usual for their size.
fn unit(
    table: &Table,
    column: usize,
    values: &[Option<f64>],
    options: &Options,
    notes: &mut Notes,
) -> Result<RateUnit, String> {
    let (rows, columns) = table.size();
    let (name, text) = (table.name(column), table.names.get(column));
    let (unit, how) = match (options.rate_unit, text.and_then(|name| rate_unit(name))) {
        (Some(unit), _) => (unit, String::new()),
        (None, Some(stated)) => {
            if stated.why.is_some() {
                notes.guess(format!("the unit of {name}"));
            }
            let why = stated.why.map(|why| format!(" ({why}; --rate-unit changes it)"));
            (stated.unit, why.unwrap_or_default())
        }
        (None, None) => {
            let (unit, why) = plausible::rate_unit(values).map_err(|error| format!("{name}: {error}"))?;
            notes.guess(format!("the unit of {name}"));
            (unit, format!(", a guess: no unit is stated; --rate-unit changes it ({why})"))
        }
    };
    let of =
        if columns > 1 { format!("{columns} columns, {rows} rows; ") } else { format!("{rows} values; ") };
    notes.push(format!("{of}rates: {name} in {unit}{how}"));
    if options.rate.is_none() && text.is_some_and(|name| is_speed(name)) {
        notes.guess(format!("{name} as a rate of the link"));
    }
    Ok(unit)
}

/// The column of times, and whether it has durations. `rate` is the column that the option names.
fn time_column(
    table: &Table,
    options: &Options,
    rate: Option<usize>,
    notes: &mut Notes,
) -> Result<Option<(usize, bool)>, String> {
    let (rows, columns) = table.size();
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
    let changes =
        |column: &&usize| rows < 2 || table.cells(**column).windows(2).any(|pair| pair[0] != pair[1]);
    let of_times = named(&is_time);
    let readable: Vec<usize> = of_times.iter().filter(is_readable).copied().collect();
    // A date beside the time of day is the same in all rows, and a time of another kind falls.
    let changing: Vec<usize> = readable.iter().filter(changes).copied().collect();
    let rises = |column: &&usize| time::mostly_rises(table.cells(**column));
    if let Some(column) = changing.iter().find(rises).or(changing.first()) {
        return Ok(Some((*column, false)));
    }
    if let Some(column) = named(&|name| has(name, &DURATIONS)).iter().find(is_readable) {
        return Ok(Some((*column, true)));
    }
    if let Some(column) = readable.first() {
        let (name, cell) = (table.name(*column), shown(&table.cells(*column)[0]));
        notes.push(format!("{name} is {cell} in all rows: no time"));
        return Ok(None);
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
    let name = |column: usize| table.names.get(column).map_or("", String::as_str);
    let is_left = |column: &usize| {
        Some(*column) != time && (time.is_some() || !is_time(name(*column)) || is_rate(name(*column)))
    };
    let others: Vec<usize> = (0..columns).filter(is_left).collect();
    if let [only] = others[..] {
        return if is_other(name(only)) { Err(no_rate(table)) } else { Ok(only) };
    }
    let has_places = table.names.iter().any(|name| is_place(name));
    let rank = |column: usize| rate_rank(name(column)).filter(|_| !(has_places && is_speed(name(column))));
    let ranks: Vec<(i32, usize)> =
        others.iter().filter_map(|column| Some((rank(*column)?, *column))).collect();
    let best = ranks.iter().map(|(rank, _)| *rank).max();
    let found: Vec<usize> =
        ranks.iter().filter(|(rank, _)| Some(*rank) == best).map(|(_, column)| *column).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(no_rate(table)),
        _ => {
            let names: Vec<String> = found.iter().map(|column| table.name(*column)).collect();
            Err(format!("several columns may be the rate; {STATE_IT}: {}", names.join(", ")))
        }
    }
}

/// Advice where the column of the rates is not clear, for all commands that read traces.
const STATE_IT: &str = "`paceline trace import --rate COLUMN` takes one of";

/// The error of a table without rates, with the columns that look like one.
fn no_rate(table: &Table) -> String {
    let speeds: Vec<String> = (0..table.names.len())
        .filter(|column| has(&table.names[*column], &["speed"]))
        .map(|column| format!("{} is a speed of movement; ", table.name(column)))
        .collect();
    format!("{}no column is known to be a rate; {STATE_IT}: {}", speeds.concat(), table.listed())
}

/// The values of a column; rows without one are counted in a note.
fn rates(table: &Table, column: usize, notes: &mut Notes) -> Result<Vec<Option<f64>>, String> {
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
