//! TCP over direct links and changes of path: G. Nardini, G. Stea, A. Virdis, "Performance evaluation of
//! TCP-based traffic over direct communications in LTE-Advanced" (IEEE VTC Spring 2016).
//!
//! `parts` has the settings of the sweeps and the published TCPs, `switch` runs one change of path and
//! records the sender around it, `rows` sets both beside the published statements.

mod parts;
mod pictures;
mod plan;
mod rows;
mod switch;
#[cfg(test)]
mod tests;

pub use plan::PAPER;
