//! The deployment around the served cells: interference per PRB, uplink power, and the SINR of every
//! transmission.
//!
//! Signal and interference follow from coupling gains, from the PRBs that the served cells use in this slot,
//! from the configured load of all other cells, and from the fading of the station's own link. Interferers
//! have no fast fading; there is one receive antenna. For uplink link adaptation the eNB knows the channel of
//! the slot (as by sounding) and the mean interference of the last slots.

use super::blocked_path::BlockageConfig;
use super::cqi_report::{CqiReport, Measurement};
use super::placed::Placed;
use super::wideband_cqi;
use crate::adaptation::LinkAdaptation;
use crate::decibel::to_db;
use crate::duplex::{Direction, Duplex};
use crate::mac::power_headroom::{HeadroomConfig, HeadroomReport};
use crate::prb::PrbSet;
use crate::radio::effective_sinr::{EffectiveSinr, miesm_of};
use crate::radio::fading::{doppler_hz, subband_centres};
use crate::radio::geometry::SECTORS;
use crate::radio::interference::{add_uplink, uplink_noise_mw};
use crate::radio::power_control::HeadroomTable;
use crate::radio::{
    Activity, Deployment, DeploymentConfig, FadingModel, Load, Modulation, PowerControl, Profile,
    UplinkNeighbours,
};
use crate::rat::{Layer, Quality, Rat};
use crate::slot::{Numerology, Slot, SlotSpan};
use paceline_net::Stream;
use std::ops::Range;

/// Weight of a millisecond in the mean uplink interference. Chosen: a time constant of 20 ms.
const INTERFERENCE_WEIGHT: f64 = 0.05;
/// PRBs of an uplink transmission in a cell that is not served. Chosen; the load sets how
/// many of these groups of PRBs are in use.
const NEIGHBOUR_PRBS: u32 = 4;
/// Turn in radians that the phase of the fastest path makes while gains are held. Chosen: the error of a
/// path's gain is at most a tenth.
const MAX_HELD_TURN: f64 = 0.1;
/// Longest time in seconds for which gains are held. Chosen: 0.1 s, for stations that stand still.
const MAX_HOLD_S: f64 = 0.1;

/// The deployment around the served cells.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioConfig {
    /// Sites, propagation, powers.
    pub deployment: DeploymentConfig,
    /// Number of sites whose cells are simulated with their stations: sites 0 to this number less one.
    pub served_sites: usize,
    /// Load of the other sites' cells, in both directions.
    pub neighbours: Load,
    /// Fast fading of the stations' links; none for constant channels.
    pub fading: Option<Profile>,
    /// Speed of the stations in km/h, for the Doppler frequency alone.
    pub speed_kmh: f64,
    /// Uplink power control.
    pub power_control: PowerControl,
    /// Target uplink SINR in dB of TPC commands; none for open-loop power control.
    pub tpc_target_db: Option<f64>,
    /// Power headroom reports.
    pub headroom: HeadroomConfig,
    /// Blockage of the stations' paths.
    pub blockage: Option<BlockageConfig>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub station: usize,
    pub direction: Direction,
    pub process: usize,
    pub prbs: PrbSet,
}

/// The deployment around the served cells, with the transmissions of the present slot.
pub(crate) struct Network {
    pub(super) config: RadioConfig,
    pub(super) deployment: Deployment,
    pub(super) seed: u64,
    /// Load of every cell that is not served; served cells are quiet here.
    loads: Vec<Load>,
    pub(super) activity: Activity,
    neighbours: UplinkNeighbours,
    /// Fading at the resource block groups of the downlink and the uplink.
    pub(super) models: Option<(FadingModel, FadingModel)>,
    /// Resource block group sizes of the downlink and the uplink.
    groups: (usize, usize),
    /// Noise per uplink PRB at the eNB, in mW.
    uplink_noise_mw: f64,
    /// Interference and noise per uplink PRB at each served cell, in mW.
    uplink_mw: Vec<Vec<f64>>,
    /// Whether a served cell's `uplink_mw` contains interference, and its mean without.
    disturbed: Vec<bool>,
    undisturbed_mw: f64,
    /// Mean of `uplink_mw` over PRBs and the last slots.
    uplink_mean_mw: Vec<f64>,
    /// Downlink PRBs of each served cell in this slot, and those last entered in `activity`.
    downlink_prbs: Vec<PrbSet>,
    entered_prbs: Vec<PrbSet>,
    /// Buffer with one entry per downlink resource block group.
    scratch: Vec<f64>,
    /// Vectors of old measurements, for reuse.
    pub(super) spare: Vec<Vec<f64>>,
    /// Gains of a link without fading: all 1.
    flat_gains: Vec<f32>,
    hold_slots: SlotSpan,
    headroom_table: HeadroomTable,
    /// Weight of a slot in `uplink_mean_mw`.
    interference_weight: f64,
    /// Whether both directions of a link have the same fading: in TDD, where they share the carrier.
    reciprocal: bool,
}

