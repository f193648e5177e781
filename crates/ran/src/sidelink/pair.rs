//! A pair of stations: both flows, and the state of the radio links.

use super::config::{PairConfig, SidelinkConfig};
use super::flow::{Ends, Flow};
use super::radio::{AIRS, Air, LinkBudget, Motion, Radio, RadioLink};
use super::stats::PathKind;
use crate::bearer::Ended;
use crate::cell::{CORE, station_port};
use crate::duplex::Direction;
use crate::mac::pdu::{self as mac, Sender};
use crate::radio::Point;
use crate::rlc::{Rlc, RlcConfig};
use crate::slot::{Slot, SlotClock, SlotSpan};
use paceline_net::Instant;

/// Time in ms for which SINRs and CQIs are held. Chosen: at 30 m/s a station moves 0.3 m in that time.
const HELD_MS: u64 = 10;
/// Length in bytes that the base station assumes of a packet, for the headers of a block: that of an ACK
/// without options (RFC 9293 §3.1, RFC 791 §3.1) and a PDCP header.
const ASSUMED_PACKET_BYTES: u64 = 41;
/// State of the radio links of a pair; entries of arrays are those of the flows.
#[derive(Clone, Copy, Default)]
pub(super) struct Channel {
    /// Positions of the senders of both flows: the peer, and the station.
    pub senders: [Point; 2],
    pub direct: RadioLink,
    pub uplink: [RadioLink; 2],
    pub downlink: [RadioLink; 2],
}

impl Channel {
    /// The link of a hop of a flow.
    pub fn of(&self, flow: usize, air: Air) -> RadioLink {
        match air {
            Air::Direct => self.direct,
            Air::Up => self.uplink[flow],
            Air::Down => self.downlink[flow],
        }
    }
}

/// A pair.
pub(super) struct Pair {
    /// To the station, and to its peer.
    pub flows: [Flow; 2],
    motion: Motion,
    pub channel: Channel,
    /// The slot of `channel`.
    known_at: Option<Slot>,
    /// RLC of a hop without an opposite one, in UM: it has no STATUS PDUs.
    without_status: Rlc,
}

