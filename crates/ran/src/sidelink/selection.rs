//! The choice of paths and the change from one to the other (Nardini, Stea, Virdis 2016: the eNB takes the
//! mode with the higher CQI once in a second).

use super::access::Access;
use super::config::Selection;
use super::flow::Hop;
use super::node::Sidelink;
use super::stats::{Carried, FlowDirection, PathKind, Switch};
use crate::bearer::Fate;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{DropReason, Output, Packet};

impl Sidelink {
    /// The slot of the next choice after this one.
    pub(super) fn next_selection(&self, after: Option<Slot>) -> Option<Slot> {
        match &self.config.selection {
            Selection::Fixed => None,
            Selection::BestCqi { period, .. } => {
                Some(after.map_or(Slot(period.0), |slot| slot.start_of(*period) + *period))
            }
            Selection::Scripted(slots) => slots.get(self.scripted).copied(),
        }
    }
    /// Changes the paths that are to change in this slot.
    pub(super) fn select_paths(&mut self, slot: Slot) {
        match self.config.selection {
            Selection::Fixed => {}
            Selection::BestCqi { period, hysteresis } => {
                if slot.within(period) == SlotSpan(0) && slot > Slot(0) {
                    self.select_best(slot, hysteresis);
                }
            }
            Selection::Scripted(_) => {
                if self.next_selection(None).is_some_and(|at| at <= slot) {
                    self.scripted += 1;
                    for pair in 0..self.pairs.len() {
                        (0..2).for_each(|flow| self.switch(slot, pair, flow));
                    }
                }
            }
        }
    }
    fn select_best(&mut self, slot: Slot, hysteresis: u8) {
        for pair in 0..self.pairs.len() {
            for flow in 0..2 {
                let channel = &self.pairs[pair].channel;
                let (direct, uplink) = (channel.direct.cqi, channel.uplink[flow].cqi);
                let (own, other) = match self.pairs[pair].flows[flow].path {
                    PathKind::Direct => (direct, uplink),
                    PathKind::Infrastructure => (uplink, direct),
                };
                if other > own + hysteresis {
                    self.switch(slot, pair, flow);
                }
            }
        }
    }

    /// A flow changes to its other path: MAC of the former one is reset, and its packets have the configured
    /// fate. With [`Fate::Forward`], as if a status report had arrived, a packet that waits in the eNB is
    /// sent again by the station, which keeps its packets until the far station has them.
    fn switch(&mut self, slot: Slot, pair: usize, flow: usize) {
        let (now, fate, reason) = (self.clock.start(slot), self.config.fate, DropReason::PathSwitch);
        let before = self.output.len();
        for hop in [Hop::First, Hop::Relay] {
            if hop == Hop::Relay && self.pairs[pair].flows[flow].is_direct() {
                continue;
            }
            let (link, reverse) = self.pairs[pair].hop(flow, hop);
            if self.config.interrupt_harq {
                link.lose_decoded(reason, &mut self.from_hops);
            }
            link.reset_mac(reason, &mut self.from_hops);
            link.deliver_decoded(&mut reverse.bearer, slot, &mut self.from_hops);
            link.hand_over(fate, slot, &mut self.from_hops);
            link.bearer.delete_copies();
            if fate == Fate::Drop {
                link.drop_waiting(now, reason, &mut self.from_hops);
            }
            self.pass_on(slot, pair, flow, hop);
        }
        let own = &mut self.pairs[pair].flows[flow];
        if !own.is_direct() {
            // Packets of the relay are older than those of the station.
            let mut waiting: Vec<Packet> = own.relay.bearer.take_waiting(now);
            if !waiting.is_empty() {
                waiting.extend(own.first.bearer.take_waiting(now));
                waiting.into_iter().for_each(|packet| own.first.bearer.buffer.push(now, packet));
                own.first.collect_dropped(&mut self.output);
            }
        }
        own.path = own.path.other();
        own.access = Access::default();
        own.to_enb = 0;
        let to = own.path;
        let mut dropped = Carried::default();
        for output in self.output.iter().skip(before) {
            if let Output::Drop(packet, DropReason::PathSwitch) = output {
                dropped.packets += 1;
                dropped.bytes += u64::from(packet.len);
            }
        }
        let channel = &self.pairs[pair].channel;
        let cqi = (channel.direct.cqi, channel.uplink[flow].cqi);
        let direction = FlowDirection::BOTH[flow];
        self.log_switch(Switch { at: now, pair, direction, to, cqi, dropped });
    }
}