impl Network {
    /// A network; `prb` is the number of downlink and uplink PRBs.
    pub fn new(config: RadioConfig, rat: &Rat, numerology: Numerology, prb: (u16, u16), seed: u64) -> Self {
        let mut config = config;
        config.deployment.numerology = numerology;
        config.power_control = config.power_control.per_prb_of(numerology);
        let deployment = Deployment::new(config.deployment.clone(), seed);
        let cells = deployment.cells();
        let served = 0..SECTORS * config.served_sites;
        let load = |cell: usize| if served.contains(&cell) { Load::Quiet } else { config.neighbours };
        let loads: Vec<Load> = (0..cells).map(load).collect();
        let mut activity = Activity::new(cells, u32::from(prb.0), u32::from(rat.rbg_size(prb.0)));
        for (cell, load) in loads.iter().enumerate() {
            if *load == Load::Full {
                activity.set_prbs(cell, PrbSet::range(0, u32::from(prb.0)));
            }
        }
        // A separate seed: with one seed for both, the same cells would be active in downlink and uplink.
        let uplink_seed = Stream::new(seed, "neighbours/uplink").next_u64();
        let neighbours = UplinkNeighbours::draw(
            &deployment,
            &config.power_control,
            NEIGHBOUR_PRBS,
            &served.clone().collect::<Vec<_>>(),
            uplink_seed,
        );
        let groups = [prb.0, prb.1].map(|n| u32::from(rat.rbg_size(n)));
        let models = config.fading.clone().map(|profile| {
            let model = |n: u16, group| {
                FadingModel::new(
                    profile.clone(),
                    &subband_centres(u32::from(n), group, numerology.prb_hz()),
                    numerology,
                )
            };
            (model(prb.0, groups[0]), model(prb.1, groups[1]))
        });
        let doppler = doppler_hz(config.speed_kmh, config.deployment.carrier_ghz);
        let hold_s = MAX_HELD_TURN / (std::f64::consts::TAU * doppler);
        let hold_slots = SlotSpan((hold_s.min(MAX_HOLD_S) * numerology.slots_per_second()).max(1.0) as u64);
        let noise = uplink_noise_mw(&config.deployment);
        let uplink_mw = vec![vec![noise; usize::from(prb.1)]; served.len()];
        Self {
            deployment,
            seed,
            loads,
            neighbours,
            models,
            groups: (groups[0] as usize, groups[1] as usize),
            uplink_noise_mw: noise,
            uplink_mean_mw: vec![noise; served.len()],
            downlink_prbs: vec![PrbSet::NONE; served.len()],
            entered_prbs: vec![PrbSet::NONE; served.len()],
            disturbed: vec![false; served.len()],
            undisturbed_mw: mean(&uplink_mw[0]),
            uplink_mw,
            scratch: vec![0.0; activity.groups()],
            spare: Vec::new(),
            activity,
            flat_gains: vec![1.0; usize::from(prb.0.max(prb.1))],
            hold_slots,
            headroom_table: HeadroomTable::Lte,
            // Exact in LTE; the same time constant in shorter slots.
            interference_weight: match numerology {
                Numerology::LTE => INTERFERENCE_WEIGHT,
                _ => 1.0 - libm::pow(1.0 - INTERFERENCE_WEIGHT, numerology.slot_seconds() * 1e3),
            },
            reciprocal: false,
            config,
        }
    }
    /// The network of a cell of this technology and duplex: the table of its headroom reports, and reciprocal
    /// fading where both directions share a carrier.
    pub fn of_cell(self, rat: &Rat, duplex: &Duplex) -> Self {
        let headroom_table = match rat {
            Rat::Lte => HeadroomTable::Lte,
            Rat::Nr(_) => HeadroomTable::Nr,
        };
        let same_groups = self.uplink_mw[0].len().div_ceil(self.groups.1) == self.activity.groups();
        let reciprocal = *duplex != Duplex::Fdd && self.groups.0 == self.groups.1 && same_groups;
        Self { headroom_table, reciprocal, ..self }
    }

    /// Number of served cells: all sectors of the served sites.
    pub fn served_cells(&self) -> usize {
        SECTORS * self.config.served_sites
    }

