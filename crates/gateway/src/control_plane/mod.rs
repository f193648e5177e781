//! The control plane: an operator's view of a running gateway, and the operator's commands.
//!
//! Commands come by the [`socket`], by signals (in the command line program) and by HTTP ([`web`], for
//! metrics). All of them call [`operations`], which holds the configuration, the kernel programs and a
//! channel to each worker. Workers answer [`requests`] between turns. Their snapshots are summed and returned
//! as [`status`] or metrics. A [`capture`] copies one connection's packets from the workers to a pcapng
//! stream. [`rates`] are measured between two looks; [`notes`] are conditions that the operator should know;
//! [`history`] is the last hour.
//! [`leaving`] watches whether acknowledgments leave this machine, [`away`] whether the interfaces are there.
//! [`filter_watch`] compares filtered with unfiltered connections, [`experiments`] accelerated with untouched
//! devices.

mod away;
pub mod capture;
pub mod experiments;
pub mod filter_watch;
mod history;
mod leaving;
mod notes;
pub mod operations;
mod rates;
pub mod requests;
pub mod socket;
pub mod status;
pub mod web;
