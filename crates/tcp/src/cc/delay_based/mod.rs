//! Congestion controls that use the queueing delay.
//!
//! Each estimates the queue from round-trip times: `vegas` keeps it between two bounds, `veno` decides by it
//! whether a loss is random, `illinois` derives growth and reduction from it. All react to losses as well.

mod illinois;
mod vegas;
mod veno;

pub use illinois::Illinois;
pub use vegas::Vegas;
pub use veno::Veno;
