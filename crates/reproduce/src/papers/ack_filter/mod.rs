//! Y. Ohta et al., "Controlling TCP ACK Transmission", IEEE CSCN 2018: the published quantities 1a to 1i from
//! runs of four schemes with 10 to 60 stations.
//!
//! Ratios are computed per seed, where both schemes have the same stations in the same places, and then
//! averaged. A row holds if our means have the published direction. Data moves from `plan` (the runs)
//! through `experiment` (comparisons between them) to `rows`; `facts` words the explanations from counters and the capacities
//! in `network`.

mod experiment;
mod facts;
mod network;
mod plan;
mod rows;

pub use plan::PAPER;

#[cfg(test)]
mod tests;
