//! One direction of a data radio bearer: the buffer above PDCP, the PDCP pair, and its paths' RLC pairs.
//!
//! A bearer can change its path: handover, change between a direct and an infrastructure link, or
//! re-establishment after a radio-link failure (TS 38.323 §5.1.2, TS 36.323 §5.2). [`Bearer::switch`] does so
//! at once; with [`Fate::Duplicate`] a second path joins the first, and [`Bearer::confirm`] ends the first
//! (TS 38.300 §9.2.3.2). A former path may go on to receive the blocks that are in flight. The COUNTs go on,
//! and the receiving PDCP drops copies and orders by COUNT: no SDU is delivered twice or out of order. An SDU
//! of which several copies travel has its packet in the transmitting PDCP until the first arrives.

mod carried;
mod hops;
mod relay;

pub use carried::Carried;
pub(crate) use relay::{Hop, PathRlc};

use crate::duplex::Direction;
use crate::mac::nr_encode::{self, EncodedPdu};
use crate::mac::pdu::{self as mac, Sender};
use crate::pdcp::{self, Content, Leg, PdcpConfig, StatusReport};
use crate::rlc::{self, Reassembled, Rlc, RlcConfig};
use crate::slot::{Slot, SlotSpan};
use paceline_net::{DropReason, Instant, Packet, SduQueue};
use relay::Relay;

/// The fate of the SDUs that RLC of the old path took and whose delivery is not confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// They are dropped.
    Drop,
    /// In AM they are sent again on the new path, ahead of other SDUs and in the order of their COUNTs (TS
    /// 38.323 §5.1.2, TS 36.323 §5.2.1.1): copies of delivered SDUs are among them. In UM they are dropped
    /// (§5.2.2.1): the new path sends SDUs that RLC did not take.
    Forward {
        /// Whether the receiving PDCP sends a status report, in AM (TS 38.323 §5.4.1, TS 36.323 §5.3.1): on
        /// its arrival the transmitter deletes the copies that still wait.
        status_report: bool,
    },
    /// Both paths carry all SDUs until the switch is confirmed. SDUs that only RLC of the old path has are
    /// forwarded then.
    Duplicate,
}

/// The end of a packet in a bearer, or of a copy of one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ended {
    Delivered(Packet),
    Dropped(Packet, DropReason),
    /// The receiving PDCP discards a copy.
    Copy,
}

/// A path beside the one that a bearer has.
struct Second {
    rlc: Rlc,
    relay: Option<Relay>,
    role: Role,
}

