//! Stations that move between the served cells: measurements and event A3, radio link monitoring, handover
//! with forwarding of downlink packets, and a record of each change of the cell.

mod handover;
mod link_monitor;
mod measurement;
mod movement;
mod record;

pub(super) use handover::{Command, Handovers, accessed_at};
pub use link_monitor::LinkMonitorConfig;
pub use measurement::EventA3;
pub(super) use movement::Movement;
pub use record::{HandoverCause, HandoverRecord};
