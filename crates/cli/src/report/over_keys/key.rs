//! A swept key and its values as quantities.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub struct Key {
    pub key: String,
    pub values: Vec<String>,
}

/// Units of scenario values with their size in the first unit of their group.
const UNITS: [&[(&str, f64)]; 6] = [
    &[("ms", 1.0), ("us", 1e-3), ("ns", 1e-6), ("s", 1e3)],
    &[("Mb/s", 1.0), ("kb/s", 1e-3), ("b/s", 1e-6), ("Gb/s", 1e3)],
    &[
        ("kB", 1.0),
        ("B", 1e-3),
        ("KiB", 1.024),
        ("MB", 1e3),
        ("MiB", 1_048.576),
        ("GB", 1e6),
        ("GiB", 1_073_741.824),
    ],
    &[("MHz", 1.0), ("Hz", 1e-6), ("kHz", 1e-3), ("GHz", 1e3)],
    &[("m", 1.0), ("km", 1e3)],
    &[("%", 1.0)],
];

/// A value and its unit; none if the text is no number with a unit.
fn split(value: &str) -> Option<(f64, &str)> {
    let value = value.trim_matches('"').trim();
    let end = value.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'));
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    Some((number.parse::<f64>().ok().filter(|number| number.is_finite())?, unit.trim()))
}

impl Key {
    /// The values as numbers with their unit; none if one is no number, or the units do not measure the same
    /// thing. Values of several units are in the first unit of their group.
    pub fn numbers(&self) -> Option<(Vec<f64>, String)> {
        let pairs: Vec<(f64, &str)> = self.values.iter().map(|value| split(value)).collect::<Option<_>>()?;
        let unit = pairs.first()?.1;
        if pairs.iter().all(|pair| pair.1 == unit) {
            return Some((pairs.iter().map(|pair| pair.0).collect(), unit.to_owned()));
        }
        let group = UNITS.iter().find(|group| group.iter().any(|(name, _)| *name == unit))?;
        let size = |unit: &str| group.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        let numbers = pairs.iter().map(|(number, unit)| Some(number * size(unit)?));
        Some((numbers.collect::<Option<_>>()?, group[0].0.to_owned()))
    }
    /// The name of an axis of the values.
    pub fn axis(&self) -> String {
        match self.numbers() {
            Some((_, unit)) if !unit.is_empty() => format!("{}, {unit}", self.key),
            _ => self.key.clone(),
        }
    }
    /// The number by which a table is sorted by one of the values.
    pub fn sort_key(&self, value: &str) -> Option<f64> {
        let place = self.values.iter().position(|other| other == value)?;
        self.numbers().map(|(numbers, _)| numbers[place])
    }
}

/// The last part of a path, without quotes and the suffix `.trace`.
pub fn short(value: &str) -> String {
    let value = value.trim_matches('"');
    if value.contains("b/s") {
        return value.to_owned();
    }
    let name = value.rsplit('/').next().unwrap_or(value);
    name.strip_suffix(".trace").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[&str]) -> Option<(Vec<f64>, String)> {
        let values = values.iter().map(|v| (*v).to_owned()).collect();
        Key { key: String::from("k"), values }.numbers()
    }

    #[test]
    fn values_of_an_axis_are_numbers_with_one_unit() {
        assert_eq!(numbers(&["5 MHz", "\"10 MHz\""]), Some((vec![5.0, 10.0], String::from("MHz"))));
        assert_eq!(numbers(&["1", "2.5"]), Some((vec![1.0, 2.5], String::new())));
        assert_eq!(numbers(&["1 ms", "2 s"]), Some((vec![1.0, 2000.0], String::from("ms"))));
        assert_eq!(numbers(&["500 kb/s", "2 Mb/s"]), Some((vec![0.5, 2.0], String::from("Mb/s"))));
        assert_eq!(numbers(&["1 ms", "2 MHz"]), None);
        assert_eq!(numbers(&["basic", "hybrid(6)"]), None);
    }

    #[test]
    fn a_path_is_shortened_to_its_name_but_a_rate_is_not() {
        assert_eq!(short("\"traces/walk.trace\""), "walk");
        assert_eq!(short("10 Mb/s"), "10 Mb/s");
    }
}
