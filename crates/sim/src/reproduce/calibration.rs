//! Downlink geometry and coupling loss of the deployments beside 3GPP's calibration results (TR 38.901 7.8.1,
//! 6 GHz). For 3GPP case 1 and case 3 no numbers are published: their rows have our values only.

use paceline_ran::radio::calibration::references;
use paceline_ran::radio::{Calibration, DeploymentConfig, calibrate, percentile};
use serde::Serialize;

/// Percentiles of the rows without published values.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// One percentile of one distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Deployment.
    pub scenario: &'static str,
    /// Name of the distributed quantity.
    pub quantity: &'static str,
    /// Share of the stations below the value.
    pub share: f64,
    /// Published value, dB.
    pub published: Option<f64>,
    /// Our value, dB.
    pub ours: f64,
}

impl Percentile {
    /// Our value minus the published one, dB.
    pub fn difference(&self) -> Option<f64> {
        self.published.map(|published| self.ours - published)
    }
}

/// Percentiles over `stations` stations at random positions in each deployment.
pub fn percentiles(stations: usize, seed: u64) -> Vec<Percentile> {
    let mut rows = Vec::new();
    for (scenario, config) in
        [("3gpp-case1", DeploymentConfig::case1()), ("3gpp-case3", DeploymentConfig::case3())]
    {
        let drops = calibrate(&config, stations, seed);
        for (quantity, values) in
            [("geometry", &drops.geometry_db), ("coupling loss", &drops.coupling_loss_db)]
        {
            rows.extend(SHARES.map(|share| {
                let ours = percentile(values, share);
                Percentile { scenario, quantity, share, published: None, ours }
            }));
        }
    }
    let uma = calibrate(&DeploymentConfig::uma_38901(), stations, seed);
    let umi = calibrate(&DeploymentConfig::umi_38901(), stations, seed);
    for reference in references() {
        let (scenario, drops) =
            if reference.scenario == "uma" { ("uma-38901", &uma) } else { ("umi-38901", &umi) };
        let (quantity, values) = distribution(drops, reference.quantity);
        let mut published = reference.percentiles;
        published.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.extend(published.into_iter().map(|(share, value)| {
            let ours = percentile(values, share);
            Percentile { scenario, quantity, share, published: Some(value), ours }
        }));
    }
    rows
}

fn distribution<'a>(drops: &'a Calibration, quantity: &str) -> (&'static str, &'a [f64]) {
    match quantity {
        "coupling_loss_db" => ("coupling loss", &drops.coupling_loss_db),
        _ => ("geometry without noise", &drops.geometry_without_noise_db),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_percentile_has_ours_beside_it() {
        let rows = percentiles(2_000, 1);
        let published: Vec<&Percentile> = rows.iter().filter(|row| row.published.is_some()).collect();
        assert_eq!(published.len(), 4 * 19);
        // 2,000 stations: about 1 dB of statistical error in the tails.
        assert!(published.iter().all(|row| row.difference().is_some_and(|d| d.abs() < 3.0)), "{published:?}");
        assert_eq!(rows.len() - published.len(), 4 * SHARES.len());
    }
}
