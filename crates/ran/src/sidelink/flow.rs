//! A flow: one direction of a pair, with the hops of its path.
//!
//! The first hop leads from the sending station to the other one, or to the eNB, which relays. A hop is a
//! [`Link`]: RLC and HARQ with a PDCP of their own in the eNB, as on Uu. STATUS PDUs of RLC AM about a hop
//! travel on the opposite hop between the same ends.

use super::access::{Access, DECODING};
use super::channel::{LinkBudget, RadioLink};
use super::config::{PairConfig, SidelinkConfig};
use super::motion::Motion;
use super::stats::{Carried, PathKind};
use crate::bearer::Bearer;
use crate::cell::{CORE, HopLink as Link, station_port};
use crate::duplex::Direction;
use crate::pdcp::PdcpConfig;
use crate::prb::PrbSet;
use crate::radio::Point;
use crate::slot::{Numerology, Slot, SlotClock, SlotSpan};
use crate::timing::{BySlot, HarqTiming, Retransmission, Turns};
use paceline_net::{Bytes, DropTail, Port};

/// HARQ processes of each hop (TS 36.213 §7 and §8); synchronous ones return after so many subframes.
pub(super) const PROCESSES: usize = 8;
/// From a downlink block to the eNB's reaction to its acknowledgment (TS 36.213 §7.3: 4 slots to the answer,
/// and as many to process it).
pub(super) const DOWNLINK_VERDICT: SlotSpan = SlotSpan(8);
/// Slots for which SINRs and CQIs are held. Chosen: at 30 m/s a station moves 0.3 m in that time.
const HELD: SlotSpan = SlotSpan(10);

/// A hop of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hop {
    First,
    Relay,
}

/// A transmission in the uplink band.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub pair: usize,
    pub flow: usize,
    pub process: usize,
    pub prbs: PrbSet,
    pub to_enb: bool,
}

pub(super) struct Flow {
    pub path: PathKind,
    /// From the sending station to the other one, or to the eNB.
    pub first: Link,
    /// From the eNB to the receiving station.
    pub relay: Link,
    pub access: Access,
    /// HARQ processes of `first` whose block is for the eNB, one bit each.
    pub to_enb: u16,
    /// Random access requests sent.
    pub requests: u64,
    /// Delivered by the direct path, and by the other one.
    pub carried: [Carried; 2],
}

impl Flow {
    fn new(path: PathKind, port: Port, config: &SidelinkConfig) -> Self {
        let hop = |direction, harq: &HarqTiming, buffer: Bytes| {
            let buffer = Box::new(DropTail::new(buffer));
            let bearer = Bearer::new(buffer, PdcpConfig::Lte, config.rlc, config.t_reordering);
            Link::new(bearer, direction, port, harq, Numerology::LTE)
        };
        let verdict = |span| BySlot::new(vec![span]);
        let synchronous = Retransmission::Synchronous(Turns::new(&[true]));
        let up = HarqTiming { processes: PROCESSES, retransmission: synchronous, verdict: verdict(DECODING) };
        let down = HarqTiming {
            processes: PROCESSES,
            retransmission: Retransmission::Asynchronous,
            verdict: verdict(DOWNLINK_VERDICT),
        };
        Self {
            path,
            first: hop(Direction::Up, &up, config.buffer),
            relay: hop(Direction::Down, &down, config.buffer),
            access: Access::default(),
            to_enb: 0,
            requests: 0,
            carried: Default::default(),
        }
    }
    pub fn is_direct(&self) -> bool {
        self.path == PathKind::Direct
    }
    pub fn for_enb(&self, process: usize) -> bool {
        self.to_enb >> process & 1 == 1
    }
    pub fn set_for_enb(&mut self, process: usize, for_enb: bool) {
        self.to_enb = self.to_enb & !(1 << process) | u16::from(for_enb) << process;
    }
    pub fn carried_mut(&mut self, path: PathKind) -> &mut Carried {
        &mut self.carried[usize::from(path == PathKind::Infrastructure)]
    }
}

/// State of the radio links of a pair; entries of arrays are those of the flows.
#[derive(Clone, Copy, Default)]
pub(super) struct Channel {
    /// Positions of the senders of both flows: the peer, and the station.
    pub senders: [Point; 2],
    pub direct: RadioLink,
    pub uplink: [RadioLink; 2],
    pub downlink: [RadioLink; 2],
}

/// A pair.
pub(super) struct Pair {
    /// To the station, and to its peer.
    pub flows: [Flow; 2],
    motion: Motion,
    pub channel: Channel,
    /// The slot of `channel`.
    known_at: Option<Slot>,
}

impl Pair {
    pub fn new(pair: PairConfig, config: &SidelinkConfig, index: usize) -> Self {
        let flows = [(pair.to_station, station_port(index)), (pair.to_peer, CORE)];
        Self {
            flows: flows.map(|(path, port)| Flow::new(path, port, config)),
            motion: pair.motion,
            channel: Channel::default(),
            known_at: None,
        }
    }
    /// The links in a slot.
    pub fn update_channel(&mut self, slot: Slot, budget: &LinkBudget, prb: u16) {
        let at = slot.start_of(HELD);
        if self.known_at == Some(at) || self.known_at.is_some() && self.motion.stands_still() {
            return;
        }
        let seconds = SlotClock::new(Numerology::LTE).start(at).as_secs_f64();
        let (station, peer) = self.motion.positions(seconds);
        let senders = [peer, station];
        self.channel = Channel {
            senders,
            direct: budget.link(budget.direct_db(peer, station, prb)),
            uplink: senders.map(|place| budget.link(budget.uplink_db(place, prb))),
            downlink: [station, peer].map(|place| budget.link(budget.downlink_db(place, prb))),
        };
        self.known_at = Some(at);
    }
    /// A hop of a flow, and the hop that carries status reports about it.
    pub fn hop(&mut self, flow: usize, hop: Hop) -> (&mut Link, &mut Link) {
        let [to_station, to_peer] = &mut self.flows;
        let (own, other) = if flow == 0 { (to_station, to_peer) } else { (to_peer, to_station) };
        match hop {
            Hop::Relay => (&mut own.relay, &mut other.first),
            Hop::First if own.path == PathKind::Direct => (&mut own.first, &mut other.first),
            Hop::First => (&mut own.first, &mut other.relay),
        }
    }
    fn opposite(&self, flow: usize, hop: Hop) -> &Link {
        let other = &self.flows[1 - flow];
        if hop == Hop::First && !self.flows[flow].is_direct() { &other.relay } else { &other.first }
    }
    fn link(&self, flow: usize, hop: Hop) -> &Link {
        match hop {
            Hop::First => &self.flows[flow].first,
            Hop::Relay => &self.flows[flow].relay,
        }
    }
    /// Bytes available for transmission on a hop, with the status report that it carries.
    pub fn available(&self, flow: usize, hop: Hop) -> u64 {
        self.link(flow, hop).bearer.available(&self.opposite(flow, hop).bearer)
    }
    /// Whether a block on the relay hop would carry data.
    pub fn relay_sendable(&self, flow: usize) -> bool {
        self.flows[flow].relay.bearer.sendable(&self.opposite(flow, Hop::Relay).bearer)
    }
    pub fn idle(&self) -> bool {
        (0..2).all(|at| {
            let flow = &self.flows[at];
            flow.access.idle()
                && [Hop::First, Hop::Relay]
                    .iter()
                    .all(|hop| self.available(at, *hop) == 0 && self.link(at, *hop).idle_below_buffer())
        })
    }
}
