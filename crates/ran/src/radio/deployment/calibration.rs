//! Distributions of coupling loss and downlink geometry over random drops, and the ones that 3GPP published:
//! TR 38.901 §7.8.1, as percentiles in a data file. For case 1 and at 4 GHz no numbers are published.

use super::geometry::Region;
use super::link_budget::{Association, Deployment};
use super::parameters::DeploymentConfig;

/// Distributions over random drops of stations.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Downlink SINR in dB with every cell transmitting, ascending.
    pub geometry_db: Vec<f64>,
    /// Downlink SINR without noise in dB, ascending.
    pub geometry_without_noise_db: Vec<f64>,
    /// Coupling loss in dB to the serving cell, ascending.
    pub coupling_loss_db: Vec<f64>,
}

/// Places `stations` stations uniformly over all sites, each served by its best cell.
pub fn calibrate(config: &DeploymentConfig, stations: usize, seed: u64) -> Calibration {
    let deployment = Deployment::new(config.clone(), seed);
    let mut result = Calibration {
        geometry_db: Vec::with_capacity(stations),
        geometry_without_noise_db: Vec::with_capacity(stations),
        coupling_loss_db: Vec::with_capacity(stations),
    };
    for index in 0..stations {
        let station = deployment.place(&format!("drop{index}"), Region::AllSites, Association::Best);
        result.geometry_db.push(deployment.geometry_db(&station));
        result.geometry_without_noise_db.push(deployment.geometry_without_noise_db(&station));
        result.coupling_loss_db.push(station.coupling_loss_db());
    }
    for values in
        [&mut result.geometry_db, &mut result.geometry_without_noise_db, &mut result.coupling_loss_db]
    {
        values.sort_by(f64::total_cmp);
    }
    result
}

/// The value below which `share` of the ascending `sorted` lies, interpolated.
///
/// # Panics
/// If there are no values.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let index = (position.floor() as usize).min(sorted.len().saturating_sub(2));
    let next = sorted[(index + 1).min(sorted.len() - 1)];
    sorted[index] + (position - index as f64) * (next - sorted[index])
}

/// Percentiles of a distribution: the median over the results of 3GPP's companies.
#[derive(Clone, PartialEq, Debug)]
pub struct Reference {
    /// `uma`, `umi`, `inh` or `inh-30ghz`: see [`deployment`].
    pub scenario: &'static str,
    /// `coupling_loss_db` or `geometry_db`, the latter without noise.
    pub quantity: &'static str,
    /// Share of the stations below a value, and the value.
    pub percentiles: Vec<(f64, f64)>,
}

/// The deployment of a published distribution.
///
/// # Panics
/// For a name that is not in the data file.
pub fn deployment(scenario: &str) -> DeploymentConfig {
    match scenario {
        "uma" => DeploymentConfig::uma_38901(),
        "umi" => DeploymentConfig::umi_38901(),
        "inh" => DeploymentConfig::inh_open_38901(),
        "inh-30ghz" => DeploymentConfig { carrier_ghz: 30.0, ..DeploymentConfig::inh_open_38901() },
        other => panic!("{other} has no published distribution"),
    }
}

