//! The plans of reproduced experiments: which grids are simulated, and the rows that follow. A [`Runner`]
//! simulates them.

pub mod accelerator;
pub mod ack_filter;
pub mod calibration;
pub mod d2d;
pub mod measured;
mod plan;
pub mod router;
pub mod tdd_pacing;

pub use plan::{Options, Reproduced, Runner};

use crate::error::InputError;
use crate::similar;

/// Names of the experiments.
pub const NAMES: [&str; 7] =
    ["ack-filter", "accelerator", "calibration", "d2d", "measured", "router", "tdd-pacing"];

/// Simulates the experiment of this name. `parts` are those of `tdd-pacing`; other experiments have none.
pub fn run<R: Runner>(
    name: &str,
    options: &Options,
    parts: &[String],
    runner: &mut R,
) -> Result<Reproduced, R::Error> {
    if !parts.is_empty() && name != "tdd-pacing" {
        return Err(InputError::text(format!("parts: {name} has none, only tdd-pacing")).into());
    }
    match name {
        "ack-filter" => ack_filter::run(options, runner),
        "accelerator" => accelerator::run(options, runner),
        "calibration" => {
            let stations = if options.quick { calibration::QUICK_STATIONS } else { calibration::STATIONS };
            Ok(calibration::run(stations, 1))
        }
        "d2d" => Ok(d2d::run(options, runner)?.reproduced),
        "measured" => measured::run(options, runner),
        "router" => router::run(options, runner),
        "tdd-pacing" => Ok(tdd_pacing::run(options, parts, runner)?.reproduced),
        other => {
            let hint = similar::hint(&similar::similar(other, NAMES.into_iter()));
            let names = NAMES.join(", ");
            Err(InputError::text(format!("{other}: no such experiment; allowed: {names}{hint}")).into())
        }
    }
}
