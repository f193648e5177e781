//! The ACK policer of a hop ([`paceline_pep::ack_policer`]) between the directions of its packets.

use super::direction::{DOWN, UP};
use crate::scenario::{AckDirection, Police};
use paceline_net::{AddressTable, Instant, Packet};
use paceline_pep::ack_policer::{Policer, PolicerStats, Reason};

/// A policer at a hop.
#[derive(Debug)]
pub(super) struct HopPolicer {
    /// Index of the hop in its part of the core network.
    pub index: usize,
    policer: Policer,
    /// The direction in which ACKs are dropped.
    policed: usize,
    /// Groups of stations whose packets pass.
    exempt: Vec<usize>,
    /// Counters at the last restart.
    before: PolicerStats,
}

/// Figures of one or several like policers since the last restart.
#[derive(Clone, Debug)]
pub(crate) struct PolicerReading {
    /// Place in the model.
    pub name: String,
    pub stats: PolicerStats,
}

impl HopPolicer {
    pub fn new(index: usize, police: &Police) -> Self {
        let config = police.config().expect("a checked scenario gives one limit");
        let policed = if police.acks == AckDirection::Uplink { UP } else { DOWN };
        let (policer, before) = (Policer::new(config), PolicerStats::default());
        Self { index, policer, policed, exempt: police.exempt.clone(), before }
    }
    /// Whether a packet passes; `groups` has the group of each station's address.
    pub fn passes(&mut self, now: Instant, direction: usize, packet: &Packet, groups: &AddressTable) -> bool {
        let station = if direction == UP { packet.ip.src } else { packet.ip.dst };
        if groups.get(station).is_some_and(|group| self.exempt.contains(&group)) {
            return true;
        }
        if direction == self.policed {
            return self.policer.on_policed_direction(now, packet) != Reason::Dropped;
        }
        self.policer.on_data_direction(now, packet);
        true
    }
    pub fn restart(&mut self) {
        self.before = self.policer.stats().clone();
    }
    /// Figures of like policers together; none without policers.
    pub fn read<'a>(name: String, policers: impl IntoIterator<Item = &'a Self>) -> Option<PolicerReading> {
        let stats = policers.into_iter().map(|own| own.policer.stats().since(&own.before));
        let stats = stats.reduce(|all, own| all.plus(&own))?;
        Some(PolicerReading { name, stats })
    }
}
