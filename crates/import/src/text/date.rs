//! Dates: in digits, in the orders of ISO 8601 and of spreadsheets, and with the names of months.

/// Names of months begin with these letters.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A date in the order of ISO 8601: of `2024-05-01`, `2024.05.01`, `2024/5/1`, `1.5.2024`, `5/1/2024`,
/// `20240501` and `1-May-2024`.
pub fn date(text: &str) -> Option<String> {
    let mark = text.chars().find(|c| !c.is_ascii_digit()).filter(|mark| ['-', '.', '/'].contains(mark))?;
    let fields: Vec<&str> = text.split(mark).collect();
    let [a, b, c] = fields[..] else { return None };
    let is_number =
        |field: &str| (1..=4).contains(&field.len()) && field.bytes().all(|byte| byte.is_ascii_digit());
    let named = month(b).map(|month| month.to_string());
    let b = named.as_deref().unwrap_or(b);
    if ![a, b, c].into_iter().all(is_number) {
        return None;
    }
    let (year, month, day) = match (a.len(), c.len()) {
        (4, 1 | 2) => (a, b, c),
        // With slashes the month is first, as in the United States, unless the first number is none.
        (1 | 2, 4) if mark == '/' && named.is_none() && a.parse::<u32>().is_ok_and(|month| month <= 12) => {
            (c, a, b)
        }
        (1 | 2, 4) => (c, b, a),
        _ => return None,
    };
    (year >= "1970").then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

/// The number of a month with this name.
fn month(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let has_letters = name.len() >= 3 && name.chars().all(|c| c.is_ascii_alphabetic());
    let found = MONTHS.iter().position(|month| has_letters && name.starts_with(month))?;
    Some(found + 1)
}

/// A time in words with its date in digits: of `Mon, 25 Jan 2021 03:48:00 -0600` (RFC 5322),
/// `Mon Jan 25 03:48:00 CST 2021` (date(1)) and `Jan 25, 2021 3:48:00 PM`.
pub fn of_words(text: &str) -> Option<String> {
    if !text.contains(':') || !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let (mut found, mut day, mut year, mut time) = (None, None, None, Vec::new());
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        match word {
            _ if found.is_none() && month(word).is_some() => found = month(word),
            _ if is_number && word.len() <= 2 && day.is_none() => day = Some(word),
            _ if is_number && word.len() == 4 && year.is_none() => year = Some(word),
            _ if word.contains(':') || !time.is_empty() => time.push(word),
            // The day of the week.
            _ if found.is_none() && word.chars().all(|c| c.is_ascii_alphabetic()) => {}
            _ => return None,
        }
    }
    let (month, day, year) = (found?, day?, year?);
    Some(format!("{year}-{month:02}-{day:0>2} {}", time.join(" ")))
}
