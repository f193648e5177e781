//! The default rate control: it measures the capacity of the path to a device and bounds the data in flight.
//!
//! **Window**: delivery rate x (minimum RTT + target delay). The target delay is the queue from which the
//! radio sends until the first ACK shows a higher capacity. While the queue stays short the capacity is not
//! known, and the window grows up to twofold each round trip: a hundredfold capacity is reached in eight or
//! nine. When the capacity falls, the delivery rate follows within an interval, and nothing is sent until the
//! excess has drained.
//!
//! **Inputs**: `delivery_rate`, `min_rtt`, `target_delay`. On a radio that fades, where probes of the minimum
//! RTT take a while, `load_delay` adds the delay that grows with the load.
//!
//! **Loss** does not lower the rate by itself. A buffer shorter than the target delay is found by
//! `short_buffer`, which caps the queue. After lossy round trips packets are paced evenly, since a buffer of
//! a few packets drops bursts, and the flight after a repair that opens the client's window at once is
//! bounded by `refill`. Losses while the buffer had room (`buffer_high_water`), and in the silences of a
//! radio that fades (`fading`), are the radio's. A device that shares its
//! queue with others, or that meets CE marks, yields (`congestion`).

use crate::accelerator::rate::delivery_rate::{DeliveryRate, SampleConditions};
use crate::accelerator::rate::in_order_stalls::MIN_MISSED_BYTES;
use crate::accelerator::rate::load_delay::LoadDelay;
use crate::accelerator::rate::losses::ack_due::MIN_SILENCE;
use crate::accelerator::rate::losses::buffer_high_water::BufferHighWater;
use crate::accelerator::rate::losses::congestion::{Congestion, Signs};
use crate::accelerator::rate::losses::flight_cap::{FlightCap, FlightRound, is_notable};
use crate::accelerator::rate::losses::refill::{Opening, Refill};
use crate::accelerator::rate::losses::short_buffer::{Round, ShortBuffer, is_lossy};
use crate::accelerator::rate::min_rtt::MinRtt;
use crate::accelerator::rate::sample::AckSample;
use crate::accelerator::rate::state::{ControlSnapshot, ControlState};
use crate::accelerator::rate::target_delay::{AckGap, MAX_PAUSE, TargetDelay};
use paceline_net::{Duration, Instant, Rate};
use std::hint::black_box;

/// Parameters of the adaptive control; none depends on the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveParameters {
    /// Shortest queueing delay to keep; at least 1 ms.
    pub min_target_delay: Duration,
    /// Longest queueing delay to keep on links that serve in bursts. Where one and a half round trips, or one
    /// and a half pauses of the radio, are longer, the limit is that.
    pub max_target_delay: Duration,
    /// Share of round trips that may find the queue empty, above 0 and up to 0.5. On a radio that fades two
    /// fifths of it apply: a fade itself leaves the link idle, which no queue prevents.
    pub empty_queue_share: f64,
}

impl Default for AdaptiveParameters {
    /// Chosen: with these delays, 41 of 54 minutes of cellular traces met the bounds on throughput and delay
    /// (docs/decisions/0024-target-delay-is-measured.md). The share is a little less than the share of
    /// capacity that may stay unused.
    fn default() -> Self {
        Self {
            min_target_delay: Duration::from_millis(15),
            max_target_delay: Duration::from_millis(100),
            empty_queue_share: 0.04,
        }
    }
}

