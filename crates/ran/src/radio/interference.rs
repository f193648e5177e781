//! Interference and noise per resource block, from what is transmitted in a TTI: in the downlink at a station from
//! the cells that do not serve it, in the uplink at a cell from the stations of other cells.
//!
//! What is transmitted is a set of resource blocks per cell. Cells that are not simulated are quiet, full, or use
//! each of their resource block groups with the probability of a stated load, drawn anew every TTI by a hash of
//! seed, cell, group and TTI. Their uplink comes from a bank of stations that were placed in them and follow the
//! same power control. Interferers have their mean gains: their fast fading is left out, and so are control
//! channels, reference symbols of idle blocks, and interference within a cell.

use super::deployment::geometry::Region;
use super::deployment::link_budget::{Association, Deployment, Station};
use super::deployment::parameters::noise_per_block_dbm;
use super::power_control::{Grant, PowerControl};
use crate::decibel::from_db;
use crate::prb::{MAX_BLOCKS, PrbSet};

/// What a cell transmits that is not simulated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// Nothing.
    Quiet,
    /// Each resource block group with this probability.
    Share(f64),
    /// All resource blocks.
    Full,
}

impl Load {
    /// Of 2^53 draws, how many use a group.
    fn threshold(self) -> u64 {
        let all = 1u64 << 53;
        match self {
            Self::Quiet => 0,
            Self::Share(share) => (share.clamp(0.0, 1.0) * all as f64) as u64,
            Self::Full => all,
        }
    }
    /// The blocks that `cell` transmits in `tti`, in groups of `group` blocks.
    pub fn blocks(self, resource_blocks: u32, group: u32, seed: u64, cell: usize, tti: u64) -> PrbSet {
        match self {
            Self::Quiet => PrbSet::NONE,
            Self::Full => PrbSet::range(0, resource_blocks),
            Self::Share(_) => {
                let (state, threshold) = (cell_state(seed, cell, tti), self.threshold());
                let group = group.max(1);
                let groups = resource_blocks.div_ceil(group);
                let used = (0..groups).fold(0, |used, index| {
                    used | u128::from(group_bits(state, u64::from(index)) >> 11 < threshold)
                        << (index * group)
                });
                // Each set bit stands for the blocks of its group, the last of which may be cut off.
                let spread = (0..group).fold(0, |spread, block| spread | used << block);
                PrbSet::from_bits(spread & PrbSet::range(0, resource_blocks).bits())
            }
        }
    }
}

/// State of the draws of a cell in a TTI.
fn cell_state(seed: u64, cell: usize, tti: u64) -> u64 {
    mix(mix(seed ^ (cell as u64 + 1).wrapping_mul(GOLDEN)) ^ tti.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// 64 bits for one group of blocks: the upper 53 say whether it is used, the lower ones by whom.
#[inline]
fn group_bits(state: u64, group: u64) -> u64 {
    mix(state.wrapping_add((group + 1).wrapping_mul(GOLDEN)))
}

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64.
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Groups that are added up side by side.
const LANES: usize = 8;

/// What every cell transmits in a TTI: per resource block group, the share of its power; 0 or 1 unless a mean is
/// meant. A group counts as transmitted if one of its blocks is.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    resource_blocks: u32,
    group: u32,
    /// Length of a row: its groups, and behind them room for lanes that begin anywhere.
    width: usize,
    rows: Vec<f32>,
    /// Cells that transmit everything, and cells whose row has to be looked at; the others transmit nothing.
    full: Vec<usize>,
    partial: Vec<usize>,
}

impl Activity {
    /// All cells quiet.
    pub fn new(cells: usize, resource_blocks: u32, group: u32) -> Self {
        let width = (resource_blocks.div_ceil(group) as usize).next_multiple_of(LANES) + LANES;
        let rows = vec![0.0; cells * width];
        Self { resource_blocks, group, width, rows, full: Vec::new(), partial: Vec::new() }
    }
    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.resource_blocks.div_ceil(self.group) as usize
    }
    /// The cell transmits these blocks at full power.
    pub fn set_blocks(&mut self, cell: usize, blocks: PrbSet) {
        let all = PrbSet::range(0, self.resource_blocks);
        let (empty, full) = (blocks.is_empty(), all.without(blocks).is_empty());
        set_member(&mut self.full, cell, full);
        set_member(&mut self.partial, cell, !empty && !full);
        if !empty && !full {
            let (mut rest, mask) = (blocks.bits() & all.bits(), PrbSet::range(0, self.group).bits());
            let (group, groups) = (self.group, self.groups());
            for share in &mut self.row_mut(cell)[..groups] {
                *share = f32::from(u8::from(rest & mask != 0));
                rest >>= group;
            }
        }
    }
    /// The cell transmits all blocks at this share of its power.
    pub fn set_share(&mut self, cell: usize, share: f64) {
        let groups = self.groups();
        set_member(&mut self.full, cell, false);
        set_member(&mut self.partial, cell, true);
        self.row_mut(cell)[..groups].fill(share as f32);
    }
    fn row_mut(&mut self, cell: usize) -> &mut [f32] {
        &mut self.rows[cell * self.width..(cell + 1) * self.width]
    }
}

