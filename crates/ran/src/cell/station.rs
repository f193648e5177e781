//! What a cell keeps per station: both directions, uplink access, and what becomes of it when the radio link fails.
//!
//! A radio-link failure (TS 36.331 §5.3.11) is reduced to its effect on the user plane: MAC is reset at once, the
//! station selects its cell again for a stated time, accesses at random, and after a stated time of signalling
//! (§5.3.7) RLC of both directions is re-established. Buffers above are kept. A failure that the eNB sees is known
//! to the station at once.

use super::config::{CellConfig, StationConfig, StationLink};
use super::link::Link;
use crate::air::Channel;
use crate::air::{Network, Report, StationRadio};
use crate::lte::cqi;
use crate::lte::mcs::{self, Mcs};
use crate::mac::pdu::Sender;
use crate::mac::power_headroom::{Headroom, HeadroomTimers, KnownHeadroom};
use crate::mac::random_access::{Cause, Procedure};
use crate::mac::{buffer_estimate::BufferEstimate, scheduling_request::StationAccess};
use crate::prb::PrbSet;
use crate::prb::precodable;
use crate::rlc::Rlc;
use crate::slot::Tti;
use paceline_net::{DropTail, Duration, Instant, Output, Stream};
use std::collections::VecDeque;

/// Leave to send in the uplink.
pub(crate) struct Grant {
    pub sent_at: Tti,
    pub mcs: &'static Mcs,
    pub blocks: PrbSet,
    /// TPC command in dB.
    pub tpc_db: f64,
}

/// One station.
pub(crate) struct Station {
    /// Which of the served cells serves it.
    pub cell: usize,
    pub radio: StationRadio,
    pub downlink: Link,
    pub uplink: Link,
    pub access: StationAccess,
    pub estimate: BufferEstimate,
    /// Grants on their way.
    pub grants: VecDeque<Grant>,
    /// Resource blocks that the next grant should have, and whether the station's power keeps them so few.
    pub wanted: (u8, bool),
    /// CQI reports on their way, with the TTI of their use; the last one in use is at the front.
    cqi_reports: VecDeque<(Tti, Report)>,
    /// Whether it has a connection: without one it neither sends nor receives data.
    connected: bool,
    headroom: HeadroomTimers,
    known_headroom: KnownHeadroom,
    /// The next grant's TPC command in dB.
    pub tpc_db: f64,
    /// Random access that is going on.
    pub procedure: Option<Box<Procedure>>,
    /// When the radio link failed that is to be re-established.
    failed_at: Option<Tti>,
}

