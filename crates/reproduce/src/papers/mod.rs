//! The experiments, one folder each.

mod accelerator;
mod ack_filter;
mod calibration;
mod d2d;
mod measured;
pub mod router;
mod tdd_pacing;

use crate::Paper;

/// All experiments.
pub static PAPERS: [&Paper; 7] = [
    &ack_filter::PAPER,
    &accelerator::PAPER,
    &calibration::PAPER,
    &d2d::PAPER,
    &measured::PAPER,
    &router::PAPER,
    &tdd_pacing::PAPER,
];
