//! A flow: one direction of a pair, with the radio hops of its paths.
//!
//! The first hop of a path leads from the sending station to the other one, or to the eNB, which relays. Each
//! hop has RLC and HARQ of its own; PDCP is one, from the sending station to the receiving one. STATUS PDUs
//! of RLC AM about a hop travel on the opposite hop between the same ends.

use super::access::Access;
use super::buffer::PathBuffer;
use super::config::SidelinkConfig;
use super::radio::{Air, Radio};
use super::stats::{Carried, PathKind};
use crate::bearer::{Bearer, Ended, Hop};
use crate::hop::{HopMac, LinkStats};
use crate::pdcp::Leg;
use crate::prb::PrbSet;
use paceline_net::{DropReason, DropTail, Output, Port, SduQueue};
use std::collections::VecDeque;

/// t-Reordering of LTE's PDCP in ms. Chosen: RLC AM has repeated a lost PDU several times by then; a PDU that
/// a full buffer of the eNB dropped never arrives (TS 36.331 §6.3.2, `t-Reordering-r12`: up to 750 ms).
const PDCP_REORDERING_MS: u64 = 500;

/// The ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ends {
    /// Two stations.
    Stations,
    /// The core network, and a station.
    FromCore,
    /// A station, and the core network.
    ToCore,
}

/// A transmission in the uplink band.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub pair: usize,
    pub flow: usize,
    pub air: Air,
    pub process: usize,
    pub prbs: PrbSet,
    pub to_enb: bool,
}

/// MAC of a hop in the uplink band, and the access to it.
pub(super) struct SenderMac {
    pub mac: HopMac,
    pub access: Access,
    /// HARQ processes of a direct hop whose block is for the eNB, one bit each.
    to_enb: u16,
    direct: bool,
}

impl SenderMac {
    fn new(direct: bool, radio: &Radio) -> Self {
        let mac = HopMac::new(radio.processes(), radio.numerology());
        Self { mac, access: Access::default(), to_enb: 0, direct }
    }
    pub fn for_enb(&self, process: usize) -> bool {
        !self.direct || self.to_enb >> process & 1 == 1
    }
    pub fn set_for_enb(&mut self, process: usize, for_enb: bool) {
        self.to_enb = self.to_enb & !(1 << process) | u16::from(for_enb) << process;
    }
    /// The path of the hop is left.
    pub fn reset_access(&mut self) {
        (self.access, self.to_enb) = (Access::default(), 0);
    }
}

pub(super) struct Flow {
    pub ends: Ends,
    pub bearer: Bearer,
    /// Where delivered packets go.
    port: Port,
    /// Counters of the bearer; those of blocks are in the hops.
    pub stats: LinkStats,
    /// The path of the bearer's first leg.
    pub path: PathKind,
    /// Where both paths send until the other one takes over: whether it has delivered a packet.
    pub overlap: Option<bool>,
    pub direct: SenderMac,
    pub up: SenderMac,
    pub down: HopMac,
    /// Random access requests sent.
    pub requests: u64,
    /// Delivered by the direct path, and by the other one.
    pub carried: [Carried; 2],
}

