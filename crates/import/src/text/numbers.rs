//! Numbers as programs and spreadsheets write them: decimal points and commas, groups of thousands.

/// A number, also with a decimal comma, or with groups of thousands where the marks are certain (`1.234,5`,
/// `1,234,567`). None for anything else, and for infinity and NaN.
pub fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let value = match cell.parse::<f64>() {
        Ok(value) => value,
        Err(_) if cell.matches(',').count() == 1 && !cell.contains('.') => {
            cell.replace(',', ".").parse().ok()?
        }
        Err(_) => grouped(cell)?,
    };
    value.is_finite().then_some(value)
}

/// A number with groups of thousands: marks of two kinds, of which the last is the decimal one, or several of
/// one kind.
fn grouped(cell: &str) -> Option<f64> {
    let (whole, fraction) = match (cell.rfind('.'), cell.rfind(',')) {
        (Some(point), Some(comma)) => (&cell[..point.max(comma)], &cell[point.max(comma) + 1..]),
        _ => (cell, ""),
    };
    let mark = if whole.contains(',') { ',' } else { '.' };
    if !has_groups(whole, mark) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{}.{fraction}", whole.replace(mark, "")).parse().ok()
}

fn has_groups(whole: &str, mark: char) -> bool {
    let mut groups = whole.trim_start_matches(['-', '+']).split(mark);
    let has_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()) && has_digits(group));
    let mut rest = groups.peekable();
    first && rest.peek().is_some() && rest.all(|group| group.len() == 3 && has_digits(group))
}

/// Whether a cell of a file separated by commas has commas between thousands: `8,000`, and not `0,500`.
pub fn has_thousands(cell: &str) -> bool {
    let whole = cell.split('.').next().unwrap_or_default();
    has_groups(whole, ',') && !whole.trim_start_matches(['-', '+']).starts_with('0')
}

/// The begin of a cell, for messages: without the control characters of damaged files.
pub fn shown(cell: &str) -> String {
    cell.chars().take(40).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{has_thousands, number};

    #[test]
    fn numbers_are_read_with_marks_of_either_kind() {
        for (text, value) in [
            ("12.5", 12.5),
            ("12,5", 12.5),
            (" 1e3 ", 1000.0),
            ("1.234,5", 1234.5),
            ("1,234.5", 1234.5),
            ("1,234,567", 1_234_567.0),
            ("-1.234.567", -1_234_567.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in
            ["", "nan", "inf", "-Infinity", "1e999", "2026.11.26", "1,2,3", "1,23,456.7", "12:30", "8 Mb/s"]
        {
            assert_eq!(number(text), None, "{text}");
        }
        assert!(has_thousands("8,000") && !has_thousands("0,500") && !has_thousands("8,5"));
    }
}
