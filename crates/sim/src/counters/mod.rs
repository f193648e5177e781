//! Readings: plain data copied out of a model, the middle of the one-way path `model -> counters -> results`.
//!
//! [`read`] copies everything that is counted or measured at one moment: per station, [`Counters`] that only
//! grow and [`Gauges`] of the moment. A run is read when the warm-up ends, at every sample, and at its end.
//! [`read_end`] copies what exists once per run: distributions, the account of every connection, the places
//! of the stations. `results` computes figures from these structs and never sees the model.

mod connections;
mod reading;
mod station;

pub(crate) use connections::ConnectionReading;
pub(crate) use reading::{CellReading, EndReading, RadioCapacity, Reading, StationReading, read, read_end};
pub(crate) use station::Counters;
