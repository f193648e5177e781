//! Rows of a table with their times: rates and amounts of one time are joined, and amounts become rates.

use super::counter;
use super::deliveries::Deliveries;
use super::names;
use super::notes::Notes;
use super::options::{Options, SameTime};
use super::text::table::Table;
use super::units::RateUnit;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of streams at most. Chosen: above those of tests with parallel streams.
const MOST_STREAMS: usize = 64;

/// A column of values with its unit, and the times of its rows.
pub struct Rows<'a> {
    pub table: &'a Table,
    /// Column of the values.
    pub column: usize,
    pub values: Vec<Option<f64>>,
    pub unit: RateUnit,
    /// Times in ns, as many as values, or one more: the ends of the rows.
    pub times: Vec<u64>,
}

impl Rows<'_> {
    /// The deliveries; a row without value is left out.
    pub fn deliveries(self, options: &Options, notes: &mut Notes) -> Result<Deliveries, String> {
        let end = *self.times.last().ok_or("no row")?;
        if end == 0 {
            return Err(
                "a single row, or all at one time: a trace needs two rows with times that differ".into()
            );
        }
        match self.unit {
            RateUnit::Rate(bits, _) => {
                let rates = self.joined(options, notes).into_iter().map(|(at, rate)| (at, rate * bits));
                Ok(Deliveries::Rates(rates.collect(), end))
            }
            RateUnit::Amount(bytes, _) => self.amounts(bytes, options, notes),
        }
    }
    fn with_values(&self) -> impl Iterator<Item = (usize, u64, f64)> {
        let rows = self.times.iter().zip(&self.values).enumerate();
        rows.filter_map(|(row, (at, value))| Some((row, *at, (*value)?)))
    }
    /// The rates of each time.
    fn joined(&self, options: &Options, notes: &mut Notes) -> Vec<(u64, f64)> {
        let mut groups: Vec<(u64, Vec<(usize, f64)>)> = Vec::new();
        for (row, at, value) in self.with_values() {
            match groups.last_mut() {
                Some((time, rows)) if *time == at => rows.push((row, value)),
                _ => groups.push((at, vec![(row, value)])),
            }
        }
        let several: Vec<&[(usize, f64)]> =
            groups.iter().map(|(_, rows)| &rows[..]).filter(|rows| rows.len() > 1).collect();
        let streams = if several.is_empty() { None } else { self.streams(&several) };
        let is_sum = match options.same_time {
            Some(same_time) => same_time == SameTime::Sum,
            None => streams.is_some(),
        };
        if !several.is_empty() {
            let (rows, times) = (several.iter().map(|rows| rows.len()).sum::<usize>(), several.len());
            let (how, other) = if is_sum { ("sum", "mean") } else { ("mean", "sum") };
            let of =
                streams.map_or(String::new(), |column| format!(" of several {}", self.table.name(column)));
            notes.push(format!(
                "{rows} rows at {times} times{of}: the {how} of the rates at one time; --same-time {other} changes it"
            ));
            if options.same_time.is_none() {
                notes.guess(format!("the {how} of the rates at one time"));
            }
        }
        let join = |(at, rows): (u64, Vec<(usize, f64)>)| {
            let sum: f64 = rows.iter().map(|(_, value)| value).sum();
            (at, if is_sum { sum } else { sum / rows.len() as f64 })
        };
        groups.into_iter().map(join).collect()
    }
    /// The column that numbers streams: by its name, and with other cells in all rows of a time.
    fn streams(&self, several: &[&[(usize, f64)]]) -> Option<usize> {
        let is_stream = |column: &usize| {
            let cells = self.table.cells(*column);
            let all: BTreeSet<&String> = cells.iter().collect();
            let differ = |rows: &&[(usize, f64)]| {
                rows.iter().map(|(row, _)| &cells[*row]).collect::<BTreeSet<_>>().len() == rows.len()
            };
            all.len() <= MOST_STREAMS && several.iter().all(differ)
        };
        let columns = (0..self.table.names.len()).filter(|column| *column != self.column);
        columns.filter(|column| names::is_stream(&self.table.names[*column])).find(is_stream)
    }
    /// Amounts as rates over the time since the row before, or over a row's own time if rows have ends.
    fn amounts(mut self, bytes: f64, options: &Options, notes: &mut Notes) -> Result<Deliveries, String> {
        let name = self.table.names.get(self.column).map_or("", String::as_str);
        let kind = counter::kind(name, &self.values, options);
        if kind.is_counter {
            let (differences, restarts) = counter::differences(&self.values, bytes);
            let again = match restarts {
                0 => String::new(),
                1 => ", which began anew once".into(),
                n => format!(", which began anew {n} times"),
            };
            notes.push(format!(
                "{}: the values of a counter{again}; --amounts each-row takes them for amounts of their rows",
                self.table.name(self.column)
            ));
            if kind.is_guess {
                notes.guess("values that never fall as a counter's");
            }
            // A counter's first value is only the begin, without amount.
            if let Some(first) = self.values.iter().position(Option::is_some) {
                self.values = differences;
                self.values.drain(..first);
                self.times.drain(..first);
                if self.times.len() > self.values.len() {
                    // A value at the end of each row is the begin of the next one.
                    self.times.remove(0);
                }
                let begin = *self.times.first().ok_or("no row")?;
                self.times.iter_mut().for_each(|at| *at -= begin);
            }
        }
        let has_ends = self.times.len() > self.values.len();
        let end = *self.times.last().ok_or("no row")?;
        let mut amounts: BTreeMap<(u64, u64), f64> = BTreeMap::new();
        let mut before = 0;
        for (row, at, value) in self.with_values() {
            // Rows at one time are parts of the same amount.
            let (from, to) = match has_ends {
                true => (at, self.times[row + 1]),
                false if at > before => (before, at),
                false => amounts.keys().next_back().copied().unwrap_or((at, at)),
            };
            before = to.max(before);
            if to > from {
                *amounts.entry((from, to)).or_default() += value;
            }
        }
        if end == 0 || amounts.is_empty() {
            return Err(
                "no two rows with times that differ: a trace needs an amount between two times".into()
            );
        }
        let rates =
            amounts.into_iter().map(|((from, to), sum)| (from, sum * bytes * 8e9 / (to - from) as f64));
        Ok(Deliveries::Rates(rates.collect(), end))
    }
}
