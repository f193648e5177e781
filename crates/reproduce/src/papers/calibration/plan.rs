//! Distributions of geometry and coupling loss in the deployments, beside 3GPP's calibration results
//! (TR 38.901 section 7.8.1).

use super::plan::Reproduced;
use paceline_sim::reproduce::calibration::{largest_difference, rows};
use serde_json::json;

/// Stations dropped in each deployment. Chosen: the percentiles of a hundred thousand have two decimals.
pub const STATIONS: u32 = 100_000;
/// Stations of a quick calibration. Chosen: a second, and one decimal.
pub const QUICK_STATIONS: u32 = 10_000;

/// Drops stations at random positions in each deployment.
pub fn run(stations: u32, seed: u64) -> Reproduced {
    let rows = rows(stations as usize, seed);
    let conditions = format!(
        "{stations} stations dropped in each deployment, seed {seed}; largest difference {:.2} dB",
        largest_difference(&rows)
    );
    let about = json!({"stations": stations, "seed": seed});
    Reproduced { name: "calibration", conditions, about, rows }
}
