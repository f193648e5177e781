//! A network of sites and the mean gains between its cells and stations.
//!
//! [`parameters`] fixes a network; [`geometry`] places sites and stations on the ground; [`link_budget`]
//! computes the coupling gain of every station and cell and chooses the serving cell; [`calibration`]
//! collects the distributions of many stations, to compare with the ones that 3GPP published.

pub mod calibration;
pub mod geometry;
pub mod link_budget;
pub mod parameters;
