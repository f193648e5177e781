//! Columns of times: of opportunities of 1504 bytes, as in mahimahi's format, and of the rows of a table.

mod steps;

use super::deliveries::Deliveries;
use super::names::{is_time, unit_in};
use super::notes::Notes;
use super::options::Options;
use super::plausible::{self, LONGEST_S};
use super::text::clock::{self, Clock};
use super::text::numbers::{number, shown};
use super::text::table::Table;
use super::units::TimeUnit;
use paceline_net::trace::OPPORTUNITY_BYTES;

/// Share of steps that do not fall above which a column is one of times, and its least length. Chosen: half
/// of the steps of rates fall, and few values show nothing.
const RISING_SHARE: f64 = 0.9;
const RISING_VALUES: usize = 10;
/// Rounding of absolute times, ns. Follows from doubles, which hold seconds since 1970 to 240 ns.
const GRAIN_NS: f64 = 10_000.0;

/// Whether a single column has times rather than rates: by its name or the options, or since the values never
/// decrease, and are not all equal.
pub fn are_times(values: &[f64], table: &Table, options: &Options) -> Result<bool, String> {
    if options.time.is_some() || options.time_unit.is_some() {
        return Ok(true);
    }
    if let Some(name) = table.names.first() {
        return Ok(TimeUnit::named(name).is_some() || is_time(name));
    }
    let (first, last) = (values[0], values[values.len() - 1]);
    let falls = values.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let steps = values.len() as f64 - 1.0;
    if falls > 0
        && values.len() >= RISING_VALUES
        && falls as f64 <= (1.0 - RISING_SHARE) * steps
        && last > first
    {
        if options.allow_steps {
            return Ok(true);
        }
        return Err(format!("{}; --rate 1 takes the values for rates", steps::fall(values, table, 0)));
    }
    Ok(falls == 0 && (values.len() < 2 || first < last))
}

/// Whether a column of numbers or clock times rises but for a few steps.
pub fn mostly_rises(cells: &[String]) -> bool {
    let values = match clock::read(cells) {
        Ok(clock) => clock.seconds,
        Err(_) => cells.iter().filter_map(|cell| number(cell)).collect(),
    };
    let falls = values.windows(2).filter(|pair| pair[1] < pair[0]).count();
    falls as f64 <= (1.0 - RISING_SHARE) * values.len() as f64
}

/// The clock times of a column, if its first cell is one.
fn clock_times(table: &Table, column: usize) -> Option<Result<Clock, String>> {
    let cells = table.cells(column);
    clock::is_clock(cells.first()?).then(|| clock::read(cells).map_err(|row| not_a_time(table, column, row)))
}

fn not_a_time(table: &Table, column: usize, row: usize) -> String {
    let cell = shown(&table.cells(column)[row]);
    format!(
        "{}: {}: `{cell}` is not such a time as the others; allowed: {}",
        table.place(row),
        table.name(column),
        clock::ALLOWED
    )
}

/// A statement about clock times.
fn described(clock: &Clock) -> String {
    match clock.midnights {
        0 => clock.form.to_owned(),
        1 => format!("{}, past midnight", clock.form),
        n => format!("{}, past midnight {n} times", clock.form),
    }
}

/// Reads a single column of clock times as opportunities; none if it has others.
pub fn of_clock(table: &Table, options: &Options, notes: &mut Notes) -> Option<Result<Deliveries, String>> {
    Some(clock_times(table, 0)?.and_then(|clock| opportunities_of_clock(clock, table, options, notes)))
}

fn opportunities_of_clock(
    clock: Clock,
    table: &Table,
    options: &Options,
    notes: &mut Notes,
) -> Result<Deliveries, String> {
    let (count, from, form) = (clock.seconds.len(), shown(&table.cells(0)[0]), described(&clock));
    let seconds = steps::without(clock.seconds, TimeUnit::Second, (table, 0), options, notes)?;
    notes.push(format!(
        "{count} times, {form}, from {from}, each an opportunity of {OPPORTUNITY_BYTES} bytes"
    ));
    notes.push("times rounded up to whole milliseconds");
    Ok(opportunities(&seconds, TimeUnit::Second, true))
}

