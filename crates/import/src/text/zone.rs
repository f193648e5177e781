//! Zones behind clock times: offsets, abbreviations, and names of regions.

/// Seconds in an hour, by definition.
const HOUR_S: i32 = 3600;
/// Seconds in a minute, by definition.
const MINUTE_S: i32 = 60;
/// Abbreviations and their hours from UTC (IANA time zone database). Those with several meanings, such as IST
/// and AST, are left out: they are known by their name alone.
const ABBREVIATIONS: [(&str, i32); 30] = [
    ("Z", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("WET", 0),
    ("WEST", 1),
    ("BST", 1),
    ("CET", 1),
    ("MEZ", 1),
    ("CEST", 2),
    ("MESZ", 2),
    ("EET", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("SGT", 8),
    ("HKT", 8),
    ("AWST", 8),
    ("JST", 9),
    ("KST", 9),
    ("AEST", 10),
    ("AEDT", 11),
    ("NZST", 12),
    ("NZDT", 13),
    ("EST", -5),
    ("EDT", -4),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];
/// Central Standard Time of America beside CDT, and China's otherwise.
const CST: (&str, i32) = ("CST", -6);

/// A zone.
#[derive(Clone, PartialEq, Debug)]
pub struct Zone {
    name: String,
    /// Seconds by which its local time is ahead of UTC; none if the name alone is known.
    pub offset_s: Option<i32>,
}

/// Splits a time of day from its zone, which is none if there is none; an error if the rest is no zone.
pub fn split(text: &str) -> Result<(&str, Option<Zone>), ()> {
    let text = text.trim();
    // `08-30-00` has no zone.
    let is_part =
        |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',') || (c == '-' && !text.contains(':'));
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let half = ["AM", "PM", "a.m.", "p.m."];
    let rest_trimmed = rest.trim_start();
    let half = half.iter().find(|mark| {
        let has = rest_trimmed.get(..mark.len()).is_some_and(|own| own.eq_ignore_ascii_case(mark));
        has && !rest_trimmed[mark.len()..].starts_with(char::is_alphanumeric)
    });
    let Some(mark) = half else { return Ok((time, zone(rest.trim())?)) };
    let at = rest.len() - rest_trimmed.len() + mark.len();
    Ok((&text[..end + at], zone(rest[at..].trim())?))
}

/// Whether a word behind a time is a zone for certain: an offset of four digits or with a colon, or a known
/// abbreviation.
pub fn is_certain(word: &str) -> bool {
    let is_offset = word.starts_with(['+', '-']) && (word.len() == 5 || word.contains(':'));
    let is_abbreviation = word.starts_with(|c: char| c.is_ascii_uppercase());
    (is_offset || is_abbreviation)
        && zone(word).is_ok_and(|zone| zone.is_some_and(|zone| zone.offset_s.is_some()))
}

fn zone(text: &str) -> Result<Option<Zone>, ()> {
    // `(CDT)`, `-05:00[America/Chicago]`, `-0500 (CDT)`
    let inner = text.trim_matches(['(', ')', '[', ']']);
    let outer = text.split(['[', '(']).next().unwrap_or_default().trim();
    let text = if outer.is_empty() { inner } else { outer };
    if text.is_empty() {
        return Ok(None);
    }
    let known = |name: &str| {
        ABBREVIATIONS.iter().chain([&CST]).find(|(known, _)| known.eq_ignore_ascii_case(name)).copied()
    };
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters.all(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '_')) && text.len() >= 2
    };
    let at = text.find(['+', '-']).filter(|at| text[*at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    let offset_s = match at {
        Some(at) => {
            let before = text[..at].trim();
            if !before.is_empty() && known(before).is_none_or(|(_, hours)| hours != 0) {
                return Err(());
            }
            Some(offset(&text[at..]).ok_or(())?)
        }
        None => match known(text) {
            Some((_, hours)) => Some(hours * HOUR_S),
            // An abbreviation such as IST, or a region: the zone is the same in all rows.
            None if text.contains('/') && is_name(text) => None,
            None if is_name(text) && text.len() <= 5 && text.chars().all(|c| c.is_ascii_uppercase()) => None,
            None => return Err(()),
        },
    };
    Ok(Some(Zone { name: text.to_owned(), offset_s }))
}

/// Seconds of `+02`, `+2`, `+0200`, `+02:00` and `+05:30:00`.
fn offset(text: &str) -> Option<i32> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let fields: Vec<&str> = text[1..].split(':').collect();
    let whole = |field: &str| -> Option<i32> {
        let is_whole = (1..=2).contains(&field.len()) && field.bytes().all(|byte| byte.is_ascii_digit());
        field.parse().ok().filter(|_| is_whole)
    };
    let (hours, minutes) = match fields[..] {
        [joined] if joined.len() == 4 && joined.is_ascii() => (whole(&joined[..2])?, whole(&joined[2..])?),
        [hours] => (whole(hours)?, 0),
        [hours, minutes] | [hours, minutes, _] => (whole(hours)?, whole(minutes)?),
        _ => return None,
    };
    // The widest zones are UTC-12 and UTC+14.
    (hours <= 14 && minutes < 60).then_some(sign * (hours * HOUR_S + minutes * MINUTE_S))
}

#[cfg(test)]
mod tests {
    use super::{is_certain, split};

    #[test]
    fn zones_of_all_forms_are_split_from_the_time() {
        for (text, time, hours) in [
            ("03:48:00.544 CDT", "03:48:00.544", -5.0),
            ("03:48:00CST", "03:48:00", -6.0),
            ("03:48:00Z", "03:48:00", 0.0),
            ("03:48:00 UTC", "03:48:00", 0.0),
            ("03:48:00 UTC+8", "03:48:00", 8.0),
            ("03:48:00 GMT-0530", "03:48:00", -5.5),
            ("03:48:00+02:00", "03:48:00", 2.0),
            ("03:48:00 -0500 (CDT)", "03:48:00", -5.0),
            ("03:48:00-06:00[America/Chicago]", "03:48:00", -6.0),
            ("3:48:00 PM PST", "3:48:00 PM", -8.0),
            ("3:48:00pm +01", "3:48:00pm", 1.0),
            ("03.48.00 EST", "03.48.00", -5.0),
        ] {
            let (found, zone) = split(text).unwrap_or_else(|()| panic!("{text}"));
            let offset = zone.and_then(|zone| zone.offset_s).map(|s| f64::from(s) / 3600.0);
            assert_eq!((found, offset), (time, Some(hours)), "{text}");
        }
        for text in ["03:48:00 IST", "03:48:00 Europe/Berlin", "03:48:00 (XYZT)"] {
            assert!(
                split(text).is_ok_and(|(_, zone)| zone.is_some_and(|zone| zone.offset_s.is_none())),
                "{text}"
            );
        }
        for text in ["03:48:00", "08-30-00", "8:30 PM"] {
            assert!(split(text).is_ok_and(|(time, zone)| time == text && zone.is_none()), "{text}");
        }
        for text in ["03:48:00 o'clock", "03:48:00+99", "12:00:1e1", "03:48 rest of it", "03:48:00 CDT+1"] {
            assert!(split(text).is_err(), "{text}");
        }
        for word in ["CDT", "+02:00", "-0600"] {
            assert!(is_certain(word), "{word}");
        }
        for word in ["22.7", "-9", "-95", "LTE", "LTE-A", ""] {
            assert!(!is_certain(word), "{word}");
        }
    }
}
