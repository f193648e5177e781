//! Tables in text: separated by commas, semicolons, tabs or spaces, with or without a heading; comments and
//! blank lines are left out, and quotation marks around cells too.

use super::numbers::{has_thousands, number, shown};
use super::unpack::MAX_LINES;
use super::{clock, zone};
use crate::names::is_known;
use crate::notes::Notes;
use std::borrow::Cow;

/// Rows of a file.
#[derive(Default, Debug)]
pub struct Table {
    /// Names of the columns; empty without a heading.
    pub names: Vec<String>,
    /// Cells by column.
    columns: Vec<Vec<String>>,
    /// The lines of the rows; empty for elements of JSON.
    lines: Vec<usize>,
}

/// Begins of comments: those of published traces.
const COMMENTS: [&str; 3] = ["#", "//", "%"];
/// Separators from the most to the least certain: those of published traces, and of spreadsheets.
const SEPARATORS: [char; 3] = ['\t', ';', ','];
/// Lines of a cell in quotation marks at most. Chosen: longer than notes are; a lone mark joins few lines.
const CELL_LINES: usize = 20;
/// Cells at most. Chosen: the rows of a day at ten a second with 30 columns; a cell takes about 50 bytes.
const MAX_CELLS: usize = 25_000_000;
/// Columns at most. Chosen: ten times the widest published recordings.
const MAX_COLUMNS: usize = 10_000;
/// Lines by which separator and heading are found. Chosen: enough for a majority.
const SAMPLE: usize = 50;

impl Table {
    /// Reads a table in text.
    pub fn read(text: &str, notes: &mut Notes) -> Result<Self, String> {
        let (mut rows, heading_comment) = lines(text, notes)?;
        if let Some(row) =
            rows.iter().find(|row| row.whole.matches([',', ';', '\t', ' ']).nth(MAX_COLUMNS).is_some())
        {
            return Err(format!("line {}: allowed: up to {MAX_COLUMNS} columns", row.line));
        }
        let sample: Vec<&str> = rows.iter().take(SAMPLE).map(Row::text).collect();
        let separator = separator(&sample);
        if separator != Some(';') && text.contains(';') {
            rows.iter_mut().for_each(|row| row.cut(&[";"]));
        }
        let mut cells: Vec<Vec<String>> =
            rows.iter().take(SAMPLE).map(|row| split(row.text(), separator)).collect();
        let mut table = Self::default();
        let has_values = |row: &Vec<String>| row.iter().any(|cell| is_value(cell));
        let has_heading = !has_values(&cells[0])
            && (cells.get(1).is_some_and(has_values) || cells[0].iter().any(|name| is_known(name)));
        if has_heading {
            // `packet #` is a name rather than a comment.
            let whole = split(&rows[0].whole, separator);
            let head = if cells.get(1).is_some_and(|row| row.len() > cells[0].len()) {
                whole
            } else {
                std::mem::take(&mut cells[0])
            };
            table.names = head;
        }
        let mut width = if has_heading { table.names.len() } else { cells[0].len() };
        if let Some(line) = heading_comment.filter(|_| !has_heading) {
            // A heading in a comment: "# time,Mb/s".
            let line = COMMENTS.iter().fold(line.trim_start(), |line, mark| line.trim_start_matches(mark));
            let names = split(line.trim(), separator);
            if names.len() == width && width > 1 {
                table.names = names;
            }
        }
        let has_text_behind = width > 1
            && table.names.is_empty()
            && is_value(&cells[0][0])
            && cells.iter().all(|row| !row.iter().skip(1).any(|cell| is_value(cell)));
        if has_text_behind {
            notes.push("text behind the first column left out");
            width = 1;
        }
        if rows.len().saturating_mul(width) > MAX_CELLS {
            return Err(format!("{} rows of {width} columns: allowed: up to {MAX_CELLS} cells", rows.len()));
        }
        table.columns = vec![Vec::with_capacity(rows.len()); width];
        for row in rows.iter().skip(usize::from(has_heading)) {
            let cells = split(row.text(), separator);
            let is_too_many = |cell: &String| if has_text_behind { is_value(cell) } else { !cell.is_empty() };
            if cells.len() < width || cells.iter().skip(width).any(is_too_many) {
                return Err(format!("line {}: {} of {width} columns", row.line, cells.len()));
            }
            table.lines.push(row.line);
            table.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        }
        if separator == Some(',') {
            table.join_thousands(notes);
        }
        Ok(table)
    }
    /// Removes the commas between thousands, where all commas of a column are such: `"8,000"`.
    fn join_thousands(&mut self, notes: &mut Notes) {
        for index in 0..self.columns.len() {
            let mut with_commas = self.columns[index].iter().filter(|cell| cell.contains(',')).peekable();
            if with_commas.peek().is_some() && with_commas.all(|cell| has_thousands(cell)) {
                notes.push(format!("{}: commas between thousands left out", self.name(index)));
                self.columns[index].iter_mut().for_each(|cell| *cell = cell.replace(',', ""));
            }
        }
    }
    /// A table of rows, which need at least as many cells as the first.
    pub fn of_rows(names: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let mut columns = vec![Vec::with_capacity(rows.len()); width];
        for row in rows {
            let cells = row.into_iter().chain(std::iter::repeat(String::new()));
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        }
        Self { names, columns, lines: Vec::new() }
    }
    /// Whether it has a single column.
    pub fn is_one_column(&self) -> bool {
        self.columns.len() == 1
    }
    /// Number of rows and of columns.
    pub fn size(&self) -> (usize, usize) {
        (self.columns.first().map_or(0, Vec::len), self.columns.len())
    }
    /// The cells of a column.
    pub fn cells(&self, column: usize) -> &[String] {
        &self.columns[column]
    }
    /// The numbers of a column, all of which have to be some.
    pub fn numbers(&self, column: usize) -> Result<Vec<f64>, String> {
        let cells = self.columns[column].iter().enumerate();
        let numbers = cells.map(|(row, cell)| {
            number(cell).ok_or_else(|| format!("{}: `{}` is not a number", self.place(row), shown(cell)))
        });
        numbers.collect()
    }
    /// The place of a row in the file, for messages.
    pub fn place(&self, row: usize) -> String {
        self.lines.get(row).map_or_else(|| format!("element {}", row + 1), |line| format!("line {line}"))
    }
    /// The index of a column by name or by number from 1.
    pub fn find(&self, option: &str, column: &str) -> Result<usize, String> {
        let by_name = |exact: bool| {
            self.names
                .iter()
                .position(|name| if exact { name == column } else { name.eq_ignore_ascii_case(column) })
        };
        let by_number = || {
            let number: usize = column.parse().ok()?;
            (1..=self.columns.len()).contains(&number).then(|| number - 1)
        };
        by_name(true)
            .or_else(|| by_name(false))
            .or_else(by_number)
            .ok_or_else(|| format!("{option} {column}: allowed: {}", self.listed()))
    }
    /// The names of the columns, or their numbers.
    pub fn listed(&self) -> String {
        match &self.names[..] {
            [] => format!("1 to {}", self.columns.len()),
            names => names.join(", "),
        }
    }
    /// The name of a column in messages.
    pub fn name(&self, column: usize) -> String {
        self.names.get(column).map_or_else(|| format!("column {}", column + 1), |name| format!("`{name}`"))
    }
}

