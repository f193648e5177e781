//! Parameters of acknowledged mode.

/// The parameters of RLC-Config for AM (TS 36.331 §6.3.2); times in TTIs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmConfig {
    /// t-PollRetransmit.
    pub t_poll_retransmit: u64,
    /// pollPDU; none for infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte in bytes; none for infinity.
    pub poll_byte: Option<u64>,
    /// maxRetxThreshold.
    pub max_retx_threshold: u32,
    /// t-StatusProhibit.
    pub t_status_prohibit: u64,
}