/// Puts a cell into a list in ascending order, or takes it out.
fn set_member(list: &mut Vec<usize>, cell: usize, member: bool) {
    match (list.binary_search(&cell), member) {
        (Err(place), true) => list.insert(place, cell),
        (Ok(place), false) => {
            list.remove(place);
        }
        _ => {}
    }
}

/// What a station receives in the downlink.
#[derive(Clone, PartialEq, Debug)]
pub struct DownlinkReceiver {
    /// Power in mW of each cell in a resource block that it transmits; zero for the serving one.
    interferers_mw: Vec<f32>,
    signal_mw: f64,
    noise_mw: f64,
}

impl DownlinkReceiver {
    /// The receiver of a station at its present place.
    pub fn new(deployment: &Deployment, station: &Station) -> Self {
        let config = deployment.config();
        let power_dbm = config.enb_power_per_block_dbm();
        let noise_dbm = noise_per_block_dbm(config.ue_noise_figure_db);
        Self::from_gains(station.gains_db(), station.serving(), power_dbm, noise_dbm)
    }
    /// The receiver with these coupling gains in dB per cell, from cells that transmit `power_dbm` in a block.
    pub fn from_gains(gains_db: &[f64], serving: usize, power_dbm: f64, noise_dbm: f64) -> Self {
        let mut interferers_mw: Vec<f32> =
            gains_db.iter().map(|gain| from_db(power_dbm + gain) as f32).collect();
        interferers_mw[serving] = 0.0;
        let signal_mw = from_db(power_dbm + gains_db[serving]);
        Self { interferers_mw, signal_mw, noise_mw: from_db(noise_dbm) }
    }
    /// Power in mW of the serving cell in a block, in the mean of its fading.
    pub fn signal_mw(&self) -> f64 {
        self.signal_mw
    }
    /// Writes interference and noise in mW in a block of each group from `first` on.
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

/// Noise per resource block at a cell in mW.
pub fn uplink_noise_mw(noise_figure_db: f64) -> f64 {
    from_db(noise_per_block_dbm(noise_figure_db))
}

/// Adds a transmission of which `received` mW reach the cell in each of `blocks`.
pub fn add_uplink(blocks: PrbSet, received: f64, out: &mut [f64]) {
    for block in blocks.blocks() {
        out[block] += received;
    }
}

/// Stations drawn for every cell.
const DRAWN: usize = 64;
/// How many times one of them can be named by 64 bits.
const DRAWS_PER_WORD: usize = 10;

/// The uplink of cells that are not simulated.
#[derive(Clone, Debug)]
pub struct UplinkNeighbours {
    /// Power in mW per block that a drawn station causes: by cell that serves it, target, and draw.
    received_mw: Vec<[f32; DRAWN]>,
    cells: usize,
    targets: Vec<usize>,
    /// Blocks that a station transmits in.
    blocks: u32,
    seed: u64,
}

impl UplinkNeighbours {
    /// Draws 64 stations per cell, served by their best cell, each transmitting in `blocks` resource blocks, and
    /// their powers at the cells `targets`. A cell that is hardly anyone's best one has its few in turn, or is
    /// silent.
    pub fn draw(
        deployment: &Deployment,
        control: &PowerControl,
        blocks: u32,
        targets: &[usize],
        seed: u64,
    ) -> Self {
        let cells = deployment.cells();
        let mut received_mw = vec![[0.0; DRAWN]; cells * targets.len()];
        let mut drawn = vec![0; cells];
        let mut missing = cells * DRAWN;
        for index in 0..cells * DRAWN * 20 {
            if missing == 0 {
                break;
            }
            let name = format!("uplink{seed}/neighbour{index}");
            let station = deployment.place(&name, Region::AllSites, Association::Best);
            let cell = station.serving();
            if drawn[cell] == DRAWN {
                continue;
            }
            let grant = Grant::open_loop(blocks, station.coupling_loss_db());
            let power_dbm = control.power_per_block_dbm(&grant);
            for (place, target) in targets.iter().enumerate() {
                let received = from_db(power_dbm + station.gains_db()[*target]);
                received_mw[cell * targets.len() + place][drawn[cell]] = received as f32;
            }
            drawn[cell] += 1;
            missing -= 1;
        }
        for (bank, count) in received_mw.chunks_mut(targets.len().max(1)).zip(drawn) {
            for powers in bank {
                (count..DRAWN).filter(|_| count > 0).for_each(|place| powers[place] = powers[place - count]);
            }
        }
        Self { received_mw, cells, targets: targets.to_vec(), blocks: blocks.max(1), seed }
    }
    /// Adds what reaches the target at `place` in the list in `tti` from all cells but itself, in mW per block,
    /// with the load of every cell. Cells whose stations are simulated are to be quiet here.
    pub fn add(&self, place: usize, tti: u64, loads: &[Load], out: &mut [f64]) {
        let target = self.targets[place];
        let groups = out.len().div_ceil(self.blocks as usize).min(MAX_BLOCKS);
        let mut sums = [0.0f32; MAX_BLOCKS];
        for cell in (0..self.cells).filter(|cell| *cell != target && loads[*cell] != Load::Quiet) {
            let bank = &self.received_mw[cell * self.targets.len() + place];
            let state = cell_state(self.seed, cell, tti);
            if loads[cell] == Load::Full {
                // Every group is used: one draw says by whom for as many groups as its bits reach.
                for (draw, sums) in (0..).zip(sums[..groups].chunks_mut(DRAWS_PER_WORD)) {
                    let mut bits = group_bits(state, draw);
                    for sum in sums {
                        *sum += bank[bits as usize % DRAWN];
                        bits /= DRAWN as u64;
                    }
                }
                continue;
            }
            let threshold = loads[cell].threshold();
            for (group, sum) in (0..).zip(&mut sums[..groups]) {
                let bits = group_bits(state, group);
                // A mask instead of a branch: at half load, that would be guessed wrong every other time.
                let used = u32::from(bits >> 11 < threshold).wrapping_neg();
                *sum += f32::from_bits(bank[bits as usize % DRAWN].to_bits() & used);
            }
        }
        for (blocks, sum) in out.chunks_mut(self.blocks as usize).zip(sums) {
            blocks.iter_mut().for_each(|block| *block += f64::from(sum));
        }
    }
    /// Mean over draws in mW per block of what reaches the target at `place` from `cell` when it transmits.
    pub fn mean_mw(&self, place: usize, cell: usize) -> f64 {
        let bank = &self.received_mw[cell * self.targets.len() + place];
        bank.iter().map(|power| f64::from(*power)).sum::<f64>() / DRAWN as f64
    }
}

#[cfg(test)]
#[path = "interference_tests.rs"]
mod tests;
