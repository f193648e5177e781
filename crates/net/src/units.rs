//! Quantities with units, as in scenario files (`"20 MHz"`, `"50 Mb/s"`, `"5 ms"`, `"64 KiB"`), as exact
//! integers. A number without a unit is refused with an error that lists the units.

use crate::time::{Duration, Instant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(pub u64);

/// A bit rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(pub u64);

/// A frequency or bandwidth in hertz.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Hertz(pub u64);

/// A ratio in decibels (SINR, gain, loss).
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Db(pub f64);

/// The text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not {what}: write a number and a unit, one of {units}, such as \"{example}\"")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    units: &'static str,
    example: &'static str,
}

impl Bytes {
    /// Zero bytes, by definition.
    pub const ZERO: Self = Self(0);
    /// The difference, or zero if it would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "a byte count must not become negative");
        self.saturating_sub(other)
    }
}

impl Rate {
    /// Time to send `bytes` at this rate, rounded up to the nanosecond; [`Duration::MAX`] at a rate of zero.
    pub fn time_to_send(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        if let Some(bit_ns) = bytes.0.checked_mul(8 * 1_000_000_000) {
            return Duration::from_nanos(bit_ns.div_ceil(self.0)); // faster than 128 bits
        }
        let ns = (u128::from(bytes.0) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
    /// The mean rate of `bytes` over `span`; zero for an empty span.
    pub fn of(bytes: Bytes, span: Duration) -> Self {
        if span.is_zero() {
            return Self(0);
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(span.as_nanos());
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

/// A unit's name and its value in base units.
type Suffix = (&'static str, u64);

/// Units of time in nanoseconds (SI prefixes, by definition).
const TIME: [Suffix; 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];
/// Units of size in bytes (SI and IEC 80000-13 prefixes, by definition).
const SIZE: [Suffix; 8] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
/// Units of rate in bit/s (SI prefixes, by definition).
const RATE: [Suffix; 8] = [
    ("b/s", 1),
    ("kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
];
/// Units of frequency in hertz (SI prefixes, by definition).
const FREQUENCY: [Suffix; 4] = [("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];

/// Splits `"1.5 Mb/s"` into the text of the number and the unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_' || c == '-' || c == '+'))?;
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then(|| (number, unit.trim()))
}

/// The exact integer value of `text` in base units; `None` if the number, the unit or the precision is wrong.
fn parse_scaled(text: &str, suffixes: &[Suffix]) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = suffixes.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let value: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = value.checked_mul(u128::from(factor))?;
    if product % scale != 0 {
        return None; // not a whole number of base units
    }
    u64::try_from(product / scale).ok()
}

/// Writes `value` in the largest unit of `suffixes` that divides it.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, suffixes: &[Suffix]) -> fmt::Result {
    let best =
        suffixes.iter().filter(|(_, factor)| value.is_multiple_of(*factor)).max_by_key(|(_, factor)| *factor);
    match best {
        Some((unit, factor)) if value != 0 => write!(f, "{} {unit}", value / factor),
        _ => write!(f, "{value} {}", suffixes[0].0),
    }
}

macro_rules! text_form {
    ($type:ty, $what:literal, $units:literal, $example:literal, $table:expr, $shown:expr, $from:expr, $into:expr) => {
        impl FromStr for $type {
            type Err = ParseUnitError;
            fn from_str(text: &str) -> Result<Self, ParseUnitError> {
                parse_scaled(text, &$table).map($from).ok_or_else(|| ParseUnitError {
                    text: text.to_owned(),
                    what: $what,
                    units: $units,
                    example: $example,
                })
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_scaled(f, $into(*self), &$shown)
            }
        }
        serde_as_text!($type, $example);
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let suffixes = $table.map(|(unit, _)| unit).join("|");
                quantity_schema($what, $units, r"[0-9]+(\.[0-9]{1,9})?", &suffixes)
            }
        }
    };
}

/// JSON schema of a quantity: a string of a number and a unit. `x-quantity` names the quantity, `x-units` the
/// units that the error message of its parser names.
fn quantity_schema(quantity: &str, units: &str, number: &str, suffixes: &str) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!(r"^\s*{number}\s*({suffixes})\s*$"),
        "x-quantity": quantity,
        "x-units": units,
    })
}

macro_rules! serde_as_text {
    ($type:ty, $example:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a quantity with its unit in quotes, such as \"{}\"", $example)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

text_form!(
    Duration,
    "a duration",
    "ns, us, ms, s, min",
    "5 ms",
    TIME,
    [TIME[0], TIME[1], TIME[3], TIME[4]],
    Duration::from_nanos,
    Duration::as_nanos
);
text_form!(
    Bytes,
    "a size",
    "B, kB, MB, GB, KiB, MiB, GiB",
    "64 KiB",
    SIZE,
    [SIZE[0], SIZE[1], SIZE[3], SIZE[4], SIZE[5], SIZE[6], SIZE[7]],
    Bytes,
    |b: Bytes| b.0
);
text_form!(
    Rate,
    "a bit rate",
    "b/s, kb/s, Mb/s, Gb/s",
    "50 Mb/s",
    RATE,
    [RATE[0], RATE[1], RATE[2], RATE[3]],
    Rate,
    |r: Rate| r.0
);
text_form!(Hertz, "a frequency", "Hz, kHz, MHz, GHz", "20 MHz", FREQUENCY, FREQUENCY, Hertz, |h: Hertz| h.0);

impl FromStr for Db {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let value = split(text).filter(|(_, unit)| *unit == "dB").and_then(|(number, _)| number.parse().ok());
        value.filter(|v: &f64| v.is_finite()).map(Db).ok_or_else(|| ParseUnitError {
            text: text.to_owned(),
            what: "a ratio in decibels",
            units: "dB",
            example: "-3.5 dB",
        })
    }
}
impl fmt::Display for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}
serde_as_text!(Db, "-3.5 dB");
impl JsonSchema for Db {
    fn schema_name() -> Cow<'static, str> {
        "Db".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        quantity_schema("a ratio in decibels", "dB", r"[-+]?[0-9]+(\.[0-9]*)?", "dB")
    }
}