impl Pair {
    pub fn new(pair: PairConfig, config: &SidelinkConfig, radio: &Radio, index: usize) -> Self {
        let (ends, paths) = match pair.peer {
            true => ([Ends::Stations; 2], [pair.to_station, pair.to_peer]),
            false => ([Ends::FromCore, Ends::ToCore], [PathKind::Infrastructure; 2]),
        };
        let [of_peer, of_station] = pair.filters;
        let to_station = (ends[0], paths[0], station_port(index));
        Self {
            flows: [
                Flow::new(to_station, of_peer.filter(|_| pair.peer), (config, radio)),
                Flow::new((ends[1], paths[1], CORE), of_station, (config, radio)),
            ],
            motion: pair.motion,
            channel: Channel::default(),
            known_at: None,
            without_status: Rlc::new(RlcConfig::Um, SlotSpan(0)),
        }
    }
    /// The links in a slot.
    pub fn update_channel(&mut self, slot: Slot, budget: &LinkBudget, radio: &Radio) {
        let at = slot.start_of(radio.of_ms(HELD_MS));
        if self.known_at == Some(at) || self.known_at.is_some() && self.motion.stands_still() {
            return;
        }
        let seconds = SlotClock::new(radio.numerology()).start(at).as_secs_f64();
        let (station, peer) = self.motion.positions(seconds);
        let senders = [peer, station];
        let link = |air, snr_db: f64| RadioLink::new(snr_db, radio.cqi(air, snr_db - budget.cqi_margin_db));
        let (up, down) = (radio.bandwidth_hz(Direction::Up), radio.bandwidth_hz(Direction::Down));
        self.channel = Channel {
            senders,
            direct: link(Air::Direct, budget.direct_db(peer, station, up)),
            uplink: senders.map(|place| link(Air::Up, budget.uplink_db(place, up))),
            downlink: [station, peer].map(|place| link(Air::Down, budget.downlink_db(place, down))),
        };
        self.known_at = Some(at);
    }
    /// RLC whose STATUS PDUs travel on a hop of a flow.
    fn reported(&self, flow: usize, air: Air) -> Option<&Rlc> {
        let other = &self.flows[1 - flow];
        other.bearer.hop_rlc(other.place(air.opposite())?)
    }
    /// Bytes available for transmission on a hop, with the status report that it carries.
    pub fn available(&self, flow: usize, air: Air) -> u64 {
        let bearer = &self.flows[flow].bearer;
        let Some(at) = self.flows[flow].place(air) else { return 0 };
        let status = self.reported(flow, air).map_or(0, |rlc| u64::from(rlc.status_len()));
        bearer.hop_rlc(at).map_or(0, |rlc| rlc.available(bearer.hop_waiting(at))) + status
    }
    /// Size in bytes of a block for so many bytes of data on a hop.
    pub fn block_bytes(&self, flow: usize, air: Air, data: u64) -> u64 {
        let flow = &self.flows[flow];
        let rlc = flow.place(air).and_then(|at| flow.bearer.hop_rlc(at));
        mac::block_bytes_for(rlc.and_then(Rlc::nr_headers), data, data.div_ceil(ASSUMED_PACKET_BYTES))
    }
    /// Whether a block on a hop would carry data.
    pub fn sendable(&self, flow: usize, air: Air) -> bool {
        let bearer = &self.flows[flow].bearer;
        let Some(at) = self.flows[flow].place(air) else { return false };
        bearer.hop_rlc(at).is_some_and(|rlc| rlc.sendable(bearer.hop_waiting(at)))
            || self.reported(flow, air).is_some_and(|rlc| rlc.status_len() > 0)
    }
    /// The transmitting end of a hop.
    pub fn sender(&mut self, flow: usize, air: Air, now: Instant) -> Option<Sender<'_>> {
        let Self { flows: [to_station, to_peer], without_status, .. } = self;
        let (own, other) = if flow == 0 { (to_station, to_peer) } else { (to_peer, to_station) };
        let at = own.place(air)?;
        let opposite = other.place(air.opposite());
        let reverse = opposite.and_then(|at| other.bearer.hop_rlc_mut(at)).unwrap_or(without_status);
        own.bearer.hop_sender(at, reverse, now)
    }
    /// Delivers the PDUs that a hop's receiver has decoded by `slot`.
    pub fn deliver(&mut self, slot: Slot, flow: usize, air: Air, ends: &mut Vec<Ended>) {
        let [to_station, to_peer] = &mut self.flows;
        let (own, other) = if flow == 0 { (to_station, to_peer) } else { (to_peer, to_station) };
        let Some(at) = own.place(air) else { return };
        let timer = own.bearer.hop_rlc(at).is_some_and(|rlc| rlc.timers_due(slot));
        if !timer && !own.mac_ref(air).delivery_due(slot) {
            return;
        }
        let mut data = Vec::new();
        while let Some((_, pdu)) = own.mac(air).decoded.pop_front_if(|(due, _)| *due <= slot) {
            if !pdu.is_status() {
                data.push(pdu);
            } else if let Some(at) = other.place(air.opposite())
                && let Some(rlc) = other.bearer.hop_rlc_mut(at)
            {
                rlc.on_status(&pdu);
            }
        }
        own.bearer.hop_deliver(at, slot, data.into_iter(), |ended| ends.push(ended));
    }
    pub fn idle(&self) -> bool {
        (0..2).all(|at| {
            let flow = &self.flows[at];
            flow.direct.access.idle()
                && flow.up.access.idle()
                && flow.bearer.idle()
                && AIRS.iter().all(|air| self.available(at, *air) == 0 && flow.mac_ref(*air).idle())
        })
    }
}
