//! State of one station: both directions, uplink access, link adaptation, power, and its connection.
//!
//! A radio-link failure (TS 36.331 §5.3.11) is reduced to its effect on the user plane: MAC is reset at once,
//! the station selects its cell again for a configured time, performs random access, and after a configured
//! time of signalling (§5.3.7) RLC of both directions is re-established. The buffers above RLC keep their
//! packets. The station learns of a failure that the eNB detects in the same slot.

mod cqi;
mod forwarding;
mod link;
mod power;
mod stations;

pub(super) use cqi::measures_cqi;
pub(super) use forwarding::Forwarding;
pub(super) use link::RadioLink;
pub(super) use stations::Stations;

use super::config::{
    CORE, Carrier, CellConfig, ForwardingConfig, Handover, StationConfig, StationLink, station_port,
};
use crate::air::{Network, StatedChannel, StationRadio};
use crate::bearer::{Bearer, Fate};
use crate::duplex::Direction;
use crate::mac::buffer_estimate::BufferEstimate;
use crate::mac::pdu::Sender;
use crate::mac::power_headroom::HeadroomReport;
use crate::mac::random_access::{Cause, Procedure};
use crate::mac::scheduling_request::{ProactiveGrants, UplinkAccess};
use crate::mcs::Mcs;
use crate::prb::PrbSet;
use crate::rat::Rat;
use crate::rlc::Reassembled;
use crate::slot::{Slot, SlotSpan};
use cqi::CqiReports;
use paceline_net::{DropReason, DropTail, Duration, Instant, Output, Packet, Stream};
use power::PowerLoop;
use std::collections::VecDeque;

pub(crate) struct Grant {
    pub sent_at: Slot,
    /// Number of the HARQ process.
    pub process: usize,
    /// Whether the grant is for a new block; otherwise for a retransmission by asynchronous HARQ.
    pub new_data: bool,
    pub mcs: Mcs,
    pub prbs: PrbSet,
    /// Their number, which is used more often than it changes.
    pub n_prb: u16,
    pub tpc_db: f64,
}

pub(crate) struct Station {
    /// Index of its serving cell among the served cells.
    pub cell: usize,
    pub radio: StationRadio,
    pub downlink: RadioLink,
    pub uplink: RadioLink,
    pub access: UplinkAccess,
    pub estimate: BufferEstimate,
    pub grants: VecDeque<Grant>,
    /// The last slot of an uplink grant.
    granted_for: Slot,
    /// The slot in which data were decoded last.
    pub active_at: Option<Slot>,
    /// PRBs for the estimated buffer within the station's power, and whether the power limits them.
    pub uplink_demand: (u16, bool),
    cqi: CqiReports,
    /// Without a connection the station neither sends nor receives data.
    connected: bool,
    power: PowerLoop,
    pub procedure: Option<Box<Procedure>>,
    /// Slot of the radio-link failure after which the connection is not re-established yet.
    failed_at: Option<Slot>,
    /// Slot in which the station left its cell at a handover, until service begins in the target.
    left_at: Option<Slot>,
    /// Downlink packets that the source forwards to the target, and those that wait for its end marker.
    pub forwarding: Option<Forwarding>,
    /// The target of a handover that keeps the source, and the slot in which its service begins.
    pub target: Option<(usize, Slot)>,
    /// The forwarding of that handover, which begins with service in the target.
    prepared: Option<ForwardingConfig>,
    /// The cells that the core knows: of packets towards the station, and of those from it.
    pub core_cells: [usize; 2],
}

