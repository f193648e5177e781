//! Pacing that knows the slots of a TDD cell, one core for TCP senders, the accelerator and live drivers.
//!
//! [`Pacer`] gives the next send time from a mean rate and a [`Hint`] about the cell's pattern.
//! [`CleanDelay`] removes the delay variation of the pattern from round-trip times. [`Learner`] finds the
//! period. [`TddCell`] has all that one sender knows of its cell. The mechanism follows Sawabe, Shinohara and
//! Iwai (IEEE CCNC 2024), of which only the abstract was known. Left out: patterns of a single station.

mod clean_delay;
mod learner;
mod pacer;
mod spectrum;
mod tdd_cell;

pub use clean_delay::CleanDelay;
pub use learner::{Learned, Learner};
pub use pacer::{CatchUp, Hint, Pacer, window_rate};
pub use tdd_cell::TddCell;
