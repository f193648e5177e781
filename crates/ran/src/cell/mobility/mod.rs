//! Stations that move between the served cells: measurements and event A3, radio link monitoring, handover
//! with forwarding of downlink packets, and a record of each change of the cell.

mod forwarding;
mod handover;
mod link_monitor;
mod measurement;
mod movement;
mod moving;
mod record;

pub(super) use forwarding::Forwarding;
pub use link_monitor::LinkMonitorConfig;
pub use measurement::EventA3;
pub(super) use moving::Moving;
pub use record::{HandoverCause, HandoverRecord};
