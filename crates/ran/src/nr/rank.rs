//! Number of layers by SINR.
//!
//! Model: independent Rayleigh fading at every antenna pair and a zero-forcing receiver. Of `N` antennas `v`
//! layers take `v - 1` degrees of freedom, and the power is split, so that the mean SINR of a layer is `(N -
//! v + 1) / (N v)` of that of a single layer (Winters, Salz and Gitlin, IEEE Trans. Comm. 1994). The rank
//! carries the most bits at these means (`crate::adaptation`). Left out: correlation of the antennas, which
//! lowers ranks, line of sight, and the spread of the layers' gains around their mean.

/// SINR of each of `layers` layers relative to that of a single one, linear; `antennas` is the smaller number
/// of antennas of both sides.
pub fn layer_gain(layers: u8, antennas: u8) -> f64 {
    let (v, n) = (f64::from(layers), f64::from(antennas));
    if layers > antennas { 0.0 } else { (n - v + 1.0) / (n * v) }
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
}
