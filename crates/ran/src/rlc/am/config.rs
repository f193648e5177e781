//! Parameters of acknowledged mode.

use crate::slot::SlotSpan;

/// The parameters of RLC-Config for AM (TS 36.331 §6.3.2); times in slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmConfig {
    /// t-PollRetransmit.
    pub t_poll_retransmit: SlotSpan,
    /// pollPDU; none for infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte in bytes; none for infinity.
    pub poll_byte: Option<u64>,
    /// maxRetxThreshold.
    pub max_retx_threshold: u32,
    /// t-StatusProhibit.
    pub t_status_prohibit: SlotSpan,
}
