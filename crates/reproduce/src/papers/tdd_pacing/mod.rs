//! Pacing in TDD cells (Sawabe, Shinohara and Iwai, IEEE CCNC 2024, known by its abstract): rows 3a to 3c of
//! the published statements, statements (a) to (f) of our own about where pacing gains, and maps of the gain
//! over buffer and base round-trip time.
//!
//! `parts` are the settings, named before any run. A value is the median over phases: runs whose base
//! round-trip times are spread evenly over one period of the pattern, each with a seed of its own. Buffers
//! are given in period-bytes: what the cell carries in one period of its pattern.

mod experiment;
mod maps;
mod packets;
mod parts;
mod plan;
mod rows;

pub use plan::PAPER;