impl Db {
    /// The linear ratio.
    pub fn linear(self) -> f64 {
        libm::pow(10.0, self.0 / 10.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("20 MHz".parse(), Ok(Hertz(20_000_000)));
        assert_eq!("1.4 MHz".parse(), Ok(Hertz(1_400_000)));
        assert_eq!("50 Mb/s".parse(), Ok(Rate(50_000_000)));
        assert_eq!("0.5ms".parse(), Ok(Duration::from_micros(500)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("-3.5 dB".parse(), Ok(Db(-3.5)));
    }

    #[test]
    fn wrong_quantities_name_the_units() {
        for text in ["5", "ms", "5 furlongs", "-5 ms", "5. ms", "0.1 ns", "1e3 ms", "", "99999999999999 s"] {
            let error = text.parse::<Duration>().expect_err(text).to_string();
            assert!(error.contains("ns, us, ms, s"), "{error}");
        }
        assert!("50 MB/s".parse::<Rate>().is_err());
        assert!("nan dB".parse::<Db>().is_err());
    }

    #[test]
    fn text_form_round_trips() {
        for ns in [0, 1, 1500, 5_000_000, 1_500_000_000] {
            let span = Duration::from_nanos(ns);
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        assert_eq!(Bytes(65_536).to_string(), "64 KiB");
        assert_eq!(Rate(1_500_000).to_string(), "1500 kb/s");
    }

    #[test]
    fn send_times_round_up() {
        assert_eq!(Rate(8_000_000_000).time_to_send(Bytes(1)), Duration::from_nanos(1));
        assert_eq!(Rate(3).time_to_send(Bytes(1)), Duration::from_nanos(2_666_666_667));
        assert_eq!(Rate(0).time_to_send(Bytes(1)), Duration::MAX);
        // Below and above the limit of 64 bits, 2.3 GB.
        for bytes in [2_305_843_009, 2_305_843_010] {
            let expected = Duration::from_nanos(bytes * 8 * 1_000);
            assert_eq!(Rate(1_000_000).time_to_send(Bytes(bytes)), expected);
        }
        assert_eq!(Rate(1).time_to_send(Bytes(u64::MAX)), Duration::MAX);
        assert_eq!(Rate::of(Bytes(125), Duration::from_millis(1)), Rate(1_000_000));
    }
}