/// A line of a file, or several that a quotation mark joins.
struct Row<'a> {
    /// Number of the first line, from 1.
    line: usize,
    whole: Cow<'a, str>,
    /// Bytes before a comment at the end.
    end: usize,
}

impl<'a> Row<'a> {
    fn new(line: usize, whole: Cow<'a, str>) -> Self {
        let end = whole.len();
        Self { line, whole, end }
    }
    /// The line without a comment at its end.
    fn text(&self) -> &str {
        &self.whole[..self.end]
    }
    /// Cuts the text at a mark of a comment: outside of quotation marks, behind a space or a lone number.
    fn cut(&mut self, marks: &[&str]) {
        let text = self.text();
        if !marks.iter().any(|mark| text.contains(mark)) {
            return;
        }
        let (mut before, mut is_quoted) = (' ', false);
        let at = text.char_indices().find(|(at, c)| {
            let (own, rest) = text.split_at(*at);
            is_quoted ^= *c == '"' && (is_quoted || opens(before));
            let is_behind_space = std::mem::replace(&mut before, *c).is_whitespace();
            let is_mark = !is_quoted && marks.iter().any(|mark| rest.starts_with(mark));
            is_mark && (is_behind_space || is_value(own))
        });
        if let Some((at, _)) = at {
            self.end = text[..at].trim_end_matches([' ', '\r']).len();
        }
    }
}

/// The lines of a table, and the last comment before them.
fn lines<'a>(text: &'a str, notes: &mut Notes) -> Result<(Vec<Row<'a>>, Option<&'a str>), String> {
    // Files of old systems have a carriage return alone at the end of a line.
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let count = text.split(end).take(MAX_LINES + 2).count();
    if count > MAX_LINES + 1 {
        return Err(format!(
            "more than {MAX_LINES} lines: allowed: up to that many; `trace convert` reads longer files in mahimahi's format"
        ));
    }
    let lines: Vec<&str> = text.split(end).map(|line| line.trim_end_matches(['\r', ' '])).collect();
    let is_comment = |line: &str| COMMENTS.iter().any(|mark| line.trim_start().starts_with(mark));
    let has_marks = COMMENTS[..2].iter().any(|mark| text.contains(mark));
    let (mut rows, mut heading_comment, mut left_out, mut at) = (Vec::new(), None, 0, 0);
    while at < lines.len() {
        let line = lines[at];
        let mut used = 1;
        match line {
            _ if line.trim().is_empty() => {}
            // The separator, as spreadsheets state it in the first line.
            _ if at == 0 && line.starts_with("sep=") => {}
            _ if is_comment(line) => {
                left_out += 1;
                heading_comment = Some(line).filter(|_| rows.is_empty());
            }
            _ => {
                let (whole, count) = joined(&lines[at..]);
                used = count;
                let mut row = Row::new(at + 1, whole);
                if has_marks {
                    row.cut(&COMMENTS[..2]);
                }
                left_out += usize::from(row.end < row.whole.len());
                rows.push(row);
            }
        }
        at += used;
    }
    if rows.is_empty() {
        return Err("the file is empty, or has only comments".into());
    }
    if left_out > 0 {
        let comments = if left_out == 1 { "comment" } else { "comments" };
        notes.push(format!("{left_out} {comments} left out"));
    }
    Ok((rows, heading_comment))
}

