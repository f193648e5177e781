//! Mean path loss, probability of line of sight, and the parameters of shadowing: 3GPP case 1 (TR 36.814
//! A.2.1.1), the urban models of ITU-R M.2135 (also TR 36.814 Table B.1.2.1-1), the models of TR 38.901 §7.4.
//!
//! Formulas of M.2135 use the horizontal distance, those of TR 38.901 the distance in space. Left out: losses
//! into buildings (see `radio/deployment`), and the larger environment height of TR 38.901 for stations above
//! 13 m, which moves break points that lie beyond 10 km there.

use super::rural_indoor;

/// Propagation speed in m/s in the break-point distances of ITU-R M.2135 and TR 38.901.
const SPEED: f64 = 3e8;
/// Effective environment height in metres (TR 38.901 Table 7.4.1-1, ITU-R M.2135).
const ENVIRONMENT_M: f64 = 1.0;
/// Street width and mean building height in metres: the default values of ITU-R M.2135.
const STREET_M: f64 = 20.0;

/// Antenna heights above ground in metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heights {
    /// Of the base station.
    pub bs_m: f64,
    /// Of the station.
    pub ut_m: f64,
}

/// A set of path loss formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathLossModel {
    /// 3GPP case 1 and 3: `128.1 + 37.6 lg d_km` at 2 GHz, plus `21 lg(f/2)` at other carriers. Without line
    /// of sight; the penetration loss is added to it.
    Case1,
    /// Urban macro of M.2135 and TR 36.814.
    UmaM2135,
    /// Urban micro of M.2135 and TR 36.814.
    UmiM2135,
    /// Urban macro of TR 38.901.
    Uma38901,
    /// Urban micro, street canyon, of TR 38.901.
    Umi38901,
    /// Rural macro of TR 38.901.
    Rma38901,
    /// Open office of TR 38.901.
    InhOpen38901,
    /// Mixed office of TR 38.901.
    InhMixed38901,
}

fn lg(x: f64) -> f64 {
    libm::log10(x)
}

