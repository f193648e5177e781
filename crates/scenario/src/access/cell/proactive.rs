//! Table `[cell.proactive_grant]`: uplink grants without a scheduling request.

use crate::limits::{self, Limit, Section, key, quantities};
use paceline_net::{Bytes, Duration};
use paceline_ran::{ProactiveGrants, SlotClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[cell.proactive_grant]`: the base station grants PUSCH to stations that have not requested it. A
/// station without data fills such a block with padding, which takes resource blocks from others. The cell
/// computes each of its slots while a station gets such grants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct ProactiveGrant {
    /// Time without a grant after which a station gets one; 0 for one in every uplink slot. OpenAirInterface
    /// counts it in frames (`ulsch_max_frame_inactivity`, often 0 or 1).
    pub after: Duration,
    /// Size of the grant. Default: `min_ul_grant_size` of Gong et al. (2025), whose gNB can grant every
    /// uplink slot.
    pub size: Bytes,
    /// Time after the last data in either direction for which these grants go on. If left out, without end,
    /// as in OpenAirInterface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity: Option<Duration>,
}

impl Default for ProactiveGrant {
    fn default() -> Self {
        Self { after: Duration::ZERO, size: Bytes(512), inactivity: None }
    }
}

impl ProactiveGrant {
    /// The grants in slots.
    pub fn in_slots(&self, clock: SlotClock) -> ProactiveGrants {
        ProactiveGrants {
            after: clock.span(self.after),
            size: self.size.0 as u32,
            inactivity: self.inactivity.map(|time| clock.span(time)),
        }
    }
}

impl Section for ProactiveGrant {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(after, quantities("0 ms", "10 s")),
            key!(size, quantities("7 B", "100 kB").note(" (7 B are a BSR and a byte of data)")),
            key!(inactivity?, quantities("0 ms", "1000 s")),
        ]
    }
}