impl Station {
    pub fn new(
        config: StationConfig,
        carrier: &Carrier,
        network: Option<&Network>,
        index: usize,
        seed: u64,
    ) -> Self {
        let (radio, cell_index) = match (config.link, network) {
            (StationLink::Stated { downlink_sinr_db, uplink_sinr_db, fading }, _) => {
                let channel = |mean_db, direction: &str| {
                    let name = format!("cell0/station{index}/{direction}/fading");
                    StatedChannel::new(mean_db, fading, Stream::new(seed, &name))
                };
                let downlink = channel(downlink_sinr_db, "downlink");
                (StationRadio::Stated(downlink, channel(uplink_sinr_db, "uplink")), 0)
            }
            (StationLink::Placed, Some(network)) => {
                let (placed, cell) = network.place(index);
                (StationRadio::Placed(Box::new(placed)), cell)
            }
            (StationLink::PlacedAt(point), Some(network)) => {
                let (placed, cell) = network.place_at(index, point);
                (StationRadio::Placed(Box::new(placed)), cell)
            }
            (StationLink::Placed | StationLink::PlacedAt(_), None) => {
                panic!("a station is placed in a deployment, and there is none")
            }
        };
        let (cell, timing) = (&carrier.config, &carrier.timing);
        let pdcp = cell.rat.pdcp(cell.numerology);
        let bearer = |buffer| Bearer::new(buffer, pdcp, cell.rlc, cell.t_reordering);
        let downlink_buffer = Box::new(DropTail::new(cell.downlink_buffer));
        Self {
            cell: cell_index,
            radio,
            downlink: RadioLink::new(
                bearer(downlink_buffer),
                Direction::Down,
                station_port(index),
                &timing.downlink,
                cell.numerology,
            ),
            uplink: RadioLink::new(
                bearer(config.uplink_buffer),
                Direction::Up,
                CORE,
                &timing.uplink,
                cell.numerology,
            ),
            access: UplinkAccess::new(cell.duplex.uplink_offset(index as u64, cell.access.sr_period).0),
            estimate: BufferEstimate::default(),
            grants: VecDeque::new(),
            granted_for: Slot(0),
            active_at: None,
            uplink_demand: (0, false),
            cqi: CqiReports::new(),
            connected: cell.random_access.connected_at_start,
            power: PowerLoop::default(),
            procedure: None,
            failed_at: None,
            left_at: None,
            forwarding: None,
            core_cells: [cell_index; 2],
            target: None,
            prepared: None,
        }
    }

    /// Reports the CQI if it is due: see [`CqiReports::report`].
    pub fn report_cqi(
        &mut self,
        slot: Slot,
        periodic: bool,
        carrier: &Carrier,
        network: &mut Option<Network>,
    ) {
        self.cqi.report(slot, periodic, carrier, &mut self.radio, network);
    }
    /// The downlink MCS for the report in use by the scheduler.
    pub fn downlink_mcs(&mut self, carrier: &Carrier, network: &mut Option<Network>) -> Option<Mcs> {
        let report = self.cqi.in_use()?;
        let quality = self.radio.quality(&carrier.adaptation, network, report);
        carrier
            .adaptation
            .downlink_mcs(quality, carrier.config.outer_loop.then_some(self.downlink.outer_loop_db))
    }
    /// The uplink MCS for the eNB's SINR estimate, and the largest number of PRBs within the station's power.
    /// Also chooses the next TPC command.
    pub fn uplink_mcs(
        &mut self,
        slot: Slot,
        carrier: &Carrier,
        network: &mut Option<Network>,
    ) -> Option<(Mcs, u16)> {
        let sinr = self.radio.estimate_uplink(network, self.cell, slot);
        if let Some(target) = network.as_ref().and_then(Network::tpc_target_db) {
            let outstanding: f64 = self.grants.iter().map(|grant| grant.tpc_db).sum();
            self.power.choose_command(target - sinr - outstanding);
        }
        let max_prb = self.power.max_prbs(carrier.config.uplink_prb);
        let correction_db = self.uplink.outer_loop_db;
        let CellConfig { max_uplink_mcs, max_harq_tx, .. } = carrier.config;
        let mcs = carrier.adaptation.uplink_mcs(sinr, correction_db, max_uplink_mcs, max_harq_tx)?;
        Some((mcs, max_prb))
    }
    pub fn grant(&mut self, sent_at: Slot, process: usize, mcs: Mcs, (prbs, n_prb): (PrbSet, u16)) {
        let tpc_db = self.power.command(sent_at);
        self.granted_for = sent_at;
        self.grants.push_back(Grant { sent_at, process, new_data: true, mcs, prbs, n_prb, tpc_db });
    }
    /// Grants the retransmission of a block by asynchronous HARQ.
    pub fn grant_again(&mut self, sent_at: Slot, process: usize, prbs: PrbSet) {
        let Some(block) = self.uplink.mac.harq.block(process) else { return };
        let (mcs, n_prb) = (block.mcs, prbs.len() as u16);
        self.grants.push_back(Grant { sent_at, process, new_data: false, mcs, prbs, n_prb, tpc_db: 0.0 });
        self.uplink.mac.harq.await_retransmission(process);
    }
    /// The first process of asynchronous uplink HARQ that carries no block and has no grant.
    pub fn free_uplink_process(&self) -> Option<usize> {
        self.uplink.mac.harq.free_but(self.grants.iter().map(|grant| grant.process))
    }
    /// The station applies a grant's TPC command. Returns the headroom report for the granted block if one is
    /// due.
    pub fn apply_tpc(
        &mut self,
        slot: Slot,
        grant: &Grant,
        network: Option<&Network>,
    ) -> Option<HeadroomReport> {
        self.power.apply(slot, grant, self.radio.placed_mut()?, network?)
    }
    /// Resets closed-loop power control at random access (TS 36.213 §5.1.1.1), and the headroom reports with
    /// it.
    pub fn reset_power(&mut self) {
        if let Some(placed) = self.radio.placed_mut() {
            placed.reset_tpc_correction();
        }
        self.power.reset();
    }
    pub fn on_headroom_sent(&mut self, slot: Slot, report: HeadroomReport) {
        let Some(placed) = self.radio.placed() else { return };
        self.power.on_report_sent(slot, placed);
        self.access.stats.headroom_reports += 1;
        self.access.stats.headroom_index_sum += report.counted_db();
    }
    /// The eNB decoded a headroom report whose block was first sent in `sent_at`.
    pub fn on_headroom(&mut self, report: HeadroomReport, sent_at: Slot) {
        self.power.on_report(report, sent_at);
    }

