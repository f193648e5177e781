//! Rural macro (RMa) and indoor office (InH) of TR 38.901: path loss (Table 7.4.1-1) and probability of line
//! of sight (Table 7.4.2-1). Losses in dB, distances in metres, carriers in GHz, for the default street width
//! of 20 m and building height of 5 m. Left out: loss into vehicles (§7.4.3.2), InH with ceilings of
//! factories.

/// Propagation speed in m/s in the break-point distance (TR 38.901 Table 7.4.1-1, note 5).
const SPEED: f64 = 3e8;
/// Street width in metres, the default of RMa (TR 38.901 Table 7.4.1-1).
const STREET_M: f64 = 20.0;
/// Building height in metres, the default of RMa (TR 38.901 Table 7.4.1-1).
const BUILDING_M: f64 = 5.0;

fn lg(x: f64) -> f64 {
    libm::log10(x)
}

fn space(d2d_m: f64, bs_m: f64, ut_m: f64) -> f64 {
    (d2d_m * d2d_m + (bs_m - ut_m) * (bs_m - ut_m)).sqrt()
}

/// Loss of RMa over a horizontal distance of 10 m to 10 km, 5 km without line of sight.
pub fn rma_loss_db(los: bool, d2d_m: f64, f_ghz: f64, bs_m: f64, ut_m: f64) -> f64 {
    let d3d = space(d2d_m, bs_m, ut_m);
    let power = libm::pow(BUILDING_M, 1.72);
    let near = |d: f64| {
        20.0 * lg(40.0 * std::f64::consts::PI * d * f_ghz / 3.0) + (0.03 * power).min(10.0) * lg(d)
            - (0.044 * power).min(14.77)
            + 0.002 * lg(BUILDING_M) * d
    };
    let break_point = std::f64::consts::TAU * bs_m * ut_m * f_ghz * 1e9 / SPEED;
    let clear =
        if d2d_m <= break_point { near(d3d) } else { near(break_point) + 40.0 * lg(d3d / break_point) };
    if los {
        return clear;
    }
    let roof = BUILDING_M / bs_m;
    let clutter = lg(11.75 * ut_m);
    let blocked = 161.04 - 7.1 * lg(STREET_M) + 7.5 * lg(BUILDING_M) - (24.37 - 3.7 * roof * roof) * lg(bs_m)
        + (43.42 - 3.1 * lg(bs_m)) * (lg(d3d) - 3.0)
        + 20.0 * lg(f_ghz)
        - (3.2 * clutter * clutter - 4.97);
    blocked.max(clear)
}

/// Loss of InH over a horizontal distance of up to 150 m.
pub fn inh_loss_db(los: bool, d2d_m: f64, f_ghz: f64, bs_m: f64, ut_m: f64) -> f64 {
    let d3d = space(d2d_m, bs_m, ut_m).max(1.0);
    let clear = 32.4 + 17.3 * lg(d3d) + 20.0 * lg(f_ghz);
    let blocked = 17.3 + 38.3 * lg(d3d) + 24.9 * lg(f_ghz);
    if los { clear } else { blocked.max(clear) }
}

/// Probability of line of sight of RMa.
pub fn rma_los_probability(d2d_m: f64) -> f64 {
    libm::exp(-(d2d_m - 10.0).max(0.0) / 1000.0)
}

/// Probability of line of sight of InH in open offices.
pub fn inh_open_los_probability(d2d_m: f64) -> f64 {
    match d2d_m {
        d if d <= 5.0 => 1.0,
        d if d <= 49.0 => libm::exp(-(d - 5.0) / 70.8),
        d => 0.54 * libm::exp(-(d - 49.0) / 211.7),
    }
}

/// Probability of line of sight of InH in mixed offices.
pub fn inh_mixed_los_probability(d2d_m: f64) -> f64 {
    match d2d_m {
        d if d <= 1.2 => 1.0,
        d if d < 6.5 => libm::exp(-(d - 1.2) / 4.7),
        d => 0.32 * libm::exp(-(d - 6.5) / 32.6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values of ns-3's tests of its TR 38.901 models, at 5 GHz and a station of 1.5 m.
    #[test]
    fn published_vectors_hold() {
        for (d, los, expected) in [
            (10.0, true, 77.3784),
            (100.0, true, 87.2965),
            (1000.0, true, 108.5577),
            (10_000.0, true, 140.3896),
            (10.0, false, 77.3784),
            (100.0, false, 95.7718),
            (1000.0, false, 133.5223),
            (5000.0, false, 160.5169),
        ] {
            let got = rma_loss_db(los, d, 5.0, 35.0, 1.5);
            assert!((got - expected).abs() < 0.05, "RMa {los} {d}: {got}");
        }
        for (d, los, expected) in [
            (1.0, true, 50.8072),
            (10.0, true, 63.7630),
            (50.0, true, 75.7750),
            (100.0, true, 80.9802),
            (1.0, false, 50.8072),
            (10.0, false, 73.1894),
            (50.0, false, 99.7824),
            (100.0, false, 111.3062),
        ] {
            let got = inh_loss_db(los, d, 5.0, 3.0, 1.5);
            assert!((got - expected).abs() < 0.05, "InH {los} {d}: {got}");
        }
    }

    #[test]
    fn probabilities_hold_by_hand_and_never_rise() {
        assert!((rma_los_probability(1010.0) - 0.367_879).abs() < 1e-6);
        assert!((inh_open_los_probability(49.0) - 0.537_15).abs() < 1e-4);
        assert!((inh_mixed_los_probability(39.1) - 0.117_72).abs() < 1e-4);
        for of in [rma_los_probability, inh_open_los_probability, inh_mixed_los_probability] {
            assert_eq!(of(1.0), 1.0);
            let values: Vec<f64> = (0..3000).map(|d| of(f64::from(d) * 0.1)).collect();
            // The pieces of InH meet within 0.004.
            assert!(values.windows(2).all(|pair| pair[1] <= pair[0] + 0.004));
        }
    }
}
