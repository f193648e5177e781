//! Signs of single mechanisms of the path: bunches of ACKs, a policer, middleboxes, the period of a cell.

pub mod bunches;
pub mod copies;
pub mod middlebox;
pub mod period;
pub mod policer;
