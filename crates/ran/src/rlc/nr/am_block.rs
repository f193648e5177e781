//! Parameters of AM, and its data in a transport block.

use super::headers::SnLength;
use super::runs::SduRun;
use crate::slot::{SlotClock, SlotSpan};
use paceline_net::Duration;

/// t-PollRetransmit. Chosen: srsRAN_Project's value for 5QI 9 (`configs/qos.yml`), as the next four.
const T_POLL_RETRANSMIT: Duration = Duration::from_millis(100);
/// t-Reassembly. Chosen: as [`T_POLL_RETRANSMIT`].
const T_REASSEMBLY: Duration = Duration::from_millis(20);
/// t-StatusProhibit. Chosen: as [`T_POLL_RETRANSMIT`].
const T_STATUS_PROHIBIT: Duration = Duration::from_millis(10);
/// pollPDU in PDUs. Chosen: as [`T_POLL_RETRANSMIT`].
const POLL_PDU: u32 = 16;
/// maxRetxThreshold in retransmissions. Chosen: as [`T_POLL_RETRANSMIT`].
const MAX_RETX_THRESHOLD: u32 = 32;

/// Parameters of AM (`UL-AM-RLC`, `DL-AM-RLC` of TS 38.331).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmConfig {
    /// Length of sequence numbers: 12 or 18 bits.
    pub sn: SnLength,
    /// t-PollRetransmit.
    pub t_poll_retransmit: SlotSpan,
    /// pollPDU in PDUs; none for infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte in bytes; none for infinity.
    pub poll_byte: Option<u64>,
    /// maxRetxThreshold: the number of retransmissions of an SDU at which the radio link fails.
    pub max_retx_threshold: u32,
    /// t-Reassembly.
    pub t_reassembly: SlotSpan,
    /// t-StatusProhibit.
    pub t_status_prohibit: SlotSpan,
}

impl AmConfig {
    /// Sequence numbers of 18 bits; t-PollRetransmit, t-Reassembly and t-StatusProhibit of 100, 20 and 10 ms;
    /// pollPDU 16, pollByte infinity, maxRetxThreshold 32.
    pub fn new(clock: SlotClock) -> Self {
        Self {
            sn: SnLength::Long,
            t_poll_retransmit: clock.span(T_POLL_RETRANSMIT),
            poll_pdu: Some(POLL_PDU),
            poll_byte: None,
            max_retx_threshold: MAX_RETX_THRESHOLD,
            t_reassembly: clock.span(T_REASSEMBLY),
            t_status_prohibit: clock.span(T_STATUS_PROHIBIT),
        }
    }
}

/// The data of an AM bearer in one transport block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AmBlock {
    /// Retransmitted SDUs and segments, in ascending order; empty without a loss.
    pub retransmissions: Vec<SduRun>,
    /// New data.
    pub new: Option<SduRun>,
    /// The lowest and the highest number of the PDUs with a poll.
    pub polls: Option<(u64, u64)>,
    /// Bytes in the transport block, with RLC headers and MAC sub-headers.
    pub bytes: u32,
}

impl AmBlock {
    /// The PDUs: number of the SDU, and its bytes `from..to`.
    pub fn pdus(&self) -> impl Iterator<Item = (u64, u32, u32)> + '_ {
        self.retransmissions.iter().copied().chain(self.new).flat_map(SduRun::pdus)
    }
}
