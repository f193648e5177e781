//! Between the antennas: the SINR of every transmission of a TTI, known once all cells have said what they send.
//!
//! Stations either have a stated SINR ([`Channel`], the same in every resource block), or stand in a deployment: then
//! signal and interference follow from coupling gains, from the resource blocks that the served cells really use in
//! this TTI, from the stated load of the other cells, and from the fading of the station's own link. Interferers
//! have no fast fading; there is one receive antenna; the uplink's estimate for link adaptation is the eNB's
//! sounding with the mean interference of the last TTIs.

use super::cqi_report::{Measurement, Report};
use super::placed::{Fading, Placed, UplinkPower};
use super::wideband_cqi;
use crate::decibel::to_db;
use crate::mac::power_headroom::{Headroom, HeadroomConfig};
use crate::prb::{PrbSet, group_size};
use crate::radio::effective_sinr::{Mean, miesm_of};
use crate::radio::fading::{doppler_hz, subband_centres};
use crate::radio::interference::{add_uplink, uplink_noise_mw};
use crate::radio::power_control::headroom_index;
use crate::radio::{
    Activity, Association, Deployment, DeploymentConfig, DownlinkReceiver, FadingModel, Load, Modulation,
    PowerControl, Profile, Region, UplinkNeighbours,
};
use crate::slot::Tti;
use paceline_net::Stream;
use std::ops::Range;

/// Share of a TTI in the mean uplink interference.
const INTERFERENCE_WEIGHT: f64 = 0.05;
/// Least power of a station in dBm (TS 36.101 §6.3.2).
const MIN_POWER_DBM: f64 = -40.0;
/// Resource blocks that a station of a cell that is not simulated transmits in.
const NEIGHBOUR_BLOCKS: u32 = 4;
/// Attempts to place a station: with 19 equal sites, one in 19 succeeds.
const MAX_ATTEMPTS: u32 = 100_000;
/// A network around the simulated cells.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioConfig {
    /// Sites, propagation, powers.
    pub deployment: DeploymentConfig,
    /// Sites whose cells are simulated with their stations: so many of the first ones, the middle one before all.
    pub served_sites: usize,
    /// What the cells of the other sites transmit, in both directions.
    pub neighbours: Load,
    /// Fast fading of the stations' links; none for constant channels.
    pub fading: Option<Profile>,
    /// Speed of the stations in km/h, for the Doppler spread alone.
    pub speed_kmh: f64,
    /// Uplink power control.
    pub power_control: PowerControl,
    /// SINR in dB that TPC commands in uplink grants aim at; none for the open loop.
    pub tpc_target_db: Option<f64>,
    /// Power headroom reports.
    pub headroom: HeadroomConfig,
}

/// A transmission of one TTI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub station: usize,
    pub downlink: bool,
    pub process: usize,
    pub blocks: PrbSet,
}

/// The network around the simulated cells, and this TTI's use of it.
pub(crate) struct Network {
    config: RadioConfig,
    deployment: Deployment,
    seed: u64,
    loads: Vec<Load>,
    activity: Activity,
    neighbours: UplinkNeighbours,
    /// Fading at the resource block groups of the downlink and the uplink.
    models: Option<(FadingModel, FadingModel)>,
    groups: (usize, usize),
    /// Noise per uplink resource block at the eNB, in mW.
    uplink_noise_mw: f64,
    /// Interference and noise per uplink resource block at each served cell, in mW.
    uplink_mw: Vec<Vec<f64>>,
    /// Whether there is interference in it, and the mean of its blocks without.
    disturbed: Vec<bool>,
    undisturbed_mw: f64,
    /// Their mean over blocks and the last TTIs.
    uplink_mean_mw: Vec<f64>,
    /// What each served cell transmits in the downlink, and what `activity` has of it.
    used: Vec<PrbSet>,
    taken_up: Vec<PrbSet>,
    /// As long as the downlink has groups.
    scratch: Vec<f64>,
    /// Storage of measurements.
    spare: Vec<Vec<f64>>,
    /// Gains of a link without fading.
    flat: Vec<f32>,
    /// TTIs for which gains are held.
    hold: u64,
}

