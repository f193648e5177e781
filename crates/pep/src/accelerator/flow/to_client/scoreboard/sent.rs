//! The record of one segment on its way to the client.

use paceline_net::{Duration, Instant};

/// Flag: selectively acknowledged.
pub(in crate::accelerator) const SACKED: u8 = 1;
/// Flag: marked lost and not retransmitted since.
pub(in crate::accelerator) const LOST: u8 = 2;
/// Flag: retransmitted.
pub(in crate::accelerator) const RETRANSMITTED: u8 = 4;
/// Flag: sent past the right edge that the client had advertised.
pub(in crate::accelerator) const PAST_EDGE: u8 = 8;
/// Flag: the FIN, one number of the sequence space without payload.
pub(in crate::accelerator) const FIN: u8 = 16;
/// Flag: retransmitted on suspicion. Its ACK may answer the first transmission (F-RTO, RFC 5682).
pub(in crate::accelerator) const SUSPECTED: u8 = 32;
/// Flag: retransmitted on suspicion after an earlier retransmission.
pub(in crate::accelerator) const SUSPECTED_AGAIN: u8 = 64;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Sent {
    pub off: u64,
    /// Time of the last transmission.
    pub at: Instant,
    pub len: u32,
    /// Time between the last two transmissions, capped at 65,535 ms.
    pub gap_ms: u16,
    /// A set of the flags above.
    pub state: u8,
}

impl Sent {
    pub fn send_again(&mut self, now: Instant) {
        self.gap_ms = u16::try_from(now.since(self.at).as_millis()).unwrap_or(u16::MAX);
        self.at = now;
    }
    pub fn gap(&self) -> Duration {
        Duration::from_millis(u64::from(self.gap_ms))
    }
    pub fn end(&self) -> u64 {
        self.off + u64::from(self.len)
    }
    /// Whether any of the flags is set.
    pub fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }
    pub fn in_flight(&self) -> bool {
        !self.is(SACKED | LOST)
    }
}

/// A segment to retransmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct Retransmission {
    pub off: u64,
    pub len: u32,
    pub fin: bool,
}
