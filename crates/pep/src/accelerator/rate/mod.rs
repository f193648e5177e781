//! Rate control towards one mobile device: how fast to send, and how many bytes may be in flight. One
//! controller serves all connections of a device, because they share its radio.
//!
//! Data moves one way. Each acknowledgment of a client becomes an `AckSample` (`sample`) and goes to
//! `RateController::on_ack`; the sender then reads `rate` and `window`. Two controls exist: `paper`, as
//! published, and `adaptive`, the default. `adaptive` feeds the sample to its estimators and combines their
//! results: `delivery_rate` (capacity), `min_rtt` with `loaded_rtt` (propagation delay), `load_delay` (delay
//! that grows with load and is no queue), `target_delay` with `in_order_stalls` (standing queue to keep),
//! `losses` (whether they come from a full buffer). `losses::fading` decides, beside the control, whether the
//! packets that a silent radio leaves unanswered are lost or late.

pub(in crate::accelerator) mod adaptive;
pub(in crate::accelerator) mod delivery_rate;
pub(in crate::accelerator) mod in_order_stalls;
pub(in crate::accelerator) mod load_delay;
pub(in crate::accelerator) mod loaded_rtt;
pub(in crate::accelerator) mod losses;
pub(in crate::accelerator) mod min_rtt;
pub(in crate::accelerator) mod paper;
pub(in crate::accelerator) mod sample;
pub(in crate::accelerator) mod state;
pub(in crate::accelerator) mod target_delay;

use crate::accelerator::rate::adaptive::{Adaptive, AdaptiveParameters};
use crate::accelerator::rate::paper::{Paper, PaperParameters};
use crate::accelerator::rate::sample::AckSample;
use crate::accelerator::rate::state::{ControlSnapshot, ControlState};
use paceline_net::{Duration, Instant, Rate};

/// Which rate control runs towards each device, with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RateControl {
    /// The control of Liu and Lee (2011), which needs the operator's capacity and round-trip times.
    Paper(PaperParameters),
    /// From measured delivery rate and minimum round-trip time; needs no knowledge of the network.
    Adaptive(AdaptiveParameters),
}

impl Default for RateControl {
    fn default() -> Self {
        Self::Adaptive(AdaptiveParameters::default())
    }
}

/// Data sent past the client's advertised window is limited to this many bandwidth-delay products where the
/// published control runs, which has no window of its own. Chosen: more only fills a deep buffer.
const PAPER_OVERSHOOT_BDPS: u64 = 3;
/// The same limit for the adaptive control on a radio that fades, in tenths of the bandwidth-delay product.
/// Chosen: a queue past the client's window is dropped by the client when a fade ends, yet with no margin at
/// all a client's window of one bandwidth-delay product would hide that the radio has become faster.
const FADING_OVERSHOOT_BDP_TENTHS: u64 = 11;

/// Growth of the window in a round trip while the capacity is not known: that of slow start (RFC 5681).
const STARTUP_GAIN: f64 = 2.0;

/// The state of a device's rate control. The device contains it without a pointer: with many devices
/// each pointer costs one more cache miss per packet.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub(in crate::accelerator) enum RateController {
    Paper(Paper),
    Adaptive(Adaptive),
}

impl RateController {
    pub fn new(control: &RateControl) -> Self {
        match control {
            RateControl::Paper(parameters) => Self::Paper(Paper::new(*parameters)),
            RateControl::Adaptive(parameters) => Self::Adaptive(Adaptive::new(*parameters)),
        }
    }
    /// Loads the cache lines that an acknowledgment needs.
    pub fn prefetch(&self) {
        if let Self::Adaptive(control) = self {
            control.prefetch();
        }
    }
    /// Bytes are sent to the device; `after_idle` if nothing was in flight and nothing was waiting.
    pub fn on_send(&mut self, now: Instant, after_idle: bool) {
        if let Self::Adaptive(control) = self {
            control.on_send(now, after_idle);
        }
    }
    /// Round-trip time of a handshake, from the SYN segment sent to the client until its answer.
    pub fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        match self {
            Self::Paper(control) => control.on_rtt(rtt),
            Self::Adaptive(control) => control.on_handshake(now, rtt),
        }
    }
    pub fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        match self {
            Self::Paper(control) => control.on_ack(now, sample),
            Self::Adaptive(control) => control.on_ack(now, sample),
        }
    }
    /// Pacing rate.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Paper(control) => control.rate(),
            Self::Adaptive(control) => control.rate(),
        }
    }
    /// Bytes that may be in flight to the device.
    pub fn window(&self) -> u64 {
        match self {
            Self::Paper(_) => u64::MAX,
            Self::Adaptive(control) => control.window(),
        }
    }
    /// The window, where the control has one.
    pub fn bounded_window(&self) -> Option<u64> {
        match self {
            Self::Paper(_) => None,
            Self::Adaptive(control) => Some(control.window()),
        }
    }
    /// Whether the control looks for the capacity still: no queue has been seen.
    pub fn is_in_startup(&self) -> bool {
        match self {
            Self::Paper(_) => false,
            Self::Adaptive(control) => control.is_in_startup(),
        }
    }
    /// Whether the device was found to share a queue with others.
    pub fn shares_queue(&self) -> bool {
        matches!(self, Self::Adaptive(control) if control.shares_queue())
    }
    /// Whether the device loses so much that it might share a queue.
    pub fn loses_much(&self) -> bool {
        matches!(self, Self::Adaptive(control) if control.loses_much())
    }
    /// Its present quantities.
    pub fn snapshot(&self) -> ControlSnapshot {
        match self {
            Self::Paper(control) => ControlSnapshot {
                state: ControlState::Published,
                rate: control.rate(),
                window: self.window(),
                capacity: control.rate(),
                min_rtt: control.min_rtt(),
                target_delay: Duration::ZERO,
            },
            Self::Adaptive(control) => control.snapshot(),
        }
    }
    /// Bytes that the path delivers in `time` at its estimated capacity.
    pub fn capacity_in(&self, time: Duration) -> u64 {
        let rate = match self {
            Self::Paper(control) => control.rate().0 as f64,
            Self::Adaptive(control) => control.bandwidth(),
        };
        (rate / 8.0 * time.as_secs_f64()) as u64
    }
    /// Bytes that the path may soon take in a second: at its estimated capacity, times the growth of the
    /// window while that is tried. Before anything is measured, the window of a round trip, which doubles.
    pub fn expected(&self) -> u64 {
        let known = self.capacity_in(Duration::from_secs(1));
        match self {
            Self::Adaptive(control) if known == 0 => {
                let per_second = control.window() as f64 / control.min_rtt().as_secs_f64().max(1e-3);
                (STARTUP_GAIN * per_second) as u64
            }
            Self::Adaptive(control) => (known as f64 * control.window_gain()) as u64,
            Self::Paper(_) => known,
        }
    }
    /// Bytes in flight beyond which sending past the client's advertised window gains nothing.
    pub fn useful_window(&self, fading: bool) -> u64 {
        match self {
            Self::Paper(control) if fading => control.bandwidth_delay(),
            Self::Adaptive(control) if fading => control.bandwidth_delay() / 10 * FADING_OVERSHOOT_BDP_TENTHS,
            Self::Paper(control) => PAPER_OVERSHOOT_BDPS * control.bandwidth_delay(),
            Self::Adaptive(control) => control.useful_window(),
        }
    }
}