impl Second {
    /// Number of packets held.
    fn held(&self) -> u64 {
        self.rlc.held() + self.relay.as_ref().map_or(0, Relay::held)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The path sends as well. Both paths have the SDUs from COUNT `from` on; the RLC of the present path had
    /// none from `until` on before.
    Target { from: u32, until: u32 },
    /// The path sends no more and receives the blocks that are in flight. Without forwarding no SDU below
    /// this COUNT arrives after its end.
    Former(Option<u32>),
}

/// One direction of a bearer.
pub(crate) struct Bearer {
    pub buffer: Box<dyn SduQueue + Send>,
    tx: pdcp::Tx,
    rx: pdcp::Rx,
    /// RLC of the present path.
    pub rlc: Rlc,
    /// Its second hop, if it has one.
    relay: Option<Relay>,
    second: Option<Second>,
    pdcp: PdcpConfig,
    /// Mode and t-Reordering of RLC.
    rlc_config: (RlcConfig, SlotSpan),
}

impl Bearer {
    pub fn new(
        buffer: Box<dyn SduQueue + Send>,
        pdcp: PdcpConfig,
        rlc: RlcConfig,
        t_reordering: SlotSpan,
    ) -> Self {
        let rlc_config = (rlc, t_reordering);
        let rlc = Rlc::new(rlc, t_reordering);
        // In AM a gap ends, since nothing is lost. In UM it lasts as long as one of RLC.
        let lte_reordering = (!rlc.is_am()).then_some(t_reordering);
        let (tx, rx) = (pdcp::Tx::new(pdcp), pdcp::Rx::new(pdcp, lte_reordering));
        Self { buffer, tx, rx, rlc, relay: None, second: None, pdcp, rlc_config }
    }
    /// The transmitting end at the start of a slot; `reverse` is the other direction.
    pub fn sender<'a>(&'a mut self, reverse: &'a mut Self, now: Instant) -> Sender<'a> {
        let source = pdcp::Source { tx: &mut self.tx, buffer: &mut *self.buffer, leg: Leg::Main, now };
        Sender { rlc: &mut self.rlc, reverse: &mut reverse.rlc, source }
    }
    /// The packets of which a MAC PDU has bytes; without those of AM in LTE.
    pub fn carried(&self, pdu: &mac::Pdu) -> Vec<Carried> {
        carried::of(pdu, &self.rlc)
    }
    /// The bytes of an NR block that this direction has just filled.
    pub fn encode(&self, pdu: &mac::Pdu, direction: Direction) -> Option<EncodedPdu> {
        match self.pdcp {
            PdcpConfig::Lte => None,
            PdcpConfig::Nr(nr) => Some(nr_encode::encode(pdu, &self.rlc, nr, direction)),
        }
    }
    /// Data above RLC.
    pub fn waiting(&self) -> pdcp::Waiting {
        self.tx.waiting(Leg::Main, &*self.buffer)
    }
    /// Bytes available for transmission: above RLC, in RLC, and the status report about the other direction.
    pub fn available(&self, reverse: &Self) -> u64 {
        self.rlc.available(self.waiting()) + u64::from(reverse.rlc.status_len())
    }
    /// Whether a block would carry data; a full RLC window holds data back.
    pub fn sendable(&self, reverse: &Self) -> bool {
        self.rlc.sendable(self.waiting()) || reverse.rlc.status_len() > 0
    }
    /// Whether a full window of RLC AM alone holds data back.
    pub fn window_stalled(&self) -> bool {
        // Asked in every slot; the buffer above matters only behind a full window.
        self.rlc.window_full() && self.rlc.window_stalled(self.waiting())
    }
    /// Number of packets held at both ends.
    pub fn held(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, Second::held);
        let relay = self.relay.as_ref().map_or(0, Relay::held);
        self.buffer.packets() as u64 + self.tx.held() + self.rx.held() + self.rlc.held() + relay + second
    }
    /// Whether no timer of RLC or PDCP runs and no status report is triggered.
    pub fn idle(&self) -> bool {
        let relay_idle = self.relay.as_ref().is_none_or(Relay::idle);
        self.rlc.idle() && relay_idle && self.second.is_none() && self.rx.expires_at().is_none()
    }
    /// Whether a timer is due in `slot`.
    pub fn timers_due(&self, slot: Slot) -> bool {
        self.rlc.timers_due(slot)
            || self.rx.expires_at().is_some_and(|at| at <= slot)
            || self.second.as_ref().is_some_and(|second| second.rlc.timers_due(slot))
    }
    /// Handles the timers that have expired, after RLC passed `reassembled` to PDCP; status reports of PDCP
    /// go to the transmitting end of the other direction.
    pub fn deliver(
        &mut self,
        reverse: &mut Self,
        slot: Slot,
        reassembled: &mut Vec<Reassembled>,
        mut ended: impl FnMut(Ended),
    ) {
        self.rlc.check_timers(slot, || self.tx.waiting(Leg::Main, &*self.buffer), reassembled);
        if let Some(second) = &mut self.second {
            let waiting = || self.tx.waiting(Leg::Second, &*self.buffer);
            second.rlc.check_timers(slot, waiting, reassembled);
        }
        for result in reassembled.drain(..) {
            match result {
                Reassembled::Sdu(pdcp::Pdu { content: Content::Report(report), .. }) => {
                    reverse.tx.on_report(&report);
                }
                Reassembled::Sdu(pdu) => self.arrive(slot, pdu, &mut ended),
                Reassembled::Incomplete(pdu) => self.lose(pdu, DropReason::RlcReassembly, &mut ended),
            }
        }
        self.rx.check_timer(slot, |packet| ended(Ended::Delivered(packet)));
    }
    /// HARQ of the present path lost a PDU.
    pub fn on_pdu_lost(&mut self, pdu: rlc::Pdu, reason: DropReason, mut ended: impl FnMut(Ended)) {
        let mut lost = Vec::new();
        self.rlc.on_pdu_lost(pdu, |pdu| lost.push(pdu));
        lost.into_iter().for_each(|pdu| self.lose(pdu, reason, &mut ended));
    }
    fn arrive(&mut self, slot: Slot, pdu: pdcp::Pdu, ended: &mut impl FnMut(Ended)) {
        let count = pdu.count;
        let Some(packet) = self.tx.shared.arrive(pdu) else { return ended(Ended::Copy) };
        let late = self.rx.receive(slot, count, packet, |packet| ended(Ended::Delivered(packet)));
        if let Some(packet) = late {
            ended(Ended::Dropped(packet, DropReason::PdcpReordering));
        }
    }
    fn lose(&mut self, pdu: pdcp::Pdu, reason: DropReason, ended: &mut impl FnMut(Ended)) {
        if let Some(packet) = self.tx.shared.lose(pdu) {
            ended(Ended::Dropped(packet, reason));
        }
    }

