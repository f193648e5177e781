//! Tables and sets: stations by address, a keyed hash for tables, positions in streams.

pub mod address_table;
pub mod keyed_hash;
pub mod ranges;
