//! The control plane: an operator's view of a running gateway, and the operator's commands.
//!
//! Commands come by the [`control_socket`] (requests and responses of the [`protocol`], sent by a
//! [`client`]), by signals (in the command line program) and by HTTP ([`http`], for [`metrics`]). All of them
//! call [`operations`], which holds the configuration, the kernel programs and a channel to each worker.
//! Workers answer [`requests`] between turns. Their snapshots are summed and returned as [`status`] or
//! metrics. A [`capture`] copies one connection's packets from the workers to a pcapng stream. [`rates`] are
//! measured between two looks; [`notes`] are conditions that the operator should know. [`leaving`] watches
//! whether acknowledgments leave this machine, [`away`] whether the interfaces are there. [`filter_watch`]
//! compares filtered with unfiltered connections, [`experiments`] accelerated with untouched devices.

mod away;
pub mod capture;
pub mod client;
pub mod control_socket;
pub mod experiments;
pub mod filter_watch;
pub mod hosts;
pub mod http;
mod leaving;
pub mod metrics;
mod notes;
pub mod operations;
mod process;
pub mod protocol;
mod rates;
pub mod requests;
pub mod status;
