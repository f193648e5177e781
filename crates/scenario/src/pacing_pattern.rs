//! Key `tcp.pacing_pattern`: the TDD pattern that senders know.

use paceline_net::SlotPattern;
use paceline_net::tdd::PatternError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Source of the pattern for `tcp.pacing`.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PacingPattern {
    /// The period is learned from ACKs.
    #[default]
    Learned,
    /// The slots of the scenario's cell.
    Cell,
    /// These slots; the text and the pattern.
    Slots(String, SlotPattern),
}

impl fmt::Display for PacingPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Learned => "learned",
            Self::Cell => "cell",
            Self::Slots(text, _) => text,
        })
    }
}

impl From<PacingPattern> for String {
    fn from(pattern: PacingPattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for PacingPattern {
    type Error = PatternError;
    fn try_from(text: String) -> Result<Self, PatternError> {
        match text.as_str() {
            "learned" => Ok(Self::Learned),
            "cell" => Ok(Self::Cell),
            _ => SlotPattern::from_carrier(&text).map(|slots| Self::Slots(text, slots)),
        }
    }
}

impl JsonSchema for PacingPattern {
    fn schema_name() -> Cow<'static, str> {
        "PacingPattern".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "const": "learned", "description": "The period is learned from ACKs." },
            { "type": "string", "const": "cell", "description": "The slots of the scenario's cell; in FDD as `learned`." },
            { "type": "string", "title": "slots", "description": "Such as `DDDSU/30kHz` or `DDDDDDDSUU 6:4:4/30kHz`: slots, symbols of special slots if not 10:2:2, subcarrier spacing." },
        ] })
    }
}
