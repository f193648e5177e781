//! Published values beside ours, as `summary.json` of `paceline reproduce` has them: the columns of the table
//! that all experiments share, as text and as CSV.

use paceline_report::table::align;
use serde::Deserialize;
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

/// A published quantity with one or more values.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    pub id: String,
    pub quantity: String,
    /// The published statement; empty if nothing was published.
    pub published: String,
    /// Name and unit of the axis of the row's picture.
    pub axis: Option<String>,
    pub values: Vec<Value>,
    /// Whether the published statement holds; none if nothing was published, or nothing was run.
    pub holds: Option<bool>,
    pub holds_in_ci95: Option<bool>,
    pub why: String,
}

/// A value and its counterpart. Numbers are in `unit`.
#[derive(Clone, Debug, Deserialize)]
pub struct Value {
    pub name: String,
    pub unit: String,
    pub published: Option<f64>,
    pub ours: Option<f64>,
    pub ci95: Option<f64>,
    pub difference: Option<f64>,
    pub difference_percent: Option<f64>,
    pub spread_low: Option<f64>,
    pub spread_high: Option<f64>,
    pub within_spread: Option<bool>,
    /// Place on the row's axis.
    pub at: Option<f64>,
    /// Line of the row's picture.
    pub line: String,
}

impl Row {
    /// Whether the published statement holds, in words.
    pub fn verdict(&self) -> &'static str {
        match (self.holds, self.holds_in_ci95) {
            (Some(true), Some(true)) => "yes",
            (Some(true), _) => "yes, uncertain",
            (Some(false), _) => "no",
            (None, _) if self.published.is_empty() => "-",
            (None, _) => "not run",
        }
    }
}

impl Value {
    /// The cells of [`HEADINGS`], without those of the row.
    pub fn cells(&self) -> [String; 8] {
        let number = |value: Option<f64>| value.map_or(String::new(), |v| decimal(v, &self.unit));
        let signed = |value: Option<f64>, unit: &str| value.map_or(String::new(), |v| signed(v, unit));
        let published = match (self.published, self.spread_low, self.spread_high) {
            (Some(published), ..) => published.to_string(),
            (None, Some(low), Some(high)) => format!("{low} to {high}"),
            _ => String::from("-"),
        };
        let ours = if self.ours.is_none() { String::from("not run") } else { number(self.ours) };
        let percent = signed(self.difference_percent, "%");
        let ci95 = if self.ci95.is_none() { String::new() } else { format!("± {}", number(self.ci95)) };
        let difference = signed(self.difference, &self.unit);
        [self.name.clone(), published, ours, ci95, self.unit.clone(), difference, percent, self.spread()]
    }
    /// Whether ours is within the published spread, in words.
    fn spread(&self) -> String {
        match (self.within_spread, self.spread_low, self.spread_high) {
            (Some(within), Some(low), Some(high)) => {
                format!("{}: {low} to {high}", if within { "yes" } else { "no" })
            }
            _ if self.published.is_none() => String::from("-"),
            _ => String::from("no spread given"),
        }
    }
}

/// The table of all values, and below it the published statement and our finding of each row in words. Cells
/// of a row are printed once.
pub fn text(title: &str, rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned).to_vec()];
    lines[0][0] = String::new();
    for row in rows {
        for (index, value) in row.values.iter().enumerate() {
            let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let [name, rest @ ..] = value.cells();
            let mut line = vec![first(&row.id), first(&row.quantity), name];
            line.extend(rest);
            line.push(first(row.verdict()));
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

/// `rows.csv`: one line per value; fields without a value are empty.
pub fn csv(rows: &[Row]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = "row,quantity,value,unit,published,ours,ci95,difference,difference_percent,spread_low,\
                spread_high,within_spread,holds,holds_in_ci95";
    let mut write = |fields: Vec<String>| {
        writer.write_record(fields).expect("rows are equally long, and memory can be written to");
    };
    write(head.split(',').map(str::to_owned).collect());
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    let truth = |value: Option<bool>| value.map_or(String::new(), |value| value.to_string());
    for row in rows {
        for value in &row.values {
            let mut fields: Vec<String> =
                [&row.id, &row.quantity, &value.name, &value.unit].map(Clone::clone).to_vec();
            let numbers = [
                value.published,
                value.ours,
                value.ci95,
                value.difference,
                value.difference_percent,
                value.spread_low,
                value.spread_high,
            ];
            fields.extend(numbers.map(number));
            fields.extend([value.within_spread, row.holds, row.holds_in_ci95].map(truth));
            write(fields);
        }
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
                "difference": 0.05, "difference_percent": 3.03, "spread_low": low, "spread_high": low.map(|l| l + 0.2),
                "within_spread": low.map(|_| false), "at": null, "line": "",
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
        let lines: Vec<&str> = text.lines().collect();
        for heading in &HEADINGS[1..] {
            assert!(lines[1].contains(heading), "{heading}: {text}");
        }
        for part in ["1.45 to 1.65", "1.70", "± 0.10", "+0.05", "+3.0 ", "no: 1.45 to 1.65", "yes, uncertain"]
        {
            assert!(lines[2].contains(part), "{part}: {text}");
        }
        assert!(lines[3].contains("no spread given") && !lines[3].contains("uncertain"), "{text}");
    }

    #[test]
    fn a_difference_that_is_zero_after_rounding_has_no_minus() {
        assert_eq!([signed(-0.001, "Mb/s"), signed(-0.1, "Mb/s")], ["+0.00", "-0.10"]);
    }

    #[test]
    fn a_line_of_the_csv_has_numbers_or_empty_fields() {
        let csv = csv(&[row()]);
        let lines: Vec<&str> = csv.lines().collect();
        let expected = "2b,\"goodput, 3G\",b,Mb/s,1.650000,1.700000,0.100000,0.050000,3.030000,,,,true,false";
        assert_eq!((lines.len(), lines[2]), (3, expected));
    }
}
