//! Pairs of stations that exchange packets over a direct link (sidelink) or through the base station, which
//! schedules both: [`Sidelink`].
//!
//! After Nardini, Stea, Virdis, IEEE VTC Spring 2016, and TS 36.300 §23.10 (sidelink transmission mode 1) in
//! LTE; TS 38.300 §16.9 (mode 1) in NR. Both differ in `radio::carrier` alone.
//! A flow is one direction of a pair (`flow`). It has one path at a time: direct, or infrastructure, which is
//! an uplink to the eNB and a downlink from there. Each hop has RLC, MAC and HARQ entities of its own under
//! one PDCP from station to station ([`crate::bearer`]). Direct transmissions use uplink subframes. A station
//! without a grant sends a random access request, gets a short grant for its buffer status report, and then a
//! data grant (`access`, `uplink`). `selection` changes the paths, by CQIs that follow from the stations'
//! positions (`radio`).
//!
//! An ordinary station beside the pairs has an uplink and a downlink alone, by the same access.
//!
//! Left out: resource pools of sidelink mode 2, discovery,
//! synchronisation, collisions of random access requests, fast fading, and shadowing. Control messages are
//! never lost.

mod access;
mod buffer;
mod config;
mod downlink;
mod flow;
mod node;
mod pair;
mod radio;
mod selection;
mod stats;
mod uplink;

pub use config::{PairConfig, Selection, SidelinkConfig, TrailingBsr};
pub use node::Sidelink;
pub use radio::{Carrier, LinkBudget, Motion, RadioLink, ResourcePool};
pub use stats::{Carried, FlowDirection, Message, MessageKind, PathKind, Switch};