impl Station {
    pub fn new(
        config: StationConfig,
        cell: &CellConfig,
        network: Option<&Network>,
        index: usize,
        seed: u64,
    ) -> Self {
        let (radio, cell_index) = match (config.link, network) {
            (StationLink::Stated { downlink_sinr_db, uplink_sinr_db, fading }, _) => {
                let channel = |mean_db, direction: &str| {
                    let name = format!("cell0/station{index}/{direction}/fading");
                    Channel::new(mean_db, fading, Stream::new(seed, &name))
                };
                let downlink = channel(downlink_sinr_db, "downlink");
                (StationRadio::Stated(downlink, channel(uplink_sinr_db, "uplink")), 0)
            }
            (StationLink::Placed, Some(network)) => {
                let (placed, cell) = network.place(index);
                (StationRadio::Placed(Box::new(placed)), cell)
            }
            (StationLink::Placed, None) => panic!("a station is placed in a deployment, and there is none"),
        };
        let rlc = || Rlc::new(cell.rlc, cell.t_reordering);
        Self {
            cell: cell_index,
            radio,
            downlink: Link::new(Box::new(DropTail::new(cell.downlink_buffer)), rlc()),
            uplink: Link::new(config.uplink_buffer, rlc()),
            access: StationAccess::new(index as u64),
            estimate: BufferEstimate::default(),
            grants: VecDeque::new(),
            wanted: (0, false),
            cqi_reports: VecDeque::new(),
            connected: !cell.random_access.initial,
            headroom: HeadroomTimers::default(),
            known_headroom: KnownHeadroom::default(),
            tpc_db: 0.0,
            procedure: None,
            failed_at: None,
        }
    }
    /// The station reports its CQI if it is time. Stations report on even when idle; after a pause the report in use
    /// is one of the moment of waking.
    pub fn report_cqi(&mut self, tti: Tti, cell: &CellConfig, network: &mut Option<Network>) {
        let periodic = tti.0.is_multiple_of(cell.cqi_period);
        let stale =
            self.cqi_reports.back().is_none_or(|(due, _)| tti.since(*due) > cell.cqi_period + cell.cqi_delay);
        if periodic || stale {
            let report = self.radio.measure_cqi(network, tti);
            if stale {
                self.cqi_reports.clear();
            }
            let due = if stale { tti } else { tti + cell.cqi_delay };
            self.cqi_reports.push_back((due, report));
        }
        while self.cqi_reports.get(1).is_some_and(|(due, _)| *due <= tti) {
            if let (Some((_, report)), Some(network)) = (self.cqi_reports.pop_front(), network.as_mut()) {
                network.forget(report);
            }
        }
    }
    /// The CQI that the scheduler knows.
    pub fn known_cqi(&mut self, network: &mut Option<Network>) -> u8 {
        self.cqi_reports.front_mut().map_or(0, |(_, report)| self.radio.cqi(network, report))
    }
    /// The downlink MCS for the CQI that the scheduler knows. The outer loop moves within what lies between CQIs.
    pub fn downlink_mcs(&self, cqi: u8, cell: &CellConfig) -> Option<&'static Mcs> {
        if cell.outer_loop {
            let sinr = cqi::threshold_db(cqi)? + self.downlink.offset_db;
            return Some(mcs::highest(&mcs::DOWNLINK, sinr).unwrap_or(&mcs::DOWNLINK[0]));
        }
        cqi::mcs(cqi).map(|index| &mcs::DOWNLINK[usize::from(index)])
    }
    /// The uplink MCS for what the eNB expects, and the most resource blocks that the station's power allows.
    pub fn uplink_mcs(
        &mut self,
        tti: Tti,
        cell: &CellConfig,
        network: &mut Option<Network>,
    ) -> Option<(&'static Mcs, u8)> {
        let sinr = self.radio.estimate_uplink(network, self.cell, tti);
        if let Some(target) = network.as_ref().and_then(Network::tpc_target_db) {
            let on_the_way: f64 = self.grants.iter().map(|grant| grant.tpc_db).sum();
            self.tpc_db = self.known_headroom.command_db(target - sinr - on_the_way);
        }
        let max_prb = self.known_headroom.max_blocks(cell.uplink_prb, self.tpc_db);
        let usable = &mcs::UPLINK[..=usize::from(cell.max_uplink_mcs)];
        // A station that can send at all goes on at the lowest: without blocks the outer loop would never recover.
        let lowest = mcs::highest(usable, sinr).map(|_| &usable[0]);
        Some((mcs::highest(usable, sinr + self.uplink.offset_db).or(lowest)?, max_prb))
    }
    /// The eNB grants blocks with the TPC command it has chosen.
    pub fn grant(&mut self, sent_at: Tti, mcs: &'static Mcs, blocks: PrbSet) {
        self.known_headroom.on_command(sent_at, self.tpc_db);
        self.grants.push_back(Grant { sent_at, mcs, blocks, tpc_db: self.tpc_db });
    }
    /// The station uses a grant: it takes up the TPC command, and reports its headroom if that is due.
    pub fn use_power(&mut self, tti: Tti, grant: &Grant, network: &Option<Network>) -> Option<Headroom> {
        let (placed, network) = (self.radio.placed_mut()?, network.as_ref()?);
        let n_prb = grant.blocks.len() as u8;
        network.command(placed, n_prb, grant.tpc_db);
        let due = self.headroom.due(tti, network.headroom_config(), placed.coupling_loss_db());
        due.then(|| network.headroom(placed, n_prb))
    }
    /// Random access starts closed-loop power control anew (TS 36.213 §5.1.1.1), and with it the reports.
    pub fn reset_power(&mut self) {
        if let Some(placed) = self.radio.placed_mut() {
            placed.reset_correction();
        }
        self.headroom = HeadroomTimers::default();
        self.known_headroom = KnownHeadroom::default();
    }
    /// A headroom report went out.
    pub fn on_headroom_sent(&mut self, tti: Tti, report: Headroom) {
        let Some(placed) = self.radio.placed() else { return };
        self.headroom.on_report(tti, placed.coupling_loss_db());
        self.access.stats.headroom_reports += 1;
        self.access.stats.headroom_sum += u64::from(report.index);
    }
    /// The eNB has decoded a headroom report, first sent in `sent_at`.
    pub fn on_headroom(&mut self, report: Headroom, sent_at: Tti) {
        self.known_headroom.on_report(report, sent_at);
    }

    /// Data waiting in the uplink: above, in RLC, and reports about the downlink.
    pub fn uplink_available(&self) -> u64 {
        self.uplink.available(&self.downlink)
    }
    /// Data waiting in the downlink: above, in RLC, and reports about the uplink.
    pub fn downlink_available(&self) -> u64 {
        self.downlink.available(&self.uplink)
    }
    /// Whether a downlink block would carry anything: a stalled window holds data back.
    pub fn downlink_sendable(&self) -> bool {
        self.downlink.rlc.sendable(&*self.downlink.buffer) || self.uplink.rlc.status_len() > 0
    }
    /// The eNB's end of the bearer.
    pub fn downlink_sender(&mut self) -> Sender<'_> {
        let Link { rlc, buffer, .. } = &mut self.downlink;
        Sender { rlc, reverse: &mut self.uplink.rlc, queue: &mut **buffer }
    }
    /// The station's end of the bearer.
    pub fn uplink_sender(&mut self) -> Sender<'_> {
        let Link { rlc, buffer, .. } = &mut self.uplink;
        Sender { rlc, reverse: &mut self.downlink.rlc, queue: &mut **buffer }
    }

    /// Counts a grant of so many resource blocks, and what has kept it small.
    pub fn count_grant(&mut self, n_prb: u8) {
        let (stats, (wanted, by_power)) = (&mut self.access.stats, self.wanted);
        stats.grants += 1;
        if n_prb < precodable(wanted) {
            stats.block_limited += 1;
        } else if by_power {
            stats.power_limited += 1;
        }
    }

    /// What is in the uplink's buffer has waited there until `now`; see [`Link::account`].
    pub fn account(&mut self, now: Instant) {
        self.uplink.account(now, self.access.waits());
    }
    /// Drops SDUs whose discard timer has expired (TS 36.323 §5.4). RLC has sent no part of what is still here.
    pub fn discard(&mut self, tti: Tti, timer: Duration, output: &mut VecDeque<Output>) {
        self.account(tti.starts_at());
        for link in [&mut self.downlink, &mut self.uplink] {
            if link.buffer.packets() > 0 {
                link.buffer.expire(tti.starts_at(), timer);
                link.collect_dropped(output);
            }
        }
    }
    /// Whether it has no connection.
    pub fn suspended(&self) -> bool {
        !self.connected
    }
    /// Takes up a radio-link failure that RLC has reported. Returns whether there is one.
    pub fn take_up_failure(&mut self) -> bool {
        [&mut self.downlink, &mut self.uplink].map(Link::take_up_failure).contains(&true)
    }
    /// The radio link has failed: nothing is in flight or granted any more.
    pub fn disconnect(&mut self, tti: Tti, output: &mut VecDeque<Output>) {
        self.account(tti.starts_at());
        self.downlink.reset_mac(output);
        self.uplink.reset_mac(output);
        self.access.reset();
        self.estimate = BufferEstimate::default();
        self.grants.clear();
        self.connected = false;
        self.failed_at = Some(tti);
    }
    /// Random access and the signalling after it are over: the station has what the procedure was for.
    pub fn complete(&mut self, tti: Tti, cause: Cause, output: &mut VecDeque<Output>) {
        self.procedure = None;
        if cause == Cause::SchedulingRequest {
            return;
        }
        if let Some(failed_at) = self.failed_at.take() {
            self.downlink.reestablish(output);
            self.uplink.reestablish(output);
            self.access.stats.reestablishments += 1;
            self.access.stats.reestablishment_ttis += tti.since(failed_at);
        }
        self.connected = true;
        self.estimate = BufferEstimate::default();
        self.account(tti.starts_at());
        if self.uplink_available() > 0 {
            self.access.on_data_in_empty_buffer(tti.starts_at());
        }
    }
    /// Whether a TTI can pass without work for this station.
    pub fn idle(&self) -> bool {
        self.downlink_available() == 0
            && self.uplink_available() == 0
            && self.grants.is_empty()
            && !self.estimate.waiting()
            && self.estimate.bytes() == 0
            && self.downlink.idle_below()
            && self.uplink.idle_below()
            && self.procedure.is_none()
    }
}
