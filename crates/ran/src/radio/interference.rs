//! Interference and noise per PRB in a slot: in the downlink at a station from the cells that do not serve
//! it, in the uplink at a cell from the stations of other cells.
//!
//! Served cells state their PRBs. Other cells are quiet, full, or use each resource block group with the
//! probability of their load, drawn in every slot by a hash of seed, cell, group and slot. Their uplink comes
//! from a bank of stations that are placed in them and follow the same power control. Interferers have mean
//! gains without fast fading. Left out: control channels, reference symbols of unused PRBs, interference
//! within a cell.

use super::deployment::geometry::Region;
use super::deployment::link_budget::{Association, Deployment, Station};
use super::deployment::parameters::{DeploymentConfig, noise_per_prb_dbm};
use super::power_control::{PowerControl, PuschTransmission};
use crate::decibel::from_db;
use crate::prb::{MAX_PRBS, PrbSet};

/// Load of a cell that is not served.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// No transmissions.
    Quiet,
    /// Each resource block group with this probability.
    Share(f64),
    /// All PRBs.
    Full,
}

impl Load {
    /// Number of the 2^53 values of a draw that mean that a group is used.
    fn threshold(self) -> u64 {
        let all = 1u64 << 53;
        match self {
            Self::Quiet => 0,
            Self::Share(share) => (share.clamp(0.0, 1.0) * all as f64) as u64,
            Self::Full => all,
        }
    }
    /// The PRBs that `cell` uses in `slot`, of `n_prb`, in groups of `group` PRBs.
    pub fn prbs(self, n_prb: u32, group: u32, seed: u64, cell: usize, slot: u64) -> PrbSet {
        match self {
            Self::Quiet => PrbSet::NONE,
            Self::Full => PrbSet::range(0, n_prb),
            Self::Share(_) => {
                let (state, threshold) = (cell_state(seed, cell, slot), self.threshold());
                let group = group.max(1);
                let groups = n_prb.div_ceil(group);
                let mut used = PrbSet::NONE;
                for index in 0..groups {
                    if group_bits(state, u64::from(index)) >> 11 < threshold {
                        // The last group may be cut off.
                        used.insert(index * group, group.min(n_prb - index * group));
                    }
                }
                used
            }
        }
    }
}

