//! Congestion control: the trait that every variant implements, what it is told, and the dispatch.
//!
//! Loss detection and the window during a recovery (RFC 6937) live in the sender's `recovery`; a control sees
//! samples and events only. One file for each variant; add it to [`Variant`] and [`Controller`].

mod bbr;
mod bbr3;
mod bbr3_cycle;
mod bbr_estimates;
mod cubic;
mod cubic_curve;
mod dctcp;
mod hystart;
mod hystart_pp;
mod illinois;
mod prague;
mod reno;
mod tahoe;
mod variant;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;
mod window;
mod windowed_max;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::{Cubic, SlowStartExit};
pub use dctcp::Dctcp;
pub use illinois::Illinois;
pub use prague::Prague;
pub use reno::{Abc, Reno};
pub use tahoe::Tahoe;
pub use variant::{ParseVariantError, Variant};
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
pub use westwood_plus::WestwoodPlus;
pub use window::CwndUnit;

use crate::config::EndpointConfig;
use crate::rate::{LossSample, RateSample};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// What a control learns from one acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Bytes newly delivered: acknowledged cumulatively or selectively for the first time.
    pub acked: Bytes,
    /// Bytes newly marked lost.
    pub lost: Bytes,
    /// Whether the cumulative acknowledgment advanced.
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
    /// Whether the window was what limited the sender (RFC 7661 without its timers): it may grow.
    pub cwnd_limited: bool,
    /// Whether a fast recovery is under way: its window is not the control's.
    pub in_recovery: bool,
    /// Whether what a timeout declared lost is being repaired.
    pub in_loss: bool,
    /// Stream offset of the first unacknowledged byte.
    pub snd_una: u64,
    /// Stream offset of the next byte to send.
    pub snd_nxt: u64,
    /// Bytes delivered since the start.
    pub delivered: Bytes,
    /// Bytes marked lost since the start, by timeouts too.
    pub lost_total: Bytes,
    /// Bytes newly reported to have arrived with Congestion Experienced.
    pub ce_bytes: Bytes,
    /// Delivery rate sample.
    pub rate: RateSample,
    /// The flight of the segment that was newly marked lost last.
    pub loss: Option<LossSample>,
}

/// A change of the congestion state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionEvent {
    /// Loss was detected by acknowledgments; once per window.
    FastRecovery,
    /// The fast recovery is over: everything sent before it was acknowledged.
    RecoveryEnd,
    /// The retransmission timer expired.
    Timeout,
    /// It expired again, or during a recovery: the threshold was set already.
    RepeatedTimeout,
    /// The last reduction was spurious: the original segments had arrived.
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
    /// ECT(1): the control answers marks in proportion.
    Ect1,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// The connection is established; the handshake took `rtt` if it was not repeated.
    fn on_established(&mut self, _now: Instant, _rtt: Option<Duration>) {}
    /// Sending starts with nothing outstanding, after a pause if `app_limited`. [`Self::on_sent`] follows.
    fn on_transmit_start(&mut self, _now: Instant, _app_limited: bool) {}
    /// A segment of `len` bytes leaves; `in_flight` counts it.
    fn on_sent(&mut self, _now: Instant, _len: Bytes, _in_flight: Bytes) {}
    /// An acknowledgment was processed.
    fn on_ack(&mut self, now: Instant, sample: &AckSample);
    /// The congestion state changed; `in_flight` no longer counts what was marked lost.
    fn on_congestion(&mut self, now: Instant, event: CongestionEvent, in_flight: Bytes);
    /// The window was not used for some time and falls to `cwnd` (RFC 2861, RFC 5681 §4.1); the threshold keeps three
    /// quarters of what it was. Controls that model the path ignore it.
    fn on_idle(&mut self, _now: Instant, _cwnd: Bytes) {}
    /// The congestion window.
    fn cwnd(&self) -> Bytes;
    /// The slow start threshold; `u64::MAX` while it is infinite.
    fn ssthresh(&self) -> Bytes;
    /// The rate to pace at; `None` sends in bursts as the window allows.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Whether the window during fast recovery is the control's own instead of that of RFC 6937.
    fn owns_recovery_window(&self) -> bool {
        false
    }
    /// Whether a loss told by acknowledgments is repaired as after a timeout: everything is sent again from it on.
    fn restarts_on_loss(&self) -> bool {
        false
    }
    /// Whether the control itself keeps the pipe from being full: rate samples from here on are application-limited.
    fn limits_itself(&self) -> bool {
        false
    }
    /// What the control wants its segments to carry, if both sides agree on ECN.
    fn ecn(&self) -> Ecn {
        Ecn::None
    }
}

