//! The access of the stations: a cell with its sites and handovers, another link, or direct links of pairs.

pub(crate) mod cell;
pub(crate) mod cellular;
pub(crate) mod deployment;
pub(crate) mod handover;
pub(crate) mod link;
pub(crate) mod sidelink;