/// The first of these lines with those that belong to it by a quotation mark, and their number.
fn joined<'a>(lines: &[&'a str]) -> (Cow<'a, str>, usize) {
    let alone = (Cow::Borrowed(lines[0]), 1);
    if !is_open(lines[0]) {
        return alone;
    }
    let mut more = (2..=CELL_LINES.min(lines.len())).map(|count| (lines[..count].join(" ").into(), count));
    more.find(|(text, _): &(Cow<str>, usize)| !is_open(text)).unwrap_or(alone)
}

/// Whether a quotation mark begins a cell behind this character.
fn opens(before: char) -> bool {
    before.is_whitespace() || matches!(before, ',' | ';' | '"')
}

/// Whether a line ends within quotation marks.
fn is_open(line: &str) -> bool {
    line.contains('"') && pieces(line, |_| false).1
}

/// The parts between separators outside of quotation marks, and whether the last mark is open.
fn pieces(line: &str, is_separator: impl Fn(char) -> bool) -> (Vec<&str>, bool) {
    let (mut parts, mut start, mut before, mut is_quoted) = (Vec::new(), 0, ' ', false);
    for (at, c) in line.char_indices() {
        if c == '"' {
            is_quoted ^= is_quoted || opens(before);
        } else if !is_quoted && is_separator(c) {
            parts.push(&line[start..at]);
            start = at + c.len_utf8();
        }
        before = c;
    }
    parts.push(&line[start..]);
    (parts, is_quoted)
}

/// The separator by which the first line, and at least as many in half of the others, has several cells.
/// Spaces otherwise.
fn separator(lines: &[&str]) -> Option<char> {
    let last = lines[lines.len() - 1];
    let counts = |separator| lines.iter().map(move |line| split(line, Some(separator)).len());
    // "0,5 3,2": decimal commas, separated by spaces. "1,5": one number or two; as two columns.
    let mut words = last.split_whitespace();
    let is_spaced =
        words.clone().count() > 1 && words.all(|word| number(word).is_some() && !word.ends_with(','));
    SEPARATORS.into_iter().find(|separator| {
        let first = counts(*separator).next().unwrap_or(0);
        let full = counts(*separator).filter(|count| *count >= first).count();
        first > 1 && !(*separator == ',' && is_spaced) && 2 * full >= lines.len()
    })
}

/// The cells of a line, without the quotation marks around them. Without a separator they are separated by
/// spaces, and a date and its time are one cell.
fn split(line: &str, separator: Option<char>) -> Vec<String> {
    if separator.is_none() && !line.contains(|c: char| c.is_whitespace() || ['"', '\''].contains(&c)) {
        // The line of a mahimahi trace.
        return vec![line.to_owned()];
    }
    let parts = match separator {
        Some(separator) if line.contains('"') => pieces(line, |c| c == separator).0,
        Some(separator) => line.split(separator).collect(),
        None if line.contains('"') => pieces(line, char::is_whitespace).0,
        None => line.split_whitespace().collect(),
    };
    let mut cells: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts {
        let part = part.trim();
        let part = ['"', '\'']
            .into_iter()
            .find_map(|mark| part.strip_prefix(mark)?.strip_suffix(mark))
            .map_or_else(|| part.to_owned(), |inner| inner.replace("\"\"", "\"").trim().to_owned());
        match cells.last_mut() {
            _ if separator.is_none() && part.is_empty() => {}
            Some(last) if separator.is_none() && belongs_to(last, &part) => *last = format!("{last} {part}"),
            _ => cells.push(part),
        }
    }
    cells
}

/// Whether a word continues a clock time: a time of day behind a date, AM and PM, a zone.
fn belongs_to(last: &str, part: &str) -> bool {
    let is_half_day = ["AM", "PM"].iter().any(|mark| part.eq_ignore_ascii_case(mark));
    (part.contains(':') && clock::is_date(last))
        || (is_half_day && last.contains(':'))
        || (last.contains(':') && zone::is_certain(part) && clock::is_clock(last))
}

/// Whether a cell is a number or a clock time.
pub fn is_value(cell: &str) -> bool {
    number(cell).is_some() || clock::is_clock(cell)
}
