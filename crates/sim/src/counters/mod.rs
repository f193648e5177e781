//! Readings: plain data copied out of a model, the middle of the one-way path `model -> counters -> results`.
//!
//! [`read`] copies the state of one moment: per station, [`Counters`] that only grow, window sizes and queue
//! lengths. A run is read at the end of the warm-up, at every sample, and at its end. [`read_end`] copies
//! data that exist once per run: percentiles, the sums of every connection, the positions of the stations.
//! `results` computes figures from these structs, and has no access to the model.

mod connections;
mod reading;
mod station;
mod view;

pub(crate) use connections::{ConnectionReading, SenderReading};
pub(crate) use reading::{
    CellReading, EndReading, PathReading, PingReading, Proxy, RadioCapacity, Reading, StationReading, read,
    read_end, read_station,
};
pub(crate) use station::Counters;
pub use view::{StationView, View};