impl Flow {
    /// A flow that begins on a path; `filter` is the buffer of its sending station on the way to the eNB.
    pub fn new(
        (ends, path, port): (Ends, PathKind, Port),
        filter: Option<Box<dyn SduQueue + Send>>,
        (config, radio): (&SidelinkConfig, &Radio),
    ) -> Self {
        let mut buffer: Box<dyn SduQueue + Send> = match filter {
            Some(filter) => Box::new(PathBuffer::new(config.buffer, filter)),
            None => Box::new(DropTail::new(config.buffer)),
        };
        buffer.on_path(path == PathKind::Infrastructure);
        let bearer = Bearer::new(buffer, radio.pdcp(), config.rlc, config.t_reordering);
        let bearer = match (ends, path) {
            (Ends::Stations, path) => {
                let reordering = match config.rlc.is_am() {
                    true => radio.of_ms(PDCP_REORDERING_MS),
                    false => config.t_reordering,
                };
                let bearer = bearer.with_reordering(reordering);
                if path == PathKind::Direct { bearer } else { bearer.with_relay(config.buffer) }
            }
            _ => bearer,
        };
        Self {
            ends,
            bearer,
            port,
            stats: LinkStats::default(),
            path,
            overlap: None,
            direct: SenderMac::new(true, radio),
            up: SenderMac::new(false, radio),
            down: HopMac::new(radio.processes(), radio.numerology()),
            requests: 0,
            carried: Default::default(),
        }
    }
    /// The path that the eNB has chosen.
    pub fn chosen(&self) -> PathKind {
        if self.overlap.is_some() { self.path.other() } else { self.path }
    }
    /// The place of a hop in the bearer; none of a path that does not send.
    pub fn place(&self, air: Air) -> Option<(Leg, Hop)> {
        match (self.ends, air) {
            (Ends::Stations, _) => {}
            (Ends::FromCore, Air::Down) | (Ends::ToCore, Air::Up) => return Some((Leg::Main, Hop::First)),
            _ => return None,
        }
        let leg = match air.path() == self.path {
            true => Leg::Main,
            false => self.overlap.map(|_| Leg::Second)?,
        };
        Some((leg, if air == Air::Down { Hop::Relay } else { Hop::First }))
    }
    pub fn mac(&mut self, air: Air) -> &mut HopMac {
        match air {
            Air::Direct => &mut self.direct.mac,
            Air::Up => &mut self.up.mac,
            Air::Down => &mut self.down,
        }
    }
    pub fn mac_ref(&self, air: Air) -> &HopMac {
        match air {
            Air::Direct => &self.direct.mac,
            Air::Up => &self.up.mac,
            Air::Down => &self.down,
        }
    }
    /// A hop in the uplink band.
    pub fn sender(&mut self, air: Air) -> &mut SenderMac {
        if air == Air::Direct { &mut self.direct } else { &mut self.up }
    }
    pub fn sender_ref(&self, air: Air) -> &SenderMac {
        if air == Air::Direct { &self.direct } else { &self.up }
    }
    /// Number of packets inside.
    pub fn held(&self) -> u64 {
        let in_blocks = [Air::Direct, Air::Up, Air::Down].map(|air| self.mac_ref(air).held());
        self.bearer.held() + in_blocks.iter().sum::<u64>()
    }
    /// Whether no packet waits that only the first of two paths has.
    pub fn drained(&self) -> bool {
        let in_blocks: u64 = Air::of(self.path).iter().map(|air| self.mac_ref(*air).held()).sum();
        self.bearer.held_by_first() + in_blocks == 0
    }
    pub fn carried_mut(&mut self, path: PathKind) -> &mut Carried {
        &mut self.carried[usize::from(path == PathKind::Infrastructure)]
    }
    /// The flow has this path from now on, and no other.
    pub fn take_path(&mut self, path: PathKind) {
        (self.path, self.overlap) = (path, None);
        self.bearer.buffer.on_path(path == PathKind::Infrastructure);
    }
    /// Counts the end of a packet on a hop and passes it on; returns whether it is a delivery.
    pub fn end(&mut self, ended: Ended, air: Air, output: &mut VecDeque<Output>) -> bool {
        match ended {
            Ended::Delivered(packet) => {
                self.stats.packets_out += 1;
                self.stats.bytes_out += u64::from(packet.len);
                let carried = self.carried_mut(air.path());
                carried.packets += 1;
                carried.bytes += u64::from(packet.len);
                self.arrived_on(air);
                output.push_back(Output::Transmit(self.port, packet));
                return true;
            }
            Ended::Dropped(packet, reason) => {
                self.stats.dropped.add(reason);
                output.push_back(Output::Drop(packet, reason));
            }
            Ended::Copy => {
                self.stats.pdcp_copies += 1;
                self.arrived_on(air);
            }
        }
        false
    }
    /// The second of two paths is in use once a packet has arrived on it.
    fn arrived_on(&mut self, air: Air) {
        if air.path() != self.path {
            self.overlap = self.overlap.map(|_| true);
        }
    }
    /// Packets that the buffer has dropped.
    pub fn collect_dropped(&mut self, output: &mut VecDeque<Output>) {
        while let Some((packet, reason)) = self.bearer.buffer.pop_dropped() {
            self.stats.dropped.add(reason);
            output.push_back(Output::Drop(packet, reason));
        }
    }
    /// The RLC PDUs of a hop that HARQ lost.
    pub fn lose(&mut self, air: Air, pdus: Vec<crate::rlc::Pdu>, reason: DropReason, ends: &mut Vec<Ended>) {
        let Some(at) = self.place(air) else { return };
        for pdu in pdus {
            self.bearer.hop_pdu_lost(at, pdu, reason, |ended| ends.push(ended));
        }
    }
}