/// The published distributions.
pub fn references() -> Vec<Reference> {
    let mut rows =
        include_str!("../../../data/calibration_38901.csv").lines().filter(|row| !row.starts_with('#'));
    let share = |name: &str| name.trim_start_matches('p').parse::<f64>().unwrap_or(f64::NAN) / 100.0;
    let shares: Vec<f64> =
        rows.next().into_iter().flat_map(|row| row.split(',').skip(2)).map(share).collect();
    let read = |row: &'static str| {
        let mut fields = row.split(',');
        let (scenario, quantity) = (fields.next()?, fields.next()?);
        let values = fields.filter_map(|field| field.parse().ok());
        Some(Reference { scenario, quantity, percentiles: shares.iter().copied().zip(values).collect() })
    };
    rows.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::{Antenna, Pattern};

    #[test]
    fn distributions_of_tr_38901_are_reached() {
        let references = references();
        assert_eq!(references.len(), 8);
        let results: Vec<(&str, Calibration)> = ["uma", "umi", "inh", "inh-30ghz"]
            .map(|scenario| (scenario, calibrate(&deployment(scenario), 20_000, 1)))
            .into();
        for reference in references {
            let (_, result) = results.iter().find(|(name, _)| *name == reference.scenario).unwrap();
            let (values, tolerance) = match reference.quantity {
                "coupling_loss_db" => (&result.coupling_loss_db, 1.3),
                _ => (&result.geometry_without_noise_db, 0.7),
            };
            assert_eq!(reference.percentiles.len(), 19);
            for (share, expected) in reference.percentiles {
                let got = percentile(values, share);
                let name = (reference.scenario, reference.quantity);
                assert!((got - expected).abs() < tolerance, "{name:?} {share} {got} {expected}");
            }
        }
    }

    /// At 4 GHz no distribution is public. 3GPP's geometries at 6, 30 and 70 GHz differ by 0.3 dB at most, so
    /// that those at 4 GHz must be the same. The loss of UMa falls by 20 lg 1.5 = 3.52 dB, and that through
    /// walls of Table 7.4.3-2 by 13.40 - 12.88 (low-loss) and 25.69 - 22.97 dB: 3.52 + 0.4 (0.52 + 2.72) =
    /// 4.82 dB in the mean. UMi: outdoors by 3.52 (line of sight) to 21.3 lg 1.5 = 3.75 dB. In the office by
    /// 3.52 (line of sight) to 24.9 lg 1.5 = 4.38 dB.
    #[test]
    fn at_four_gigahertz_losses_fall_as_by_hand_and_geometries_stay() {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        for (scenario, low, high) in [("uma", 4.72, 4.92), ("umi", 4.8, 5.1), ("inh", 3.5, 3.8)] {
            let config = deployment(scenario);
            let [at6, at4] = [6.0, 4.0]
                .map(|carrier_ghz| calibrate(&DeploymentConfig { carrier_ghz, ..config.clone() }, 5_000, 1));
            let fall = mean(&at6.coupling_loss_db) - mean(&at4.coupling_loss_db);
            assert!((low..high).contains(&fall), "{scenario}: {fall}");
            for reference in references() {
                if (reference.scenario, reference.quantity) != (scenario, "geometry_db") {
                    continue;
                }
                for (share, expected) in reference.percentiles {
                    let got = percentile(&at4.geometry_without_noise_db, share);
                    // 0.7 dB as at 6 GHz, 0.3 dB between the carriers, 0.3 dB for 5,000 stations.
                    assert!((got - expected).abs() < 1.3, "{scenario} {share} {got} {expected}");
                }
            }
        }
    }

    /// No distribution of 3GPP is public for the rural macro: its stations in cars lose 9 dB and its
    /// geometry lies between that of the urban networks.
    #[test]
    fn rural_stations_are_in_cars_or_in_low_loss_buildings() {
        let result = calibrate(&DeploymentConfig::rma_38901(), 4_000, 1);
        let median = percentile(&result.geometry_without_noise_db, 0.5);
        assert!((4.0..11.0).contains(&median), "{median}");
        let loss = percentile(&result.coupling_loss_db, 0.5);
        assert!((85.0..115.0).contains(&loss), "{loss}");
    }

    /// No distribution of 3GPP is public for case 1: these are the values of this model, so that a change is
    /// noticed.
    #[test]
    fn case_1_keeps_its_distributions() {
        let of = |config: &DeploymentConfig| {
            let result = calibrate(config, 20_000, 1);
            [result.geometry_db, result.coupling_loss_db]
                .map(|v| [0.05, 0.5, 0.95].map(|p| percentile(&v, p)))
        };
        // Case 1 with the horizontal pattern of TR 36.814 alone, the same at every elevation.
        let antenna = Antenna { pattern: Pattern::Horizontal36814, max_gain_dbi: 14.0, downtilt_deg: 0.0 };
        let case1_2d = DeploymentConfig { antenna, ..DeploymentConfig::case1() };
        for (config, expected) in [
            (DeploymentConfig::case1(), [[-2.0, 6.5, 19.3], [93.5, 112.3, 127.8]]),
            (case1_2d, [[-3.5, 3.2, 16.9], [88.7, 106.9, 120.4]]),
        ] {
            let got = of(&config);
            let pairs = got.as_flattened().iter().zip(expected.as_flattened());
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 0.06), "{got:?}");
        }
    }

    #[test]
    fn percentiles_interpolate() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|p| percentile(&values, p)), [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert_eq!(percentile(&[7.0], 0.3), 7.0);
    }
}
