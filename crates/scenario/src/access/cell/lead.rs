//! Leads of the base station: from its decision to the slot on the air.

use super::{Cell, RatName};
use crate::limits::{self, Limit, Section, key, numbers, quantities};
use paceline_net::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Base stations whose leads are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GnbName {
    /// srsRAN's defaults. NR: a scheduling lead of 1 slot, a radio lead of 3 slots (`radio_heads_prep_time`)
    /// and one slot from a reception to the decision, as Gong et al., "Towards URLLC with Open-Source 5G
    /// Software" (2025), found and measured them at 30 kHz. LTE: srsRAN 4G sends 4 subframes after the one
    /// whose reception precedes the decision (`TX_ENB_DELAY` of its `common.h`): a scheduling lead of 3.
    #[default]
    Srsran,
    /// No lead: the scheduler decides in the slot on the air, as in most simulators.
    Ideal,
}

impl GnbName {
    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Srsran => "srsran",
            Self::Ideal => "ideal",
        }
    }
    /// Whole slots between a reception and the decision in NR.
    pub(super) const fn reaction_slots(self) -> u8 {
        match self {
            Self::Srsran => 1,
            Self::Ideal => 2,
        }
    }
    /// Scheduling and radio lead in slots.
    const fn slots(self, rat: RatName) -> (u8, u64) {
        match (self, rat) {
            (Self::Ideal, _) => (0, 0),
            (Self::Srsran, RatName::Nr) => (1, 3),
            (Self::Srsran, RatName::Lte) => (3, 0),
        }
    }
}

/// The lead of a base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lead {
    /// Slots from the scheduler's decision to the end of the processing of its slot.
    pub slots: u8,
    /// Time from there to the air.
    pub radio: Duration,
}

impl Cell {
    /// Scheduling lead and radio lead, as far as keys state them.
    pub fn stated_leads(&self) -> (Option<u8>, Option<Duration>) {
        match self.rat {
            RatName::Nr => self.nr.as_ref().map(|nr| (nr.scheduling_lead, nr.radio_lead)),
            RatName::Lte => self.lte.as_ref().map(|lte| (lte.scheduling_lead, lte.radio_lead)),
        }
        .unwrap_or_default()
    }
    /// The lead of the base station: that of `gnb`, where no key states another.
    pub fn lead(&self) -> Lead {
        let (usual, radio_slots) = self.gnb.slots(self.rat);
        let slot = Duration::from_nanos(1_000_000 >> self.mu().unwrap_or(0));
        let (slots, radio) = self.stated_leads();
        Lead { slots: slots.unwrap_or(usual), radio: radio.unwrap_or(slot * radio_slots) }
    }
}

/// Table `[cell.lte]`, with `cell.rat = "lte"`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Lte {
    /// Subframes from the scheduler's decision to the subframe on the air, for downlink data. Reactions to
    /// receptions have the four subframes of TS 36.213, which contain it. If left out, that of `cell.gnb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_lead: Option<u8>,
    /// Time before the air at which the radio has the samples of a subframe, likewise. If left out, that of
    /// `cell.gnb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radio_lead: Option<Duration>,
}

impl Section for Lte {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(scheduling_lead?, numbers(0..=MAX_LEAD_SLOTS).unit("subframes")),
            key!(radio_lead?, quantities("0 ms", MAX_RADIO_LEAD)),
        ]
    }
}

/// Most slots of the scheduler's lead. Chosen: above the 10 slots that srsRAN's `max_proc_delay` has in use,
/// a limit for mistyped numbers.
pub(super) const MAX_LEAD_SLOTS: u8 = 30;
/// Largest lead of the radio. Chosen: likewise.
pub(super) const MAX_RADIO_LEAD: &str = "10 ms";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    fn lead(sets: &[&str]) -> Lead {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        load("a.toml", "[[station]]\n", &sets).unwrap().cell().unwrap().lead()
    }

    #[test]
    fn keys_override_the_leads_of_the_base_station() {
        let us = Duration::from_micros;
        assert_eq!(lead(&["cell.gnb=ideal"]), Lead { slots: 0, radio: Duration::ZERO });
        assert_eq!(lead(&[]), Lead { slots: 3, radio: Duration::ZERO });
        let of = |key| lead(&["cell.rat=nr", "cell.numerology=1", key]);
        assert_eq!(of("cell.gnb=srsran"), Lead { slots: 1, radio: us(1500) });
        assert_eq!(of("cell.numerology=0"), Lead { slots: 1, radio: us(3000) });
        assert_eq!(of("cell.nr.radio_lead=0.5 ms"), Lead { slots: 1, radio: us(500) });
        assert_eq!(of("cell.nr.scheduling_lead=5"), Lead { slots: 5, radio: us(1500) });
        assert_eq!(lead(&["cell.gnb=ideal", "cell.lte.radio_lead=1 ms"]), Lead { slots: 0, radio: us(1000) });
    }
}
