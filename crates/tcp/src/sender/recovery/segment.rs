//! The record of a sent segment, and the changes that an acknowledgment makes to such records.

use crate::sender::path::rate::RateStamp;
use paceline_net::{Duration, Instant};

/// One segment sent and not yet acknowledged cumulatively. Offsets as in the sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct SentSegment {
    pub start: u64,
    pub end: u64,
    pub fin: bool,
    /// The latest transmission.
    pub(super) sent_at: Instant,
    pub(super) stamp: RateStamp,
    pub(super) sacked: bool,
    pub(super) lost: bool,
    /// A retransmission of it is in flight.
    pub(super) resent: bool,
    /// The segment was sent more than once, so its RTT is ambiguous (Karn).
    pub(super) ever_resent: bool,
}

impl SentSegment {
    /// Length in the stream: payload, and one for FIN.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
    /// Payload bytes.
    pub fn payload(&self) -> u32 {
        (self.len() - u64::from(self.fin)) as u32
    }
}

/// The state in which an acknowledgment is processed.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct AckContext {
    pub now: Instant,
    pub min_rtt: Option<Duration>,
    /// TSecr: an echo older than a retransmission does not acknowledge the retransmission.
    pub echo: Option<u32>,
    /// End of the recovery under way, or of the last one.
    pub recovery_end: u64,
    /// Highest byte known to have arrived before this acknowledgment.
    pub highest: u64,
}

/// The changes that one event makes to the scoreboard.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct ScoreboardUpdate {
    /// Bytes newly acknowledged or sacked.
    pub bytes: u64,
    /// Part of `bytes` that duplicate ACKs without SACK had shown before.
    pub again: u64,
    /// Bytes newly sacked.
    pub sacked: u64,
    /// Bytes newly marked as lost.
    pub lost: u64,
    /// Stamp of the segment that was marked as lost last.
    pub newest_lost: Option<RateStamp>,
    /// A segment that was sent more than once is among those acknowledged.
    pub ambiguous: bool,
    /// A segment sent once, below [`AckContext::recovery_end`], is among those delivered.
    pub original: bool,
    /// A retransmission was lost.
    pub retransmission_lost: bool,
    /// Lowest byte that was sent once and arrived after a byte above it.
    pub(super) reordered: Option<u64>,
    /// Send times of the oldest and newest segments, acknowledged and sacked.
    pub(super) oldest_acked: Option<Instant>,
    pub(super) newest_acked: Option<Instant>,
    pub(super) oldest_sacked: Option<Instant>,
    pub(super) newest_sacked: Option<Instant>,
}

impl ScoreboardUpdate {
    /// RTT for the retransmission timer: of the oldest segment, since the ACK may have been delayed.
    pub fn rtt(&self, now: Instant) -> Option<Duration> {
        let acked = self.oldest_acked.filter(|_| !self.ambiguous);
        acked.or(self.oldest_sacked).map(|sent_at| now.since(sent_at))
    }
    /// RTT for the congestion control: of the newest segment.
    pub fn newest_rtt(&self, now: Instant) -> Option<Duration> {
        let acked = self.newest_acked.filter(|_| !self.ambiguous);
        self.newest_sacked.or(acked).map(|sent_at| now.since(sent_at))
    }
    /// A segment sent once was delivered.
    pub(super) fn on_original(&mut self, segment: &SentSegment, context: &AckContext) {
        self.original |= segment.end <= context.recovery_end;
        if segment.start < context.highest {
            self.reordered = Some(self.reordered.map_or(segment.start, |low| low.min(segment.start)));
        }
    }
}
