//! The air of a slot: the transmissions of all served cells, and the deployment that gives each its SINR.

use super::config::{Carrier, CellConfig};
use super::station::{Station, Stations};
use crate::air::{Network, Transmission};
use crate::duplex::Direction;
use crate::mac::harq::BlockKind;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::Stream;

/// The transmissions of the present slot and what decides their fate.
pub(super) struct Air {
    /// The deployment; none for stated SINRs.
    network: Option<Network>,
    transmissions: Vec<Transmission>,
    block_error_draws: Stream,
}

impl Air {
    pub fn new(config: &CellConfig, seed: u64) -> Self {
        let prb = (config.downlink_prb, config.uplink_prb);
        let network = config.radio.clone().map(|radio| {
            let network = Network::new(radio, &config.rat, config.numerology, prb, seed);
            network.of_cell(&config.rat, &config.duplex)
        });
        let block_error_draws = Stream::new(seed, "cell0/harq");
        Self { network, transmissions: Vec::new(), block_error_draws }
    }
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }
    pub fn network_mut(&mut self) -> &mut Option<Network> {
        &mut self.network
    }
    /// A transmission of this slot.
    pub fn send(&mut self, transmission: Transmission) {
        self.transmissions.push(transmission);
    }
    /// The transmissions of this slot so far.
    pub fn sent(&self) -> &[Transmission] {
        &self.transmissions
    }
    /// Takes away the transmissions for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&Transmission) -> bool) {
        self.transmissions.retain(keep);
    }
    /// The slot ends.
    pub fn clear(&mut self) {
        self.transmissions.clear();
    }

    /// Computes the interference between all transmissions of the slot.
    pub fn interfere(&mut self, slot: Slot, carrier: &Carrier, stations: &Stations) {
        debug_assert!(
            self.prbs_are_disjoint(&carrier.config, stations),
            "slot {}: {:?}",
            slot.0,
            self.transmissions
        );
        if let Some(network) = &mut self.network {
            network.set_transmissions(slot, &self.transmissions, |index| {
                stations[index].radio.placed().map(|placed| (placed, stations[index].cell))
            });
        }
    }
    /// Draws whether a block of the station is decoded; a decoded one reaches RLC from `due` on. Returns
    /// whether it is.
    pub fn decode(
        &mut self,
        slot: Slot,
        due: Slot,
        carrier: &Carrier,
        station: &mut Station,
        sent: &Transmission,
    ) -> bool {
        let Transmission { direction, process, prbs, .. } = *sent;
        let Station { radio, cell, downlink, uplink, .. } = station;
        let link = match direction {
            Direction::Down => downlink,
            Direction::Up => uplink,
        };
        let block = link.mac.harq.block(process).expect("a block is sent from its process");
        let layer = carrier.config.rat.layer(direction, block.mcs);
        let sinr = radio.sinr(&mut self.network, *cell, slot, sent, layer);
        let draw = self.block_error_draws.uniform();
        let verdict_at = carrier.timing.verdict_at(slot, direction);
        link.transmit(process, prbs, (slot, verdict_at, due), sinr, draw)
    }

    /// Whether every transmission of this slot lies in its band and overlaps no other one of its cell and
    /// direction, Msg3s after a preamble collision excepted.
    fn prbs_are_disjoint(&self, config: &CellConfig, stations: &Stations) -> bool {
        let downlink = PrbSet::range(0, u32::from(config.downlink_prb));
        let uplink = config.pusch_prbs();
        let side = |sent: &Transmission| (stations[sent.station].cell, sent.direction);
        let collides = |sent: &Transmission| {
            let block = stations[sent.station].uplink.mac.harq.block(sent.process);
            sent.direction == Direction::Up
                && block.is_some_and(|block| block.kind == BlockKind::CollidedMsg3)
        };
        self.transmissions.iter().enumerate().all(|(at, sent)| {
            let same_side =
                |other: &&Transmission| side(other) == side(sent) && !(collides(other) && collides(sent));
            let mut others = self.transmissions[..at].iter().filter(same_side);
            let band = match sent.direction {
                Direction::Down => downlink,
                Direction::Up => uplink,
            };
            !sent.prbs.is_empty()
                && sent.prbs.without(band).is_empty()
                && others.all(|other| sent.prbs.without(other.prbs) == sent.prbs)
        })
    }
}