/// Shortest interval of a delivery-rate sample. Chosen: several periods of any TDD configuration, which last
/// 10 ms at most (TS 36.211 table 4.2-2).
const MIN_RATE_INTERVAL: Duration = Duration::from_millis(40);
/// A round does not end with the first ACK after a silence, but later by one over this of the silence.
/// Chosen: the bytes held up arrive at once, and only the last of them had a short queue.
const ROUND_EXTENSION_DIVISOR: u64 = 16;
/// Bytes of the window before anything is measured: twice the 10 segments of RFC 6928, since the accelerator
/// stands next to the radio and paces the window over the handshake's RTT.
const INITIAL_WINDOW_BYTES: u64 = 29_200;
/// Smallest window in bytes. Chosen: four segments let a client with delayed ACKs acknowledge at once.
const MIN_WINDOW_BYTES: u64 = 4 * 1460;
/// Largest growth of the window in a round trip, and the factor by which the growth itself rises. Chosen: the
/// maximum is that of slow start (RFC 5681), and reached in three round trips.
const MAX_WINDOW_GAIN: f64 = 2.0;
const WINDOW_GAIN_STEP: f64 = 1.3;
/// Pacing rate as a factor of the bandwidth. Chosen: the bandwidth is a mean over an interval, while a radio
/// takes and acknowledges data in bursts; the room that a burst of ACKs makes is to be filled soon, and the
/// window bounds the amount. Together with a smaller share of empty queues, 3 gave more throughput at the
/// same delay than 2 on 116 cellular traces (`make traces`).
const PACING_GAIN: f64 = 3.0;
/// The same where bursts would be lost: on a radio that fades, or ahead of a short buffer. Chosen: above 1,
/// so that the estimate can still rise.
const EVEN_PACING_GAIN: f64 = 1.25;
/// Round trips with even pacing after a lossy one, unless a silence came within the last few round trips,
/// whose fade may have caused the losses. Chosen: long, since a path that drops bursts goes on doing so;
/// losses of a fade are found within three round trips.
const EVEN_PACING_ROUNDS: u8 = 100;
const SILENCE_ROUNDS: u64 = 3;
/// Round trips that the recovery of a client without SACK takes. Chosen: several, since NewReno (RFC 6582)
/// repairs one hole per round trip.
const RECOVERY_ROUNDS: u64 = 3;
/// How long a radio that lost packets while the buffer had room is assumed to go on doing so. Chosen: the
/// time holds several fades.
const LOSSY_RADIO_FOR: Duration = Duration::from_secs(10);

/// State of the adaptive control of one device.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Adaptive {
    last_ack_at: Instant,
    delivery_rate: DeliveryRate,
    min_rtt: MinRtt,
    target_delay: TargetDelay,
    /// The current round: when it began, the earliest time of its end, its lowest RTT, and whether the sender
    /// was application-limited in it.
    round_start: Instant,
    round_min_end: Instant,
    round_lowest_rtt: Duration,
    round_app_limited: bool,
    /// Bytes delivered and found lost in the round.
    round_bytes: (u64, u64),
    /// End of the last silence long enough for a fade.
    last_silence_at: Instant,
    refill: Refill,
    /// Round trips for which pacing stays even.
    even_pacing_rounds: u8,
    short_buffer: ShortBuffer,
    flight_cap: FlightCap,
    /// Bytes delivered in a minimum RTT at the rate of this round and the last one, if application-limited.
    carried: [u64; 2],
    /// The cap of the bytes in flight is below the window that the estimates give.
    capped: bool,
    buffer_high_water: BufferHighWater,
    /// Until then the radio is assumed to lose some packets while the buffer has room.
    lossy_radio_until: Instant,
    load_delay: LoadDelay,
    /// Factor of the bandwidth-delay product by which the window probes for more capacity.
    window_gain: f64,
    /// No queue has been seen yet, as in BBR's startup.
    startup: bool,
    /// The radio loses packets in its silences, or some of them without a silence.
    fading: bool,
    /// The client that sent the last acknowledgment does not use SACK.
    without_sack: bool,
    /// Until then bytes that such a client acknowledges may have been counted when its duplicate ACKs came.
    recovery_until: Instant,
    window: u64,
    congestion: Congestion,
}

