//! Performance-enhancing proxies (RFC 3135) in the path between servers and stations.
//!
//! ```text
//! servers - core network - SERVERS [Pep: accelerator or split TCP] STATIONS - hops, access - stations
//! ```
//!
//! [`Pep`] is the node: it hands packets to the [`Accelerator`](paceline_pep::Accelerator) or to [`Split`],
//! and measures on the stations' side, since early acknowledgments hide the stations from the servers' side.
//! The `ledger` has the limits of an accelerator's senders.

mod ledger;
mod pep;
mod split;

pub(crate) use ledger::AcceleratedSender;
pub use pep::Pep;
pub(crate) use pep::Relay;
pub(crate) use split::{Configure, Split};

use paceline_net::Port;
use paceline_pep::accelerator::Side;

/// Port towards the servers.
pub(crate) const SERVERS: Port = Side::Server.port();
/// Port towards the stations.
pub(crate) const STATIONS: Port = Side::Mobile.port();
