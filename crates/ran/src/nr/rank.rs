//! Number of layers by SINR.
//!
//! Model: independent Rayleigh fading at every antenna pair and a zero-forcing receiver. Of `N` antennas `v`
//! layers take `v - 1` degrees of freedom, and the power is split, so that the mean SINR of a layer is `(N -
//! v + 1) / (N v)` of that of a single layer (Winters, Salz and Gitlin, IEEE Trans. Comm. 1994). The rank
//! carries the most bits at these means; of equal ones, the lowest. Left out: correlation of the antennas,
//! which lowers ranks, line of sight, and the spread of the layers' gains around their mean.

use super::mcs::{Mcs, McsTable};
use crate::decibel::to_db;

/// SINR of each of `layers` layers relative to that of a single one, linear; `antennas` is the smaller number
/// of antennas of both sides.
pub fn layer_gain(layers: u8, antennas: u8) -> f64 {
    let (v, n) = (f64::from(layers), f64::from(antennas));
    if layers > antennas { 0.0 } else { (n - v + 1.0) / (n * v) }
}

/// A number of layers and the MCS of each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rank {
    /// Number of layers.
    pub layers: u8,
    /// The MCS.
    pub mcs: &'static Mcs,
}

/// The rank, at most `max_layers`, for a SINR in dB of a single layer; none if no MCS is received.
pub fn of_sinr(table: McsTable, sinr_db: f64, antennas: u8, max_layers: u8) -> Option<Rank> {
    let at = |layers| {
        let mcs = table.highest(sinr_db + to_db(layer_gain(layers, antennas)))?;
        Some(Rank { layers, mcs })
    };
    let bits = |rank: &Rank| u32::from(rank.layers) * rank.mcs.bits_x2048();
    (1..=max_layers.min(antennas)).rev().filter_map(at).max_by_key(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_share_power_and_degrees_of_freedom() {
        assert_eq!(layer_gain(1, 4), 1.0);
        assert_eq!(layer_gain(2, 2), 0.25);
        assert_eq!(layer_gain(2, 4), 0.375);
        assert_eq!(layer_gain(4, 4), 0.0625);
        assert_eq!(layer_gain(3, 2), 0.0);
    }

    #[test]
    fn rank_rises_with_the_sinr_and_bits_never_fall() {
        let (mut last_layers, mut last_bits) = (0, 0);
        for step in -100..450 {
            let rank = of_sinr(McsTable::Qam256, f64::from(step) * 0.1, 4, 4);
            let (layers, bits) =
                rank.map_or((0, 0), |rank| (rank.layers, u32::from(rank.layers) * rank.mcs.bits_x2048()));
            assert!(bits >= last_bits, "{step}");
            last_bits = bits;
            last_layers = last_layers.max(layers);
        }
        assert_eq!(last_layers, 4);
        assert_eq!(of_sinr(McsTable::Qam64, 0.0, 2, 2).map(|rank| rank.layers), Some(1));
        assert_eq!(of_sinr(McsTable::Qam64, 30.0, 2, 2).map(|rank| rank.layers), Some(2));
        assert_eq!(of_sinr(McsTable::Qam64, 30.0, 4, 1).map(|rank| rank.layers), Some(1));
        assert_eq!(of_sinr(McsTable::Qam64, -20.0, 4, 4), None);
    }
}
