//! The transmission of a station in a slot of the uplink: Msg3, a retransmission, a granted new block, or a
//! scheduling request.

use crate::air::Transmission;
use crate::cell::air::Air;
use crate::cell::config::Carrier;
use crate::cell::configured::ConfiguredGrants;
use crate::cell::random_access::{MSG3_PROCESS, start_msg3};
use crate::cell::station::{Grant, Station};
use crate::duplex::Direction;
use crate::mac::scheduling_request::SrOutcome;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::Output;
use std::collections::VecDeque;

/// The uplink of one station in one slot.
pub(in crate::cell) struct Pusch<'a> {
    pub slot: Slot,
    pub index: usize,
    pub carrier: &'a Carrier,
    pub configured: &'a ConfiguredGrants,
    pub air: &'a mut Air,
    pub output: &'a mut VecDeque<Output>,
}

impl Pusch<'_> {
    /// The station transmits. Returns the outcome of its scheduling request.
    pub fn transmit(&mut self, station: &mut Station) -> SrOutcome {
        match self.carrier.timing.uplink.process_in(self.slot) {
            Some(process) => self.transmit_in_turn(station, process),
            None => self.transmit_by_grant(station),
        }
    }
    /// Synchronous HARQ: `process` is the one of this slot.
    fn transmit_in_turn(&mut self, station: &mut Station, process: usize) -> SrOutcome {
        start_msg3(self.slot, self.carrier, station, self.output);
        if let Some(block) = station.uplink.mac.harq.block(process) {
            let prbs = block.prbs;
            if !prbs.is_empty() {
                self.transmit_again(station, process, prbs); // else no free PRBs for the retransmission
            }
            return SrOutcome::None;
        }
        if !station.connected() {
            return SrOutcome::None;
        }
        match station.grants.pop_front_if(|grant| grant.sent_at == self.slot) {
            Some(grant) => self.transmit_new(station, &grant),
            None if station.procedure.is_none() => return self.request_grant(station),
            None => {}
        }
        SrOutcome::None
    }
    /// Asynchronous HARQ: the grant of this slot states the process.
    fn transmit_by_grant(&mut self, station: &mut Station) -> SrOutcome {
        let (slot, sr_grant) = (self.slot, self.carrier.config.access.sr_grant);
        let grant = station.grants.pop_front_if(|grant| grant.sent_at == slot);
        if start_msg3(slot, self.carrier, station, self.output) {
            // Msg3 has the slot; a grant for it is lost.
            match grant {
                Some(grant) if grant.new_data => station.estimate.on_lost(slot, sr_grant),
                Some(grant) if station.uplink.mac.harq.block(grant.process).is_some() => {
                    station.uplink.mac.harq.miss_retransmission(grant.process, slot);
                }
                _ => {}
            }
            if let Some(prbs) = station.uplink.mac.harq.block(MSG3_PROCESS).map(|block| block.prbs) {
                self.transmit_again(station, MSG3_PROCESS, prbs);
            }
            return SrOutcome::None;
        }
        let busy = |grant: &Grant| station.uplink.mac.harq.block(grant.process).is_some();
        match grant {
            Some(grant) if !grant.new_data && busy(&grant) => {
                self.transmit_again(station, grant.process, grant.prbs);
            }
            Some(grant) if !grant.new_data => {}
            _ if !station.connected() => {}
            // Msg3 has taken the process since the grant.
            Some(grant) if busy(&grant) => station.estimate.on_lost(slot, sr_grant),
            Some(grant) => self.transmit_new(station, &grant),
            None if station.procedure.is_some() => {}
            None if self.configured.has(self.index) => self.transmit_configured(station),
            None => return self.request_grant(station),
        }
        SrOutcome::None
    }
    /// Transmits data in the station's occasion of a configured grant, without a scheduling request.
    fn transmit_configured(&mut self, station: &mut Station) {
        let Some(occasion) = self.configured.occasion(self.index, self.slot) else { return };
        let (Some(mcs), Some(process)) = (self.configured.mcs, station.free_uplink_process()) else { return };
        if station.uplink_available() > 0 {
            let (sent_at, prbs) = (self.slot, occasion.prbs);
            let n_prb = prbs.len() as u16;
            let grant = Grant { sent_at, process, new_data: true, mcs, prbs, n_prb, tpc_db: 0.0 };
            self.transmit_new(station, &grant);
        }
    }
    /// Transmits the block of a process that started before, or Msg3.
    fn transmit_again(&mut self, station: &mut Station, process: usize, prbs: PrbSet) {
        if let Some(procedure) = station.procedure.as_mut().filter(|p| p.msg3_in(process)) {
            let timer = self.carrier.config.random_access.contention_timer;
            procedure.on_msg3(self.slot, process, timer);
        }
        self.send(process, prbs);
    }
    fn transmit_new(&mut self, station: &mut Station, grant: &Grant) {
        let (slot, now) = (self.slot, self.carrier.start(self.slot));
        let headroom = station.apply_tpc(slot, grant, self.air.network());
        let Grant { process, mcs, prbs, n_prb, .. } = *grant;
        let size = self.carrier.pusch_size;
        let bits = mcs.block_bits(size, n_prb);
        let Station { access, uplink, downlink, .. } = station;
        let due = access.bsr_due(slot, || uplink.bearer.available(&downlink.bearer) > 0);
        let storage = station.uplink.mac.pdu_storage();
        station.count_grant_wait(now);
        let pdu = station.uplink_sender(now).uplink_pdu(slot, bits / 8, due, headroom, storage);
        if let Some(report) = pdu.headroom {
            station.on_headroom_sent(slot, report);
        }
        station.uplink.collect_dropped(self.output);
        let Station { access, uplink, downlink, .. } = station;
        let emptied = || uplink.bearer.available(&downlink.bearer) == 0;
        access.on_block(slot, now, &self.carrier.config.access, pdu.bsr.is_some(), emptied);
        station.uplink.mac.start(process, pdu, mcs, size, n_prb);
        self.send(process, prbs);
    }
    fn send(&mut self, process: usize, prbs: PrbSet) {
        self.air.send(Transmission { station: self.index, direction: Direction::Up, process, prbs });
    }
    fn request_grant(&self, station: &mut Station) -> SrOutcome {
        let Station { access, uplink, downlink, .. } = station;
        let has_data = || uplink.bearer.available(&downlink.bearer) > 0;
        access.scheduling_request(self.slot, &self.carrier.config.access, has_data)
    }
}
