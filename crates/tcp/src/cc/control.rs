//! The interface between a sender and its congestion control: samples and events in, window and pacing rate
//! out.

use paceline_net::{Bytes, Duration, Instant, Rate};
use std::fmt;

/// The properties of one acknowledgment on which a congestion control depends.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Bytes newly delivered: acknowledged cumulatively or selectively for the first time.
    pub acked: Bytes,
    /// Part of `acked` that was in an earlier sample. Without SACK, a timeout and the end of a recovery reset
    /// the count of duplicate ACKs, as in Linux.
    pub acked_again: Bytes,
    /// Bytes newly marked as lost.
    pub lost: Bytes,
    /// Whether SND.UNA advanced.
    pub advanced: bool,
    /// Round-trip time of the newest segment delivered, if it was sent once only.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// Bytes in flight before this acknowledgment.
    pub prior_in_flight: Bytes,
    /// Bytes in flight after it.
    pub in_flight: Bytes,
    /// Whether the congestion window limits the sender and may grow (RFC 7661 §4.4).
    pub cwnd_limited: bool,
    /// Whether a fast recovery is under way, whose window is that of PRR.
    pub in_recovery: bool,
    /// Whether the repair after a timeout is under way.
    pub in_loss: bool,
    /// Stream offset of the first unacknowledged byte.
    pub snd_una: u64,
    /// Stream offset of the next byte to send.
    pub snd_nxt: u64,
    /// Bytes delivered since the start.
    pub delivered: Bytes,
    /// Bytes marked as lost since the start, by timeouts too.
    pub lost_total: Bytes,
    /// Bytes newly reported to have arrived with Congestion Experienced.
    pub ce_bytes: Bytes,
    /// Delivery rate sample.
    pub rate: RateSample,
    /// Losses over the flight of the segment that was marked as lost last by this acknowledgment.
    pub loss: Option<LossSample>,
}

/// A change of the congestion state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionEvent {
    /// A loss was detected by acknowledgments; once per window.
    FastRecovery,
    /// The fast recovery ended: everything sent before it is acknowledged.
    RecoveryEnd,
    /// The retransmission timer expired.
    Timeout,
    /// The timer expired again, or during a recovery: ssthresh has been set already.
    RepeatedTimeout,
    /// The last reduction proved spurious: the original segments had arrived.
    Undo,
    /// Congestion Experienced was echoed (RFC 3168); once per window.
    Ecn,
}

/// The ECN codepoint of data segments (RFC 3168 §5, RFC 9331 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1): the control reduces its window in proportion to the marks.
    Ect1,
}

/// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation): the flight of one delivered segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// The longer of the sending and the acknowledging time; zero without a valid sample.
    pub interval: Duration,
    /// Bytes delivered since the start when the segment was sent: delimits round trips.
    pub prior_delivered: Bytes,
    /// Bytes marked as lost over the interval.
    pub lost: Bytes,
    /// Bytes in flight when the segment was sent, itself included.
    pub tx_in_flight: Bytes,
    /// The application limited the sender during the sample.
    pub app_limited: bool,
}

/// Losses over the flight of one lost segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LossSample {
    /// Bytes marked as lost since the segment was sent, itself included.
    pub lost: Bytes,
    /// Bytes in flight when the segment was sent, itself included.
    pub tx_in_flight: Bytes,
    /// The application limited the sender when the segment was sent.
    pub app_limited: bool,
}

impl RateSample {
    /// The delivery rate; `None` without a valid interval.
    pub fn rate(&self) -> Option<Rate> {
        (!self.interval.is_zero()).then(|| Rate::of(self.delivered, self.interval))
    }
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// The connection is established; the handshake took `rtt` if the SYN was sent once.
    fn on_established(&mut self, _now: Instant, _rtt: Option<Duration>) {}
    /// Sending starts while nothing is outstanding, after an idle time if `app_limited`. [`Self::on_sent`]
    /// follows.
    fn on_transmit_start(&mut self, _now: Instant, _app_limited: bool) {}
    /// A segment of `len` bytes leaves; `in_flight` includes it.
    fn on_sent(&mut self, _now: Instant, _len: Bytes, _in_flight: Bytes) {}
    /// An acknowledgment was processed.
    fn on_ack(&mut self, now: Instant, sample: &AckSample);
    /// The congestion state changed; `in_flight` excludes segments that are marked as lost.
    fn on_congestion(&mut self, now: Instant, event: CongestionEvent, in_flight: Bytes);
    /// The window was not used and is reduced to `cwnd` (RFC 2861, RFC 5681 §4.1); ssthresh keeps at least
    /// three quarters of the former window. Controls that model the path ignore this.
    fn on_idle(&mut self, _now: Instant, _cwnd: Bytes) {}
    /// The congestion window.
    fn cwnd(&self) -> Bytes;
    /// The slow start threshold, ssthresh; `u64::MAX` while it is infinite.
    fn ssthresh(&self) -> Bytes;
    /// The pacing rate; `None` sends in bursts as the window allows.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Whether the control's own window applies during fast recovery, instead of that of PRR (RFC 9937).
    fn owns_recovery_window(&self) -> bool {
        false
    }
    /// Whether a loss detected by acknowledgments is repaired as after a timeout, by sending everything
    /// again.
    fn restarts_on_loss(&self) -> bool {
        false
    }
    /// Whether the control itself keeps the path from being full, so that rate samples count as
    /// application-limited.
    fn limits_itself(&self) -> bool {
        false
    }
    /// The ECN codepoint that the control requires on its segments.
    fn ecn(&self) -> Ecn {
        Ecn::None
    }
}

/// A [`CongestionControl`] of any type. Implemented for each one that can be cloned.
pub trait AnyControl: CongestionControl + fmt::Debug + Send + Sync {
    /// A copy.
    fn copied(&self) -> Box<dyn AnyControl>;
}

impl<C: CongestionControl + Clone + fmt::Debug + Send + Sync + 'static> AnyControl for C {
    fn copied(&self) -> Box<dyn AnyControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyControl> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}
