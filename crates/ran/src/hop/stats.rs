//! Counters of one direction of one station.

use crate::slot::SlotSpan;
use paceline_net::DropReason;

/// SINR from which [`LinkStats::sinr_millidecibels`] counts; lower ones count as this. Chosen: far below any
/// SINR at which a block is decoded, so that the sum never decreases.
pub const SINR_ORIGIN_DB: f64 = -100.0;

/// Counters of one direction of one station; none of them decreases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets that entered the buffer above PDCP.
    pub packets_in: u64,
    /// Packets delivered at the other end.
    pub packets_out: u64,
    /// Bytes of the delivered packets.
    pub bytes_out: u64,
    /// Dropped packets, by reason.
    pub dropped: DropCounts,
    /// Transport blocks sent for the first time.
    pub transport_blocks: u64,
    /// Their bytes.
    pub transport_block_bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
    /// HARQ retransmissions.
    pub harq_retransmissions: u64,
    /// Transport blocks given up after the last transmission.
    pub transport_blocks_lost: u64,
    /// PRBs of all transmissions, HARQ retransmissions included.
    pub prbs: u64,
    /// Sum of the MCS indices of first transmissions.
    pub mcs_index_sum: u64,
    /// Sum over first transmissions of the effective SINR above [`SINR_ORIGIN_DB`], in 1/1000 dB.
    pub sinr_millidecibels: u64,
    /// Slots in which the station could have been scheduled with data and its SINR allowed no MCS.
    pub slots_without_mcs: u64,
    /// RLC AM PDUs and segments that were sent again.
    pub rlc_retransmissions: u64,
    /// Slots in which the full window of RLC AM alone held data back.
    pub window_stalls: SlotSpan,
    /// STATUS PDUs in this direction's blocks; they report on the other direction.
    pub status_pdus: u64,
    /// Copies of SDUs that the receiving PDCP discarded after a change of the path.
    pub pdcp_copies: u64,
    /// Packet-nanoseconds in the uplink buffer from the arrival of data in the empty buffer to the first
    /// block: waits for a scheduling request, its grant, or random access.
    pub grant_wait_ns: u64,
    /// Sum over decoded blocks of the time from the first transmission to the last, in slots.
    pub harq_wait_slots: SlotSpan,
    /// Radio-link failures: a PDU of this direction reached maxRetxThreshold. In the uplink also random
    /// access problems of a connected station.
    pub radio_link_failures: u64,
}

/// Dropped packets by reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DropCounts(std::collections::BTreeMap<DropReason, u64>);

impl DropCounts {
    /// Counts one packet.
    pub fn add(&mut self, reason: DropReason) {
        *self.0.entry(reason).or_default() += 1;
    }
    /// Number of packets dropped for this reason.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or_default()
    }
    /// Number of packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
