//! Parameters of a cell and its stations; times in slots unless their type says otherwise. Default values and
//! their sources stand in the scenario tables of `paceline-sim`. `carrier` has the values that follow,
//! `ports` the ports of the node.

mod carrier;
mod ports;

pub(super) use carrier::Carrier;
pub use ports::{CORE, station_port};

use crate::air::{Fading, RadioConfig};
use crate::bearer::Fate;
use crate::duplex::Duplex;
use crate::lte::tdd::AckMode;
use crate::mac::random_access::RandomAccessConfig;
use crate::mac::scheduler::Policy;
use crate::mac::scheduling_request::AccessConfig;
use crate::prb::PrbSet;
use crate::radio::Point;
use crate::rat::Rat;
use crate::rlc::RlcConfig;
use crate::slot::{Numerology, SlotSpan};
use paceline_net::{Bytes, Duration, SduQueue};
use std::net::IpAddr;

/// Parameters of one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct CellConfig {
    /// The radio technology.
    pub rat: Rat,
    /// Subcarrier spacing and length of a slot.
    pub numerology: Numerology,
    /// Division of the carrier between both directions.
    pub duplex: Duplex,
    /// Sharing of an uplink subframe by the HARQ-ACKs of several subframes, in LTE TDD.
    pub ack_mode: AckMode,
    /// The deployment around the served cells; none for stated SINRs.
    pub radio: Option<RadioConfig>,
    /// Downlink PRBs: 6, 15, 25, 50, 75 or 100 (TS 36.104 Table 5.6-1).
    pub downlink_prb: u16,
    /// Uplink PRBs, likewise.
    pub uplink_prb: u16,
    /// Uplink PRBs of PUCCH, half of them at each edge of the band.
    pub pucch_prb: u16,
    /// Downlink scheduling policy.
    pub scheduler: Policy,
    /// Uplink scheduling policy.
    pub uplink_scheduler: Policy,
    /// Largest number of downlink assignments on PDCCH per slot.
    pub downlink_grants: usize,
    /// Largest number of uplink grants on PDCCH per slot.
    pub uplink_grants: usize,
    /// Largest number of HARQ transmissions of a block, the same in both directions.
    pub max_harq_tx: u32,
    /// Highest uplink MCS: 20 where stations lack uplink 64QAM, else 28.
    pub max_uplink_mcs: u8,
    /// t-Reordering of RLC.
    pub t_reordering: SlotSpan,
    /// RLC mode and its parameters, the same in both directions.
    pub rlc: RlcConfig,
    /// discardTimer of PDCP; none for infinity.
    pub discard_timer: Option<Duration>,
    /// Time from the end of a transmission until its data leave the receiver's layer 2.
    pub decode_delay: SlotSpan,
    /// Whether an outer loop corrects the choice of MCS for a block error of 10% in first transmissions.
    pub outer_loop: bool,
    /// Period of the wideband CQI report.
    pub cqi_period: SlotSpan,
    /// Time from a CQI measurement to its use by the scheduler.
    pub cqi_delay: SlotSpan,
    /// Time before its slot at which the base station takes a downlink packet into a block; it needs less
    /// where this is zero.
    pub downlink_lead: Duration,
    /// Buffer per station in the eNB.
    pub downlink_buffer: Bytes,
    /// Scheduling requests and buffer status reports.
    pub access: AccessConfig,
    /// Random access and the signalling after it.
    pub random_access: RandomAccessConfig,
}

impl CellConfig {
    /// PRBs of PUSCH: the uplink without PUCCH, which lies at both edges of the band.
    pub(crate) fn pusch_prbs(&self) -> PrbSet {
        let (pucch, prb) = (u32::from(self.pucch_prb), u32::from(self.uplink_prb));
        PrbSet::range(pucch / 2, prb - pucch)
    }
}

/// The radio link of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StationLink {
    /// Stated SINRs, the same in every PRB.
    Stated {
        /// Mean downlink SINR in dB.
        downlink_sinr_db: f64,
        /// Mean uplink SINR in dB.
        uplink_sinr_db: f64,
        /// Variation around both.
        fading: Fading,
    },
    /// A random place in the deployment.
    Placed,
    /// This place in the deployment, in metres from site 0, outside of buildings.
    PlacedAt(Point),
}

/// One station.
pub struct StationConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its radio link.
    pub link: StationLink,
    /// Time that a packet takes in its stack above PDCP, in each direction.
    pub processing: Duration,
    /// Its uplink buffer above PDCP: a plain queue or an ACK filter.
    pub uplink_buffer: Box<dyn SduQueue + Send>,
}

/// How a station is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handover {
    /// Slots from the handover until the first preamble in the target: without service, except where the
    /// fate is [`Fate::Duplicate`].
    pub interruption: SlotSpan,
    /// The fate of the packets in RLC of the source.
    pub fate: Fate,
    /// Whether blocks that were decoded before the reset of MAC are delivered.
    pub keep_harq: bool,
    /// Forwarding of downlink packets from the source to the target; none if they are there at once.
    pub forwarding: Option<ForwardingConfig>,
}

/// Forwarding of downlink packets over X2 or Xn, and the switch of the core's path (TS 36.300 §10.1.2.1, TS
/// 38.300 §9.2.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardingConfig {
    /// Time that a packet takes from the source to the target.
    pub delay: Duration,
    /// Time from service in the target until the core sends its packets there.
    pub path_switch: Duration,
    /// Whether the target waits for the end marker, which follows the last forwarded packet, before it sends
    /// packets of the new path.
    pub end_marker: bool,
}