/// Reads times of opportunities.
pub fn read(
    values: &[f64],
    table: &Table,
    options: &Options,
    notes: &mut Notes,
) -> Result<Deliveries, String> {
    let straight;
    let values = if options.allow_steps {
        // Nanoseconds where the unit is not known yet: gaps remain, and falls are taken out.
        let named = table.names.first().and_then(|name| unit_in(name, TimeUnit::named));
        let unit = options.time_unit.or(named).or_else(|| TimeUnit::since_1970(values[0]));
        let unit = unit.unwrap_or(TimeUnit::Nanosecond);
        straight = steps::without(values.to_vec(), unit, (table, 0), options, notes)?;
        &straight
    } else if values.windows(2).any(|pair| pair[1] < pair[0]) {
        return Err(steps::fall(values, table, 0));
    } else {
        values
    };
    if let Some(value) = values.iter().find(|value| **value < 0.0) {
        return Err(format!("{value}: times are not negative"));
    }
    let (first, last) = (values[0], values[values.len() - 1]);
    let stated = table.names.first().and_then(|name| unit_in(name, TimeUnit::named));
    let (found, why) = match (options.time_unit, stated, since_1970(first, last)) {
        (Some(unit), ..) => (unit, "as stated".to_owned()),
        (None, Some(unit), _) => (unit, "as its name states".into()),
        (None, None, Some(unit)) => (unit, "as times since 1970 are".into()),
        (None, None, None) => {
            notes.guess("the unit of the times");
            plausible::time_unit(values)
        }
    };
    // Times of a clock that did not start with the trace: since 1970, or since the recorder's start.
    let is_absolute =
        since_1970(first, last) == Some(found) || (first > 10.0 * (last - first) && first < last);
    notes.push(format!(
        "{} times in {found} ({why}; --time-unit changes it), each an opportunity of {OPPORTUNITY_BYTES} bytes",
        values.len()
    ));
    if is_absolute {
        notes.push(format!("absolute times: {first} {found} is the begin"));
    }
    if found != TimeUnit::Millisecond || values.iter().any(|value| value.fract() != 0.0) {
        notes.push("times rounded up to whole milliseconds");
    }
    Ok(opportunities(values, found, is_absolute))
}

/// Opportunities at these times; absolute ones begin one step before the first, so that the rate is right.
fn opportunities(values: &[f64], unit: TimeUnit, is_absolute: bool) -> Deliveries {
    let (first, last) = (values[0], values[values.len() - 1]);
    let step = (last - first) / (values.len() - 1).max(1) as f64;
    let (origin, grain) = if is_absolute { (first - step, GRAIN_NS) } else { (0.0, 1.0) };
    let ns = |value: f64| (((value - origin) * unit.nanos() / grain).round() * grain).max(0.0) as u64;
    Deliveries::At(values.iter().map(|value| (ns(*value), OPPORTUNITY_BYTES)).collect())
}

/// The unit of times since 1970, if they are such and the trace is not longer than a day.
fn since_1970(first: f64, last: f64) -> Option<TimeUnit> {
    TimeUnit::since_1970(first).filter(|unit| (last - first) * unit.nanos() / 1e9 <= LONGEST_S)
}

/// Times of the rows of a table, from the first row on, ns.
pub fn of_rows(
    table: &Table,
    column: usize,
    options: &Options,
    notes: &mut Notes,
) -> Result<Vec<u64>, String> {
    let cells = table.cells(column);
    let (values, unit, how) = match clock_times(table, column) {
        Some(clock) => {
            let clock = clock?;
            let how = format!(", from {}", described(&clock));
            (clock.seconds, TimeUnit::Second, how)
        }
        None => {
            if let Some(row) = cells.iter().position(|cell| number(cell).is_none()) {
                return Err(not_a_time(table, column, row));
            }
            let values = table.numbers(column)?;
            let (first, last) = (values[0], values[values.len() - 1]);
            let named = table.names.get(column).and_then(|name| unit_in(name, TimeUnit::named));
            match options.time_unit.or(named).or_else(|| since_1970(first, last)) {
                Some(unit) => (values, unit, String::new()),
                None => {
                    let unit = unit_of_rows(&values);
                    notes.guess("the unit of the times");
                    (values, unit, ", a guess: no unit is stated; --time-unit changes it".into())
                }
            }
        }
    };
    let values = steps::without(values, unit, (table, column), options, notes)?;
    let first = values[0];
    let seconds = (values[values.len() - 1] - first) * unit.nanos() / 1e9;
    let from =
        if number(&cells[0]) == Some(0.0) { String::new() } else { format!(", from {}", shown(&cells[0])) };
    notes.push(format!("times: {} in {unit}{how}{from}; {seconds:.3} s", table.name(column)));
    Ok(values.iter().map(|value| ((value - first) * unit.nanos()).round() as u64).collect())
}

/// Times from the durations of the rows, ns; one more than rows.
pub fn of_durations(
    table: &Table,
    column: usize,
    options: &Options,
    notes: &mut Notes,
) -> Result<Vec<u64>, String> {
    let values = table.numbers(column)?;
    let named = table.names.get(column).and_then(|name| unit_in(name, TimeUnit::named));
    let unit = options.time_unit.or(named).unwrap_or_else(|| {
        notes.guess("the unit of the durations");
        // Chosen: rows are no longer than a minute, and no shorter than 50 ms.
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

/// The unit of times by the median of their steps: recorders write ten or so values a second or fewer. A
/// finer unit if the trace would be longer than a day.
fn unit_of_rows(values: &[f64]) -> TimeUnit {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let mut steps: Vec<f64> =
        values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    let by_steps = match steps.get(steps.len() / 2).copied().unwrap_or(1.0) {
        step if step >= 1e8 => Nanosecond,
        step if step >= 1e5 => Microsecond,
        step if step >= 50.0 => Millisecond,
        _ => Second,
    };
    let span = values[values.len() - 1] - values[0];
    let is_possible =
        |unit: &TimeUnit| unit.nanos() <= by_steps.nanos() && span * unit.nanos() / 1e9 <= LONGEST_S;
    [Second, Millisecond, Microsecond, Nanosecond].into_iter().find(is_possible).unwrap_or(by_steps)
}
