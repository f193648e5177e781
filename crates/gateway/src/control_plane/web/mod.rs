//! The operator's view by HTTP: a page ([`http`]), and [`metrics`] in Prometheus' format with those of the
//! [`process`]. Requests are answered under names of this machine alone ([`hosts`]).

pub mod hosts;
pub mod http;
pub mod metrics;
pub mod process;
