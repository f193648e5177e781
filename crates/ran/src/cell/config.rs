//! The parameters of a cell and its stations, in the radio's own units. Where values come from stands with the
//! defaults.

use crate::air::Fading;
use crate::air::RadioConfig;
use crate::mac::random_access::RandomAccessConfig;
use crate::mac::scheduler::Policy;
use crate::mac::scheduling_request::AccessConfig;
use crate::rlc::RlcConfig;
use paceline_net::{Bytes, Duration, SduQueue};
use std::net::IpAddr;

/// Parameters of one LTE FDD cell.
#[derive(Clone, PartialEq, Debug)]
pub struct CellConfig {
    /// The deployment around the cells; none where SINRs are stated.
    pub radio: Option<RadioConfig>,
    /// Downlink resource blocks: 6, 15, 25, 50, 75 or 100 (TS 36.104 Table 5.6-1).
    pub downlink_prb: u8,
    /// Uplink resource blocks, likewise.
    pub uplink_prb: u8,
    /// Uplink resource blocks at the band's edges that PUCCH takes.
    pub pucch_prb: u8,
    /// How resource blocks of the downlink are shared.
    pub scheduler: Policy,
    /// How those of the uplink are shared.
    pub uplink_scheduler: Policy,
    /// Downlink assignments that PDCCH can carry per TTI.
    pub downlink_grants: usize,
    /// Uplink grants that PDCCH can carry per TTI.
    pub uplink_grants: usize,
    /// Transmissions of a block before HARQ gives up, per direction the same.
    pub max_harq_tx: u32,
    /// Highest uplink MCS: 20 where stations lack uplink 64QAM, else 28.
    pub max_uplink_mcs: u8,
    /// t-Reordering in TTIs.
    pub t_reordering: u64,
    /// RLC mode and its parameters, the same in both directions.
    pub rlc: RlcConfig,
    /// discardTimer of PDCP; none for infinity.
    pub discard_timer: Option<Duration>,
    /// TTIs from the end of a transmission until its data leave the receiver's layer 2.
    pub decode_delay: u64,
    /// Whether an outer loop corrects the choice of MCS, aiming at 10% block error of first transmissions.
    pub outer_loop: bool,
    /// Period of the wideband CQI report in TTIs.
    pub cqi_period: u64,
    /// TTIs from the measurement to the scheduler's use of it.
    pub cqi_delay: u64,
    /// Buffer per station in the eNB.
    pub downlink_buffer: Bytes,
    /// Timers of uplink access.
    pub access: AccessConfig,
    /// Random access, and signalling around it.
    pub random_access: RandomAccessConfig,
}

/// How good a station's radio link is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StationLink {
    /// As stated, in every resource block.
    Stated {
        /// Mean SINR in dB towards the station.
        downlink_sinr_db: f64,
        /// Mean SINR in dB from it.
        uplink_sinr_db: f64,
        /// Variation around both.
        fading: Fading,
    },
    /// As its place in the deployment makes it.
    Placed,
}

/// One station.
pub struct StationConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its radio link.
    pub link: StationLink,
    /// Its uplink buffer above PDCP: plain, or an ACK filter.
    pub uplink_buffer: Box<dyn SduQueue + Send>,
}