/// A control of any variant, dispatched statically.
#[derive(Clone, Debug)]
pub enum Controller {
    /// See [`Tahoe`].
    Tahoe(Tahoe),
    /// See [`Reno`].
    Reno(Reno),
    /// See [`Westwood`].
    Westwood(Westwood),
    /// See [`WestwoodPlus`].
    WestwoodPlus(WestwoodPlus),
    /// See [`Veno`].
    Veno(Veno),
    /// See [`Vegas`].
    Vegas(Vegas),
    /// See [`Illinois`].
    Illinois(Illinois),
    /// See [`Cubic`].
    Cubic(Cubic),
    /// See [`Bbr`].
    Bbr(Bbr),
    /// See [`Bbr3`].
    Bbr3(Bbr3),
    /// See [`Dctcp`].
    Dctcp(Dctcp),
    /// See [`Prague`].
    Prague(Prague),
    /// A constant window, paced, to test the sender alone.
    #[cfg(test)]
    Fixed(Fixed),
}

/// A control that ignores everything.
#[cfg(test)]
#[derive(Clone, Debug)]
pub struct Fixed {
    pub(crate) cwnd: Bytes,
    pub(crate) rate: Option<Rate>,
}

#[cfg(test)]
impl CongestionControl for Fixed {
    fn on_ack(&mut self, _now: Instant, _sample: &AckSample) {}
    fn on_congestion(&mut self, _now: Instant, _event: CongestionEvent, _in_flight: Bytes) {}
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }
    fn ssthresh(&self) -> Bytes {
        self.cwnd
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
}

impl Controller {
    /// The control that `config` asks for, with full segments of `mss` bytes; `sack` as agreed.
    pub fn new(config: &EndpointConfig, mss: u32, sack: bool) -> Self {
        let initial = config.initial_window;
        let seed = u64::from(config.isn.0) << 16 | u64::from(config.local.port());
        match config.variant {
            Variant::Tahoe => Self::Tahoe(Tahoe::new(config.cwnd_unit, mss, initial)),
            Variant::Reno | Variant::NewReno => {
                Self::Reno(Reno::new(config.cwnd_unit, mss, initial, config.abc))
            }
            Variant::Westwood => Self::Westwood(Westwood::new(mss, initial)),
            Variant::WestwoodPlus => Self::WestwoodPlus(WestwoodPlus::new(mss, initial)),
            Variant::Veno => Self::Veno(Veno::new(mss, initial)),
            Variant::Vegas => Self::Vegas(Vegas::new(mss, initial)),
            Variant::Illinois => Self::Illinois(Illinois::new(mss, initial)),
            Variant::Cubic => Self::Cubic(Cubic::new(
                config.cwnd_unit,
                mss,
                initial,
                config.hystart,
                config.fast_convergence,
            )),
            Variant::Bbr => Self::Bbr(Bbr::new(mss, initial, seed)),
            Variant::Bbr3 => Self::Bbr3(Bbr3::new(mss, initial, seed, sack)),
            Variant::Dctcp => Self::Dctcp(Dctcp::new(mss, initial)),
            Variant::Prague => Self::Prague(Prague::new(mss, initial)),
        }
    }
}

macro_rules! each {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            Controller::Tahoe($control) => $call,
            Controller::Reno($control) => $call,
            Controller::Westwood($control) => $call,
            Controller::WestwoodPlus($control) => $call,
            Controller::Veno($control) => $call,
            Controller::Vegas($control) => $call,
            Controller::Illinois($control) => $call,
            Controller::Cubic($control) => $call,
            Controller::Bbr($control) => $call,
            Controller::Bbr3($control) => $call,
            Controller::Dctcp($control) => $call,
            Controller::Prague($control) => $call,
            #[cfg(test)]
            Controller::Fixed($control) => $call,
        }
    };
}

impl CongestionControl for Controller {
    fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        each!(self, control => control.on_established(now, rtt));
    }
    fn on_transmit_start(&mut self, now: Instant, app_limited: bool) {
        each!(self, control => control.on_transmit_start(now, app_limited));
    }
    fn on_sent(&mut self, now: Instant, len: Bytes, in_flight: Bytes) {
        each!(self, control => control.on_sent(now, len, in_flight));
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        each!(self, control => control.on_ack(now, sample));
    }
    fn on_congestion(&mut self, now: Instant, event: CongestionEvent, in_flight: Bytes) {
        each!(self, control => control.on_congestion(now, event, in_flight));
    }
    fn on_idle(&mut self, now: Instant, cwnd: Bytes) {
        each!(self, control => control.on_idle(now, cwnd));
    }
    fn cwnd(&self) -> Bytes {
        each!(self, control => control.cwnd())
    }
    fn ssthresh(&self) -> Bytes {
        each!(self, control => control.ssthresh())
    }
    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, control => control.pacing_rate())
    }
    fn owns_recovery_window(&self) -> bool {
        each!(self, control => control.owns_recovery_window())
    }
    fn restarts_on_loss(&self) -> bool {
        each!(self, control => control.restarts_on_loss())
    }
    fn limits_itself(&self) -> bool {
        each!(self, control => control.limits_itself())
    }
    fn ecn(&self) -> Ecn {
        each!(self, control => control.ecn())
    }
}

#[cfg(test)]
#[path = "swarm_tests.rs"]
mod tests;
