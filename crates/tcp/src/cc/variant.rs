//! The names of the congestion controls, as in Linux or in the literature.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A congestion control algorithm by name.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Jacobson 1988: slow start after every loss.
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582; the window is that of `reno`.
    NewReno,
    /// Casetti and others 2001: bandwidth sampled per ACK.
    Westwood,
    /// Westwood with a filter of constant gain; an ACK of the same instant as the last one is a sample of
    /// zero.
    #[serde(rename = "westwood-zero")]
    WestwoodZero,
    /// Grieco and Mascolo 2004: sampled per round trip, as Linux `westwood`.
    #[serde(rename = "westwood+")]
    WestwoodPlus,
    /// Fu and Liew 2003, as Linux `veno`.
    Veno,
    /// Brakmo and others 1994, as Linux `vegas`.
    Vegas,
    /// Liu and others 2008, as Linux `illinois`.
    Illinois,
    /// RFC 9438, as Linux `cubic`.
    #[default]
    Cubic,
    /// BBR version 1, as Linux `bbr`.
    Bbr,
    /// BBR version 3, draft-ietf-ccwg-bbr.
    Bbr3,
    /// RFC 8257, as Linux `dctcp`.
    Dctcp,
    /// A reaction to marks like TCP Prague's.
    Prague,
    /// Window and pacing rate are set by [`crate::Endpoint::set_external`]. Not in scenarios, whose senders
    /// have nobody to set them.
    #[serde(skip)]
    External,
}

impl Variant {
    /// Every variant that a scenario can name.
    pub const ALL: [Self; 14] = [
        Self::Tahoe,
        Self::Reno,
        Self::NewReno,
        Self::Westwood,
        Self::WestwoodZero,
        Self::WestwoodPlus,
        Self::Veno,
        Self::Vegas,
        Self::Illinois,
        Self::Cubic,
        Self::Bbr,
        Self::Bbr3,
        Self::Dctcp,
        Self::Prague,
    ];

    /// The name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Westwood => "westwood",
            Self::WestwoodZero => "westwood-zero",
            Self::WestwoodPlus => "westwood+",
            Self::Veno => "veno",
            Self::Vegas => "vegas",
            Self::Illinois => "illinois",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Bbr3 => "bbr3",
            Self::Dctcp => "dctcp",
            Self::Prague => "prague",
            Self::External => "external",
        }
    }
    /// The name of the same algorithm in mainline Linux; `None` if it has none. Its `westwood` is Westwood+.
    pub const fn linux_name(self) -> Option<&'static str> {
        match self {
            Self::Reno | Self::NewReno => Some("reno"),
            Self::WestwoodPlus => Some("westwood"),
            Self::Tahoe | Self::Westwood | Self::WestwoodZero | Self::Bbr3 | Self::Prague => None,
            Self::External => None,
            _ => Some(self.name()),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of a congestion control.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a congestion control: write one of {list}", list = Variant::ALL.map(Variant::name).join(", "))]
pub struct ParseVariantError(String);

impl FromStr for Variant {
    type Err = ParseVariantError;
    fn from_str(text: &str) -> Result<Self, ParseVariantError> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == text);
        found.ok_or_else(|| ParseVariantError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_refused_with_the_list() {
        for variant in Variant::ALL {
            assert_eq!(variant.to_string().parse(), Ok(variant));
        }
        let error = "vegas2".parse::<Variant>().unwrap_err().to_string();
        assert!(
            error.contains("newreno, westwood, westwood-zero, westwood+") && error.ends_with("dctcp, prague"),
            "{error}"
        );
    }
}
