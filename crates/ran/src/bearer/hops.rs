//! The hops of a bearer's paths, for links that have one or two of them: their RLC, data, and receivers.

use super::relay::{Hop, PathRlc, Relay};
use super::{Bearer, Ended};
use crate::mac::pdu::Sender;
use crate::pdcp::{self, Leg, Waiting};
use crate::rlc::{self, Reassembled, Rlc};
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Bytes, DropReason, Instant};

impl Bearer {
    /// LTE's PDCP gives missing SDUs up after so many slots, where it reorders.
    pub fn with_reordering(mut self, t_reordering: SlotSpan) -> Self {
        self.rx = pdcp::Rx::new(self.pdcp, Some(t_reordering));
        self
    }
    /// Makes the present path one of two hops, whose node has a buffer of so many bytes.
    pub fn with_relay(mut self, limit: Bytes) -> Self {
        self.relay = self.new_path(Some(limit)).relay;
        self
    }
    /// New RLC entities for a path; `relay` is the buffer of the node between its hops, if it has two.
    pub fn new_path(&self, relay: Option<Bytes>) -> PathRlc {
        let (config, t_reordering) = self.rlc_config;
        let rlc = || Rlc::new(config, t_reordering);
        PathRlc { first: rlc(), relay: relay.map(|limit| Relay::new(self.pdcp, rlc(), limit)) }
    }
    fn relay_of(&mut self, leg: Leg) -> Option<&mut Relay> {
        match leg {
            Leg::Main => self.relay.as_mut(),
            Leg::Second => self.second.as_mut()?.relay.as_mut(),
        }
    }
    /// RLC of a hop; none of a hop that does not exist.
    pub fn hop_rlc(&self, (leg, hop): (Leg, Hop)) -> Option<&Rlc> {
        let second = || self.second.as_ref();
        match (leg, hop) {
            (Leg::Main, Hop::First) => Some(&self.rlc),
            (Leg::Main, Hop::Relay) => self.relay.as_ref().map(|relay| &relay.rlc),
            (Leg::Second, Hop::First) => second().map(|second| &second.rlc),
            (Leg::Second, Hop::Relay) => second()?.relay.as_ref().map(|relay| &relay.rlc),
        }
    }
    pub fn hop_rlc_mut(&mut self, (leg, hop): (Leg, Hop)) -> Option<&mut Rlc> {
        match (leg, hop) {
            (Leg::Main, Hop::First) => Some(&mut self.rlc),
            (Leg::Second, Hop::First) => self.second.as_mut().map(|second| &mut second.rlc),
            (leg, Hop::Relay) => self.relay_of(leg).map(|relay| &mut relay.rlc),
        }
    }
    /// Data above RLC of a hop.
    pub fn hop_waiting(&self, (leg, hop): (Leg, Hop)) -> Waiting {
        let second = || self.second.as_ref().and_then(|second| second.relay.as_ref());
        match (leg, hop) {
            (leg, Hop::First) => self.tx.waiting(leg, &*self.buffer),
            (Leg::Main, Hop::Relay) => self.relay.as_ref().map_or_else(Waiting::default, Relay::waiting),
            (Leg::Second, Hop::Relay) => second().map_or_else(Waiting::default, Relay::waiting),
        }
    }
    /// Bytes of the packets that wait in the node between the hops of the present path.
    pub fn relay_queue(&self) -> u64 {
        self.relay.as_ref().map_or(0, Relay::queued)
    }
    /// The transmitting end of a hop at the start of a slot; STATUS PDUs about `reverse` travel on this hop.
    pub fn hop_sender<'a>(
        &'a mut self,
        (leg, hop): (Leg, Hop),
        reverse: &'a mut Rlc,
        now: Instant,
    ) -> Option<Sender<'a>> {
        let Self { tx, buffer, rlc, relay, second, .. } = self;
        let (rlc, relay) = match leg {
            Leg::Main => (rlc, relay.as_mut()),
            Leg::Second => second.as_mut().map(|second| (&mut second.rlc, second.relay.as_mut()))?,
        };
        if hop == Hop::First {
            let source = pdcp::Source { tx, buffer: &mut **buffer, leg, now };
            return Some(Sender { rlc, reverse, source });
        }
        let Relay { tx, above, rlc, .. } = relay?;
        Some(Sender { rlc, reverse, source: pdcp::Source { tx, buffer: above, leg: Leg::Main, now } })
    }
    /// RLC of a hop receives PDUs, and its timers that are due are handled. SDUs go up, or on to the next
    /// hop.
    pub fn hop_deliver(
        &mut self,
        at: (Leg, Hop),
        slot: Slot,
        pdus: impl Iterator<Item = rlc::Pdu>,
        mut ended: impl FnMut(Ended),
    ) {
        let (above, mut received) = (self.hop_waiting(at), Vec::new());
        let Some(rlc) = self.hop_rlc_mut(at) else { return };
        pdus.for_each(|pdu| rlc.receive(slot, pdu, &mut received));
        rlc.check_timers(slot, || above, &mut received);
        for result in received {
            match result {
                Reassembled::Sdu(pdu) if at.1 == Hop::First && self.relay_of(at.0).is_some() => {
                    let full = self.relay_of(at.0).and_then(|relay| relay.push(pdu));
                    full.into_iter().for_each(|pdu| self.lose(pdu, DropReason::QueueFull, &mut ended));
                }
                Reassembled::Sdu(pdu) => self.arrive(slot, pdu, &mut ended),
                Reassembled::Incomplete(pdu) => self.lose(pdu, DropReason::RlcReassembly, &mut ended),
            }
        }
    }
    /// HARQ of a hop lost a PDU.
    pub fn hop_pdu_lost(
        &mut self,
        at: (Leg, Hop),
        pdu: rlc::Pdu,
        reason: DropReason,
        mut ended: impl FnMut(Ended),
    ) {
        let (Some(rlc), mut lost) = (self.hop_rlc_mut(at), Vec::new()) else { return };
        rlc.on_pdu_lost(pdu, |pdu| lost.push(pdu));
        lost.into_iter().for_each(|pdu| self.lose(pdu, reason, &mut ended));
    }
    /// Whether t-Reordering of PDCP is due.
    pub fn reordering_due(&self, slot: Slot) -> bool {
        self.rx.expires_at().is_some_and(|at| at <= slot)
    }
    pub fn check_reordering(&mut self, slot: Slot, mut ended: impl FnMut(Ended)) {
        self.rx.check_timer(slot, |packet| ended(Ended::Delivered(packet)));
    }
    /// Packets that only the first path has during an overlap, without those in HARQ: SDUs from before it.
    pub fn held_by_first(&self) -> u64 {
        self.rlc.held() + self.relay.as_ref().map_or(0, Relay::held)
    }
}