    pub fn tpc_target_db(&self) -> Option<f64> {
        self.config.tpc_target_db
    }
    /// Takes back the storage of a report that is no longer used.
    pub fn recycle(&mut self, report: CqiReport) {
        if let CqiReport::Measured(measurement) = report {
            self.spare.push(measurement.noise_mw);
        }
    }
    pub fn headroom_config(&self) -> &HeadroomConfig {
        &self.config.headroom
    }
    pub fn headroom(&self, placed: &Placed, n_prb: u16) -> HeadroomReport {
        let headroom_db = self.config.power_control.headroom_db(&placed.pusch(u32::from(n_prb)));
        HeadroomReport { index: self.headroom_table.index(headroom_db), n_prb, table: self.headroom_table }
    }
    /// A station applies the TPC command of a grant for `n_prb` PRBs. At its maximum or minimum power it
    /// ignores a command beyond that limit (TS 36.213 §5.1.1.1).
    pub fn apply_tpc(&self, placed: &mut Placed, n_prb: u16, db: f64) {
        if db == 0.0 {
            return;
        }
        let power_dbm = self.config.power_control.unlimited_dbm(&placed.pusch(u32::from(n_prb)));
        let at_limit = if db > 0.0 {
            power_dbm >= self.config.power_control.pcmax_dbm
        } else {
            power_dbm <= self.config.power_control.min_dbm
        };
        if !at_limit {
            placed.tpc_correction_db += db;
            placed.power.correct(placed.tpc_correction_db);
        }
    }

