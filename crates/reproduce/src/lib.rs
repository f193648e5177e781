//! Published experiments, repeated: published values beside ours.
//!
//! [`PAPERS`] is the table of the experiments; the command line, Python and the report read it. Each has a
//! folder in [`papers`] with its settings, published values, plan, rows and pictures. Data moves one way: the
//! plan names scenarios and seeds, a [`Runner`] simulates them, the rows ([`Row`]) set their results beside
//! the published values and judge the published statements, [`table`] and [`page`] show the rows.
//!
//! A runner has the threads, the files and the host.
#![forbid(unsafe_code)]

pub mod host;
pub mod page;
pub mod papers;
mod plan;
mod row;
pub mod table;
mod value;

pub use papers::PAPERS;
pub use plan::{Failure, Folder, Inputs, Options, Paper, Reproduced, Runner};
pub use row::{Estimate, Row};
pub use value::Value;

use paceline_study::{InputError, similar};

/// The experiment of this name.
///
/// # Errors
/// If there is none; the error names those that there are.
pub fn find(name: &str) -> Result<&'static Paper, InputError> {
    let names = || PAPERS.iter().map(|paper| paper.name);
    PAPERS.iter().copied().find(|paper| paper.name == name).ok_or_else(|| {
        let (hint, names) = (similar::hint(&similar::similar(name, names())), names().collect::<Vec<_>>());
        InputError::text(format!("{name}: no such experiment; allowed: {}{hint}", names.join(", ")))
    })
}

impl Paper {
    /// Repeats the experiment.
    ///
    /// # Errors
    /// Bad input, or the runner's reason for an early end.
    pub fn reproduce(&self, options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
        if !options.parts.is_empty() && self.inputs != Inputs::Parts {
            let others = PAPERS.iter().filter(|paper| paper.inputs == Inputs::Parts);
            let others = others.map(|paper| paper.name).collect::<Vec<_>>().join(", ");
            return Err(InputError::text(format!("parts: {} has none, only {others}", self.name)).into());
        }
        (self.plan)(options, runner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_stands_in_the_document_and_every_tour_names_one() {
        let page = include_str!("../../../docs/reproduce.md");
        assert!(PAPERS.iter().all(|paper| page.contains(&format!("\n| `{}` |", paper.name))));
        let tours =
            include_str!("../../../web/page/tours.js").split("The whole experiment: paceline reproduce ");
        let named: Vec<_> = tours.skip(1).map(|text| text.split('.').next().unwrap_or_default()).collect();
        assert!(named.len() >= 5 && named.iter().all(|name| find(name).is_ok()), "{named:?}");
    }
}
