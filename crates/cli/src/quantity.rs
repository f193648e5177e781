//! Bytes and bit rates as short text: up to three digits and a unit.

fn scaled(value: f64, units: [&str; 5]) -> String {
    let (mut value, mut at) = (value, 0);
    while value >= 999.5 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    let decimals = if at == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.decimals$} {}", units[at])
}

/// A number of bytes, such as `1.0 kB`.
pub fn bytes(value: u64) -> String {
    scaled(value as f64, ["B", "kB", "MB", "GB", "TB"])
}

/// A rate in b/s, such as `12.5 Mb/s`.
pub fn bits(value: f64) -> String {
    scaled(value, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_three_digits() {
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (123_456, "123 kB"),
            (999_900, "1.0 MB"),
            (99_960, "100 kB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(bits(2.5e15), "2500 Tb/s");
    }
}