    /// Queues a status report of PDCP about the other direction.
    pub fn send_report(&mut self, report: StatusReport) {
        self.tx.send_report(report);
    }
    /// Changes to the RLC entities `to` of another path; SDUs that are dropped get `reason`. With `keep_harq`
    /// the blocks of the old path that are in flight may still arrive, at [`Bearer::second`], until
    /// [`Bearer::end_second`]; else the old path ends. Returns the status report that the other direction has
    /// to send.
    pub fn switch(
        &mut self,
        to: impl Into<PathRlc>,
        (fate, keep_harq): (Fate, bool),
        slot: Slot,
        reason: DropReason,
        mut ended: impl FnMut(Ended),
    ) -> Option<StatusReport> {
        self.end_second(slot, reason, &mut ended);
        if fate == Fate::Drop {
            // PDUs of a former path, which might lie below those that RLC of this one has.
            self.tx.drop_numbered(|packet| ended(Ended::Dropped(packet, reason)));
        }
        let (from, until) = (self.tx.next_count(), self.tx.next_to_send());
        if fate == Fate::Duplicate {
            self.tx.begin_overlap();
            self.rx.overlap = true;
            let PathRlc { first, relay } = to.into();
            self.second = Some(Second { rlc: first, relay, role: Role::Target { from, until } });
            return None;
        }
        let old = self.replace_path(to.into());
        let report = fate == Fate::Forward { status_report: true } && old.first.is_am();
        self.retire(old, (fate != Fate::Drop, report, keep_harq), (from, until), (slot, reason), &mut ended);
        report.then(|| self.rx.report())
    }
    /// The switch to the second path is confirmed, and the first ends as in [`Bearer::switch`]. SDUs that its
    /// RLC had before the overlap are forwarded in AM.
    pub fn confirm(&mut self, keep_harq: bool, slot: Slot, reason: DropReason, mut ended: impl FnMut(Ended)) {
        let Some(Second { rlc: first, relay, role: Role::Target { from, until } }) = self.second.take()
        else {
            return;
        };
        let old = self.replace_path(PathRlc { first, relay });
        self.tx.confirm_overlap(|packet| ended(Ended::Dropped(packet, reason)));
        if old.first.is_am() {
            // The new path has sent SDUs already that lie above those forwarded.
            self.rx.expect_unordered_below(self.tx.next_count());
        }
        self.retire(old, (true, true, keep_harq), (from, until), (slot, reason), &mut ended);
    }
    /// A former path, of which no block is in flight any more, or the second path of a switch that is not
    /// confirmed ends.
    pub fn end_second(&mut self, slot: Slot, reason: DropReason, mut ended: impl FnMut(Ended)) {
        let Some(Second { rlc, relay, role }) = self.second.take() else { return };
        let mut path = PathRlc { first: rlc, relay };
        self.flush(&mut path, slot, reason, &mut ended);
        self.rx.overlap = false;
        let mut rest = Vec::new();
        path.relay.into_iter().for_each(|relay| relay.release(|pdu| rest.push(pdu)));
        path.first.release(|pdu| rest.push(pdu));
        rest.into_iter().for_each(|pdu| self.lose(pdu, reason, &mut ended));
        match role {
            Role::Target { .. } => self.tx.cancel_overlap(|packet| ended(Ended::Dropped(packet, reason))),
            Role::Former(None) => {}
            Role::Former(Some(until)) => {
                self.rx.skip_to(slot, until, |packet| ended(Ended::Delivered(packet)));
            }
        }
    }
    /// Deletes the copies of delivered SDUs that wait to be sent again, as if a status report had arrived.
    pub fn delete_copies(&mut self) {
        self.tx.delete_copies();
    }
    /// The path of `old` does not send any more: its PDUs below `from` that are not confirmed are forwarded
    /// in AM, if `forwards`. Else no SDU below `until` arrives after its end. With `flushes`, SDUs of LTE's
    /// AM that were received out of sequence are delivered; else they count as not received.
    fn retire(
        &mut self,
        mut old: PathRlc,
        (forwards, flushes, keep_harq): (bool, bool, bool),
        (from, until): (u32, u32),
        (slot, reason): (Slot, DropReason),
        ended: &mut impl FnMut(Ended),
    ) {
        let (passes_on, is_am) = (forwards, old.first.is_am());
        let forwards = forwards && is_am;
        self.rx.overlap = true;
        if forwards && flushes || !is_am && !keep_harq {
            self.flush(&mut old, slot, reason, ended);
        }
        let PathRlc { first: mut old, relay } = old;
        let mut again = Vec::new();
        let below = |count: u32, limit: u32| limit.wrapping_sub(count).wrapping_sub(1) < u32::MAX / 2;
        let goes_on = |pdu: &pdcp::Pdu| forwards && !pdu.is_control() && below(pdu.count, from);
        if keep_harq {
            debug_assert!(relay.is_none(), "a path of two hops ends with its blocks");
            let shared = &mut self.tx.shared;
            old.for_each_unconfirmed(|pdu| {
                if goes_on(pdu) {
                    again.push(shared.share(pdu));
                }
            });
            self.tx.send_again(again);
            let role = Role::Former((!forwards).then_some(until));
            self.second = Some(Second { rlc: old, relay: None, role });
            return;
        }
        self.rx.overlap = false;
        let mut rest = Vec::new();
        if let Some(relay) = relay {
            // PDUs that wait in the node have left the RLC of the first hop, in UM too.
            let (waiting, mut sent) = (relay.waiting().packets as usize, Vec::new());
            relay.release(|pdu| sent.push(pdu));
            let waiting = sent.split_off(sent.len() - waiting);
            for pdu in waiting {
                if passes_on && below(pdu.count, from) { again.push(pdu) } else { rest.push(pdu) }
            }
            for pdu in sent {
                if goes_on(&pdu) { again.push(pdu) } else { rest.push(pdu) }
            }
        }
        old.release(|pdu| if goes_on(&pdu) { again.push(pdu) } else { rest.push(pdu) });
        self.tx.send_again(again);
        rest.into_iter().for_each(|pdu| self.lose(pdu, reason, ended));
        if !forwards {
            let next = self.tx.next_to_send();
            let until = if below(next, until) { next } else { until };
            self.rx.skip_to(slot, until, |packet| ended(Ended::Delivered(packet)));
        }
    }
    fn replace_path(&mut self, to: PathRlc) -> PathRlc {
        let first = std::mem::replace(&mut self.rlc, to.first);
        PathRlc { first, relay: std::mem::replace(&mut self.relay, to.relay) }
    }
    /// The receivers of a path that ends give what they have: to the node between its hops, and upwards.
    fn flush(&mut self, path: &mut PathRlc, slot: Slot, reason: DropReason, ended: &mut impl FnMut(Ended)) {
        let mut received = Vec::new();
        path.first.flush(&mut received);
        if let Some(relay) = &mut path.relay {
            for result in received.drain(..) {
                match result {
                    Reassembled::Sdu(pdu) => relay.take_in(pdu),
                    Reassembled::Incomplete(pdu) => self.lose(pdu, reason, ended),
                }
            }
            relay.rlc.flush(&mut received);
        }
        self.pass_up(received, slot, reason, ended);
    }
    /// The receiver of a path that ends passes SDUs up; a status report in it is of no use any more.
    fn pass_up(
        &mut self,
        received: Vec<Reassembled>,
        slot: Slot,
        reason: DropReason,
        ended: &mut impl FnMut(Ended),
    ) {
        for result in received {
            match result {
                Reassembled::Sdu(pdu) if pdu.is_control() => {}
                Reassembled::Sdu(pdu) => self.arrive(slot, pdu, ended),
                Reassembled::Incomplete(pdu) => self.lose(pdu, reason, ended),
            }
        }
    }

