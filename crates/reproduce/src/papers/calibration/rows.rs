//! Downlink geometry and coupling loss of the deployments beside 3GPP's calibration results (TR 38.901
//! 7.8.1). For 3GPP case 1 and case 3 no numbers are published: their rows have our values only.

use crate::{Estimate, Row, Value};
use paceline_ran::radio::calibration::{deployment, references};
use paceline_ran::radio::{Calibration, DeploymentConfig, calibrate, percentile};

/// Percentiles of the rows without published values.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// Largest difference from 3GPP's medians with which a row of coupling losses holds, dB. Chosen; the row
/// states it.
const COUPLING_LOSS_DB: f64 = 1.3;
/// The same for rows of geometry, dB. Chosen; the row states it.
const GEOMETRY_DB: f64 = 0.7;

/// The deployments with published values: their names in the data file, in the rows, and the rows of geometry
/// and coupling loss.
const PUBLISHED: [(&str, &str, [&str; 2]); 4] = [
    ("uma", "uma-38901", ["uma-geometry", "uma-loss"]),
    ("umi", "umi-38901", ["umi-geometry", "umi-loss"]),
    ("inh", "inh-open-38901", ["inh-geometry", "inh-loss"]),
    ("inh-30ghz", "inh-open-38901 at 30 GHz", ["inh-30ghz-geometry", "inh-30ghz-loss"]),
];

/// The percentiles of `stations` stations at random positions in each deployment: a row for each deployment
/// and quantity.
pub fn rows(stations: usize, seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (scenario, ids, config) in [
        ("3gpp-case1", ["case1-geometry", "case1-loss"], DeploymentConfig::case1()),
        ("3gpp-case3", ["case3-geometry", "case3-loss"], DeploymentConfig::case3()),
    ] {
        let drops = calibrate(&config, stations, seed);
        let unpublished = SHARES.map(|share| (share, None));
        rows.push(row(ids[0], format!("{scenario}, geometry"), &unpublished, &drops.geometry_db, 0.0));
        let name = format!("{scenario}, coupling loss");
        rows.push(row(ids[1], name, &unpublished, &drops.coupling_loss_db, 0.0));
    }
    let drops = PUBLISHED.map(|(name, ..)| calibrate(&deployment(name), stations, seed));
    for reference in references() {
        let found = PUBLISHED.iter().zip(&drops).find(|((name, ..), _)| *name == reference.scenario);
        let Some(((_, scenario, ids), drops)) = found else { continue };
        let (id, quantity, values, tolerance) = distribution(*ids, drops, reference.quantity);
        let mut published: Vec<(f64, Option<f64>)> =
            reference.percentiles.into_iter().map(|(share, value)| (share, Some(value))).collect();
        published.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.push(row(id, format!("{scenario}, {quantity}"), &published, values, tolerance));
    }
    rows
}

/// The largest difference from a published value, dB.
pub fn largest_difference(rows: &[Row]) -> f64 {
    let values = rows.iter().flat_map(|row| &row.values);
    values.filter_map(Value::difference).map(f64::abs).fold(0.0, f64::max)
}

/// Identifier, name, values and tolerance of a published distribution.
fn distribution<'a>(
    ids: [&'static str; 2],
    drops: &'a Calibration,
    quantity: &str,
) -> (&'static str, &'static str, &'a [f64], f64) {
    match quantity {
        "coupling_loss_db" => (ids[1], "coupling loss", &drops.coupling_loss_db, COUPLING_LOSS_DB),
        _ => (ids[0], "geometry without noise", &drops.geometry_without_noise_db, GEOMETRY_DB),
    }
}

fn row(
    id: &'static str,
    quantity: String,
    percentiles: &[(f64, Option<f64>)],
    sorted_db: &[f64],
    tolerance_db: f64,
) -> Row {
    let value = |(share, published): &(f64, Option<f64>)| {
        let ours = Estimate { mean: Some(percentile(sorted_db, *share)), half: None };
        let percent = 100.0 * share;
        Value::new(format!("{percent:.0}% of the stations below"), "dB", *published, ours).at(percent, "")
    };
    let values: Vec<Value> = percentiles.iter().map(value).collect();
    let differences: Vec<f64> = values.iter().filter_map(Value::difference).map(f64::abs).collect();
    let largest = differences.iter().copied().fold(0.0, f64::max);
    let holds = !differences.is_empty() && largest <= tolerance_db;
    let (published, why) = if differences.is_empty() {
        ("", String::from("3GPP has published no numbers for this deployment"))
    } else {
        let why = format!("holds within {tolerance_db} dB; the largest difference is {largest:.2} dB");
        ("medians over the companies (R1-165974)", why)
    };
    let axis = Some("share of the stations below, %".into());
    // The stations are one sample: there is no interval over seeds.
    Row { axis, holds, holds_in_ci95: holds, why, ..Row::of(id, &quantity, published, values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_percentile_has_ours_beside_it() {
        let rows = rows(2_000, 1);
        let (published, unpublished): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.verdict().is_some());
        assert!(published.iter().all(|row| row.values.len() == 19), "{published:?}");
        assert!(published.iter().flat_map(|row| &row.values).all(|value| value.published.is_some()));
        // 2,000 stations: about 1 dB of statistical error in the tails.
        assert!(largest_difference(&rows) < 3.0, "{published:?}");
        assert_eq!((published.len(), unpublished.len()), (8, 4));
        assert!(unpublished.iter().all(|row| row.values.len() == SHARES.len()));
    }
}
