//! The values of the mechanisms in [`EndpointConfig`](crate::EndpointConfig), by the names that scenario
//! files use.

use paceline_net::{Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Detection and repair of losses. Without SACK on the connection, `sack` and `rack` work as `newreno`, as in
/// Linux.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossRecovery {
    /// 4.3BSD Tahoe: the third duplicate ACK starts a slow start.
    Tahoe,
    /// RFC 5681 §3.2: fast recovery ends at the first ACK that advances.
    Reno,
    /// RFC 6582: a partial ACK indicates the next hole.
    #[serde(rename = "newreno")]
    NewReno,
    /// RFC 6675: three sacked segments above a hole indicate its loss.
    Sack,
    /// RFC 8985: a segment sent a reordering window before a delivered one is lost.
    #[default]
    Rack,
}

impl LossRecovery {
    /// Whether SACK blocks are used.
    pub const fn uses_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// Whether partial ACKs restart the retransmission timer (RFC 6582 §4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoTimer {
    /// Only the first partial ACK restarts the timer, which expires if many segments were lost.
    Impatient,
    /// Every partial ACK restarts the timer: one hole per round trip. Linux.
    #[default]
    SlowButSteady,
}

/// Proportional rate reduction: the window during fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrrMode {
    /// The window is ssthresh from the start (RFC 6675 §5, RFC 5681 §3.2).
    Off,
    /// RFC 6937 with the conservative reduction bound.
    Rfc6937Crb,
    /// RFC 6937 with the slow start reduction bound.
    Rfc6937Ssrb,
    /// RFC 9937: the slow start bound for ACKs that advance without further loss, else the conservative one.
    /// Linux.
    #[default]
    Rfc9937,
}

/// Computation of the retransmission timeout from round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoStyle {
    /// At least SRTT plus the minimum; the variance term decays once per round trip.
    #[default]
    Linux,
    /// SRTT + max(G, 4 RTTVAR), at least the minimum (RFC 6298 §2).
    Rfc6298,
}

/// The Nagle algorithm: small segments while others are outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// Small segments leave at once (TCP_NODELAY).
    Off,
    /// Small segments wait until everything is acknowledged (RFC 896).
    Rfc896,
    /// Small segments wait for another small one (Minshall's variant). Linux.
    #[default]
    Minshall,
}

/// Treatment of segments that extend beyond the advertised window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondWindow {
    /// Accepted whole if they begin inside the window. Linux before 6.17.
    Accept,
    /// Dropped unless the application has read everything. Linux since 6.17.
    #[default]
    Drop,
}

/// Explicit Congestion Notification (RFC 3168), by the values of Linux's `tcp_ecn`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// Neither requested nor accepted: `tcp_ecn = 0`.
    Off,
    /// Requested and accepted: `tcp_ecn = 1`.
    On,
    /// Accepted only: `tcp_ecn = 2`, the default of Linux.
    #[default]
    Passive,
}

/// Pacing of segments, for congestion controls without a rate of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pacing {
    /// Bursts as the window allows: Linux without the `fq` queueing discipline.
    #[default]
    None,
    /// As Linux: 200% of cwnd/SRTT while the window is below half of ssthresh, 120% above; the first ten
    /// segments are not paced. The segments of a millisecond leave together, as with segmentation offload
    /// (`tcp_tso_autosize`).
    Linux,
    /// The same rate, one segment at a time.
    LinuxPerSegment,
    /// As [`Self::LinuxPerSegment`] at the mean, for the slots of a TDD cell: no segment waits for longer
    /// than the period, and where slots and phase are known and the queue is shallow, segments leave so that
    /// they meet downlink slots.
    Tdd,
    /// The segments that a bunch of ACKs allows are spread over the time to the next bunch, the period of a
    /// TDD cell (Sawabe, Shinohara and Iwai, CCNC 2024, by its abstract); without a period as
    /// [`Self::LinuxPerSegment`].
    TddPublished,
    /// At this rate.
    External(Rate),
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Linux => f.write_str("linux"),
            Self::LinuxPerSegment => f.write_str("linux-per-segment"),
            Self::Tdd => f.write_str("tdd"),
            Self::TddPublished => f.write_str("tdd-published"),
            Self::External(rate) => rate.fmt(f),
        }
    }
}

/// The text is not a pacing mode.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no pacing: write none, linux, linux-per-segment, tdd, tdd-published, or a rate such as \"10 Mb/s\""
)]
pub struct ParsePacingError(String);

/// The round-trip times that congestion controls which watch delay get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelaySignal {
    /// Every round-trip time.
    Raw,
    /// The least of a TDD cell's last two periods, while the period is known.
    Clean,
}

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
            "linux-per-segment" => Ok(Self::LinuxPerSegment),
            "tdd" => Ok(Self::Tdd),
            "tdd-published" => Ok(Self::TddPublished),
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
            { "type": "string", "const": "linux", "description": "At Linux's rate from window and RTT, a millisecond's segments together." },
            { "type": "string", "const": "linux-per-segment", "description": "At that rate, one segment at a time." },
            { "type": "string", "const": "tdd", "description": "As `linux-per-segment`, for a TDD cell: no segment waits longer than the period; where `pacing_pattern` gives slots and the queue is shallow, segments meet downlink slots." },
            { "type": "string", "const": "tdd-published", "description": "Spread over the period between bunches of ACKs (Sawabe et al., CCNC 2024, by its abstract); without a period as `linux-per-segment`." },
            rate,
        ] })
    }
}

/// Keep-alive probes of an idle connection (RFC 9293 §3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Interval of further probes while no answer arrives.
    pub interval: Duration,
    /// Unanswered probes that end the connection.
    pub probes: u32,
}

impl Default for Keepalive {
    /// The defaults of Linux: `tcp_keepalive_time`, `tcp_keepalive_intvl`, `tcp_keepalive_probes`.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Merging of duplicate ACKs by the receiver, as Linux does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackCompression {
    /// Longest delay (Linux `tcp_comp_sack_delay_ns`); it is at most 5% of the RTT, too.
    pub delay: Duration,
    /// Slack of the timer, added to the delay (Linux `tcp_comp_sack_slack_ns`).
    pub slack: Duration,
    /// Largest number of ACKs merged into one (Linux `tcp_comp_sack_nr`).
    pub count: u32,
}

impl Default for SackCompression {
    fn default() -> Self {
        Self { delay: Duration::from_millis(1), slack: Duration::from_micros(100), count: 44 }
    }
}

/// Thinning of ACKs below TCP, as modems and Wi-Fi drivers do. The endpoint's own ACK policy is unchanged; of
/// several pure ACKs only the newest leaves, a stretch ACK (RFC 2525 §2.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StretchAck {
    /// Full segments newly acknowledged after which an ACK leaves.
    pub segments: u32,
    /// Longest time for which an ACK is held.
    pub timeout: Duration,
    /// Whether duplicate ACKs and ACKs with SACK blocks are held and merged, too; otherwise they leave at
    /// once.
    pub hold_duplicates: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_is_a_word_or_a_rate() {
        for text in ["none", "linux", "linux-per-segment", "tdd", "tdd-published", "10 Mb/s"] {
            assert_eq!(text.parse::<Pacing>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Pacing>().unwrap_err().to_string().contains("none, linux"));
    }
}
