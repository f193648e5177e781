//! Tests of the accelerator: single connections on a [`test_bed`], transfers over a simulated [`network`],
//! and random runs of a [`model`]. The tests in [`safety`] follow the table of hazards of live traffic.

mod connections;
mod memory;
mod middlebox_sack;
mod model;
mod network;
mod offload;
mod safety;
mod stored_time;
mod swarm;
mod tails;
mod test_bed;
mod transfers;
mod work;
