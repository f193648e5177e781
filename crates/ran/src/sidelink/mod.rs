//! Pairs of LTE stations that exchange packets over a direct link (sidelink) or through the eNB, which
//! schedules both: [`Sidelink`].
//!
//! After Nardini, Stea, Virdis, IEEE VTC Spring 2016, and TS 36.300 §23.10 (sidelink transmission mode 1).
//! A flow is one direction of a pair (`flow`). It has one path at a time: direct, or infrastructure, which is
//! an uplink to the eNB and a downlink from there. Each path has RLC, MAC and HARQ entities of its own under
//! the PDCP of [`crate::bearer`]. Direct transmissions use uplink subframes. A station without a grant sends
//! a random access request, gets a short grant for its buffer status report, and then a data grant
//! (`access`, `uplink`). `selection` changes the paths, by CQIs that follow from the stations' positions
//! (`channel`, `motion`).
//!
//! Left out: traffic of other stations in the cell, resource pools of sidelink mode 2, discovery,
//! synchronisation, collisions of random access requests, fast fading, and shadowing. Control messages are
//! never lost.

mod access;
mod channel;
mod config;
mod downlink;
mod flow;
mod motion;
mod node;
mod selection;
mod stats;
mod uplink;

pub use channel::{LinkBudget, RadioLink};
pub use config::{PairConfig, Selection, SidelinkConfig, TrailingBsr};
pub use motion::Motion;
pub use node::Sidelink;
pub use stats::{Carried, FlowDirection, Message, MessageKind, PathKind, Switch};
