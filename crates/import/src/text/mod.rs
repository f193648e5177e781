//! From the bytes of a file to a table of cells: packed files, encodings, separators, numbers, logs.

pub mod clock;
mod date;
pub mod iperf_log;
pub mod numbers;
pub mod table;
pub mod unpack;
pub mod zone;
