//! Tables in text: separated by commas, semicolons, tabs or spaces, with or without a heading; comments and
//! blank lines are left out.

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

/// Begins of comments, and the separators from the most to the least certain. Chosen: those of published
/// traces, and of spreadsheets.
const COMMENTS: [&str; 3] = ["#", "//", "%"];
/// Chosen: see above.
const SEPARATORS: [char; 3] = ['\t', ';', ','];

impl Table {
    /// Reads a table in text.
    pub fn read(text: &str, notes: &mut Vec<String>) -> Result<Self, String> {
        let lines = text.lines().map(str::trim_end).enumerate();
        let is_comment = |line: &str| COMMENTS.iter().any(|mark| line.trim_start().starts_with(mark));
        let mut left_out = 0;
        let mut rows = Vec::new();
        let mut heading_comment = None;
        for (index, line) in lines {
            match line {
                _ if line.trim().is_empty() => {}
                _ if is_comment(line) => {
                    left_out += 1;
                    heading_comment = Some(line).filter(|_| rows.is_empty());
                }
                _ => rows.push((index + 1, line)),
            }
        }
        let Some((_, first)) = rows.first().copied() else {
            return Err("the file is empty, or has only comments".into());
        };
        if left_out > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            notes.push(format!("{left_out} {lines} of comments left out"));
        }
        let sample: Vec<&str> = rows.iter().take(50).map(|(_, line)| *line).collect();
        let separator = separator(&sample);
        let mut table = Self::default();
        let cells = |line: &str| -> Vec<String> { split(line, separator) };
        let head = cells(first);
        let has_heading = rows.len() > 1
            && !head.iter().any(|cell| number(cell).is_some())
            && cells(rows[1].1).iter().any(|cell| number(cell).is_some());
        let width = head.len();
        if has_heading {
            table.names = head;
        } else if let Some(line) = heading_comment {
            // A heading in a comment: "# time,Mb/s".
            let line = COMMENTS.iter().fold(line.trim_start(), |line, mark| line.trim_start_matches(mark));
            let names = split(line.trim(), separator);
            if names.len() == width && width > 1 {
                table.names = names;
            }
        }
        table.columns = vec![Vec::with_capacity(rows.len()); width];
        for (line, text) in rows.into_iter().skip(usize::from(has_heading)) {
            let row = cells(text);
            if row.len() < width {
                return Err(format!("line {line}: {} of {width} columns", row.len()));
            }
            table.lines.push(line);
            table.columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        }
        Ok(table)
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

/// The separator by which the first line, and at least as many in half of the others, has several cells.
/// Spaces otherwise.
fn separator(lines: &[&str]) -> Option<char> {
    let last = lines.len().saturating_sub(1);
    let counts = |separator| lines.iter().map(move |line| split(line, Some(separator)).len());
    SEPARATORS.into_iter().find(|separator| {
        let first = counts(*separator).next().unwrap_or(0);
        let full = counts(*separator).filter(|count| *count >= first).count();
        // "0,5 3,2": decimal commas, separated by spaces. "1,5": one number or two; as two columns.
        let spaced =
            *separator == ',' && lines[last].split_whitespace().count() > 1 && !lines[last].contains(", ");
        first > 1 && !spaced && 2 * full >= lines.len()
    })
}

/// The cells of a line, without the quotation marks around them. Without a separator they are separated by
/// spaces.
fn split(line: &str, separator: Option<char>) -> Vec<String> {
    let Some(separator) = separator else {
        return line.split_whitespace().map(str::to_owned).collect();
    };
    if !line.contains('"') {
        return line.split(separator).map(|cell| cell.trim().to_owned()).collect();
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator as u8)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
    record.iter().map(str::to_owned).collect()
}

/// A number, also with a decimal comma. None for anything else, and for infinity and NaN.
pub fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let value: f64 = match cell.parse() {
        Ok(value) => value,
        Err(_) if cell.matches(',').count() == 1 => cell.replace(',', ".").parse().ok()?,
        Err(_) => return None,
    };
    value.is_finite().then_some(value)
}

/// The begin of a cell, for messages.
pub fn shown(cell: &str) -> String {
    cell.chars().take(40).collect()
}
