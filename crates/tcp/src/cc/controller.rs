//! The choice of a congestion control by [`Variant`], and the dispatch to it.

use super::bbr::{Bbr, Bbr3};
use super::control::{AckSample, AnyControl, CongestionControl, CongestionEvent, Ecn};
use super::delay_based::{Illinois, Vegas, Veno};
use super::ecn_based::{Dctcp, Prague};
use super::external::External;
use super::loss_based::{Abc, Cubic, Reno, SlowStartExit, Tahoe, Westwood, WestwoodPlus};
use super::variant::Variant;
use super::window::CwndUnit;
use paceline_net::{Bytes, Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// The parameters of a congestion control. Each variant uses some of them.
#[derive(Clone, Copy, Debug)]
pub struct ControlParameters {
    /// The algorithm.
    pub variant: Variant,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Unit of the window of `tahoe`, `reno`, `newreno` and `cubic`.
    pub cwnd_unit: CwndUnit,
    /// How `reno` and `newreno` count acknowledged data.
    pub abc: Abc,
    /// How `cubic` leaves slow start before a loss.
    pub hystart: SlowStartExit,
    /// Fast convergence of `cubic` (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether SACK is in use; `bbr3` reacts to fewer losses without it.
    pub sack: bool,
    /// Seed of the random phases of `bbr` and `bbr3`.
    pub seed: u64,
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
    /// See [`External`].
    External(External),
    /// See [`OwnControl`].
    Own(Box<dyn AnyControl>),
}

impl Controller {
    /// The control of [`ControlParameters::variant`].
    pub fn new(parameters: &ControlParameters) -> Self {
        let &ControlParameters { variant, mss, initial_window, sack, seed, .. } = parameters;
        let unit = parameters.cwnd_unit;
        match variant {
            Variant::Tahoe => Self::Tahoe(Tahoe::new(unit, mss, initial_window)),
            Variant::Reno | Variant::NewReno => {
                Self::Reno(Reno::new(unit, mss, initial_window, parameters.abc))
            }
            Variant::Westwood => Self::Westwood(Westwood::new(mss, initial_window)),
            Variant::WestwoodZero => Self::Westwood(Westwood::with_zero_samples(mss, initial_window)),
            Variant::WestwoodPlus => Self::WestwoodPlus(WestwoodPlus::new(mss, initial_window)),
            Variant::Veno => Self::Veno(Veno::new(mss, initial_window)),
            Variant::Vegas => Self::Vegas(Vegas::new(mss, initial_window)),
            Variant::Illinois => Self::Illinois(Illinois::new(mss, initial_window)),
            Variant::Cubic => {
                let (exit, fast_convergence) = (parameters.hystart, parameters.fast_convergence);
                Self::Cubic(Cubic::new(unit, mss, initial_window, exit, fast_convergence))
            }
            Variant::Bbr => Self::Bbr(Bbr::new(mss, initial_window, seed)),
            Variant::Bbr3 => Self::Bbr3(Bbr3::new(mss, initial_window, seed, sack)),
            Variant::Dctcp => Self::Dctcp(Dctcp::new(mss, initial_window)),
            Variant::Prague => Self::Prague(Prague::new(mss, initial_window)),
            Variant::External => Self::External(External::new(mss, initial_window)),
        }
    }
    /// The control, if it is set from outside.
    pub(crate) fn external_mut(&mut self) -> Option<&mut External> {
        match self {
            Self::External(external) => Some(external),
            _ => None,
        }
    }
}

/// Calls a method of the control of any variant.
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
            Controller::External($control) => $call,
            Controller::Own($control) => $call,
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

type Make = dyn Fn(&ControlParameters) -> Box<dyn AnyControl> + Send + Sync;

/// Makes the controls of connections in place of those of [`crate::Variant`].
#[derive(Clone)]
pub struct OwnControl(Arc<Make>);

impl OwnControl {
    /// `make` is called for each connection when it opens, and once before, with the segment size then known.
    pub fn new<C: AnyControl + 'static>(
        make: impl Fn(&ControlParameters) -> C + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |parameters| Box::new(make(parameters))))
    }
    pub(crate) fn make(&self, parameters: &ControlParameters) -> Box<dyn AnyControl> {
        (self.0)(parameters)
    }
}

impl fmt::Debug for OwnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnControl")
    }
}
