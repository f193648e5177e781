//! The table of published values beside ours that all experiments share, as text and as CSV.

use crate::{Row, Value};
use paceline_report::table::align;
use std::fmt::Write;

/// Headings of the columns that every table of published values has.
pub const HEADINGS: [&str; 11] = [
    "row",
    "quantity",
    "value",
    "published",
    "ours",
    "95%",
    "unit",
    "difference",
    "difference, %",
    "within the published spread",
    "holds",
];

/// Whether the published statement of a row holds, in words.
pub(crate) fn verdict(row: &Row) -> &'static str {
    match row.verdict() {
        Some((true, true)) => "yes",
        Some((true, false)) => "yes, uncertain",
        Some((false, _)) => "no",
        None if row.published.is_empty() => "-",
        None => "not run",
    }
}

/// The cells of [`HEADINGS`] of a value, without those of its row.
pub(crate) fn cells(value: &Value) -> [String; 8] {
    let unit = &value.unit;
    let published = match (value.published, value.spread()) {
        (Some(published), _) => published.to_string(),
        (None, Some((low, high))) => format!("{low} to {high}"),
        _ => String::from("-"),
    };
    let ours = value.ours.mean.map_or_else(|| String::from("not run"), |mean| decimal(mean, unit));
    let ci95 = value.ours.half.map_or_else(String::new, |half| format!("± {}", decimal(half, unit)));
    let difference = value.difference().map_or_else(String::new, |difference| signed(difference, unit));
    let percent = value.difference_percent().map_or_else(String::new, |percent| signed(percent, "%"));
    let within = match (value.within_spread(), value.spread()) {
        (Some(within), Some((low, high))) => {
            format!("{}: {low} to {high}", if within { "yes" } else { "no" })
        }
        _ if value.published.is_none() => String::from("-"),
        _ => String::from("no spread given"),
    };
    [value.name.clone(), published, ours, ci95, unit.to_string(), difference, percent, within]
}

/// The table of all values, and below it the published statement and our finding of each row in words. Cells
/// of a row are printed once.
pub fn text(title: &str, rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned).to_vec()];
    lines[0][0] = String::new();
    for row in rows {
        for (index, value) in row.values.iter().enumerate() {
            let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let [name, rest @ ..] = cells(value);
            let mut line = vec![first(&row.id), first(&row.quantity), name];
            line.extend(rest);
            line.push(first(verdict(row)));
            lines.push(line);
        }
    }
    let mut text = format!(
        "{title}\n{}uncertain: does not hold everywhere in the confidence interval\n\n",
        align(&lines, 3)
    );
    for row in rows {
        let published = if row.published.is_empty() { "nothing" } else { &row.published };
        let _ = writeln!(text, "{}  published: {published}. Ours: {}.", row.id, row.why);
    }
    text
}