impl Adaptive {
    pub fn new(parameters: AdaptiveParameters) -> Self {
        let AdaptiveParameters { min_target_delay, max_target_delay, empty_queue_share } = parameters;
        Self {
            last_ack_at: Instant::ZERO,
            delivery_rate: DeliveryRate::default(),
            min_rtt: MinRtt::default(),
            target_delay: TargetDelay::new(min_target_delay, max_target_delay, empty_queue_share),
            round_start: Instant::ZERO,
            round_min_end: Instant::ZERO,
            round_lowest_rtt: Duration::MAX,
            round_app_limited: false,
            round_bytes: (0, 0),
            last_silence_at: Instant::ZERO,
            refill: Refill::default(),
            even_pacing_rounds: 0,
            short_buffer: ShortBuffer::default(),
            flight_cap: FlightCap::default(),
            carried: [u64::MAX; 2],
            capped: false,
            buffer_high_water: BufferHighWater::default(),
            lossy_radio_until: Instant::ZERO,
            load_delay: LoadDelay::default(),
            window_gain: MAX_WINDOW_GAIN,
            startup: true,
            fading: false,
            without_sack: false,
            recovery_until: Instant::ZERO,
            window: INITIAL_WINDOW_BYTES,
            congestion: Congestion::default(),
        }
    }
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt.rtt()
    }

    /// Delay of the path beyond its minimum RTT that is no queue, in seconds. Only on a radio that fades:
    /// elsewhere the probes of `min_rtt` find it sooner than rates that vary by themselves.
    fn load_delay(&self) -> f64 {
        if self.fading { self.load_delay.seconds() } else { 0.0 }
    }
    fn state(&self) -> ControlState {
        if let Some(state) = self.congestion.state() {
            state
        } else if self.startup {
            ControlState::Startup
        } else if self.min_rtt.is_probing() {
            ControlState::MinRtt
        } else if self.capped || self.short_buffer.cap().is_some() {
            ControlState::ShortBuffer
        } else if self.window_gain > 1.0 {
            ControlState::Growing
        } else {
            ControlState::Steady
        }
    }
    pub fn snapshot(&self) -> ControlSnapshot {
        ControlSnapshot {
            state: self.state(),
            rate: self.rate(),
            window: self.window(),
            capacity: Rate(self.bandwidth() as u64),
            min_rtt: self.min_rtt(),
            target_delay: Duration::from_secs_f64(self.queue_to_keep()),
        }
    }
    /// Queueing delay to keep, in seconds.
    fn queue_to_keep(&self) -> f64 {
        let target = self.target_delay.seconds();
        self.short_buffer.cap().map_or(target, |cap| cap.min(target))
    }

    pub fn on_send(&mut self, now: Instant, after_idle: bool) {
        self.refill.on_time(now);
        if after_idle {
            self.delivery_rate.on_idle(now);
            self.buffer_high_water.on_idle();
            self.last_ack_at = now + self.min_rtt(); // no ACK is missing before then
        }
    }

    pub fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt.on_handshake(now, rtt);
    }

    pub fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        // Losses of fades are no sign of a short buffer.
        let lost = if sample.fading { 0 } else { sample.lost };
        let signs = Signs {
            delivered: sample.delivered,
            lost,
            marked: sample.marked,
            rtt: sample.rtt,
            min_rtt: self.min_rtt(),
            in_flight: sample.in_flight + sample.delivered + lost,
            others_share: sample.others_share,
            others_lose: sample.others_lose,
        };
        self.congestion.on_ack(now, &signs);
        let sample = &AckSample { fading: sample.fading || now < self.lossy_radio_until, ..*sample };
        let gap = now.since(self.last_ack_at);
        self.last_ack_at = now;
        let silence = gap > MIN_SILENCE.max(self.min_rtt() / 4);
        self.fading = sample.fading;
        self.without_sack = sample.without_sack;
        if silence {
            self.last_silence_at = now;
        }
        if sample.fading && silence {
            self.delivery_rate.on_fade();
            self.min_rtt.on_fade(now);
        }
        self.on_gap(now, gap, sample.fading);
        self.update_refill(now, sample);
        self.delivery_rate.on_ack(sample.delivered, lost, sample.sent_at, sample.app_limited);
        self.round_app_limited |= sample.app_limited;
        let beyond = if sample.fading { 0 } else { sample.lost_beyond_window };
        self.flight_cap.on_ack(sample.in_flight + sample.delivered + lost + beyond, beyond);
        self.round_bytes.0 += sample.delivered;
        self.round_bytes.1 += lost;
        if sample.without_sack && lost > 0 {
            self.recovery_until = now + self.min_rtt() * RECOVERY_ROUNDS;
        }
        if let Some(rtt) = sample.rtt {
            self.on_rtt(now, rtt, sample.app_limited);
        }
        let interval = self.min_rtt().max(MIN_RATE_INTERVAL).max(self.target_delay.min_rate_interval());
        if self.delivery_rate.is_due(now, interval) {
            self.measure(now);
        }
        if now.since(self.round_start) >= self.min_rtt() && now >= self.round_min_end {
            self.end_round(now);
        }
        let not_window_limited = sample.app_limited
            || self.window_gain > 1.0
            || self.min_rtt.is_probing()
            || silence
            || self.short_buffer.cap().is_some();
        self.load_delay.on_ack(now, sample.delivered, sample.rtt, not_window_limited);
        let slack = Duration::from_secs_f64(self.load_delay() + 2.0 * self.target_delay.seconds());
        let may_probe = !sample.app_limited && !self.startup && self.short_buffer.cap().is_none();
        if let Some(rise) = self.min_rtt.update(now, sample, self.window, slack, may_probe) {
            // The load delay is now part of the minimum RTT.
            self.load_delay.shift(-rise);
        }
        self.update_window(if sample.app_limited { 0 } else { sample.delivered });
    }

    /// A fade shuts the window as well, but drops what is sent in it: there the rate decides alone.
    fn update_refill(&mut self, now: Instant, sample: &AckSample) {
        if sample.lost + sample.lost_beyond_window > 0 {
            self.refill.on_loss(now);
        }
        let ack = Opening {
            opened: if sample.fading { 0 } else { sample.opened },
            in_flight: sample.in_flight,
            usual: self.bandwidth_delay().min(sample.client_window),
            bandwidth: self.bandwidth(),
            queue: if self.startup { 0 } else { self.buffer_high_water.safe(now) },
        };
        self.refill.on_ack(now, &ack, self.min_rtt(), self.unbounded_rate());
    }

    /// The time since the previous acknowledgment.
    fn on_gap(&mut self, now: Instant, gap: Duration, fading: bool) {
        let missed = self.bandwidth() / 8.0 * gap.as_secs_f64();
        // Without SACK a repaired hole looks like a pause.
        let counts = !self.without_sack && (self.startup || missed > MIN_MISSED_BYTES);
        if gap > MIN_SILENCE && gap <= MAX_PAUSE && counts && self.round_min_end <= self.round_start {
            self.round_min_end = now + gap / ROUND_EXTENSION_DIVISOR;
        }
        let gap = AckGap {
            length: gap,
            delivered: self.delivery_rate.delivered(),
            missed,
            // In startup too little was in flight to fill the path.
            may_be_pause: !fading && !self.startup,
            with_sack: !self.without_sack,
        };
        self.target_delay.on_ack(now, &gap);
    }

    fn on_rtt(&mut self, now: Instant, rtt: Duration, app_limited: bool) {
        self.delivery_rate.on_rtt(rtt);
        let counts = self.min_rtt.on_rtt(now, rtt, self.fading);
        if counts {
            self.round_lowest_rtt = self.round_lowest_rtt.min(rtt);
        }
        if counts && !app_limited && !self.min_rtt.is_probing() {
            let empty = self.min_rtt.is_without_queue(rtt);
            self.target_delay.on_sample(now, empty, self.min_rtt(), self.fading);
        } else {
            self.target_delay.on_unusable_sample(now);
        }
        let queueing_delay = rtt.saturating_sub(self.min_rtt());
        self.buffer_high_water.on_delivered(now, queueing_delay, self.delivery_rate.delivered(), counts);
    }

    fn end_round(&mut self, now: Instant) {
        let known = self.round_lowest_rtt < Duration::MAX;
        let queue = known.then(|| self.round_lowest_rtt.saturating_sub(self.min_rtt()).as_secs_f64());
        let (delivered, lost) = self.round_bytes;
        let seconds = now.since(self.round_start).as_secs_f64();
        let recent_silence = now.since(self.last_silence_at) < self.min_rtt() * SILENCE_ROUNDS;
        let lossy = is_lossy(delivered, lost);
        if !self.without_sack && !recent_silence && lossy && self.buffer_high_water.had_clear_room(now) {
            self.lossy_radio_until = now + LOSSY_RADIO_FOR;
        }
        let radio_loss = self.is_radio_loss(now);
        // Losses found in this round trip happened in it or in the one before.
        let had_room = self.buffer_high_water.had_evident_room(now);
        let excess = self.flight_cap.most().saturating_sub(self.bandwidth_delay());
        self.buffer_high_water.on_round(now, lost, lossy || is_notable(delivered, lost), excess);
        let lost = if radio_loss { 0 } else { lost };
        let without_sack = self.without_sack;
        let carried = delivered as f64 * self.min_rtt().as_secs_f64() / seconds.max(1e-4);
        self.carried[1] = self.carried[0];
        self.carried[0] = if self.round_app_limited { carried as u64 } else { u64::MAX };
        let round = Round { delivered, lost, queue, seconds, bandwidth: self.bandwidth(), without_sack };
        self.short_buffer.on_round(now, &round);
        if self.fading || without_sack {
            self.flight_cap = FlightCap::default();
        } else {
            let round = FlightRound {
                delivered,
                lost,
                recent_silence,
                had_room,
                without_queue: known && self.min_rtt.is_without_queue(self.round_lowest_rtt),
                startup: self.startup,
                carried: self.carried(),
            };
            self.flight_cap.on_round(now, &round);
        }
        if round.is_lossy() && !recent_silence {
            self.even_pacing_rounds = EVEN_PACING_ROUNDS;
        } else {
            self.even_pacing_rounds = self.even_pacing_rounds.saturating_sub(1);
        }
        self.update_gain(queue, without_sack && round.is_lossy());
        (self.round_start, self.round_lowest_rtt, self.round_app_limited) = (now, Duration::MAX, false);
        self.round_bytes = (0, 0);
    }

    /// Adapts the window's growth to the shortest queueing delay of a round, in seconds. `recovering`: a
    /// client without SACK lost packets, and gives no RTT samples meanwhile.
    fn update_gain(&mut self, queue: Option<f64>, recovering: bool) {
        if recovering {
            self.window_gain = 1.0;
            self.startup = false;
        } else if let Some(queue) = queue {
            let short = queue < self.queue_to_keep() / 2.0;
            if !self.round_app_limited && !self.min_rtt.is_probing() {
                let grown = (self.window_gain * WINDOW_GAIN_STEP).min(MAX_WINDOW_GAIN);
                self.window_gain = if short { grown } else { 1.0 };
                self.startup &= short;
            } else if !short {
                self.window_gain = 1.0;
                self.startup = false;
            }
        }
    }

    /// Whether current losses are the radio's, because the buffer had room for the packets. Not known without
    /// SACK, where the time of a loss is unknown.
    fn is_radio_loss(&self, now: Instant) -> bool {
        now < self.lossy_radio_until
            && !self.without_sack
            && self.buffer_high_water.had_room(now)
            && self.delivery_rate.is_confirmed(now)
    }

    fn measure(&mut self, now: Instant) {
        let bandwidth_before = self.bandwidth();
        let conditions = SampleConditions {
            queue_rtt: self.min_rtt() + self.target_delay.min(),
            window_reduced: self.min_rtt.is_probing() || self.capped || self.is_yielding(),
            radio_loss: self.is_radio_loss(now),
            counted_twice: now < self.recovery_until,
        };
        if let Some(rate) = self.delivery_rate.measure(now, &conditions) {
            self.min_rtt.loaded.on_rate(now, rate, bandwidth_before);
            self.min_rtt.on_bandwidth(self.bandwidth());
        }
    }

    fn update_window(&mut self, acked: u64) {
        let min_rtt = self.min_rtt().as_secs_f64();
        let span = if let Some(span) = self.min_rtt.probe_window_seconds() {
            span
        } else {
            let path = min_rtt + self.load_delay();
            // A short buffer has no room for probes of more capacity.
            if self.short_buffer.cap().is_some() {
                path + self.queue_to_keep()
            } else {
                (path + self.queue_to_keep()).max(self.window_gain * min_rtt)
                    * self.load_delay.window_factor()
            }
        };
        let mut window = (self.bandwidth() / 8.0 * span) as u64;
        let cap = self.flight_cap.bytes().map_or(u64::MAX, |cap| cap.max(self.carried()));
        self.capped = window > cap;
        window = window.min(cap);
        let min = if self.startup { INITIAL_WINDOW_BYTES } else { MIN_WINDOW_BYTES };
        // Slow start: the window grows by the bytes acknowledged, until the buffer overflows.
        let bounded = self.short_buffer.cap().is_some() || self.flight_cap.bytes().is_some();
        let doubled = if self.startup && !bounded { self.window + acked } else { 0 };
        self.window = window.max(min).max(doubled);
    }

    /// Pacing rate.
    pub fn rate(&self) -> Rate {
        if self.congestion.is_cubic() {
            return Rate(self.congestion.rate().0.max(64_000));
        }
        let rate = if self.refill.is_at_bandwidth() { self.bandwidth() } else { self.unbounded_rate() };
        Rate((rate as u64).min(self.congestion.rate().0).max(64_000))
    }
    /// Pacing rate in bit/s where no refill bounds it.
    fn unbounded_rate(&self) -> f64 {
        let probing = self.window_gain > 1.0 && self.even_pacing_rounds == 0;
        let bursts = !self.fading && self.even_pacing_rounds == 0 && self.short_buffer.cap().is_none();
        let gain = if probing || bursts { PACING_GAIN } else { EVEN_PACING_GAIN };
        let mut rate = gain * self.bandwidth();
        if probing {
            let rtt = self.min_rtt().as_secs_f64().max(1e-3);
            let initial = 8.0 * 2.0 * INITIAL_WINDOW_BYTES as f64 / rtt;
            // One and a half windows per round trip.
            let filling = if self.startup { 12.0 * self.window as f64 / rtt } else { 0.0 };
            rate = rate.max(initial).max(filling);
        }
        rate
    }
    /// Loads its cache lines.
    pub fn prefetch(&self) {
        self.min_rtt.prefetch();
        self.delivery_rate.prefetch();
        self.target_delay.prefetch();
        self.buffer_high_water.prefetch();
        black_box((self.short_buffer.cap(), self.load_delay.seconds()));
        black_box((self.last_ack_at, self.round_start, self.window));
    }
    /// Estimated bandwidth in bit/s; zero before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.delivery_rate.bandwidth()
    }
    /// Bandwidth-delay product in bytes, without a queue.
    pub fn bandwidth_delay(&self) -> u64 {
        (self.bandwidth() / 8.0 * (self.min_rtt().as_secs_f64() + self.load_delay())) as u64
    }
    /// Bytes in flight that the path carries without a queue; fewer would leave it idle. While the client's
    /// window bounds the data in flight, the bandwidth may be too high, since application-limited samples do
    /// not lower it; the rate of the last round trips counts then.
    fn carried(&self) -> u64 {
        self.carried[0].max(self.carried[1]).min(self.bandwidth_delay())
    }
    /// Factor by which the window exceeds the bandwidth-delay product to try whether the capacity is higher.
    pub fn window_gain(&self) -> f64 {
        if self.short_buffer.cap().is_some() || self.flight_cap.bytes().is_some() {
            1.0
        } else {
            self.window_gain
        }
    }
    pub fn is_in_startup(&self) -> bool {
        self.startup
    }
    /// Bytes that may be in flight. Behind a shared queue CUBIC's alone: the window for a delay grows with
    /// the rate, so that unequal shares would stay.
    pub fn window(&self) -> u64 {
        if self.congestion.is_cubic() {
            return self.congestion.window();
        }
        self.window.min(self.congestion.window())
    }
    /// Whether other devices were found to fill the queue too.
    pub fn shares_queue(&self) -> bool {
        self.congestion.shares_queue()
    }
    /// Whether so much is lost that this may be so.
    pub fn loses_much(&self) -> bool {
        self.congestion.loses_much()
    }
    /// Whether it is so, or a trial is under way.
    fn is_yielding(&self) -> bool {
        self.congestion.is_yielding()
    }
    /// Bytes in flight up to which sending past the client's advertised window is useful: a little more than
    /// the window. A client's window of exactly the same size would make every sample application-limited,
    /// and the estimate could not grow. Ahead of a short buffer it must not grow, and ahead of one that lost
    /// much nothing is sent past the client's window.
    pub fn useful_window(&self) -> u64 {
        if self.flight_cap.is_beyond_limit() || self.is_yielding() {
            0
        } else if self.short_buffer.cap().is_some() {
            self.window
        } else {
            self.window / 8 * 9
        }
    }
}

#[cfg(test)]
#[path = "adaptive_tests.rs"]
mod tests;
