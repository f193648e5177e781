//! Keys `tcp.pacing_pattern` and `tcp.pacing_phase`: what senders know of the TDD cell on their path.

use super::{Scenario, Tcp};
use paceline_net::pacing::Hint;
use paceline_net::tdd::PatternError;
use paceline_net::{Bytes, Duration, Instant, SlotPattern};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Headers of a segment: IPv4 (RFC 791) and TCP with timestamps (RFC 7323).
const HEADERS: Bytes = Bytes(20 + 32);

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
            { "type": "string", "title": "slots", "description": "Such as `DDDSU/30kHz` or `DDDDDDDSUU 6:4:4/30kHz`: slots, symbols of the special slots if they are not 10:2:2, subcarrier spacing." },
        ] })
    }
}

impl Scenario {
    /// What a server with this table knows of the cell.
    pub(crate) fn pacing_hint(&self, tcp: &Tcp) -> Hint {
        let pattern = match &tcp.pacing_pattern {
            PacingPattern::Learned => None,
            PacingPattern::Cell if self.link.is_some() => None,
            PacingPattern::Cell => self.cell_plan().pattern().cloned(),
            PacingPattern::Slots(_, slots) => Some(slots.clone()),
        };
        let Some(pattern) = pattern else { return Hint::None };
        let computed = || {
            let period = pattern.period().as_nanos();
            let hops = self.core.hops.iter();
            let way = hops.fold(Duration::ZERO, |way, hop| {
                way + hop.delay + hop.rate.time_to_send(tcp.segment_size + HEADERS)
            });
            Duration::from_nanos(period - way.as_nanos() % period)
        };
        let phase = Instant::ZERO + tcp.pacing_phase.unwrap_or_else(computed);
        Hint::Pattern { pattern, phase, error: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::load;
    use paceline_net::pacing::Hint;
    use paceline_net::{Duration, Instant};

    const CELL: &str = "[core]\nhops = [{ rate = \"10 Gb/s\", delay = \"2 ms\" }]\n[cell]\nrat = \"nr\"\n\
        pattern = \"DDDSU\"\nbandwidth = \"20 MHz\"\n[[station]]\n";

    fn hint(set: &[&str]) -> Hint {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let scenario = load("cell.toml", CELL, &set).unwrap();
        assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        scenario.pacing_hint(&scenario.tcp)
    }

    #[test]
    fn the_phase_follows_from_the_wired_path_and_a_given_one_goes_before_it() {
        assert_eq!(hint(&[]), Hint::None);
        let Hint::Pattern { pattern, phase, error } = hint(&["tcp.pacing_pattern=cell"]) else { panic!() };
        assert_eq!((pattern.to_string().as_str(), error), ("DDDSU 10:2:2", Duration::ZERO));
        // 1,500 bytes take 1.2 us; 2.0012 ms after the start of a period one begins at the cell.
        assert_eq!(phase, Instant::from_nanos(500_000 - 1200));
        let set = ["tcp.pacing_pattern=DDSUU 6:4:4/30kHz", "tcp.pacing_phase=1 ms"];
        let Hint::Pattern { pattern, phase, .. } = hint(&set) else { panic!() };
        assert_eq!((pattern.to_string().as_str(), phase), ("DDSUU 6:4:4", Instant::from_millis(1)));
        let error = load("cell.toml", CELL, &["tcp.pacing_pattern=DDDSU".into()]).unwrap_err().to_string();
        assert!(error.contains("tcp.pacing_pattern") && error.contains("DDDSU/30kHz"), "{error}");
    }
}
