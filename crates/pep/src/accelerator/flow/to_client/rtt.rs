//! Round-trip time of the mobile segment and the retransmission timeout (RFC 6298).

use paceline_net::{Duration, Instant};

/// Least variance term of the timeout. RFC 6298 has 1 s for the timeout, Linux 200 ms (`TCP_RTO_MIN`): a
/// handover takes tens of milliseconds and loses nothing.
const MIN_VARIANCE_TERM: Duration = Duration::from_millis(200);
/// Largest timeout, backoff included. Chosen: RFC 6298, section 2.5 allows a maximum of 60 s or more; a
/// client behind a radio outage of minutes is probed twice as often.
const MAX_RTO: Duration = Duration::from_secs(30);
/// Timeout before the first sample (RFC 6298, section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Largest exponent of the backoff. Chosen: the timeout is at its maximum long before.
const MAX_BACKOFF: u8 = 16;
/// Least allowance of an ACK deadline. Chosen: radio schedulers and delayed ACKs vary by this much.
const MIN_ALLOWANCE: Duration = Duration::from_millis(20);

/// Bounds on the time between a transmission and its ACK. The ACK of a segment that was sent several times
/// does not say which copy it answers.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct RttBounds {
    /// The minimum round-trip time.
    pub min: Duration,
    /// On fading radios, where many segments are retransmitted on suspicion: an ACK that comes sooner after a
    /// retransmission answers an earlier copy.
    pub shortest: Duration,
    /// On other radios: an ACK that comes later after a retransmission is ambiguous.
    pub longest: Duration,
    /// On fading radios: a copy is answered within this time, or it was lost. An ACK within this time after
    /// the copy before the last may answer that copy; as a sample for the last copy it would be too short,
    /// and would make RACK retransmit more.
    pub first_copy: Duration,
}

/// The time at which a segment counts as lost though no later one has arrived. On fading radios waiting for
/// an ACK costs the round trips in which the window is full.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct AckDeadline {
    /// Time since the segment was sent.
    pub age: Duration,
    /// The deadline is not before this time.
    pub not_before: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Rtt {
    estimate: Option<Estimate>,
    /// Timeouts since the client's last segment.
    backoff: u8,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
    min: Duration,
}

impl Rtt {
    /// Begins with the sample of the handshake, if there is one.
    pub fn new(handshake: Option<Duration>) -> Self {
        let mut rtt = Self::default();
        handshake.into_iter().for_each(|sample| rtt.on_sample(sample));
        rtt
    }
    pub fn on_sample(&mut self, rtt: Duration) {
        self.backoff = 0;
        let Some(Estimate { srtt, rttvar, min }) = self.estimate else {
            self.estimate = Some(Estimate { srtt: rtt, rttvar: rtt / 2, min: rtt });
            return;
        };
        let error = rtt.saturating_sub(srtt) + srtt.saturating_sub(rtt);
        let (srtt, rttvar) = (srtt * 7 / 8 + rtt / 8, rttvar * 3 / 4 + error / 4);
        self.estimate = Some(Estimate { srtt, rttvar, min: min.min(rtt) });
    }
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }
    /// A segment of the client arrived.
    pub fn on_response(&mut self) {
        self.backoff = 0;
    }
    pub fn backoff(&self) -> u8 {
        self.backoff
    }
    /// The minimum round-trip time; zero before the first sample.
    pub fn min(&self) -> Duration {
        self.estimate.map_or(Duration::ZERO, |estimate| estimate.min)
    }
    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|estimate| estimate.srtt)
    }
    /// The minimum and the smoothed round-trip time; zero before the first sample.
    pub fn min_and_srtt(&self) -> (Duration, Duration) {
        (self.min(), self.srtt().unwrap_or_default())
    }
    /// The retransmission timeout with its backoff.
    pub fn rto(&self) -> Duration {
        (self.base_rto() * (1 << self.backoff)).min(MAX_RTO)
    }
    /// The retransmission timeout without backoff.
    pub fn base_rto(&self) -> Duration {
        let rto = |estimate: Estimate| estimate.srtt + (estimate.rttvar * 4).max(MIN_VARIANCE_TERM);
        self.estimate.map_or(INITIAL_RTO, rto).min(MAX_RTO)
    }
    /// How long an ACK may take on a fading radio. The client's last segment arrived at `last_response_at`.
    pub fn ack_deadline(&self, last_response_at: Instant) -> AckDeadline {
        let rttvar = self.estimate.map_or(Duration::ZERO, |estimate| estimate.rttvar);
        let allowance = (rttvar * 2).max(MIN_ALLOWANCE);
        let age = self.srtt().unwrap_or(INITIAL_RTO) + allowance;
        AckDeadline { age, not_before: last_response_at + allowance }
    }
}
