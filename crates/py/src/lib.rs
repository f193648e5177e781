//! The extension module of the Python package `paceline`: scenarios, runs and results.
//!
//! `scenario` and `values` read scenarios from Python's values; `run` simulates seeds on threads without the
//! interpreter's lock; `grid` makes the points of a sweep, `reproduce` the rows of published experiments;
//! `results` holds the figures, which leave as Arrow tables by `table`; `episode` steps a run under an agent
//! that learns; `control` calls a congestion control in Python. The classes that users see, their types and
//! their examples are in python/paceline.
#![forbid(unsafe_code)]

mod cell;
mod control;
mod episode;
mod error;
mod explain;
mod grid;
mod pickle;
mod reproduce;
mod results;
mod run;
mod scenario;
mod table;
mod values;

use pyo3::prelude::*;

/// The same allocator as in the command line (see decision 32).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _paceline {
    #[pymodule_export]
    use super::cell::cell_facts;
    #[pymodule_export]
    use super::episode::{RateEpisode, SchedulingEpisode};
    #[pymodule_export]
    use super::explain::explain;
    #[pymodule_export]
    use super::grid::{axes, differences_of_grid, mean_and_half, paired_differences, points};
    #[pymodule_export]
    use super::reproduce::reproduce;
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::run::{Stop, run};
    #[pymodule_export]
    use super::scenario::{Scenario, built_in_names};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::values::{plain, setting, toml_of};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let origin = paceline_study::origin();
        module.add("version", origin.version)?;
        module.add("commit", origin.commit)?;
        module.add("experiments", paceline_reproduce::PAPERS.map(|paper| paper.name))?;
        Ok(())
    }
}