/// A column of `rows.csv`: its name, and its cells.
pub enum Column {
    /// Text.
    Text(&'static str, for<'a> fn(&'a Row, &'a Value) -> &'a str),
    /// Numbers, in the unit of the value.
    Number(&'static str, fn(&Value) -> Option<f64>),
    /// Truths; none where nothing was published.
    Truth(&'static str, fn(&Row, &Value) -> Option<bool>),
}

/// The columns of `rows.csv`, which has one line per value.
pub const COLUMNS: &[Column] = &[
    Column::Text("row", |row, _| &row.id),
    Column::Text("quantity", |row, _| &row.quantity),
    Column::Text("value", |_, value| &value.name),
    Column::Text("unit", |_, value| &value.unit),
    Column::Number("published", |value| value.published),
    Column::Number("ours", |value| value.ours.mean),
    Column::Number("ci95", |value| value.ours.half),
    Column::Number("difference", Value::difference),
    Column::Number("difference_percent", Value::difference_percent),
    Column::Number("spread_low", |value| value.spread_low),
    Column::Number("spread_high", |value| value.spread_high),
    Column::Truth("within_spread", |_, value| value.within_spread()),
    Column::Truth("holds", |row, _| row.verdict().map(|(holds, _)| holds)),
    Column::Truth("holds_in_ci95", |row, _| row.verdict().map(|(_, in_ci95)| in_ci95)),
];

/// `rows.csv`: fields without a value are empty.
pub fn csv(rows: &[Row]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |fields: Vec<String>| {
        writer.write_record(fields).expect("rows are equally long, and memory can be written to");
    };
    let name = |column: &Column| match column {
        Column::Text(name, _) | Column::Number(name, _) | Column::Truth(name, _) => (*name).to_owned(),
    };
    write(COLUMNS.iter().map(name).collect());
    for (row, value) in rows.iter().flat_map(|row| row.values.iter().map(move |value| (row, value))) {
        let field = |column: &Column| match column {
            Column::Text(_, of) => of(row, value).to_owned(),
            Column::Number(_, of) => of(value).map_or(String::new(), |number| format!("{number:.6}")),
            Column::Truth(_, of) => of(row, value).map_or(String::new(), |truth| truth.to_string()),
        };
        write(COLUMNS.iter().map(field).collect());
    }
    String::from_utf8(writer.into_inner().expect("memory can be written to")).expect("fields are UTF-8")
}

/// Decimals of a number: those that the published values of its unit have, and one more.
fn decimals(value: f64, unit: &str) -> usize {
    match unit {
        "" => 4,
        "Mb/s" | "dB" => 2,
        _ if value.abs() < 0.995 => 2,
        _ => 1,
    }
}

fn decimal(value: f64, unit: &str) -> String {
    format!("{value:.*}", decimals(value, unit))
}

/// A number with its sign; zero after rounding is `+0`.
fn signed(value: f64, unit: &str) -> String {
    let decimals = decimals(value, unit);
    let text = format!("{value:+.decimals$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() { format!("{:+.decimals$}", 0.0) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row() -> Row {
        let value = |name: &str, published: Option<f64>, low: Option<f64>| {
            json!({
                "name": name, "unit": "Mb/s", "published": published, "ours": 1.7, "ci95": 0.1,
                "spread_low": low, "spread_high": low.map(|low| low + 0.2), "at": null, "line": "",
            })
        };
        serde_json::from_value(json!({
            "id": "2b", "quantity": "goodput, 3G", "published": "1.45 to 1.65", "axis": null,
            "values": [value("a", None, Some(1.45)), value("b", Some(1.65), None)],
            "holds": true, "holds_in_ci95": false, "why": "so",
        }))
        .expect("a row")
    }

    #[test]
    fn the_table_has_distance_and_spread_of_each_value() {
        let text = text("x, published beside ours", &[row()]);
        for heading in &HEADINGS[1..] {
            assert!(text.contains(heading), "{heading}: {text}");
        }
        let line =
            |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{text}"));
        for part in ["1.70", "± 0.10", "+0.05", "+3.0"] {
            assert!(line("1.45 to 1.65").contains(part), "{part}: {text}");
        }
        assert!(line("no: 1.45 to 1.65").contains("yes, uncertain"), "{text}");
        assert!(!line("no spread given").contains("uncertain"), "{text}");
    }

    #[test]
    fn a_difference_that_is_zero_after_rounding_has_no_minus() {
        assert_eq!([signed(-0.001, "Mb/s"), signed(-0.1, "Mb/s")], ["+0.00", "-0.10"]);
    }

    #[test]
    fn a_line_of_the_csv_has_numbers_or_empty_fields() {
        let csv = csv(&[row()]);
        let lines: Vec<&str> = csv.lines().collect();
        let expected = "2b,\"goodput, 3G\",b,Mb/s,1.650000,1.700000,0.100000,0.050000,3.030303,,,,true,false";
        assert_eq!((lines.len(), lines[2]), (3, expected));
    }
}
