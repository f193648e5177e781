//! The rows of a reproduced experiment as a table: published values, simulated values, and whether the claim
//! holds.

use crate::table::align;
use paceline_sim::reproduce::Row;
use std::fmt::Write;

/// The table of all values, and below it the published claim and the simulated finding of each row in words.
pub fn describe(name: &str, rows: &[Row], seeds: u64, set: &[String]) -> String {
    let runs = if seeds == 1 {
        String::from("1 seed")
    } else {
        format!("{seeds} seeds, mean ± 95% confidence interval")
    };
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    let head = ["", "quantity", "", "published", "ours", "", "holds"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        for (index, value) in row.values.iter().enumerate() {
            let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let published = value.published.map_or_else(|| first("in words"), |number| number.to_string());
            lines.push(vec![
                first(row.id),
                first(&row.quantity),
                value.name.clone(),
                published,
                ours(row, value.ours.mean, value.ours.half),
                row.unit.to_owned(),
                first(match (row.holds, row.holds_in_ci95) {
                    (true, true) => "yes",
                    (true, false) => "yes, uncertain",
                    (false, _) => "no",
                }),
            ]);
        }
    }
    let mut text = format!(
        "{name}, published beside ours: {runs}{set}\n{}uncertain: does not hold everywhere in the confidence interval\n\n",
        align(&lines, 3)
    );
    for row in rows {
        let _ = writeln!(text, "{}  published: {}. Ours: {}.", row.id, row.published, row.why);
    }
    text
}

fn ours(row: &Row, mean: Option<f64>, half: Option<f64>) -> String {
    let decimals = match row.unit {
        "" => 4,
        "Mb/s" => 2,
        _ => 1,
    };
    let mean = mean.map_or(String::from("not measured"), |mean| format!("{mean:.decimals$}"));
    half.map_or(mean.clone(), |half| format!("{mean} ± {half:.decimals$}"))
}
