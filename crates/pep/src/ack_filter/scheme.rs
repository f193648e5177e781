//! The schemes of the ACK filter and their names in a scenario file. All but `safe` are those of Ohta et al.
//! (IEEE CSCN 2018); docs/ack-filter.md has their formulas.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The threshold that Ohta et al. found best as one value for a whole cell.
const BEST_SINGLE_THRESHOLD: u32 = 6;

/// Which ACKs a filter discards, and when.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scheme {
    /// None: a plain drop-tail queue.
    Basic,
    /// At each grant, the oldest `ratio` share of the ACKs that do not fit into it.
    Passive {
        /// The share, 0 to 1; 1 is the published "Granted ACK".
        ratio: f64,
    },
    /// At each arrival, all but the newest `threshold` ACKs of the connection.
    Active {
        /// ACKs that stay, at least 1; 1 is the published "Highest ACK".
        threshold: u32,
    },
    /// `Active` at arrivals, then `Passive` with ratio 1 at grants.
    Hybrid {
        /// ACKs that stay at an arrival, at least 1.
        threshold: u32,
    },
    /// `Hybrid` with a threshold that follows the mean transport block in the other direction.
    HybridOpt,
    /// At each arrival, the older ACKs that the safety rules for live traffic allow to discard.
    Safe,
}

/// The error for a text that names no scheme.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{text}` is not an ACK filter scheme{why}: allowed are basic, passive(RATIO) with RATIO from 0 to 1, \
     granted (= passive(1)), active(T) with T from 1 to 4294967295, highest (= active(1)), hybrid(T) with T from \
     1 to 4294967295, hybrid (= hybrid(6)), hybrid-opt and safe"
)]
pub struct ParseSchemeError {
    text: String,
    why: &'static str,
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Self, ParseSchemeError> {
        let error = |why| ParseSchemeError { text: text.to_owned(), why };
        let threshold = |argument: &str| match argument.trim().parse::<u32>() {
            Ok(threshold) if threshold >= 1 => Ok(threshold),
            _ => Err(error(" (T is out of range)")),
        };
        let trimmed = text.trim();
        let (name, argument) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((name, rest)) => {
                let argument = rest.strip_suffix(')').ok_or_else(|| error(" (no closing parenthesis)"))?;
                (name.trim_end(), Some(argument))
            }
        };
        match (name, argument) {
            ("basic", None) => Ok(Self::Basic),
            ("granted", None) => Ok(Self::Passive { ratio: 1.0 }),
            ("highest", None) => Ok(Self::Active { threshold: 1 }),
            ("hybrid", None) => Ok(Self::Hybrid { threshold: BEST_SINGLE_THRESHOLD }),
            ("hybrid-opt", None) => Ok(Self::HybridOpt),
            ("hybrid", Some(argument)) if argument.trim() == "opt" => Ok(Self::HybridOpt),
            ("safe", None) => Ok(Self::Safe),
            ("passive", Some(argument)) => match argument.trim().parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Self::Passive { ratio }),
                _ => Err(error(" (RATIO is out of range)")),
            },
            ("active", Some(argument)) => Ok(Self::Active { threshold: threshold(argument)? }),
            ("hybrid", Some(argument)) => Ok(Self::Hybrid { threshold: threshold(argument)? }),
            _ => Err(error("")),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic => f.write_str("basic"),
            Self::Passive { ratio: 1.0 } => f.write_str("granted"),
            Self::Passive { ratio } => write!(f, "passive({ratio})"),
            Self::Active { threshold: 1 } => f.write_str("highest"),
            Self::Active { threshold } => write!(f, "active({threshold})"),
            Self::Hybrid { threshold } => write!(f, "hybrid({threshold})"),
            Self::HybridOpt => f.write_str("hybrid-opt"),
            Self::Safe => f.write_str("safe"),
        }
    }
}

impl TryFrom<String> for Scheme {
    type Error = ParseSchemeError;
    fn try_from(text: String) -> Result<Self, ParseSchemeError> {
        text.parse()
    }
}

impl From<Scheme> for String {
    fn from(scheme: Scheme) -> Self {
        scheme.to_string()
    }
}

impl JsonSchema for Scheme {
    fn schema_name() -> Cow<'static, str> {
        "Scheme".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |name: &str, meaning: &str| json_schema!({ "const": name, "description": meaning });
        let with = |form: &str, pattern: &str, meaning: &str| json_schema!({ "title": form, "pattern": pattern, "description": meaning });
        json_schema!({ "type": "string", "anyOf": [
            word("basic", "No filter: a drop-tail queue."),
            with("passive(RATIO)", r"^passive\s*\(\s*(0(\.[0-9]+)?|1(\.0+)?)\s*\)$", "At each grant the oldest \
                RATIO (0 to 1) of the ACKs that do not fit into it are discarded."),
            word("granted", "As `passive(1)`: the published \"Granted ACK\"."),
            with("active(T)", r"^active\s*\(\s*[1-9][0-9]*\s*\)$", "At each arrival all but the newest T ACKs of the \
                connection are discarded."),
            word("highest", "As `active(1)`: the published \"Highest ACK\"."),
            with("hybrid(T)", r"^hybrid(\s*\(\s*([1-9][0-9]*|opt)\s*\))?$", &format!("`active(T)` at arrivals and \
                `granted` at grants; without (T), T is {BEST_SINGLE_THRESHOLD}.")),
            word("hybrid-opt", "`hybrid(T)` with T by the mean downlink transport block."),
            word("safe", "At arrivals, with the rules for live traffic."),
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_and_prints() {
        for (text, scheme, shown) in [
            ("basic", Scheme::Basic, "basic"),
            ("passive(0.6667)", Scheme::Passive { ratio: 0.6667 }, "passive(0.6667)"),
            ("granted", Scheme::Passive { ratio: 1.0 }, "granted"),
            ("passive(1)", Scheme::Passive { ratio: 1.0 }, "granted"),
            ("active(6)", Scheme::Active { threshold: 6 }, "active(6)"),
            ("highest", Scheme::Active { threshold: 1 }, "highest"),
            ("hybrid(9)", Scheme::Hybrid { threshold: 9 }, "hybrid(9)"),
            ("hybrid", Scheme::Hybrid { threshold: 6 }, "hybrid(6)"),
            ("hybrid-opt", Scheme::HybridOpt, "hybrid-opt"),
            ("hybrid(opt)", Scheme::HybridOpt, "hybrid-opt"),
            (" safe ", Scheme::Safe, "safe"),
        ] {
            assert_eq!(text.parse(), Ok(scheme));
            assert_eq!(scheme.to_string(), shown);
            assert_eq!(shown.parse(), Ok(scheme));
            let json = serde_json::to_string(&scheme).unwrap();
            assert_eq!(json, format!("\"{shown}\""));
            assert_eq!(serde_json::from_str::<Scheme>(&json).unwrap(), scheme);
        }
    }

    #[test]
    fn errors_list_the_allowed_names() {
        for text in [
            "",
            "Basic",
            "passive",
            "passive()",
            "passive(1.01)",
            "passive(-0.1)",
            "passive(NaN)",
            "passive(inf)",
            "active",
            "active(0)",
            "active(1.5)",
            "active(4294967296)",
            "hybrid(0)",
            "hybrid(6",
            "safe(1)",
        ] {
            let error = text.parse::<Scheme>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains("RATIO from 0 to 1") && error.contains("T from 1 to"), "{error}");
            assert!(serde_json::from_str::<Scheme>(&format!("\"{text}\"")).is_err());
        }
    }
}