    /// Changes to RLC entities of the same configuration in another cell; see [`Bearer::switch`]. The
    /// source's HARQ is reset.
    pub fn hand_over(&mut self, fate: Fate, slot: Slot, ended: impl FnMut(Ended)) -> Option<StatusReport> {
        let (config, t_reordering) = self.rlc_config;
        let to = Rlc::new(config, t_reordering);
        self.switch(to, (fate, false), slot, DropReason::PathSwitch, ended)
    }
    /// Re-establishes RLC after a radio-link failure. In LTE, SDUs of AM are dropped and UM goes on as it
    /// was; in NR, SDUs of AM are sent again and those of UM dropped.
    pub fn reestablish(&mut self, slot: Slot, mut ended: impl FnMut(Ended)) {
        let reason = DropReason::RadioLinkFailure;
        self.end_second(slot, reason, &mut ended);
        let fate = match self.rlc {
            Rlc::Um(_) => return,
            Rlc::Am(_) | Rlc::NrUm(_) => Fate::Drop,
            Rlc::NrAm(_) => Fate::Forward { status_report: false },
        };
        let (config, t_reordering) = self.rlc_config;
        self.switch(Rlc::new(config, t_reordering), (fate, false), slot, reason, ended);
    }
}

#[cfg(test)]
mod tests;