    /// Linear power gains of these resource block groups of a station's link, held for `hold_slots`.
    fn gains<'a>(
        &'a self,
        placed: &'a mut Placed,
        slot: Slot,
        direction: Direction,
        groups: Range<usize>,
    ) -> &'a [f32] {
        let Some((down, up)) = &self.models else { return &self.flat_gains[groups] };
        let (model, fading) = match direction {
            Direction::Down => (down, &mut placed.downlink_fading),
            Direction::Up if self.reciprocal => (down, &mut placed.downlink_fading),
            Direction::Up => (up, &mut placed.uplink_fading),
        };
        match fading {
            Some(fading) => fading.gains(model, slot.start_of(self.hold_slots).0, groups),
            None => &self.flat_gains[groups],
        }
    }

    /// A station measures interference for a CQI, with the downlink PRBs of the last slot that had
    /// transmissions.
    pub(super) fn measure_cqi(&mut self, placed: &Placed, slot: Slot) -> Measurement {
        let mut noise_mw = self.spare.pop().unwrap_or_else(|| vec![0.0; self.activity.groups()]);
        placed.receiver.interference_mw(&self.activity, 0, &mut noise_mw);
        Measurement { slot, noise_mw }
    }
    pub(super) fn quality(
        &mut self,
        adaptation: &LinkAdaptation,
        placed: &mut Placed,
        measurement: Measurement,
    ) -> Quality {
        let Measurement { slot, noise_mw: mut sinrs } = measurement;
        placed.go_to(slot);
        let signal = placed.receiver.signal_mw();
        for (sinr, gain) in
            sinrs.iter_mut().zip(self.gains(placed, slot, Direction::Down, 0..self.activity.groups()))
        {
            *sinr = signal * f64::from(*gain) / *sinr;
        }
        if sinrs != placed.last_cqi.0 {
            placed.last_cqi.0.clone_from(&sinrs);
            placed.last_cqi.1 = wideband_cqi::quality(adaptation, &sinrs);
        }
        self.spare.push(sinrs);
        placed.last_cqi.1
    }
    /// The eNB's estimate of a station's uplink SINR in dB, at the power per PRB by the formula: the minimum
    /// output power raises that of narrow grants alone.
    pub(super) fn estimate_uplink_db(&mut self, placed: &mut Placed, cell: usize, slot: Slot) -> f64 {
        placed.go_to(slot);
        let signal = placed.power.formula_mw() * placed.power.own_gain / self.uplink_mean_mw[cell];
        if self.models.is_none() {
            return to_db(signal); // the same in every PRB
        }
        let groups = self.uplink_mw[cell].len().div_ceil(self.groups.1);
        let gains = self.gains(placed, slot, Direction::Up, 0..groups);
        let sinrs = gains.iter().map(|gain| signal * f64::from(*gain));
        to_db(miesm_of(Modulation::Qam16, sinrs))
    }
    /// Computes interference from the transmissions of this slot. `radio` returns a station's place and
    /// serving cell.
    pub fn set_transmissions<'a>(
        &mut self,
        slot: Slot,
        transmissions: &[Transmission],
        radio: impl Fn(usize) -> Option<(&'a Placed, usize)>,
    ) {
        self.downlink_prbs.fill(PrbSet::NONE);
        for transmission in transmissions.iter().filter(|t| t.direction == Direction::Down) {
            let Some((_, cell)) = radio(transmission.station) else { continue };
            self.downlink_prbs[cell] = self.downlink_prbs[cell].with(transmission.prbs);
        }
        for (cell, (prbs, entered)) in self.downlink_prbs.iter().zip(&mut self.entered_prbs).enumerate() {
            if prbs != entered {
                self.activity.set_prbs(cell, *prbs);
                *entered = *prbs;
            }
        }
        for (cell, load) in self.loads.iter().enumerate() {
            if let Load::Share(_) = load {
                self.activity.set_load(cell, *load, self.seed, slot.0);
            }
        }
        if transmissions.iter().all(|t| t.direction == Direction::Down) {
            return;
        }
        self.set_uplink_transmissions(slot, transmissions, radio);
    }
    fn set_uplink_transmissions<'a>(
        &mut self,
        slot: Slot,
        transmissions: &[Transmission],
        radio: impl Fn(usize) -> Option<(&'a Placed, usize)>,
    ) {
        let neighbours = self.config.neighbours != Load::Quiet;
        for (cell, received) in self.uplink_mw.iter_mut().enumerate() {
            if self.disturbed[cell] {
                received.fill(self.uplink_noise_mw);
            }
            if neighbours {
                self.neighbours.add(cell, slot.0, &self.loads, received);
            }
            self.disturbed[cell] = neighbours;
        }
        for transmission in transmissions.iter().filter(|t| t.direction == Direction::Up) {
            let Some((placed, own)) = radio(transmission.station) else { continue };
            let power = placed.power.per_prb_mw(transmission.prbs.len());
            let others = self.uplink_mw.iter_mut().zip(&placed.power.gains).enumerate();
            for (cell, (received, gain)) in others.filter(|(cell, _)| *cell != own) {
                add_uplink(transmission.prbs, power * gain, received);
                self.disturbed[cell] = true;
            }
        }
        for (cell, received) in self.uplink_mw.iter().enumerate() {
            let now = if self.disturbed[cell] { mean(received) } else { self.undisturbed_mw };
            self.uplink_mean_mw[cell] += self.interference_weight * (now - self.uplink_mean_mw[cell]);
        }
    }
    /// Effective linear SINR of each layer of a transmission, after [`Network::set_transmissions`].
    pub(super) fn sinr(
        &mut self,
        placed: &mut Placed,
        cell: usize,
        slot: Slot,
        transmission: &Transmission,
        layer: Layer,
    ) -> f64 {
        placed.go_to(slot);
        let prbs = transmission.prbs;
        let downlink = transmission.direction == Direction::Down;
        let group = if downlink { self.groups.0 } else { self.groups.1 };
        let groups = prbs.group_span(group);
        let mut effective = EffectiveSinr::new(Modulation::of_order(layer.qm));
        if downlink {
            let mut noise = std::mem::take(&mut self.scratch);
            placed.receiver.interference_mw(&self.activity, groups.start, &mut noise[groups.clone()]);
            let signal = placed.receiver.signal_mw() * layer.gain;
            let gains = self.gains(placed, slot, Direction::Down, groups.clone());
            let counts = prbs.counts_per_group(group as u32, groups.start);
            for (count, (gain, noise)) in counts.zip(gains.iter().zip(&noise[groups])) {
                effective.add(signal * f64::from(*gain) / noise, count);
            }
            self.scratch = noise;
        } else {
            let signal = placed.power.per_prb_mw(prbs.len()) * placed.power.own_gain * layer.gain;
            let received = &self.uplink_mw[cell];
            let gains = self.gains(placed, slot, Direction::Up, groups.clone());
            let counts = prbs.counts_per_group(group as u32, groups.start);
            for (at, (count, gain)) in groups.zip(counts.zip(gains)) {
                let signal = signal * f64::from(*gain);
                for (prb, received) in (at * group..).zip(received[at * group..].iter().take(group)) {
                    if count as usize == group || prbs.contains(prb as u32) {
                        effective.add(signal / received, 1);
                    }
                }
            }
        }
        effective.sinr()
    }
}

fn mean(prbs: &[f64]) -> f64 {
    let (lanes, rest) = prbs.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for lane in lanes {
        for (sum, prb) in sums.iter_mut().zip(lane) {
            *sum += prb;
        }
    }
    (sums.iter().sum::<f64>() + rest.iter().sum::<f64>()) / prbs.len() as f64
}

/// Number of cells in one [`crate::Cell`] node: one without a network.
pub(crate) fn served_cells(network: Option<&Network>) -> usize {
    network.map_or(1, Network::served_cells)
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
