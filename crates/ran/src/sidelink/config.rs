//! Parameters of pairs and of their base station; times in slots unless their type says otherwise. Default
//! values and their sources stand in the scenario tables of `paceline-sim`.

use super::radio::{Carrier, LinkBudget, Motion};
use super::stats::PathKind;
use crate::bearer::Fate;
use crate::rlc::RlcConfig;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Bytes, SduQueue};
use std::net::IpAddr;

/// Blocks of the uplink path that end with a buffer status report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TrailingBsr {
    /// Blocks that leave more than a full block in the buffer.
    #[default]
    Backlog,
    /// Blocks that leave data in the buffer.
    Always,
    /// No block.
    Never,
}

/// The change of paths.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Selection {
    /// Paths do not change.
    #[default]
    Fixed,
    /// Once in a period, each flow takes the path whose first hop has the higher CQI.
    BestCqi {
        /// The period.
        period: SlotSpan,
        /// Steps by which the other path's CQI must be higher, beyond one.
        hysteresis: u8,
    },
    /// In each of these slots, ascending, every flow changes to its other path.
    Scripted(Vec<Slot>),
}

/// Parameters of the eNB and of all pairs.
#[derive(Clone, PartialEq, Debug)]
pub struct SidelinkConfig {
    /// Radio technology, slots and resource blocks.
    pub carrier: Carrier,
    /// RLC mode and its parameters. In AM both flows of a pair have the same path.
    pub rlc: RlcConfig,
    /// t-Reordering of RLC.
    pub t_reordering: SlotSpan,
    /// Buffer of each flow in a station, and in the eNB.
    pub buffer: Bytes,
    /// Least distance of two requests of a station: the timeout of random access in LTE, sr-ProhibitTimer in
    /// NR.
    pub rac_timeout: SlotSpan,
    /// Whether blocks of the uplink path end with a buffer status report.
    pub trailing_bsr: TrailingBsr,
    /// Largest number of HARQ transmissions of a block.
    pub max_harq_tx: u32,
    /// Change of paths.
    pub selection: Selection,
    /// Packets of the former path at a change: as by [`Fate`]. Dropped ones include those that wait in the
    /// buffers, since the published system has its queue in RLC.
    pub fate: Fate,
    /// Whether transport blocks in the air at a change are lost. Else the former path's receiver has those
    /// that it decodes at their first transmission, at the time of the change.
    pub interrupt_harq: bool,
    /// Powers and losses.
    pub budget: LinkBudget,
    /// Interference in dBm over the carrier up to which two direct links may use the same PRBs; none if they
    /// never do.
    pub reuse_threshold_dbm: Option<f64>,
}

/// Two stations that exchange packets: the station, and its peer, which has the port [`crate::CORE`]. Or an
/// ordinary station, whose packets go to and come from the core network by that port.
pub struct PairConfig {
    /// Addresses of the station; other destinations are the peer's.
    pub addresses: Vec<IpAddr>,
    /// Whether there is a peer.
    pub peer: bool,
    /// ACK filters of the uplink buffers of peer and station; they act on the infrastructure path.
    pub filters: [Option<Box<dyn SduQueue + Send>>; 2],
    /// First path of the packets towards the station.
    pub to_station: PathKind,
    /// First path of the packets towards the peer.
    pub to_peer: PathKind,
    /// Positions.
    pub motion: Motion,
}
