//! What a cell keeps per station: both directions' buffers, RLC entities, HARQ processes and channels.

use crate::access::{BufferEstimate, StationAccess};
use crate::channel::Channel;
use crate::config::{CellConfig, StationConfig};
use crate::harq;
use crate::lte::cqi;
use crate::rlc_um;
use crate::slot::Tti;
use paceline_net::{DropReason, DropTail, SduQueue, Stream};
use std::collections::VecDeque;

/// Counters of one direction of one station.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets that came in from above.
    pub packets_in: u64,
    /// Packets that went out at the other end.
    pub packets_out: u64,
    /// Bytes of the packets that went out.
    pub bytes_out: u64,
    /// Packets that ended here, by reason.
    pub dropped: DropCounts,
    /// Transport blocks sent for the first time.
    pub blocks: u64,
    /// Their bytes.
    pub block_bytes: u64,
    /// Of these, padding.
    pub padding_bytes: u64,
    /// Repeated transmissions.
    pub retransmissions: u64,
    /// Blocks given up after the last transmission.
    pub blocks_lost: u64,
    /// Resource blocks used by all transmissions.
    pub prb: u64,
    /// Sum of the MCS indices of first transmissions.
    pub mcs_sum: u64,
}

/// Dropped packets by reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DropCounts(std::collections::BTreeMap<DropReason, u64>);

impl DropCounts {
    /// Counts one.
    pub fn add(&mut self, reason: DropReason) {
        *self.0.entry(reason).or_default() += 1;
    }
    /// How many for this reason.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or_default()
    }
    /// How many in all.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// One direction of a station.
pub(crate) struct Link<Q> {
    pub buffer: Q,
    pub rlc_tx: rlc_um::Tx,
    pub rlc_rx: rlc_um::Rx,
    pub harq: harq::Processes,
    pub channel: Channel,
    pub last_served: Tti,
    pub stats: LinkStats,
    /// PDUs decoded, on their way through the receiver: when they reach RLC.
    pub decoded: VecDeque<(Tti, rlc_um::Pdu)>,
}

impl<Q> Link<Q> {
    fn new(buffer: Q, t_reordering: u64, channel: Channel) -> Self {
        Self {
            buffer,
            rlc_tx: rlc_um::Tx::default(),
            rlc_rx: rlc_um::Rx::new(t_reordering),
            harq: harq::Processes::default(),
            channel,
            last_served: Tti(0),
            stats: LinkStats::default(),
            decoded: VecDeque::new(),
        }
    }
    /// Whether nothing below the buffer needs time to pass.
    pub fn idle_below(&self) -> bool {
        self.harq.idle() && self.decoded.is_empty() && self.rlc_rx.expires_at().is_none()
    }
    /// Packets held below the buffer.
    fn held_below(&self) -> u64 {
        let decoded = self.decoded.iter().flat_map(|(_, pdu)| &pdu.elements);
        let decoded = decoded.filter(|element| element.last.is_some()).count() as u64;
        self.rlc_tx.held() + self.harq.held() + decoded + self.rlc_rx.held()
    }
}

/// One station.
pub(crate) struct Station {
    pub downlink: Link<DropTail>,
    pub uplink: Link<Box<dyn SduQueue + Send>>,
    pub access: StationAccess,
    pub estimate: BufferEstimate,
    /// Grants on their way: TTI of the transmission, MCS index, resource blocks.
    pub grants: VecDeque<(Tti, u8, u8)>,
    /// CQI reports on their way, with the TTI of their use; the last one in use is at the front.
    cqi_reports: VecDeque<(Tti, u8)>,
}

impl Station {
    pub fn new(config: StationConfig, cell: &CellConfig, index: usize, seed: u64) -> Self {
        let channel = |mean_db, direction: &str| {
            let name = format!("cell0/station{index}/{direction}/fading");
            Channel::new(mean_db, config.fading, Stream::new(seed, &name))
        };
        let downlink = channel(config.downlink_sinr_db, "downlink");
        let uplink = channel(config.uplink_sinr_db, "uplink");
        Self {
            downlink: Link::new(DropTail::new(cell.downlink_buffer), cell.t_reordering, downlink),
            uplink: Link::new(config.uplink_buffer, cell.t_reordering, uplink),
            access: StationAccess::new(index as u64),
            estimate: BufferEstimate::default(),
            grants: VecDeque::new(),
            cqi_reports: VecDeque::new(),
        }
    }
    /// The CQI that the scheduler knows in `tti`. Stations report on even when idle; after a pause the report in
    /// use is one of the moment of waking.
    pub fn reported_cqi(&mut self, tti: Tti, cell: &CellConfig) -> u8 {
        let periodic = tti.0.is_multiple_of(cell.cqi_period);
        let stale =
            self.cqi_reports.back().is_none_or(|(due, _)| tti.since(*due) > cell.cqi_period + cell.cqi_delay);
        if periodic || stale {
            let report = cqi::of_sinr(self.downlink.channel.sinr_db(tti));
            if stale {
                self.cqi_reports.clear();
            }
            let due = if stale { tti } else { tti + cell.cqi_delay };
            self.cqi_reports.push_back((due, report));
        }
        while self.cqi_reports.get(1).is_some_and(|(due, _)| *due <= tti) {
            self.cqi_reports.pop_front();
        }
        self.cqi_reports.front().map_or(0, |(_, report)| *report)
    }
    /// Data waiting in the uplink, above and in RLC.
    pub fn uplink_available(&self) -> u64 {
        self.uplink.rlc_tx.available(&*self.uplink.buffer)
    }
    /// Data waiting in the downlink, above and in RLC.
    pub fn downlink_available(&self) -> u64 {
        self.downlink.rlc_tx.available(&self.downlink.buffer)
    }
    /// Whether a TTI can pass without work for this station.
    pub fn idle(&self) -> bool {
        self.downlink_available() == 0
            && self.uplink_available() == 0
            && self.grants.is_empty()
            && !self.estimate.waiting()
            && self.estimate.bytes() == 0
            && self.downlink.idle_below()
            && self.uplink.idle_below()
    }
    /// Packets held in the downlink.
    pub fn downlink_held(&self) -> u64 {
        self.downlink.buffer.packets() as u64 + self.downlink.held_below()
    }
    /// Packets held in the uplink.
    pub fn uplink_held(&self) -> u64 {
        self.uplink.buffer.packets() as u64 + self.uplink.held_below()
    }
}