impl PathLossModel {
    /// Loss in dB over a horizontal distance of `d2d_m` metres (at least 1 m) at `f_ghz`.
    pub fn loss_db(self, los: bool, d2d_m: f64, f_ghz: f64, heights: Heights) -> f64 {
        let d = d2d_m.max(1.0);
        match (self, los) {
            (Self::Case1, _) => 128.1 + 37.6 * lg(d / 1000.0) + 21.0 * lg(f_ghz / 2.0),
            (Self::UmaM2135 | Self::UmiM2135, true) => m2135_los(d, f_ghz, heights),
            (Self::UmaM2135, false) => m2135_uma_nlos(d, f_ghz, heights),
            (Self::UmiM2135, false) => 36.7 * lg(d) + 22.7 + 26.0 * lg(f_ghz),
            (Self::Uma38901, _) => {
                let d3d = space(d, heights);
                let clear = los_38901([28.0, 22.0, 9.0], d, f_ghz, heights);
                let blocked = 13.54 + 39.08 * lg(d3d) + 20.0 * lg(f_ghz) - 0.6 * (heights.ut_m - 1.5);
                if los { clear } else { blocked.max(clear) }
            }
            (Self::Umi38901, _) => {
                let d3d = space(d, heights);
                let clear = los_38901([32.4, 21.0, 9.5], d, f_ghz, heights);
                let blocked = 22.4 + 35.3 * lg(d3d) + 21.3 * lg(f_ghz) - 0.3 * (heights.ut_m - 1.5);
                if los { clear } else { blocked.max(clear) }
            }
            (Self::Rma38901, _) => rural_indoor::rma_loss_db(los, d, f_ghz, heights.bs_m, heights.ut_m),
            (Self::InhOpen38901 | Self::InhMixed38901, _) => {
                rural_indoor::inh_loss_db(los, d, f_ghz, heights.bs_m, heights.ut_m)
            }
        }
    }
    /// Probability of line of sight over a horizontal distance of `d2d_m` metres, for stations below 13 m.
    pub fn los_probability(self, d2d_m: f64) -> f64 {
        let scale = match self {
            Self::Case1 => return 0.0,
            Self::UmaM2135 | Self::Uma38901 => 63.0,
            Self::UmiM2135 | Self::Umi38901 => 36.0,
            Self::Rma38901 => return rural_indoor::rma_los_probability(d2d_m),
            Self::InhOpen38901 => return rural_indoor::inh_open_los_probability(d2d_m),
            Self::InhMixed38901 => return rural_indoor::inh_mixed_los_probability(d2d_m),
        };
        let far = libm::exp(-d2d_m / scale);
        if d2d_m <= 18.0 { 1.0 } else { 18.0 / d2d_m * (1.0 - far) + far }
    }
    /// Probability of line of sight for a station at a height of `ut_m`. The height counts above 13 m in the
    /// urban macro of TR 38.901 (Table 7.4.2-1).
    pub fn los_probability_at(self, d2d_m: f64, ut_m: f64) -> f64 {
        let low = self.los_probability(d2d_m);
        if self != Self::Uma38901 || ut_m <= 13.0 || d2d_m <= 18.0 {
            return low;
        }
        let rise = libm::pow((ut_m.min(23.0) - 13.0) / 10.0, 1.5);
        let part = d2d_m / 100.0;
        low * (1.0 + rise * 1.25 * part * part * part * libm::exp(-d2d_m / 150.0))
    }
    /// Standard deviation of shadowing in dB.
    pub fn shadowing_db(self, los: bool) -> f64 {
        match (self, los) {
            (Self::Case1, _) => 8.0,
            (Self::UmaM2135 | Self::Uma38901, true) | (Self::UmiM2135, false) | (Self::Umi38901, true) => 4.0,
            (Self::UmaM2135 | Self::Uma38901, false) => 6.0,
            (Self::UmiM2135, true) => 3.0,
            (Self::Umi38901, false) => 7.82,
            (Self::Rma38901, true) => 4.0,
            (Self::Rma38901, false) => 8.0,
            (Self::InhOpen38901 | Self::InhMixed38901, true) => 3.0,
            (Self::InhOpen38901 | Self::InhMixed38901, false) => 8.03,
        }
    }
    /// Distance in metres over which the correlation of shadowing falls to 1/e (TR 38.901 Table 7.5-6; TR
    /// 25.814 for case 1).
    pub fn correlation_m(self, los: bool) -> f64 {
        match (self, los) {
            (Self::Case1, _) | (Self::UmaM2135 | Self::Uma38901, false) => 50.0,
            (Self::UmaM2135 | Self::Uma38901, true) => 37.0,
            (Self::UmiM2135 | Self::Umi38901, true) => 10.0,
            (Self::UmiM2135 | Self::Umi38901, false) => 13.0,
            (Self::Rma38901, true) => 37.0,
            (Self::Rma38901, false) => 120.0,
            (Self::InhOpen38901 | Self::InhMixed38901, true) => 10.0,
            (Self::InhOpen38901 | Self::InhMixed38901, false) => 6.0,
        }
    }
}

/// Distance in space of two antennas with a horizontal distance of `d2d_m`, in metres.
fn space(d2d_m: f64, heights: Heights) -> f64 {
    let rise = heights.bs_m - heights.ut_m;
    (d2d_m * d2d_m + rise * rise).sqrt()
}

fn break_point_m(f_ghz: f64, heights: Heights) -> f64 {
    4.0 * (heights.bs_m - ENVIRONMENT_M) * (heights.ut_m - ENVIRONMENT_M) * f_ghz * 1e9 / SPEED
}

fn m2135_los(d: f64, f_ghz: f64, heights: Heights) -> f64 {
    if d < break_point_m(f_ghz, heights) {
        22.0 * lg(d) + 28.0 + 20.0 * lg(f_ghz)
    } else {
        40.0 * lg(d) + 7.8 - 18.0 * lg(heights.bs_m - ENVIRONMENT_M) - 18.0 * lg(heights.ut_m - ENVIRONMENT_M)
            + 2.0 * lg(f_ghz)
    }
}

