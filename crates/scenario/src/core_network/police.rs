//! Table `police` of a hop: an ACK policer at the end of the hop that is nearer to the stations.

use crate::limits::{self, Limit, Problem, Section, at_least, key, numbers, quantities};
use paceline_net::{Bytes, Rate};
use paceline_pep::ack_policer::{self, Mode, PolicerConfig, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction in which a policer drops ACKs; it reads the data of the other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckDirection {
    /// ACKs of downloads.
    #[default]
    Uplink,
    /// ACKs of uploads.
    Downlink,
}

/// Table `police`. Exactly one of `cir`, `drop_share` and `acks_per_rtt` is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Police {
    /// The ACKs that may be dropped.
    pub mode: Mode,
    /// Rate of ACKs that pass, in IP datagrams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cir: Option<Rate>,
    /// Burst of ACKs above the rate `cir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cbs: Option<Bytes>,
    /// Share of the ACKs to drop, evenly spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_share: Option<f64>,
    /// ACKs of a connection that pass in a round trip; needs `safe` and a limit per flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks_per_rtt: Option<u32>,
    /// Whether each connection has a limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_flow: Option<bool>,
    /// Segments that one kept ACK may newly acknowledge (`safe`).
    pub max_segments: u32,
    /// Direction of the policed ACKs.
    pub acks: AckDirection,
    /// Indices of the `[[station]]` tables whose stations are not policed.
    pub exempt: Vec<usize>,
}

impl Default for Police {
    fn default() -> Self {
        Self {
            mode: Mode::Safe,
            cir: None,
            cbs: None,
            drop_share: None,
            acks_per_rtt: None,
            per_flow: None,
            max_segments: Policy::MAX_SEGMENTS,
            acks: AckDirection::Uplink,
            exempt: Vec::new(),
        }
    }
}

impl Police {
    /// Configuration of the policer; none unless exactly one limit is given.
    pub fn config(&self) -> Option<PolicerConfig> {
        use ack_policer::Limit;
        let limit = match (self.cir, self.drop_share, self.acks_per_rtt) {
            (Some(rate), None, None) => Limit::rate(rate.0 / 8, self.cbs.map(|burst| burst.0)),
            (None, Some(share), None) => Limit::share(share),
            (None, None, Some(count)) => Limit::PerRtt(count),
            _ => return None,
        };
        let policy = Policy { mode: self.mode, limit, max_segments: self.max_segments };
        Some(PolicerConfig { policy, per_flow: self.per_flow.unwrap_or(self.cir.is_none()) })
    }
}

impl Section for Police {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(cir?, quantities("8 b/s", "1000 Gb/s")),
            key!(cbs?, at_least("52 B")),
            key!(drop_share?, numbers(0.0..=1.0)),
            key!(acks_per_rtt?, numbers(1..=1000).unit("ACKs")),
            key!(max_segments, numbers(1..=32).unit("segments")),
        ]
    }
    fn computed_defaults() -> Vec<(&'static str, String)> {
        vec![
            ("cbs", "5000 B, or 10 s of a lower rate".to_owned()),
            ("per_flow", "false beside cir, else true".to_owned()),
        ]
    }
}

/// Checks the table `path`, of a scenario with this many `[[station]]` tables.
pub(super) fn check(path: &str, police: &Police, groups: usize) -> Result<(), Problem> {
    limits::check(path, police)?;
    let given = [police.cir.is_some(), police.drop_share.is_some(), police.acks_per_rtt.is_some()];
    let allowed = "exactly one of cir, drop_share and acks_per_rtt";
    Problem::unless(given.iter().filter(|is| **is).count() == 1, path, "", allowed)?;
    let beside_rate = police.cbs.is_none() || police.cir.is_some();
    Problem::unless(beside_rate, &format!("{path}.cbs"), "", "only beside cir")?;
    if let Some(unknown) = police.exempt.iter().find(|group| **group >= groups) {
        let allowed = format!("indices of [[station]] tables, 0 to {}", groups.saturating_sub(1));
        return Problem::unless(false, &format!("{path}.exempt"), unknown, &allowed);
    }
    let config = police.config().expect("one limit is given");
    config.check().map_err(|reason| Problem::because(path, "", reason))
}
