//! The choice of paths and the change from one to the other (Nardini, Stea, Virdis 2016: the eNB takes the
//! mode with the higher CQI once in a second).

use super::config::Selection;
use super::node::Sidelink;
use super::radio::Air;
use super::stats::{Carried, FlowDirection, PathKind, Switch};
use crate::bearer::{Ended, Fate};
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Bytes, DropReason, Output};

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
                    for pair in self.with_peer() {
                        (0..2).for_each(|flow| self.switch(slot, pair, flow));
                    }
                }
            }
        }
    }
    /// The pairs, without ordinary stations.
    fn with_peer(&self) -> Vec<usize> {
        (0..self.pairs.len()).filter(|pair| self.has_peer(*pair)).collect()
    }
    fn select_best(&mut self, slot: Slot, hysteresis: u8) {
        for pair in self.with_peer() {
            for flow in 0..2 {
                let channel = &self.pairs[pair].channel;
                let (direct, uplink) = (channel.direct.cqi, channel.uplink[flow].cqi);
                let (own, other) = match self.pairs[pair].flows[flow].chosen() {
                    PathKind::Direct => (direct, uplink),
                    PathKind::Infrastructure => (uplink, direct),
                };
                if other > own + hysteresis {
                    self.switch(slot, pair, flow);
                }
            }
        }
    }

    /// A flow changes to its other path. MAC of the former one is reset, and its packets have the configured
    /// fate; with [`Fate::Duplicate`] both paths send for a time. With [`Fate::Forward`], as if a status
    /// report had arrived, the station has its packets again that the far station does not have: those that
    /// wait in the eNB as well.
    fn switch(&mut self, slot: Slot, pair: usize, flow: usize) {
        let before = self.output.len();
        let to = self.pairs[pair].flows[flow].chosen().other();
        let relay = self.relay_of(to);
        let own = &mut self.pairs[pair].flows[flow];
        if own.overlap.is_some() {
            self.leave(slot, pair, flow, to.other(), true);
            let own = &mut self.pairs[pair].flows[flow];
            own.bearer.end_second(slot, DropReason::PathSwitch, |ended| self.ends.push(ended));
            own.take_path(to);
        } else if self.config.fate == Fate::Duplicate {
            let path = own.bearer.new_path(relay);
            let ends = &mut self.ends;
            own.bearer.switch(path, (Fate::Duplicate, false), slot, DropReason::PathSwitch, |e| ends.push(e));
            own.overlap = Some(false);
        } else {
            self.change(slot, pair, flow, to);
        }
        self.pass_on(slot, pair, flow, Air::of(to.other())[0]);
        let mut dropped = Carried::default();
        for output in self.output.iter().skip(before) {
            if let Output::Drop(packet, DropReason::PathSwitch) = output {
                dropped.packets += 1;
                dropped.bytes += u64::from(packet.len);
            }
        }
        let channel = &self.pairs[pair].channel;
        let cqi = (channel.direct.cqi, channel.uplink[flow].cqi);
        let (at, direction) = (self.clock.start(slot), FlowDirection::BOTH[flow]);
        self.log_switch(Switch { at, pair, direction, to, cqi, dropped });
    }
    /// The buffer of the eNB on a path that has one.
    fn relay_of(&self, path: PathKind) -> Option<Bytes> {
        (path == PathKind::Infrastructure).then_some(self.config.buffer)
    }
    /// A flow changes to a path at once.
    fn change(&mut self, slot: Slot, pair: usize, flow: usize, to: PathKind) {
        let (now, fate, reason) = (self.clock.start(slot), self.config.fate, DropReason::PathSwitch);
        self.leave(slot, pair, flow, to.other(), !self.config.interrupt_harq);
        let relay = self.relay_of(to);
        let own = &mut self.pairs[pair].flows[flow];
        let path = own.bearer.new_path(relay);
        own.bearer.switch(path, (fate, false), slot, reason, |ended| self.ends.push(ended));
        own.bearer.delete_copies();
        if fate == Fate::Drop {
            let waiting = std::iter::from_fn(|| own.bearer.buffer.pop(now));
            self.ends.extend(waiting.map(|packet| Ended::Dropped(packet, reason)));
        }
        own.take_path(to);
    }
    /// MAC of a path is reset. With `delivers` the blocks that its receivers are decoding reach RLC before;
    /// in AM they are sent again.
    fn leave(&mut self, slot: Slot, pair: usize, flow: usize, path: PathKind, delivers: bool) {
        let reason = DropReason::PathSwitch;
        for air in Air::of(path).iter().copied() {
            let own = &mut self.pairs[pair].flows[flow];
            let mut lost = Vec::new();
            if !delivers {
                lost.extend(own.mac(air).decoded.drain(..).map(|(_, pdu)| pdu));
            }
            own.mac(air).reset(|pdu| lost.push(pdu));
            own.lose(air, lost, reason, &mut self.ends);
            if self.config.rlc.is_am() {
                own.mac(air).decoded.clear();
            }
            own.mac(air).decoded.iter_mut().for_each(|(due, _)| *due = slot);
            self.pairs[pair].deliver(slot, flow, air, &mut self.ends);
            self.pass_on(slot, pair, flow, air);
        }
        self.pairs[pair].flows[flow].sender(Air::of(path)[0]).reset_access();
    }

    /// Of two paths that send, the former ends once it has nothing left that the other one does not have, and
    /// the other has delivered a packet. In AM both flows change at the same time, since status reports take
    /// the opposite direction.
    pub(super) fn confirm_paths(&mut self, slot: Slot) {
        for pair in 0..self.pairs.len() {
            let ready = [0, 1].map(|flow| {
                let own = &self.pairs[pair].flows[flow];
                own.overlap.map(|arrived| (arrived || own.held() == 0) && own.drained())
            });
            let together = !self.config.rlc.is_am() || ready.iter().all(|ready| *ready != Some(false));
            for flow in (0..2).filter(|flow| together && ready[*flow] == Some(true)) {
                let former = self.pairs[pair].flows[flow].path;
                self.leave(slot, pair, flow, former, true);
                let own = &mut self.pairs[pair].flows[flow];
                own.bearer.confirm(false, slot, DropReason::PathSwitch, |ended| self.ends.push(ended));
                own.bearer.delete_copies();
                own.take_path(former.other());
                self.pass_on(slot, pair, flow, Air::of(former)[0]);
            }
        }
    }
}