fn m2135_uma_nlos(d: f64, f_ghz: f64, heights: Heights) -> f64 {
    let (bs, ut) = (heights.bs_m, heights.ut_m);
    let roof = STREET_M / bs;
    let clutter = lg(11.75 * ut);
    161.04 - 7.1 * lg(STREET_M) + 7.5 * lg(STREET_M) - (24.37 - 3.7 * roof * roof) * lg(bs)
        + (43.42 - 3.1 * lg(bs)) * (lg(d) - 3.0)
        + 20.0 * lg(f_ghz)
        - (3.2 * clutter * clutter - 4.97)
}

/// Loss in dB with line of sight (TR 38.901 Table 7.4.1-1): constant, slope before the break point, factor of
/// the break-point term.
fn los_38901([constant, slope, factor]: [f64; 3], d2d_m: f64, f_ghz: f64, heights: Heights) -> f64 {
    let d3d = space(d2d_m, heights);
    let break_point = break_point_m(f_ghz, heights);
    if d2d_m <= break_point {
        return constant + slope * lg(d3d) + 20.0 * lg(f_ghz);
    }
    let rise = heights.bs_m - heights.ut_m;
    constant + 40.0 * lg(d3d) + 20.0 * lg(f_ghz) - factor * lg(break_point * break_point + rise * rise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
        file.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split(',').collect())
    }

    #[test]
    fn every_row_of_the_path_loss_vectors_holds() {
        let mut count = 0;
        for row in rows(include_str!("../../../data/pathloss_vectors.csv")) {
            let [f, d, expected] = [1, 2, 3].map(|i| row[i].parse::<f64>().unwrap());
            let (model, bs_m) = match row[0].trim_end_matches("_los").trim_end_matches("_nlos") {
                "3gpp_case1" => (PathLossModel::Case1, 32.0),
                "m2135_uma" => (PathLossModel::UmaM2135, 25.0),
                "m2135_umi" => (PathLossModel::UmiM2135, 10.0),
                "38901_uma" => (PathLossModel::Uma38901, 25.0),
                "38901_umi" => (PathLossModel::Umi38901, 10.0),
                other => panic!("{other}"),
            };
            let los = row[0].ends_with("_los");
            let got = model.loss_db(los, d, f, Heights { bs_m, ut_m: 1.5 });
            assert!((got - expected).abs() < 1e-3, "{row:?} {got}");
            count += 1;
        }
        assert_eq!(count, 80);
    }

    #[test]
    fn every_row_of_the_los_probabilities_holds() {
        for row in rows(include_str!("../../../data/los_probability.csv")) {
            let [d, uma, umi] = [0, 1, 2].map(|i| row[i].parse::<f64>().unwrap());
            for (model, expected) in [
                (PathLossModel::UmaM2135, uma),
                (PathLossModel::Uma38901, uma),
                (PathLossModel::UmiM2135, umi),
                (PathLossModel::Umi38901, umi),
                (PathLossModel::Case1, 0.0),
            ] {
                assert!((model.los_probability(d) - expected).abs() < 1e-4, "{model:?} {row:?}");
            }
        }
    }

    #[test]
    fn case_1_follows_the_carrier() {
        let heights = Heights { bs_m: 32.0, ut_m: 1.5 };
        // TR 25.814 has 120.9 dB at 900 MHz; the extension gives 128.1 + 21 lg 0.45 = 120.817.
        let got = PathLossModel::Case1.loss_db(false, 1000.0, 0.9, heights);
        assert!((got - 120.817).abs() < 1e-3, "{got}");
    }

    #[test]
    fn loss_has_no_large_step_at_the_break_point() {
        for (model, bs_m) in [
            (PathLossModel::UmaM2135, 25.0),
            (PathLossModel::UmiM2135, 10.0),
            (PathLossModel::Uma38901, 25.0),
            (PathLossModel::Umi38901, 10.0),
        ] {
            let heights = Heights { bs_m, ut_m: 1.5 };
            let at = break_point_m(2.0, heights);
            let loss = |d: f64| model.loss_db(true, d, 2.0, heights);
            assert!((loss(at + 1e-6) - loss(at - 1e-6)).abs() < 0.1, "{model:?}");
        }
    }
}
