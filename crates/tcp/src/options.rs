//! The mechanisms that an endpoint may have or lack, by the names that scenario files use.

use paceline_net::{Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How losses are told and repaired. Without SACK on the connection, `sack` and `rack` work as `newreno`, as in Linux.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossRecovery {
    /// 4.3BSD Tahoe: the third duplicate ACK starts a slow start from one segment.
    Tahoe,
    /// RFC 5681 §3.2: fast recovery ends at the first ACK that advances.
    Reno,
    /// RFC 6582: a partial ACK tells the next hole.
    #[serde(rename = "newreno")]
    NewReno,
    /// RFC 6675: three segments' worth sacked above a hole tell its loss.
    Sack,
    /// RFC 8985: what was sent a reordering window before something delivered is lost.
    #[default]
    Rack,
}

impl LossRecovery {
    /// Whether it makes use of SACK blocks.
    pub const fn uses_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// What partial ACKs do to the retransmission timer (RFC 6582 §4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoTimer {
    /// Only the first one of a recovery restarts it: with many losses the timer takes over.
    Impatient,
    /// Each one restarts it: one hole is repaired per round trip, however many there are. Linux.
    #[default]
    SlowButSteady,
}

/// The window during fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrrMode {
    /// The threshold from the start (RFC 6675 §5, RFC 5681): half a window passes in silence.
    Off,
    /// RFC 6937 with the conservative reduction bound.
    Rfc6937Crb,
    /// RFC 6937 with the slow start reduction bound.
    Rfc6937Ssrb,
    /// RFC 9937: the conservative bound while more is lost, the slow start bound while ACKs advance. Linux.
    #[default]
    Rfc9937,
}

/// How the retransmission timeout follows from the round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoStyle {
    /// The variance has the floor and decays once per round trip: never less than SRTT and the floor.
    #[default]
    Linux,
    /// RFC 6298 §2: SRTT + max(G, 4 RTTVAR), and the floor on the whole.
    Rfc6298,
}

/// Small segments while others are outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// They leave at once (TCP_NODELAY).
    Off,
    /// They wait until everything is acknowledged (RFC 896).
    Rfc896,
    /// They wait while another small one is outstanding (Minshall). Linux.
    #[default]
    Minshall,
}

/// Segments that reach beyond the advertised window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondWindow {
    /// Accepted whole if they begin inside. Linux before 6.17.
    Accept,
    /// Refused unless the application has read everything. Linux since 6.17.
    #[default]
    Drop,
}

/// Explicit Congestion Notification (RFC 3168), by the values of Linux's `tcp_ecn`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// Neither asked for nor accepted: `tcp_ecn = 0`.
    Off,
    /// Asked for by an active opener, accepted by a passive one: `tcp_ecn = 1`.
    On,
    /// Accepted only: `tcp_ecn = 2`, the default of Linux.
    #[default]
    Passive,
}

/// Spacing of segments, for the controls that have no rate of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pacing {
    /// Bursts as the window allows: Linux without the `fq` queueing discipline.
    #[default]
    None,
    /// As Linux: twice cwnd/SRTT while the window is below half the threshold, 1.2 times above; the first ten
    /// segments are not paced.
    Linux,
    /// At this rate.
    External(Rate),
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Linux => f.write_str("linux"),
            Self::External(rate) => rate.fmt(f),
        }
    }
}

/// Why a pacing was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no pacing: write none, linux, or a rate such as \"10 Mb/s\"")]
pub struct ParsePacingError(String);

impl From<Pacing> for String {
    fn from(pacing: Pacing) -> Self {
        pacing.to_string()
    }
}

impl TryFrom<String> for Pacing {
    type Error = ParsePacingError;
    fn try_from(text: String) -> Result<Self, ParsePacingError> {
        text.parse()
    }
}

impl FromStr for Pacing {
    type Err = ParsePacingError;
    fn from_str(text: &str) -> Result<Self, ParsePacingError> {
        match text {
            "none" => Ok(Self::None),
            "linux" => Ok(Self::Linux),
            _ => text.parse().map(Self::External).map_err(|_| ParsePacingError(text.to_owned())),
        }
    }
}

impl JsonSchema for Pacing {
    fn schema_name() -> Cow<'static, str> {
        "Pacing".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut rate = Rate::json_schema(generator);
        rate.insert("title".into(), "a bit rate".into());
        rate.insert("description".into(), "At this rate.".into());
        json_schema!({ "anyOf": [
            { "type": "string", "const": "none", "description": "As fast as the window allows, in bursts." },
            { "type": "string", "const": "linux", "description": "At the rate that Linux derives from window and RTT." },
            rate,
        ] })
    }
}

/// Probes of a connection on which nothing is sent (RFC 9293 §3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keepalive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Distance of further probes while no answer comes.
    pub interval: Duration,
    /// Unanswered probes that end the connection.
    pub probes: u32,
}

impl Default for Keepalive {
    /// Linux: two hours, 75 s, nine.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Duplicate ACKs that the receiver merges, as Linux does (`tcp_comp_sack_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackCompression {
    /// Longest wait; no more than a twentieth of the RTT either.
    pub delay: Duration,
    /// Grain of the timer, on top.
    pub slack: Duration,
    /// Most ACKs merged into one.
    pub count: u32,
}

impl Default for SackCompression {
    fn default() -> Self {
        Self { delay: Duration::from_millis(1), slack: Duration::from_micros(100), count: 44 }
    }
}

/// ACKs thinned out below TCP, as modems and Wi-Fi drivers do: the endpoint's own rules are untouched, and of the
/// pure ACKs that it sends only the newest leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StretchAck {
    /// Full segments of progress that let an ACK go.
    pub segments: u32,
    /// Longest time for which one is held.
    pub timeout: Duration,
    /// Whether duplicate ACKs and ACKs with SACK blocks are held and merged too; otherwise they leave at once.
    pub hold_duplicates: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_is_a_word_or_a_rate() {
        for text in ["none", "linux", "10 Mb/s"] {
            assert_eq!(text.parse::<Pacing>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Pacing>().unwrap_err().to_string().contains("none, linux"));
    }
}
