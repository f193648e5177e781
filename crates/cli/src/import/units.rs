//! Units of times and rates, as names of columns and users write them.

use std::fmt;
use std::str::FromStr;

/// Seconds since 1970 of recordings. Chosen: 2001 to 2096.
const EPOCH: std::ops::Range<f64> = 1e9..4e9;

/// Unit of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl TimeUnit {
    /// Nanoseconds in one.
    pub fn nanos(self) -> f64 {
        match self {
            Self::Minute => 6e10,
            Self::Second => 1e9,
            Self::Millisecond => 1e6,
            Self::Microsecond => 1e3,
            Self::Nanosecond => 1.0,
        }
    }
    /// The unit of a time since 1970, by its size; none if it is no such time.
    pub fn since_1970(time: f64) -> Option<Self> {
        let units = [Self::Second, Self::Millisecond, Self::Microsecond, Self::Nanosecond];
        units.into_iter().find(|unit| EPOCH.contains(&(time * unit.nanos() / 1e9)))
    }
    /// The unit of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_lowercase().as_str() {
            "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "ms" | "msec" | "msecs" | "millis" | "millisec" | "millisecond" | "milliseconds" => {
                Self::Millisecond
            }
            "us" | "µs" | "μs" | "usec" | "usecs" | "micros" | "microsec" | "microsecond"
            | "microseconds" => Self::Microsecond,
            "ns" | "nsec" | "nsecs" | "nanos" | "nanosec" | "nanosecond" | "nanoseconds" => Self::Nanosecond,
            _ => return None,
        })
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "min",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        })
    }
}

impl FromStr for TimeUnit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| "allowed: min, s, ms, us, ns".to_owned())
    }
}

/// Unit of a rate, or of amounts of data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RateUnit {
    /// Bits per second in one.
    Rate(f64, &'static str),
    /// Bytes in one, of an amount since the row before.
    Amount(f64, &'static str),
}

/// The units by definition (SI), with their names in output. A user's or a column's name is compared after
/// [`normal`].
const UNITS: [(&str, RateUnit); 12] = {
    use RateUnit::{Amount, Rate};
    [
        ("b/s", Rate(1.0, "b/s")),
        ("kb/s", Rate(1e3, "kb/s")),
        ("Mb/s", Rate(1e6, "Mb/s")),
        ("Gb/s", Rate(1e9, "Gb/s")),
        ("B/s", Rate(8.0, "B/s")),
        ("kB/s", Rate(8e3, "kB/s")),
        ("MB/s", Rate(8e6, "MB/s")),
        ("GB/s", Rate(8e9, "GB/s")),
        ("B", Amount(1.0, "bytes")),
        ("kB", Amount(1e3, "kB")),
        ("MB", Amount(1e6, "MB")),
        ("packets", Amount(1504.0, "packets of 1504 bytes")),
    ]
};

impl RateUnit {
    /// The unit of this name, such as `Mbps`, `kbit/s`, `MBytes/sec`, `bits_per_second` or `bytes`.
    pub fn named(name: &str) -> Option<Self> {
        let normal = normal(name)?;
        UNITS.iter().find(|(known, _)| *known == normal).map(|(_, unit)| *unit)
    }
}

impl fmt::Display for RateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Rate(_, name) | Self::Amount(_, name)) = self;
        f.write_str(name)
    }
}

impl FromStr for RateUnit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
            format!("allowed: {}", names.join(", "))
        })
    }
}

/// A unit's name in the form of [`UNITS`].
fn normal(name: &str) -> Option<String> {
    let lower = name.to_lowercase().replace([' ', '_', '-'], "");
    if ["packets", "pkts", "opportunities"].contains(&lower.as_str()) {
        return Some("packets".into());
    }
    // "KBPS" and "MBPS" are written for bits too often to be read as bytes.
    let shouted = name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase());
    let suffixes = ["persecond", "persec", "pers", "/second", "/sec", "/s", "ps"];
    let (amount, per) = match suffixes.iter().find_map(|suffix| lower.strip_suffix(suffix)) {
        Some(amount) => (amount, "/s"),
        None => (lower.as_str(), ""),
    };
    // The letter of the unit itself, in its own case.
    let letter = name.replace([' ', '_', '-'], "").chars().nth(amount.chars().count().saturating_sub(1));
    let (prefix, bytes) = if let Some(prefix) = amount.strip_suffix("bytes").or(amount.strip_suffix("byte")) {
        (prefix, true)
    } else if let Some(prefix) = amount.strip_suffix("bits").or(amount.strip_suffix("bit")) {
        (prefix, false)
    } else {
        (amount.strip_suffix('b')?, letter == Some('B') && !(shouted && per == "/s"))
    };
    let prefix = match prefix {
        "" => "",
        "k" | "kilo" => "k",
        "m" | "mega" => "M",
        "g" | "giga" => "G",
        _ => return None,
    };
    Some(format!("{prefix}{}{per}", if bytes { "B" } else { "b" }))
}

#[cfg(test)]
mod tests {
    use super::{RateUnit, TimeUnit};

    #[test]
    fn units_are_read_in_their_usual_spellings() {
        for (names, unit) in [
            (
                &["Mbps", "mbps", "Mb/s", "Mbit/s", "Mbits/sec", "MBPS", "megabits per second", "mbit_per_s"]
                    [..],
                "Mb/s",
            ),
            (&["kbps", "Kbps", "kb/s", "KBPS", "kbit/s", "kilobits_per_second"], "kb/s"),
            (&["bps", "b/s", "bits_per_second", "bit/s"], "b/s"),
            (&["Gbps", "gbit/s"], "Gb/s"),
            (&["MBps", "MB/s", "MBytes/sec", "megabytes per second"], "MB/s"),
            (&["kB/s", "KB/s", "kBps"], "kB/s"),
            (&["Bps", "B/s", "bytes_per_sec"], "B/s"),
            (&["bytes", "B", "Byte"], "bytes"),
        ] {
            for name in names {
                assert_eq!(
                    RateUnit::named(name).map(|unit| unit.to_string()).as_deref(),
                    Some(unit),
                    "{name}"
                );
            }
        }
        for name in ["steps", "bits", "b", "rate", "", "ps", "/s", "MHz", "dB", "xb/s"] {
            assert_eq!(RateUnit::named(name), None, "{name}");
        }
        assert_eq!("usec".parse(), Ok(TimeUnit::Microsecond));
        assert!("weeks".parse::<TimeUnit>().is_err() && "furlongs".parse::<RateUnit>().is_err());
    }
}
