//! 3GPP's calibration of system-level simulators (TR 38.901 7.8.1): distributions of geometry and coupling
//! loss in the deployments.

mod rows;

use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner};
use rows::{largest_difference, rows};
use serde_json::json;

/// The experiment. Chosen: the percentiles of a hundred thousand stations have two decimals, those of ten
/// thousand, which take a second, one.
pub static PAPER: Paper = Paper {
    name: "calibration",
    about: "Downlink geometry and coupling loss of 3GPP's deployments, beside 3GPP's own",
    inputs: Inputs::Stations,
    counts: (100_000, 10_000),
    part_tables: false,
    plan,
};

fn plan(options: &Options, _: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let stations = options.stations.map_or_else(|| PAPER.count(options.quick), u64::from);
    let seed = options.seed.unwrap_or(1);
    let rows = rows(stations as usize, seed);
    let conditions = format!(
        "{stations} stations dropped in each deployment, seed {seed}; largest difference {:.2} dB",
        largest_difference(&rows)
    );
    Ok(Reproduced { conditions, about: json!({"stations": stations, "seed": seed}), rows })
}
