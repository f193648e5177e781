//! The integration tests of the simulator: one program, a module for each subject.

mod accelerator_pacing;
mod access;
mod ack_filter;
mod capacity;
mod documents;
mod drive;
mod engine;
mod episodes;
mod experiment;
mod fading_links;
mod fast_traces;
mod key_documents;
mod learned_period;
mod limits;
mod limits_by_side;
mod links;
mod lte_tdd;
mod nr_presets;
mod path_switch;
mod pauses;
mod police;
mod queues;
mod series;
mod sidelink;
mod station_tcp;
mod swarm;
