//! A SINR in a scenario: one value (`"15 dB"`), or a range from which each station draws (`["5 dB", "20 dB"]`).

use paceline_net::Stream;
use paceline_net::units::Db;
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One value or a uniform range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SinrRange {
    /// Lower end.
    pub low: Db,
    /// Upper end, equal to the lower one for a fixed value.
    pub high: Db,
}

impl SinrRange {
    /// A fixed value.
    pub const fn fixed(db: f64) -> Self {
        Self { low: Db(db), high: Db(db) }
    }
    /// One station's value in dB.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        if self.low == self.high { self.low.0 } else { stream.uniform_in(self.low.0, self.high.0) }
    }
}

impl fmt::Display for SinrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "\"{}\"", self.low)
        } else {
            write!(f, "[\"{}\", \"{}\"]", self.low, self.high)
        }
    }
}

impl Serialize for SinrRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.low == self.high {
            return self.low.serialize(serializer);
        }
        let mut seq = serializer.serialize_seq(Some(2))?;
        seq.serialize_element(&self.low)?;
        seq.serialize_element(&self.high)?;
        seq.end()
    }
}

impl<'de> Deserialize<'de> for SinrRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrTwo;
        impl<'de> Visitor<'de> for OneOrTwo {
            type Value = SinrRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"15 dB\", or a range such as [\"5 dB\", \"20 dB\"]")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<SinrRange, E> {
                let db: Db = text.parse().map_err(E::custom)?;
                Ok(SinrRange { low: db, high: db })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SinrRange, A::Error> {
                let low = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let high = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &self))?;
                if seq.next_element::<Db>()?.is_some() {
                    return Err(de::Error::invalid_length(3, &self));
                }
                Ok(SinrRange { low, high })
            }
        }
        deserializer.deserialize_any(OneOrTwo)
    }
}
