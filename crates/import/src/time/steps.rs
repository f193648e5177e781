//! Steps of the clock of a recording: set back or forward in the middle, or a single time that is out of
//! order.

use crate::notes::Notes;
use crate::options::Options;
use crate::text::numbers::shown;
use crate::text::table::Table;
use crate::units::TimeUnit;

/// Values from which a fall may be a step of the clock rather than a column of other values. Chosen: fewer
/// show no course of time.
const LEAST_VALUES: usize = 10;
/// A gap that is this many times longer than the median of the steps, and at least this long, is a step
/// forward. Chosen: half of the step to summer time, and longer than pauses of a recording.
const FORWARD_STEPS: f64 = 100.0;
const FORWARD_S: f64 = 1800.0;
/// Steps that are said one by one. Chosen: enough to find the cause.
const MOST_SAID: usize = 5;

/// Times without the steps of their clock. A single step is skipped and said; more need the option.
pub fn without(
    values: Vec<f64>,
    unit: TimeUnit,
    (table, column): (&Table, usize),
    options: &Options,
    notes: &mut Notes,
) -> Result<Vec<f64>, String> {
    let (straight, steps) = straighten(&values, unit);
    if steps.is_empty() {
        return Ok(values);
    }
    let falls = steps.iter().any(|step| values[step.row] < values[step.row - 1]);
    if !options.allow_steps && (steps.len() > 1 || values.len() < LEAST_VALUES) {
        if falls {
            let count = steps.len();
            let how = if count == 1 { String::new() } else { format!(" ({count} steps of the clock)") };
            return Err(format!("{}{how}; --allow-steps skips such steps", fall(&values, table, column)));
        }
        notes.push(format!(
            "{}: gaps above half an hour, over which the rate before holds; --allow-steps leaves them out",
            table.name(column)
        ));
        return Ok(values);
    }
    for step in steps.iter().take(MOST_SAID) {
        let cell = |row: usize| shown(&table.cells(column)[row]);
        let (place, own, before) = (table.place(step.row), cell(step.row), cell(step.row - 1));
        let how = match step.is_alone {
            true => "a time out of order, taken between its neighbours",
            false => "a step of the clock, skipped",
        };
        notes.push(format!("{place}: {own} after {before}: {how}"));
    }
    if steps.len() > MOST_SAID {
        notes.push(format!("{} more steps of the clock skipped", steps.len() - MOST_SAID));
    }
    notes.guess(if steps.len() == 1 { "the length of a step of the clock" } else { "steps of the clock" });
    Ok(straight)
}

/// A step of a clock.
struct Step {
    row: usize,
    /// Whether the time of this row alone is out of order.
    is_alone: bool,
}

/// Times that do not decrease and have no long gaps, and the steps that were taken out. A step takes the
/// usual time of a row.
fn straighten(values: &[f64], unit: TimeUnit) -> (Vec<f64>, Vec<Step>) {
    let usual = median_step(values);
    let longest = (FORWARD_STEPS * usual).max(FORWARD_S * 1e9 / unit.nanos());
    let fits = |step: f64| step >= 0.0 && (step < longest || usual == 0.0);
    let (mut shift, mut steps) = (0.0, Vec::new());
    let mut straight = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let at = value + shift;
        let Some(before) = straight.last().copied().filter(|before| !fits(at - before)) else {
            straight.push(at);
            continue;
        };
        let next = values.get(row + 1).map(|next| next + shift).filter(|next| fits(next - before));
        let at = match next {
            Some(next) => f64::midpoint(before, next),
            None => {
                shift = before + usual - value;
                before + usual
            }
        };
        steps.push(Step { row, is_alone: next.is_some() });
        straight.push(at);
    }
    (straight, steps)
}

/// The error at the first time that is before the one above.
pub fn fall(values: &[f64], table: &Table, column: usize) -> String {
    let row = values.windows(2).position(|pair| pair[1] < pair[0]).unwrap_or(0);
    let cell = |row: usize| shown(&table.cells(column)[row]);
    let (place, name) = (table.place(row + 1), table.name(column));
    format!("{place}: {name}: {} after {}: times must not decrease", cell(row + 1), cell(row))
}

/// The median of the steps above 0; 0 without one.
fn median_step(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> =
        values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{TimeUnit, straighten};

    #[test]
    fn steps_in_both_directions_and_lone_times_are_taken_out() {
        let even: Vec<f64> = (0..20).map(f64::from).collect();
        let with = |change: &dyn Fn(usize, f64) -> f64| {
            let values: Vec<f64> = even.iter().enumerate().map(|(row, at)| change(row, *at)).collect();
            let (straight, steps) = straighten(&values, TimeUnit::Second);
            (straight, steps.len())
        };
        for change in [
            (&|row: usize, at: f64| if row >= 7 { at - 3.0 } else { at }) as &dyn Fn(usize, f64) -> f64,
            &|row, at| if row >= 7 { at + 3600.0 } else { at },
            &|row, at| if row >= 7 { at - 3600.0 } else { at },
            &|row, at| if row == 7 { at - 2.0 } else { at },
            &|row, at| if row == 7 { at + 1e9 } else { at },
            &|row, at| if row >= 7 { at + 1.7e9 } else { at },
        ] {
            assert_eq!(with(change), (even.clone(), 1));
        }
        assert_eq!(with(&|_, at| at), (even.clone(), 0));
        let twice = |row: usize, at: f64| {
            at - if row >= 12 {
                9.0
            } else if row >= 7 {
                4.0
            } else {
                0.0
            }
        };
        assert_eq!(with(&twice), (even.clone(), 2));
    }
}
