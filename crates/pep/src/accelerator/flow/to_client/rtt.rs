//! Round-trip time of the mobile segment and the retransmission timeout (RFC 6298).

use paceline_net::{Duration, Instant};

/// Least variance term of the timeout. RFC 6298 has 1 s for the timeout, Linux 200 ms (`TCP_RTO_MIN`): a
/// handover takes tens of milliseconds and loses nothing.
const MIN_VARIANCE_TERM: Duration = Duration::from_millis(200);
/// Largest timeout, backoff included: the least maximum that RFC 6298, section 2.5 allows. 4.4BSD has the
/// same for window probes (`TCPTV_PERSMAX`).
const MAX_RTO: Duration = Duration::from_secs(60);
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
    /// Zero before the first sample.
    srtt: Duration,
    rttvar: Duration,
    min: Duration,
    has_sample: bool,
    /// Exponent of the backoff: timeouts and window probes since the last progress.
    backoff: u8,
    /// Timeouts since the client's last segment.
    unanswered: u8,
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
        if !std::mem::replace(&mut self.has_sample, true) {
            (self.srtt, self.rttvar, self.min) = (rtt, rtt / 2, rtt);
            return;
        }
        let error = rtt.saturating_sub(self.srtt) + self.srtt.saturating_sub(rtt);
        self.srtt = self.srtt * 7 / 8 + rtt / 8;
        self.rttvar = self.rttvar * 3 / 4 + error / 4;
        self.min = self.min.min(rtt);
    }
    pub fn on_timeout(&mut self) {
        self.on_window_probe();
        self.unanswered = self.unanswered.saturating_add(1);
    }
    pub fn on_window_probe(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }
    /// A segment of the client arrived. The backoff stays: a client that pauses answers every probe.
    pub fn on_response(&mut self) {
        self.unanswered = 0;
    }
    /// Data was delivered, the client's window has opened, or the client has ended a long silence.
    pub fn on_progress(&mut self) {
        self.backoff = 0;
    }
    /// Whether the timeout has been backed off since the last progress.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }
    /// Timeouts since the client's last segment.
    pub fn unanswered(&self) -> u8 {
        self.unanswered
    }
    /// The minimum round-trip time; zero before the first sample.
    pub fn min(&self) -> Duration {
        self.min
    }
    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.has_sample.then_some(self.srtt)
    }
    /// The minimum and the smoothed round-trip time; zero before the first sample.
    pub fn min_and_srtt(&self) -> (Duration, Duration) {
        (self.min, self.srtt)
    }
    /// The retransmission timeout with its backoff.
    pub fn rto(&self) -> Duration {
        (self.base_rto() * (1 << self.backoff)).min(MAX_RTO)
    }
    /// The retransmission timeout without backoff.
    pub fn base_rto(&self) -> Duration {
        let rto = || self.srtt + (self.rttvar * 4).max(MIN_VARIANCE_TERM);
        if self.has_sample { rto().min(MAX_RTO) } else { INITIAL_RTO }
    }
    /// How long an ACK may take on a fading radio. The client's last segment arrived at `last_response_at`.
    pub fn ack_deadline(&self, last_response_at: Instant) -> AckDeadline {
        let allowance = (self.rttvar * 2).max(MIN_ALLOWANCE);
        let age = self.srtt().unwrap_or(INITIAL_RTO) + allowance;
        AckDeadline { age, not_before: last_response_at + allowance }
    }
}