impl Network {
    pub fn new(config: RadioConfig, prb: (u8, u8), seed: u64) -> Self {
        let deployment = Deployment::new(config.deployment.clone(), seed);
        let cells = deployment.cells();
        let served = 0..3 * config.served_sites;
        let load = |cell: usize| if served.contains(&cell) { Load::Quiet } else { config.neighbours };
        let loads: Vec<Load> = (0..cells).map(load).collect();
        let mut activity = Activity::new(cells, u32::from(prb.0), u32::from(group_size(prb.0)));
        for (cell, load) in loads.iter().enumerate() {
            if *load == Load::Full {
                activity.set_blocks(cell, PrbSet::range(0, u32::from(prb.0)));
            }
        }
        // Its own stream of draws: one seed for both would make downlink and uplink loads coincide.
        let uplink_seed = Stream::new(seed, "neighbours/uplink").next_u64();
        let neighbours = UplinkNeighbours::draw(
            &deployment,
            &config.power_control,
            NEIGHBOUR_BLOCKS,
            &served.clone().collect::<Vec<_>>(),
            uplink_seed,
        );
        let groups = [prb.0, prb.1].map(|n| u32::from(group_size(n)));
        let models = config.fading.clone().map(|profile| {
            let model =
                |n: u8, group| FadingModel::new(profile.clone(), &subband_centres(u32::from(n), group));
            (model(prb.0, groups[0]), model(prb.1, groups[1]))
        });
        let doppler = doppler_hz(config.speed_kmh, config.deployment.carrier_ghz);
        let hold = (0.1 / (std::f64::consts::TAU * doppler) * 1000.0).clamp(1.0, 100.0) as u64;
        let noise = uplink_noise_mw(config.deployment.enb_noise_figure_db);
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
            used: vec![PrbSet::NONE; served.len()],
            taken_up: vec![PrbSet::NONE; served.len()],
            disturbed: vec![false; served.len()],
            undisturbed_mw: mean(&uplink_mw[0]),
            uplink_mw,
            scratch: vec![0.0; activity.groups()],
            spare: Vec::new(),
            activity,
            flat: vec![1.0; usize::from(prb.0.max(prb.1))],
            hold,
            config,
        }
    }

    /// Number of simulated cells.
    pub fn served(&self) -> usize {
        3 * self.config.served_sites
    }

    /// Places a station uniformly among the places whose best cell is a simulated one; gives that cell too. Shadowing
    /// makes some of these places lie beyond the served sites' hexagons, and some inside belong to others.
    pub fn place(&self, index: usize) -> (Placed, usize) {
        let name = format!("station{index}");
        let mut attempts = (0..MAX_ATTEMPTS).map(|attempt| {
            self.deployment.place(&format!("{name}/attempt{attempt}"), Region::AllSites, Association::Best)
        });
        let place = attempts.find(|place| place.serving() < self.served());
        let place = place.expect("a served cell is the best one somewhere");
        let cell = place.serving();
        let receiver = DownlinkReceiver::new(&self.deployment, &place);
        let doppler = doppler_hz(self.config.speed_kmh, self.config.deployment.carrier_ghz);
        let fader = |model: &FadingModel, direction: &str| {
            let mut stream = Stream::new(self.seed, &format!("{name}/{direction}/fading"));
            Fading::new(model, doppler, &mut stream)
        };
        let downlink_fading = self.models.as_ref().map(|(model, _)| fader(model, "downlink"));
        let uplink_fading = self.models.as_ref().map(|(_, model)| fader(model, "uplink"));
        let power = UplinkPower::new(&self.config.power_control, &place, self.served());
        let measured = (Vec::new(), 0);
        (
            Placed { place, receiver, downlink_fading, uplink_fading, correction_db: 0.0, power, measured },
            cell,
        )
    }

    /// SINR in dB that TPC commands aim at.
    pub fn tpc_target_db(&self) -> Option<f64> {
        self.config.tpc_target_db
    }
    /// A report is out of date.
    pub fn forget(&mut self, report: Report) {
        if let Report::Measured(measurement) = report {
            self.spare.push(measurement.noise_mw);
        }
    }
    /// Timers of power headroom reports.
    pub fn headroom_config(&self) -> &HeadroomConfig {
        &self.config.headroom
    }
    /// The headroom of a transmission in `n_prb` blocks.
    pub fn headroom(&self, placed: &Placed, n_prb: u8) -> Headroom {
        let headroom_db = self.config.power_control.headroom_db(&placed.grant(u32::from(n_prb)));
        Headroom { index: headroom_index(headroom_db), blocks: n_prb }
    }
    /// A station takes up the TPC command of a grant for `n_prb` blocks; at the limits of its power, none that leads
    /// beyond them.
    pub fn command(&self, placed: &mut Placed, n_prb: u8, db: f64) {
        if db == 0.0 {
            return;
        }
        let wanted = self.config.power_control.wanted_dbm(&placed.grant(u32::from(n_prb)));
        let at_limit =
            if db > 0.0 { wanted >= self.config.power_control.pcmax_dbm } else { wanted <= MIN_POWER_DBM };
        if !at_limit {
            placed.correction_db += db;
            placed.power.correct(placed.correction_db);
        }
    }

    /// Power gains of these resource block groups of a station's link. They are held for so long that the phases of
    /// the fastest paths turn by no more than a tenth of a radian.
    fn gains<'a>(
        &'a self,
        placed: &'a mut Placed,
        tti: Tti,
        downlink: bool,
        groups: Range<usize>,
    ) -> &'a [f32] {
        let Some((down, up)) = &self.models else { return &self.flat[groups] };
        let (model, fading) =
            if downlink { (down, &mut placed.downlink_fading) } else { (up, &mut placed.uplink_fading) };
        match fading {
            Some(fading) => fading.gains(model, tti.0 - tti.0 % self.hold, groups),
            None => &self.flat[groups],
        }
    }

    /// What a station's CQI will follow from, with the downlink as it was last used.
    pub(super) fn measure(&mut self, placed: &Placed, tti: Tti) -> Measurement {
        let mut noise_mw = self.spare.pop().unwrap_or_else(|| vec![0.0; self.activity.groups()]);
        placed.receiver.interference_mw(&self.activity, 0, &mut noise_mw);
        Measurement { tti, noise_mw }
    }
    /// The wideband CQI of a measurement.
    pub(super) fn cqi(&mut self, placed: &mut Placed, measurement: Measurement) -> u8 {
        let Measurement { tti, noise_mw: mut sinrs } = measurement;
        let signal = placed.receiver.signal_mw();
        for (sinr, gain) in sinrs.iter_mut().zip(self.gains(placed, tti, true, 0..self.activity.groups())) {
            *sinr = signal * f64::from(*gain) / *sinr;
        }
        if sinrs != placed.measured.0 {
            placed.measured.0.clone_from(&sinrs);
            placed.measured.1 = wideband_cqi::of(&sinrs);
        }
        self.spare.push(sinrs);
        placed.measured.1
    }
    /// What the eNB expects of the uplink of a station at the density that power control asks for.
    pub(super) fn estimate_uplink_db(&mut self, placed: &mut Placed, cell: usize, tti: Tti) -> f64 {
        let signal = placed.power.per_block_mw(1) * placed.power.own_gain / self.uplink_mean_mw[cell];
        if self.models.is_none() {
            return to_db(signal); // the same in every block
        }
        let groups = self.uplink_mw[cell].len().div_ceil(self.groups.1);
        let gains = self.gains(placed, tti, false, 0..groups);
        let sinrs = gains.iter().map(|gain| signal * f64::from(*gain));
        to_db(miesm_of(Modulation::Qam16, sinrs))
    }
    /// Takes up what is sent in this TTI. `cell_of` and `placed` know the stations.
    pub fn fill<'a>(
        &mut self,
        tti: Tti,
        sent: &[Sent],
        radio: impl Fn(usize) -> Option<(&'a Placed, usize)>,
    ) {
        self.used.fill(PrbSet::NONE);
        for transmission in sent.iter().filter(|t| t.downlink) {
            let Some((_, cell)) = radio(transmission.station) else { continue };
            self.used[cell] = self.used[cell].with(transmission.blocks);
        }
        for (cell, (blocks, taken_up)) in self.used.iter().zip(&mut self.taken_up).enumerate() {
            if blocks != taken_up {
                self.activity.set_blocks(cell, *blocks);
                *taken_up = *blocks;
            }
        }
        let (width, group) = (self.flat.len() as u32, self.groups.0 as u32);
        for (cell, load) in self.loads.iter().enumerate() {
            if let Load::Share(_) = load {
                self.activity.set_blocks(cell, load.blocks(width, group, self.seed, cell, tti.0));
            }
        }
        if sent.iter().all(|t| t.downlink) {
            return;
        }
        let neighbours = self.config.neighbours != Load::Quiet;
        for (cell, blocks) in self.uplink_mw.iter_mut().enumerate() {
            if self.disturbed[cell] {
                blocks.fill(self.uplink_noise_mw);
            }
            if neighbours {
                self.neighbours.add(cell, tti.0, &self.loads, blocks);
            }
            self.disturbed[cell] = neighbours;
        }
        for transmission in sent.iter().filter(|t| !t.downlink) {
            let Some((placed, own)) = radio(transmission.station) else { continue };
            let power = placed.power.per_block_mw(transmission.blocks.len());
            let others = self.uplink_mw.iter_mut().zip(&placed.power.gains).enumerate();
            for (cell, (received, gain)) in others.filter(|(cell, _)| *cell != own) {
                add_uplink(transmission.blocks, power * gain, received);
                self.disturbed[cell] = true;
            }
        }
        for (cell, blocks) in self.uplink_mw.iter().enumerate() {
            let now = if self.disturbed[cell] { mean(blocks) } else { self.undisturbed_mw };
            self.uplink_mean_mw[cell] += INTERFERENCE_WEIGHT * (now - self.uplink_mean_mw[cell]);
        }
    }
    /// Effective linear SINR of a transmission, after [`Network::fill`].
    pub(super) fn sinr(&mut self, placed: &mut Placed, cell: usize, tti: Tti, sent: &Sent, qm: u8) -> f64 {
        let modulation = Modulation::of_order(qm);
        let group = if sent.downlink { self.groups.0 } else { self.groups.1 };
        let groups = sent.blocks.span(group);
        let mut mean = Mean::new(modulation);
        if sent.downlink {
            let mut noise = std::mem::take(&mut self.scratch);
            placed.receiver.interference_mw(&self.activity, groups.start, &mut noise[groups.clone()]);
            let signal = placed.receiver.signal_mw();
            let gains = self.gains(placed, tti, true, groups.clone());
            let used = sent.blocks.groups(group as u32, groups.start);
            for (blocks, (gain, noise)) in used.zip(gains.iter().zip(&noise[groups])) {
                mean.add(signal * f64::from(*gain) / noise, blocks);
            }
            self.scratch = noise;
        } else {
            let signal = placed.power.per_block_mw(sent.blocks.len()) * placed.power.own_gain;
            let received = &self.uplink_mw[cell];
            let gains = self.gains(placed, tti, false, groups.clone());
            let used = sent.blocks.groups(group as u32, groups.start);
            for (at, (blocks, gain)) in groups.zip(used.zip(gains)) {
                let signal = signal * f64::from(*gain);
                for (block, received) in (at * group..).zip(received[at * group..].iter().take(group)) {
                    if blocks as usize == group || sent.blocks.contains(block as u32) {
                        mean.add(signal / received, 1);
                    }
                }
            }
        }
        mean.sinr()
    }
}

/// Mean over resource blocks, added up side by side.
fn mean(blocks: &[f64]) -> f64 {
    let (lanes, rest) = blocks.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for lane in lanes {
        for (sum, block) in sums.iter_mut().zip(lane) {
            *sum += block;
        }
    }
    (sums.iter().sum::<f64>() + rest.iter().sum::<f64>()) / blocks.len() as f64
}

/// Number of cells that share one [`crate::Cell`] node.
pub(crate) fn served_count(network: Option<&Network>) -> usize {
    network.map_or(1, Network::served)
}
