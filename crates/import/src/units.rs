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

/// The units by definition (SI, and IEC 80000-13 for powers of 1024), with their names in output. A user's or
/// a column's name is compared after [`normal`].
const UNITS: [(&str, RateUnit); 24] = {
    use RateUnit::{Amount, Rate};
    [
        ("b/s", Rate(1.0, "b/s")),
        ("kb/s", Rate(1e3, "kb/s")),
        ("Mb/s", Rate(1e6, "Mb/s")),
        ("Gb/s", Rate(1e9, "Gb/s")),
        ("Kib/s", Rate(1024.0, "Kibit/s")),
        ("Mib/s", Rate(1_048_576.0, "Mibit/s")),
        ("Gib/s", Rate(1_073_741_824.0, "Gibit/s")),
        ("B/s", Rate(8.0, "B/s")),
        ("kB/s", Rate(8e3, "kB/s")),
        ("MB/s", Rate(8e6, "MB/s")),
        ("GB/s", Rate(8e9, "GB/s")),
        ("KiB/s", Rate(8192.0, "KiB/s")),
        ("MiB/s", Rate(8_388_608.0, "MiB/s")),
        ("GiB/s", Rate(8_589_934_592.0, "GiB/s")),
        ("B", Amount(1.0, "bytes")),
        ("kB", Amount(1e3, "kB")),
        ("MB", Amount(1e6, "MB")),
        ("GB", Amount(1e9, "GB")),
        ("KiB", Amount(1024.0, "KiB")),
        ("MiB", Amount(1_048_576.0, "MiB")),
        ("GiB", Amount(1_073_741_824.0, "GiB")),
        ("packets", Amount(PACKET_BYTES, PACKETS)),
        ("packets/s", Rate(8.0 * PACKET_BYTES, "packets of 1504 bytes per second")),
        ("kpackets/s", Rate(8e3 * PACKET_BYTES, "thousands of packets of 1504 bytes per second")),
    ]
};
/// Bytes of a packet, where a file counts packets. Must match [`paceline_net::trace::OPPORTUNITY_BYTES`].
const PACKET_BYTES: f64 = 1504.0;
const PACKETS: &str = "packets of 1504 bytes";

impl RateUnit {
    /// The unit of this name, such as `Mbps`, `kbit/s`, `MBytes/sec`, `bits_per_second` or `bytes`.
    pub fn named(name: &str) -> Option<Self> {
        let normal = normal(name)?;
        UNITS.iter().find(|(known, _)| *known == normal).map(|(_, unit)| *unit)
    }
    /// Whether it counts packets, whose size is not known.
    pub fn is_packets(self) -> bool {
        matches!(self, Self::Amount(_, name) | Self::Rate(_, name) if name.contains(PACKETS))
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

/// Ends of names for "per second", joined to the unit.
const PER_SECOND: [&str; 9] =
    ["perseconds", "persecond", "persecs", "persec", "pers", "/second", "/sec", "/s", "ps"];
/// Words for "per second" behind a separator: `bytes_sec`, `kbit s`, `MB.s`, `Mbit s-1`.
const SECONDS: [&str; 6] = ["second", "seconds", "sec", "secs", "s", "s-1"];

/// Marks between the words of a unit. Chosen: those of names of columns, also of R's.
const SEPARATORS: [char; 4] = [' ', '_', '-', '.'];

/// A unit's name in the form of [`UNITS`].
fn normal(name: &str) -> Option<String> {
    let name = name.trim_matches(|c: char| c == '.' || c == '_' || c.is_whitespace());
    // `s^-1` and `s⁻¹`
    let name = name.replace("⁻¹", "-1").replace('^', "");
    let lower = name.to_lowercase();
    let apart = SECONDS.iter().find_map(|word| {
        let unit = lower.strip_suffix(word)?.strip_suffix(SEPARATORS)?;
        Some(unit.trim_end_matches(SEPARATORS).len())
    });
    let joined = |text: &str| text.replace(SEPARATORS, "");
    let whole = joined(&lower);
    // "KBPS" and "MBPS" are written for bits too often to be read as bytes.
    let shouted = name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase());
    let (amount, per) = match (apart, PER_SECOND.iter().find_map(|suffix| whole.strip_suffix(suffix))) {
        (_, Some(amount)) if !amount.is_empty() => (amount.to_owned(), "/s"),
        (Some(at), _) => (joined(&lower[..at]), "/s"),
        _ => (whole.clone(), ""),
    };
    if ["packets", "packet", "pkts", "pkt", "pck", "opportunities"].contains(&amount.as_str()) {
        return Some(format!("packets{per}"));
    }
    if per == "/s" && amount == "p" {
        return Some("packets/s".into());
    }
    if ["kpkts", "kp"].contains(&amount.as_str()) {
        return Some(format!("kpackets{per}"));
    }
    // The letter of the unit itself, in its own case.
    let letter = joined(&name).chars().nth(amount.chars().count().saturating_sub(1));
    let word = |words: &[&str]| words.iter().find_map(|word| amount.strip_suffix(word));
    let (prefix, bytes) = if let Some(prefix) = word(&["bytes", "byte", "octets", "octet"]) {
        (prefix, true)
    } else if let Some(prefix) = word(&["bits", "bit"]) {
        (prefix, false)
    } else {
        (amount.strip_suffix('b')?, letter == Some('B') && !(shouted && per == "/s"))
    };
    let prefix = match prefix {
        "" => "",
        "k" | "kilo" => "k",
        "m" | "mega" => "M",
        "g" | "giga" => "G",
        "ki" | "kibi" => "Ki",
        "mi" | "mebi" => "Mi",
        "gi" | "gibi" => "Gi",
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
            (
                &["Bps", "B/s", "bytes_per_sec", "bytes_sec", "bytes_s", "Bytes.s.", "octets per second"],
                "B/s",
            ),
            (&["bytes", "B", "Byte", "Octets"], "bytes"),
            (&["bits_sec", "bit s-1"], "b/s"),
            (&["kbytes_sec"], "kB/s"),
            (&["Mbit_s", "Mb s^-1", "mbits.sec"], "Mb/s"),
            (&["KiB/s", "kiB/s", "KiBps", "kibibytes/s"], "KiB/s"),
            (&["MiB/s", "MiBps", "mebibytes per second"], "MiB/s"),
            (&["GiB/s"], "GiB/s"),
            (&["Kibit/s", "Kib/s", "Kibps"], "Kibit/s"),
            (&["Mibit/s", "Mibits/sec", "Mib/s", "mebibit_s"], "Mibit/s"),
            (&["Gibit/s"], "Gibit/s"),
            (&["MiB", "mebibytes"], "MiB"),
        ] {
            for name in names {
                assert_eq!(
                    RateUnit::named(name).map(|unit| unit.to_string()).as_deref(),
                    Some(unit),
                    "{name}"
                );
            }
        }
        for name in [
            "steps", "bits", "b", "rate", "", "ps", "/s", "MHz", "dB", "xb/s", "m/s", "km/h", "s", "sec",
            "_s",
        ] {
            assert_eq!(RateUnit::named(name), None, "{name}");
        }
        assert_eq!("usec".parse(), Ok(TimeUnit::Microsecond));
        assert!("weeks".parse::<TimeUnit>().is_err() && "furlongs".parse::<RateUnit>().is_err());
    }
}
