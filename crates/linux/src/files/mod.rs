//! Files that are written while a program runs: captures and event traces.

pub mod event_file;
pub mod pcapng;
mod size_limit;
