//! What every rate control sees and says. One control serves all connections of a device: the radio is theirs
//! together.

pub(in crate::accelerator) mod adaptive;
pub(in crate::accelerator) mod buffer_high_water;
pub(in crate::accelerator) mod delivery_rate;
pub(in crate::accelerator) mod fading;
pub(in crate::accelerator) mod in_order_stalls;
pub(in crate::accelerator) mod load_delay;
pub(in crate::accelerator) mod loaded_rtt;
pub(in crate::accelerator) mod min_rtt;
pub(in crate::accelerator) mod paper;
pub(in crate::accelerator) mod short_buffer;
pub(in crate::accelerator) mod target_delay;

use crate::accelerator::config::RateControl;
use crate::accelerator::rate::adaptive::Adaptive;
use crate::accelerator::rate::paper::Paper;
use paceline_net::{Duration, Instant, Rate};

/// One acknowledgment of a client that brought news.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct AckSample {
    /// Bytes newly delivered, in order or not.
    pub bytes: u64,
    /// Bytes found lost since the last one.
    pub lost: u64,
    /// Round-trip time of the newest segment delivered, if it was sent once.
    pub rtt: Option<Duration>,
    /// When that segment was sent.
    pub sent_at: Option<Instant>,
    /// Bytes on their way to the device after this.
    pub in_flight: u64,
    /// The rate was not tried: there was too little to send.
    pub app_limited: bool,
    /// The device's radio loses what is sent while it is silent.
    pub fades: bool,
    /// The client has no SACK: all that a queue has lost in several round trips is found at once.
    pub unselective: bool,
}

/// The published control bounds nothing but the rate. Past the client's window no more is sent than this many times what
/// the path holds: what fills a deep buffer beyond that is of no use to anybody.
const PAPER_ROUNDS: u64 = 3;
/// Where the radio fades, tenths of what the path holds that are of use.
const FADING_TENTHS: u64 = 11;

/// In one piece with its device: with many devices a look behind a pointer waits for memory once more.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub(in crate::accelerator) enum Control {
    Paper(Paper),
    Adaptive(Adaptive),
}

impl Control {
    pub fn new(config: &RateControl) -> Self {
        match config {
            RateControl::Paper(parameters) => Self::Paper(Paper::new(*parameters)),
            RateControl::Adaptive(parameters) => Self::Adaptive(Adaptive::new(*parameters)),
        }
    }
    /// Reads what an acknowledgment needs.
    pub fn look_at(&self) {
        if let Self::Adaptive(control) = self {
            control.look_at();
        }
    }
    /// Bytes are sent to the device.
    pub fn on_send(&mut self, now: Instant, after_idle: bool) {
        if let Self::Adaptive(control) = self {
            control.on_send(now, after_idle);
        }
    }
    /// A handshake took this from the server's SYN to the client's answer.
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
    /// The rate to send at.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Paper(control) => control.rate(),
            Self::Adaptive(control) => control.rate(),
        }
    }
    /// Bytes that may be on their way.
    pub fn window(&self) -> u64 {
        match self {
            Self::Paper(_) => u64::MAX,
            Self::Adaptive(control) => control.window(),
        }
    }
    /// Bytes that it takes in so much time.
    pub fn taken_in(&self, time: Duration) -> u64 {
        let rate = match self {
            Self::Paper(control) => control.rate().0 as f64,
            Self::Adaptive(control) => control.bandwidth(),
        };
        (rate / 8.0 * time.as_secs_f64()) as u64
    }
    /// Bytes on their way beyond which more is of no use. What is past the client's window when a fade ends it drops:
    /// where there are fades, a queue is not worth it, but a little more than the path is: a client's window that is as large
    /// as the path was would hide that the radio has become faster.
    pub fn useful_window(&self, fades: bool) -> u64 {
        match self {
            Self::Paper(control) if fades => control.bandwidth_delay(),
            Self::Adaptive(control) if fades => control.bandwidth_delay() / 10 * FADING_TENTHS,
            Self::Paper(control) => PAPER_ROUNDS * control.bandwidth_delay(),
            Self::Adaptive(control) => control.useful_window(),
        }
    }
}