    /// Bytes available for uplink transmission: in the buffer, in RLC, and the status report about the
    /// downlink.
    pub fn uplink_available(&self) -> u64 {
        self.uplink.bearer.available(&self.downlink.bearer)
    }
    /// Bytes available for downlink transmission: in the buffer, in RLC, and the status report about the
    /// uplink.
    pub fn downlink_available(&self) -> u64 {
        self.downlink.bearer.available(&self.uplink.bearer)
    }
    /// Whether a downlink block would carry data; a stalled RLC window holds data back.
    pub fn downlink_sendable(&self) -> bool {
        self.downlink.bearer.sendable(&self.uplink.bearer)
    }
    /// The eNB's end of the bearer.
    pub fn downlink_sender(&mut self, now: Instant) -> Sender<'_> {
        self.downlink.bearer.sender(&mut self.uplink.bearer, now)
    }
    /// The station's end of the bearer.
    pub fn uplink_sender(&mut self, now: Instant) -> Sender<'_> {
        self.uplink.bearer.sender(&mut self.downlink.bearer, now)
    }

    /// Grants without a request, if they are due.
    pub fn grant_unasked(&mut self, slot: Slot, grants: &ProactiveGrants) {
        let due = self.estimate.bytes() == 0 && slot.since(self.granted_for) >= grants.after;
        if due && self.connected && grants.serve(slot, self.active_at) {
            self.estimate.raise_to(grants.size);
        }
    }
    /// Whether the eNB would grant PUSCH of `sent_at` for new data.
    pub fn wants_grant(&self, sent_at: Slot) -> bool {
        self.estimate.bytes() > 0 && self.connected() && !self.sends_msg3(sent_at)
    }
    /// Whether a response granted the first transmission of a Msg3 in a slot.
    pub fn sends_msg3(&self, sent_at: Slot) -> bool {
        self.procedure.as_ref().is_some_and(|procedure| procedure.msg3(sent_at).is_some())
    }
    /// Counts a grant of `n_prb` PRBs and the reason why it is smaller than the demand.
    pub fn count_grant(&mut self, rat: &Rat, n_prb: u16) {
        let (stats, (wanted, by_power)) = (&mut self.access.stats, self.uplink_demand);
        stats.grants += 1;
        if n_prb < rat.grantable(wanted) {
            stats.prb_limited_grants += 1;
        } else if by_power {
            stats.power_limited_grants += 1;
        }
    }
    /// Counts the uplink packets' wait for a first grant until `now`; see [`RadioLink::count_grant_wait`].
    pub fn count_grant_wait(&mut self, now: Instant) {
        self.uplink.count_grant_wait(now, self.access.awaits_first_block());
    }
    /// Drops SDUs whose discardTimer has expired (TS 36.323 §5.4). SDUs in the buffers have not been sent in
    /// part.
    pub fn discard_expired(&mut self, now: Instant, timer: Duration, output: &mut VecDeque<Output>) {
        self.count_grant_wait(now);
        for link in [&mut self.downlink, &mut self.uplink] {
            if link.bearer.buffer.packets() > 0 {
                link.bearer.buffer.expire(now, timer);
                link.collect_dropped(output);
            }
        }
    }
    pub fn connected(&self) -> bool {
        self.connected
    }
    /// A packet enters the buffer of its direction; one that follows a handover may be forwarded first.
    pub fn enter(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        output: &mut VecDeque<Output>,
    ) {
        if direction == Direction::Down {
            let arrived = match &mut self.forwarding {
                Some(forwarding) => forwarding.arrive(now, packet),
                None => Some(packet),
            };
            if let Some(packet) = arrived {
                self.downlink.bearer.buffer.push(now, packet);
                self.downlink.collect_dropped(output);
            }
            return;
        }
        let was_empty = self.uplink.bearer.buffer.packets() == 0 && self.uplink_available() == 0;
        self.count_grant_wait(now);
        self.uplink.bearer.buffer.push(now, packet);
        if was_empty {
            self.access.on_data_in_empty_buffer(now);
        }
        self.uplink.collect_dropped(output);
    }
    /// Delivers the decoded PDUs of both directions that are due. Returns whether the radio link has failed.
    pub fn deliver(
        &mut self,
        slot: Slot,
        now: Instant,
        reassembled: &mut Vec<Reassembled>,
        output: &mut VecDeque<Output>,
    ) -> bool {
        self.count_window_stalls();
        if !self.downlink.delivery_due(slot) && !self.uplink.delivery_due(slot) {
            return false;
        }
        if self.downlink.mac.delivery_due(slot) || self.uplink.mac.delivery_due(slot) {
            self.active_at = Some(slot);
        }
        // In AM, a delivery can create uplink data: a status report or a retransmission.
        let was_empty = self.uplink.bearer.rlc.is_am() && self.uplink_available() == 0;
        let Self { downlink, uplink, .. } = self;
        downlink.deliver(&mut uplink.bearer, slot, reassembled, output);
        uplink.deliver(&mut downlink.bearer, slot, reassembled, output);
        if was_empty && self.uplink_available() > 0 {
            self.access.on_data_in_empty_buffer(now);
        }
        self.count_radio_link_failures()
    }
    /// Counts the slot for each direction in which a full window of RLC holds data back.
    fn count_window_stalls(&mut self) {
        for link in [&mut self.downlink, &mut self.uplink] {
            if link.bearer.window_stalled() {
                link.mac.stats.window_stalls += SlotSpan(1);
            }
        }
    }
    /// Counts the radio-link failures that RLC reports; returns whether there is one.
    fn count_radio_link_failures(&mut self) -> bool {
        [&mut self.downlink, &mut self.uplink].map(RadioLink::count_radio_link_failure).contains(&true)
    }
    /// The radio link has failed: the station loses its connection.
    pub fn disconnect(&mut self, slot: Slot, now: Instant, output: &mut VecDeque<Output>) {
        self.reset_mac(now, DropReason::RadioLinkFailure, output);
        self.failed_at = Some(slot);
    }
    /// The station leaves its serving cell at a handover.
    pub fn leave(&mut self, slot: Slot, now: Instant, how: Handover, output: &mut VecDeque<Output>) {
        self.end_source(slot, now, how.keep_harq, output);
        let of_downlink = self.downlink.hand_over(how.fate, slot, output);
        let of_uplink = self.uplink.hand_over(how.fate, slot, output);
        of_downlink.into_iter().for_each(|report| self.uplink.bearer.send_report(report));
        of_uplink.into_iter().for_each(|report| self.downlink.bearer.send_report(report));
        self.left_at = Some(slot);
        if let Some(config) = how.forwarding {
            let mut forwarding = Forwarding::begin(config, self.forwarding.take());
            while let Some(packet) = self.downlink.bearer.buffer.pop(now) {
                forwarding.forward(now, packet);
            }
            self.forwarding = Some(forwarding);
        }
    }
    /// A handover begins that keeps the source until service begins in the target cell, in slot `at`.
    pub fn prepare(
        &mut self,
        slot: Slot,
        (target, at): (usize, Slot),
        forwarding: Option<ForwardingConfig>,
        output: &mut VecDeque<Output>,
    ) {
        self.downlink.hand_over(Fate::Duplicate, slot, output);
        self.uplink.hand_over(Fate::Duplicate, slot, output);
        self.target = Some((target, at));
        self.prepared = forwarding;
    }
    /// Service begins in the target cell of a handover that kept the source: it changes at once.
    pub fn change(&mut self, slot: Slot, now: Instant, output: &mut VecDeque<Output>) {
        self.end_source(slot, now, true, output);
        self.procedure = None;
        self.downlink.confirm_handover(slot, output);
        self.uplink.confirm_handover(slot, output);
        self.reset_power();
        self.access.stats.handovers += 1;
        if let Some(config) = self.prepared.take() {
            self.forwarding = Some(Forwarding::begin(config, self.forwarding.take()));
        }
        self.connect(now);
    }
    /// MAC towards the source is reset. With `keep_harq` the blocks that were decoded reach RLC before.
    fn end_source(&mut self, slot: Slot, now: Instant, keep_harq: bool, output: &mut VecDeque<Output>) {
        let Self { downlink, uplink, .. } = self;
        if keep_harq {
            downlink.deliver_decoded(&mut uplink.bearer, slot, output);
            uplink.deliver_decoded(&mut downlink.bearer, slot, output);
        } else {
            downlink.lose_decoded(DropReason::PathSwitch, output);
            uplink.lose_decoded(DropReason::PathSwitch, output);
        }
        self.reset_mac(now, DropReason::PathSwitch, output);
    }
    /// The station's channel is another one: that of its present cell.
    pub fn forget_reports(&mut self) {
        self.cqi.forget();
    }
    /// MAC of both directions is reset, grants are deleted.
    fn reset_mac(&mut self, now: Instant, reason: DropReason, output: &mut VecDeque<Output>) {
        self.count_grant_wait(now);
        self.downlink.reset_mac(reason, output);
        self.uplink.reset_mac(reason, output);
        self.access.reset();
        self.estimate = BufferEstimate::default();
        self.grants.clear();
        self.target = None;
        self.connected = false;
    }
    /// Random access and the signalling after it are complete: the station has PUCCH or a connection again.
    pub fn complete_random_access(
        &mut self,
        slot: Slot,
        now: Instant,
        cause: Cause,
        output: &mut VecDeque<Output>,
    ) {
        self.procedure = None;
        if cause == Cause::SchedulingRequest {
            return;
        }
        if let Some(failed_at) = self.failed_at.take() {
            self.downlink.reestablish(slot, output);
            self.uplink.reestablish(slot, output);
            self.access.stats.reestablishments += 1;
            self.access.stats.reestablishment_slots += slot.since(failed_at);
        }
        if let Some(left_at) = self.left_at.take() {
            self.access.stats.handovers += 1;
            self.access.stats.handover_slots += slot.since(left_at);
        }
        self.connect(now);
    }
    /// Service begins.
    fn connect(&mut self, now: Instant) {
        self.connected = true;
        self.forwarding.iter_mut().for_each(|forwarding| forwarding.on_service(now));
        self.estimate = BufferEstimate::default();
        self.count_grant_wait(now);
        if self.uplink_available() > 0 {
            self.access.on_data_in_empty_buffer(now);
        }
    }
    pub fn idle(&self) -> bool {
        self.downlink_available() == 0
            && self.uplink_available() == 0
            && self.grants.is_empty()
            && !self.estimate.awaits_uplink()
            && self.estimate.bytes() == 0
            && self.downlink.idle_below_buffer()
            && self.uplink.idle_below_buffer()
            && self.procedure.is_none()
            && self.target.is_none()
            && self.forwarding.is_none()
    }
}
