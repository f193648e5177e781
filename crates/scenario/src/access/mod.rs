//! The access of the stations: cells with their sites and handovers, a link, or direct links of pairs.

pub(crate) mod cell;
pub(crate) mod cellular;
pub(crate) mod deployment;
pub(crate) mod handover;
pub(crate) mod link;
pub(crate) mod sidelink;

use cell::{AckFilter, Cell};
use deployment::Deployment;
use handover::Handover;
use link::Link;
use paceline_pep::Scheme;
use sidelink::Sidelink;

/// The access network of the stations, with the tables that belong to it.
#[derive(Clone, PartialEq, Debug)]
pub enum Access {
    /// One cell, or the cells of a deployment.
    Cells(Box<Cells>),
    /// A link in place of the cell: of fixed rate, a trace, or a channel of 2011.
    Link(Box<Link>),
    /// Pairs of stations with direct links, beside ordinary stations.
    Pairs(Box<Pairs>),
}

/// Cells.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cells {
    /// Each of the cells.
    pub cell: Cell,
    /// Sites around the stations; none for a single cell, whose stations have stated SINRs.
    pub deployment: Option<Deployment>,
    /// Changes of the serving cell.
    pub handover: Option<Handover>,
    /// The ACK filter in the stations' uplink buffers.
    pub ack_filter: AckFilter,
}

/// Pairs of stations.
#[derive(Clone, PartialEq, Debug)]
pub struct Pairs {
    /// The direct links and the base station.
    pub sidelink: Sidelink,
    /// The carrier in NR; in LTE it follows from `sidelink`.
    pub carrier: Option<Cell>,
    /// The ACK filter in the stations' uplink buffers.
    pub ack_filter: AckFilter,
}

impl Access {
    /// The name of the access's table.
    pub fn table(&self) -> &'static str {
        match self {
            Self::Cells(_) => "cell",
            Self::Link(_) => "link",
            Self::Pairs(_) => "sidelink",
        }
    }
    /// The scheme of the ACK filter; a link has none, as with the basic scheme.
    pub fn ack_scheme(&self) -> Scheme {
        self.ack_filter().map_or(Scheme::Basic, |filter| filter.scheme)
    }
    /// The ACK filter; a link has none.
    pub fn ack_filter(&self) -> Option<&AckFilter> {
        match self {
            Self::Cells(cells) => Some(&cells.ack_filter),
            Self::Pairs(pairs) => Some(&pairs.ack_filter),
            Self::Link(_) => None,
        }
    }
}
