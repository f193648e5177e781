//! Key `cell.pattern`: the slots of a TDD carrier of NR.

use crate::limits::Problem;
use paceline_net::tdd::{CommonPattern, PatternError};
use paceline_net::{Duration, SlotPattern};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The slots of one period of TDD.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// One letter per slot, then the symbols of the special slots.
    Letters(String),
    /// The numbers of tdd-UL-DL-ConfigurationCommon: one period or two.
    Common(Vec<CommonPeriod>),
}

/// One period of tdd-UL-DL-ConfigurationCommon (TS 38.331 §6.3.2).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommonPeriod {
    /// dl-UL-TransmissionPeriodicity.
    pub period: Duration,
    /// nrofDownlinkSlots.
    pub downlink_slots: u8,
    /// nrofDownlinkSymbols.
    pub downlink_symbols: u8,
    /// nrofUplinkSlots.
    pub uplink_slots: u8,
    /// nrofUplinkSymbols.
    pub uplink_symbols: u8,
}

impl Pattern {
    /// The slots of the pattern at a numerology.
    pub(super) fn slots(&self, numerology: u8) -> Result<SlotPattern, Problem> {
        let slots = match self {
            Self::Letters(letters) => SlotPattern::from_letters(letters, numerology),
            Self::Common(periods) => {
                let mut parts = periods.iter().map(CommonPeriod::of_standard);
                let (Some(first), second, None) = (parts.next(), parts.next(), parts.next()) else {
                    let periods = format!("{} periods", periods.len());
                    let reason = "one or two are allowed (TS 38.331 TDD-UL-DL-ConfigCommon)";
                    return Err(Problem::because("cell.pattern", periods, reason));
                };
                SlotPattern::from_common(numerology, first, second)
            }
        };
        slots.map_err(|error: PatternError| Problem::because("cell.pattern", self.to_string(), error))
    }
}

impl CommonPeriod {
    fn of_standard(&self) -> CommonPattern {
        CommonPattern {
            period: self.period,
            down_slots: self.downlink_slots,
            down_symbols: self.downlink_symbols,
            up_slots: self.uplink_slots,
            up_symbols: self.uplink_symbols,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Letters(letters) => write!(f, "{letters:?}"),
            Self::Common(periods) => {
                let texts: Vec<String> = periods
                    .iter()
                    .map(|part| format!("{{ period = \"{}\", {} }}", part.period, part.of_standard()))
                    .collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Letters(letters) => letters.serialize(serializer),
            Self::Common(periods) => periods.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Pattern;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"DDDSU\", \"DDDSU 10:2:2\", a table with period, downlink_slots, downlink_symbols, ",
                )?;
                f.write_str("uplink_slots and uplink_symbols, or an array of two such tables")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pattern, E> {
                Ok(Pattern::Letters(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pattern, A::Error> {
                let period = CommonPeriod::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Pattern::Common(vec![period]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Pattern, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Pattern::Common)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let period = generator.subschema_for::<CommonPeriod>();
        let periods = json_schema!({ "type": "array", "items": period, "minItems": 1, "maxItems": 2 });
        let kind = "a string, a table or an array of two";
        json_schema!({ "anyOf": [{ "type": "string" }, period, periods], "x-quantity": kind })
    }
}