/// State of a cell's draws in a slot.
fn cell_state(seed: u64, cell: usize, slot: u64) -> u64 {
    mix(mix(seed ^ (cell as u64 + 1).wrapping_mul(GOLDEN)) ^ slot.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// 64 bits for one group of PRBs: the upper 53 decide whether it is used, the lower ones choose the station.
#[inline]
fn group_bits(state: u64, group: u64) -> u64 {
    mix(state.wrapping_add((group + 1).wrapping_mul(GOLDEN)))
}

/// The increment of the SplitMix64 generator (its published constant, 2^64 divided by the golden ratio).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64.
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Groups that are summed at once. Chosen: eight f32 are one vector register of 256 bits.
const LANES: usize = 8;

/// Downlink transmissions of every cell in a slot: per resource block group, the share of its power. A group
/// counts as transmitted if one of its PRBs is.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    n_prb: u32,
    /// Resource block group size in PRBs.
    group: u32,
    /// Length of a row: its groups, and room for a group of lanes that starts at any of them.
    width: usize,
    rows: Vec<f32>,
    /// Cells that use all PRBs, and cells whose row counts; all other cells use none.
    full: Vec<usize>,
    partial: Vec<usize>,
}

impl Activity {
    /// `cells` cells without transmissions.
    pub fn new(cells: usize, n_prb: u32, group: u32) -> Self {
        let width = (n_prb.div_ceil(group) as usize).next_multiple_of(LANES) + LANES;
        let rows = vec![0.0; cells * width];
        Self { n_prb, group, width, rows, full: Vec::new(), partial: Vec::new() }
    }
    /// Number of resource block groups.
    pub fn groups(&self) -> usize {
        self.n_prb.div_ceil(self.group) as usize
    }
    /// Sets the PRBs of a cell.
    pub fn set_prbs(&mut self, cell: usize, prbs: PrbSet) {
        let all = PrbSet::range(0, self.n_prb);
        let (empty, full) = (prbs.is_empty(), all.without(prbs).is_empty());
        set_member(&mut self.full, cell, full);
        set_member(&mut self.partial, cell, !empty && !full);
        if !empty && !full {
            let (group, groups) = (self.group, self.groups());
            let row = &mut self.row_mut(cell)[..groups];
            row.fill(0.0);
            for (first, end) in prbs.runs() {
                let touched = (first / group) as usize..end.div_ceil(group) as usize;
                row[touched.start.min(groups)..touched.end.min(groups)].fill(1.0);
            }
        }
    }
    /// Sets the PRBs of a cell that is not served, by its load: those of [`Load::prbs`].
    pub fn set_load(&mut self, cell: usize, load: Load, seed: u64, slot: u64) {
        let Load::Share(_) = load else {
            return self.set_prbs(cell, load.prbs(self.n_prb, self.group, seed, cell, slot));
        };
        let (state, threshold, groups) = (cell_state(seed, cell, slot), load.threshold(), self.groups());
        let mut used = 0;
        for (index, share) in (0..).zip(&mut self.row_mut(cell)[..groups]) {
            let transmits = u8::from(group_bits(state, index) >> 11 < threshold);
            *share = f32::from(transmits);
            used += usize::from(transmits);
        }
        set_member(&mut self.full, cell, used == groups);
        set_member(&mut self.partial, cell, used > 0 && used < groups);
    }
    fn row_mut(&mut self, cell: usize) -> &mut [f32] {
        &mut self.rows[cell * self.width..(cell + 1) * self.width]
    }
}

/// Inserts a cell into an ascending list or removes it.
fn set_member(list: &mut Vec<usize>, cell: usize, member: bool) {
    match (list.binary_search(&cell), member) {
        (Err(place), true) => list.insert(place, cell),
        (Ok(place), false) => {
            list.remove(place);
        }
        _ => {}
    }
}

/// The downlink powers that a station receives.
#[derive(Clone, PartialEq, Debug)]
pub struct DownlinkReceiver {
    /// Power in mW per PRB of each cell when it transmits; zero for the serving cell.
    interferers_mw: Vec<f32>,
    signal_mw: f64,
    /// The signal without blockage.
    free_signal_mw: f64,
    noise_mw: f64,
}

impl DownlinkReceiver {
    /// The receiver of a station at its present place.
    pub fn new(deployment: &Deployment, station: &Station) -> Self {
        let config = deployment.config();
        let power_dbm = config.enb_power_per_prb_dbm();
        let noise_dbm = noise_per_prb_dbm(config.numerology, config.ue_noise_figure_db);
        Self::from_gains(station.gains_db(), station.serving(), power_dbm, noise_dbm)
    }
    /// The receiver with these coupling gains in dB per cell, from cells that transmit `power_dbm` per PRB.
    pub fn from_gains(gains_db: &[f64], serving: usize, power_dbm: f64, noise_dbm: f64) -> Self {
        let mut interferers_mw: Vec<f32> =
            gains_db.iter().map(|gain| from_db(power_dbm + gain) as f32).collect();
        interferers_mw[serving] = 0.0;
        let signal_mw = from_db(power_dbm + gains_db[serving]);
        Self { interferers_mw, signal_mw, free_signal_mw: signal_mw, noise_mw: from_db(noise_dbm) }
    }
    /// Power in mW per PRB of the serving cell, the mean over fast fading.
    pub fn signal_mw(&self) -> f64 {
        self.signal_mw
    }
    /// Changes the linear power gain of the path to the serving cell, 1 without blockage.
    pub fn set_path_gain(&mut self, gain: f64) {
        self.signal_mw = self.free_signal_mw * gain;
    }
    /// Writes interference and noise in mW per PRB of each resource block group from `first` on.
    pub fn interference_mw(&self, activity: &Activity, first: usize, out: &mut [f64]) {
        let full: f32 = activity.full.iter().map(|cell| self.interferers_mw[*cell]).sum();
        let everywhere = self.noise_mw + f64::from(full);
        if activity.partial.is_empty() {
            return out.fill(everywhere);
        }
        for (chunk, out) in out.chunks_mut(LANES).enumerate() {
            let mut sums = [0.0f32; LANES];
            for cell in &activity.partial {
                let from = cell * activity.width + first + chunk * LANES;
                for (sum, share) in sums.iter_mut().zip(&activity.rows[from..from + LANES]) {
                    *sum += self.interferers_mw[*cell] * share;
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = everywhere + f64::from(sum);
            }
        }
    }
}

/// Noise at a cell in mW per PRB.
pub fn uplink_noise_mw(deployment: &DeploymentConfig) -> f64 {
    from_db(noise_per_prb_dbm(deployment.numerology, deployment.enb_noise_figure_db))
}

/// Adds a transmission that is received with `received_mw` in each of `prbs`.
pub fn add_uplink(prbs: PrbSet, received_mw: f64, out: &mut [f64]) {
    for (first, end) in prbs.runs() {
        out[first as usize..end as usize].iter_mut().for_each(|prb| *prb += received_mw);
    }
}

/// Stations in the bank of every cell. Chosen: a power of two, so that 6 bits of a draw choose one.
const BANK_STATIONS: usize = 64;
/// Number of stations that 64 bits can choose. Derived: 64 bits / 6 bits per station.
const CHOICES_PER_WORD: usize = 10;

/// The uplink of cells that are not served.
#[derive(Clone, Debug)]
pub struct UplinkNeighbours {
    /// Power in mW per PRB of each bank station at a target cell: by serving cell, then target, then station.
    received_mw: Vec<[f32; BANK_STATIONS]>,
    cells: usize,
    targets: Vec<usize>,
    /// PRBs of a station's transmission.
    n_prb: u32,
    seed: u64,
}

impl UplinkNeighbours {
    /// Places 64 stations per cell, served by their best cell, each transmitting in `n_prb` PRBs, and
    /// computes their received powers at the cells `targets`. A cell that is the best one in few places
    /// repeats its few stations; one that is nowhere the best is silent.
    pub fn draw(
        deployment: &Deployment,
        control: &PowerControl,
        n_prb: u32,
        targets: &[usize],
        seed: u64,
    ) -> Self {
        let cells = deployment.cells();
        let mut received_mw = vec![[0.0; BANK_STATIONS]; cells * targets.len()];
        let mut drawn = vec![0; cells];
        let mut missing = cells * BANK_STATIONS;
        for index in 0..cells * BANK_STATIONS * 20 {
            if missing == 0 {
                break;
            }
            let name = format!("uplink{seed}/neighbour{index}");
            let station = deployment.place(&name, Region::AllSites, Association::Best);
            let cell = station.serving();
            if drawn[cell] == BANK_STATIONS {
                continue;
            }
            let pusch = PuschTransmission::open_loop(n_prb, station.coupling_loss_db());
            let power_dbm = control.power_per_prb_dbm(&pusch);
            for (place, target) in targets.iter().enumerate() {
                let received = from_db(power_dbm + station.gains_db()[*target]);
                received_mw[cell * targets.len() + place][drawn[cell]] = received as f32;
            }
            drawn[cell] += 1;
            missing -= 1;
        }
        for (bank, count) in received_mw.chunks_mut(targets.len().max(1)).zip(drawn) {
            for powers in bank {
                let copied = (count..BANK_STATIONS).filter(|_| count > 0);
                copied.for_each(|place| powers[place] = powers[place - count]);
            }
        }
        Self { received_mw, cells, targets: targets.to_vec(), n_prb: n_prb.max(1), seed }
    }
    /// Adds the power in mW per PRB that the `place`-th target receives in `slot` from all cells but itself.
    /// `loads` has the load of every cell; served cells are quiet in it.
    pub fn add(&self, place: usize, slot: u64, loads: &[Load], out: &mut [f64]) {
        let target = self.targets[place];
        let groups = out.len().div_ceil(self.n_prb as usize).min(MAX_PRBS);
        let mut sums = [0.0f32; MAX_PRBS];
        for cell in (0..self.cells).filter(|cell| *cell != target && loads[*cell] != Load::Quiet) {
            let bank = &self.received_mw[cell * self.targets.len() + place];
            let state = cell_state(self.seed, cell, slot);
            if loads[cell] == Load::Full {
                // Every group is used, so that one draw chooses the stations of several groups.
                for (draw, sums) in (0..).zip(sums[..groups].chunks_mut(CHOICES_PER_WORD)) {
                    let mut bits = group_bits(state, draw);
                    for sum in sums {
                        *sum += bank[bits as usize % BANK_STATIONS];
                        bits /= BANK_STATIONS as u64;
                    }
                }
                continue;
            }
            let threshold = loads[cell].threshold();
            for (group, sum) in (0..).zip(&mut sums[..groups]) {
                let bits = group_bits(state, group);
                // A mask instead of a branch, which would be mispredicted every other time at half load.
                let used = u32::from(bits >> 11 < threshold).wrapping_neg();
                *sum += f32::from_bits(bank[bits as usize % BANK_STATIONS].to_bits() & used);
            }
        }
        for (prbs, sum) in out.chunks_mut(self.n_prb as usize).zip(sums) {
            prbs.iter_mut().for_each(|prb| *prb += f64::from(sum));
        }
    }
}

#[cfg(test)]
#[path = "interference_tests.rs"]
mod tests;
