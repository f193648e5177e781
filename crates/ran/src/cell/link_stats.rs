//! LS

use paceline_net::DropReason;

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
    /// RLC AM PDUs and segments that were sent again.
    pub rlc_retransmissions: u64,
    /// STATUS PDUs in this direction's blocks, which report on the other direction.
    pub status_pdus: u64,
    /// Time that packets spent in the uplink's buffer before the first block since data came into the empty buffer, over
    /// all of them, in nanoseconds: the wait for a scheduling request, its grant, or random access.
    pub grant_wait_ns: u64,
    /// From the first transmission of a decoded block to the last, over these, in TTIs.
    pub harq_wait_ttis: u64,
    /// Radio-link failures: a PDU of this direction reached maxRetxThreshold, or random access of a connected
    /// station came to nothing, which counts in the uplink.
    pub radio_link_failures: u64,
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
