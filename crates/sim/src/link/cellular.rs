//! The downlink of a mobile channel of 2011 (HSPA, early LTE): its rate varies, and its delay and its losses
//! grow with the load. [`scenario::Cellular`](crate::scenario::Cellular) has the parameters and their
//! sources.
//!
//! The logarithm of the rate is a first-order autoregressive process in steps of 10 ms. Losses come in
//! bursts, whose share of the time follows the load of the moment. Some packets have a transport block that
//! is retransmitted: they arrive later, and no later packet overtakes them, since layer 2 delivers in order.

use super::log_rate::OrnsteinUhlenbeck;
use crate::scenario;
use paceline_net::{Bytes, Duration, Instant, Stream};

/// Step of the rate process. Chosen: short against the coherence times, 300 ms and more.
const RATE_STEP: Duration = Duration::from_millis(10);
/// Time constant of the load, an exponential mean. Chosen; the channels' load parameters were calibrated on
/// the published probes with this value (crates/sim/tests/links.rs).
const LOAD_TIME_CONSTANT_S: f64 = 0.2;

/// A rate with log-normal variation.
#[derive(Clone, Debug)]
pub(crate) struct VaryingRate {
    /// Mean and standard deviation of the logarithm of the rate.
    mean_ln: f64,
    sigma: f64,
    /// Upper limit of the rate, b/s.
    peak: u64,
    state: OrnsteinUhlenbeck,
    /// End of the present step, and its rate in b/s.
    until: Instant,
    rate: u64,
    /// Capacity of all past steps: b/s times ns.
    past: u128,
}

impl VaryingRate {
    /// The rate process of a channel.
    pub fn new(channel: &scenario::Cellular, stream: Stream) -> Self {
        let sigma = channel.rate_sigma;
        let share = RATE_STEP.as_secs_f64() / channel.coherence.as_secs_f64();
        let mut process = Self {
            mean_ln: libm::log(channel.rate.0 as f64) - sigma * sigma / 2.0,
            sigma,
            peak: channel.peak_rate.0,
            state: OrnsteinUhlenbeck::new(share, stream),
            until: Instant::ZERO + RATE_STEP,
            rate: 0,
            past: 0,
        };
        process.rate = process.rate_of_state();
        process
    }
    fn rate_of_state(&self) -> u64 {
        (libm::exp(self.mean_ln + self.sigma * self.state.value()) as u64).clamp(1_000, self.peak)
    }
    fn step(&mut self) {
        self.past += u128::from(self.rate) * u128::from(RATE_STEP.as_nanos());
        self.state.step();
        self.rate = self.rate_of_state();
        self.until += RATE_STEP;
    }
    /// Time at which `len` bytes have been sent from `start` on, at `permille` thousandths of the rate.
    /// `start` must not decrease from call to call.
    pub fn serve(&mut self, start: Instant, len: Bytes, permille: u64) -> Instant {
        let mut need = u128::from(len.0) * 8 * 1_000_000_000 * 1_000;
        let mut at = start;
        loop {
            while self.until <= at {
                self.step();
            }
            let rate = u128::from(self.rate) * u128::from(permille);
            let capacity = rate * u128::from(self.until.since(at).as_nanos());
            if need <= capacity {
                return at + Duration::from_nanos(need.div_ceil(rate) as u64);
            }
            need -= capacity;
            at = self.until;
        }
    }
    /// Bytes that could have been sent by `now`. `now` must not decrease from call to call.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        while self.until <= now {
            self.step();
        }
        let step = RATE_STEP.as_nanos() - self.until.since(now).as_nanos();
        ((self.past + u128::from(self.rate) * u128::from(step)) / 8_000_000_000) as u64
    }
}

/// Load: the exponential mean of the sent bit rate as a share of the channel's mean rate.
#[derive(Clone, Debug)]
struct Load {
    /// Mean rate of the channel, b/s.
    mean_rate: f64,
    /// Sent bits, weighted by age.
    bits: f64,
    /// Time of the last update.
    at: Instant,
}

impl Load {
    fn on_sent(&mut self, now: Instant, len: Bytes) -> f64 {
        self.bits *= libm::exp(-now.since(self.at).as_secs_f64() / LOAD_TIME_CONSTANT_S);
        self.bits += len.0 as f64 * 8.0;
        self.at = now;
        (self.bits / (LOAD_TIME_CONSTANT_S * self.mean_rate)).min(1.0)
    }
}

/// The downlink of a channel as a service.
#[derive(Clone, Debug)]
pub(crate) struct Downlink {
    channel: scenario::Cellular,
    rate: VaryingRate,
    load: Load,
    losses: Stream,
    errors: Stream,
    /// End of the present or last burst of losses.
    burst_until: Instant,
}

impl Downlink {
    /// The downlink of a channel. `name` is the prefix of the names of its random streams.
    pub fn new(channel: &scenario::Cellular, seed: u64, name: &str) -> Self {
        Self {
            channel: channel.clone(),
            rate: VaryingRate::new(channel, Stream::new(seed, &format!("{name}/rate"))),
            load: Load { mean_rate: channel.rate.0 as f64, bits: 0.0, at: Instant::ZERO },
            losses: Stream::new(seed, &format!("{name}/losses")),
            errors: Stream::new(seed, &format!("{name}/errors")),
            burst_until: Instant::ZERO,
        }
    }
    /// Time at which a packet has been sent from `start` on, with `queued` bytes in the queue.
    pub fn serve(&mut self, start: Instant, len: Bytes, queued: Bytes) -> Instant {
        let congested = queued > self.channel.congested_queue;
        let permille = if congested { (self.channel.congested_share * 1000.0).round() as u64 } else { 1000 };
        self.rate.serve(start, len, permille.max(1))
    }
    /// Bytes that could have been sent by `now` without congestion.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        self.rate.capacity(now)
    }
    /// A packet has been sent. Returns its extra delay by load and retransmission; none if the packet is
    /// lost.
    pub fn on_sent(&mut self, now: Instant, len: Bytes) -> Option<Duration> {
        let since = now.since(self.load.at.max(self.burst_until)).as_secs_f64();
        let load = self.load.on_sent(now, len).min(self.channel.load_full);
        let channel = &self.channel;
        if now >= self.burst_until {
            let above = (load - channel.load_loss_from).max(0.0) / (1.0 - channel.load_loss_from);
            let percent = channel.loss_percent + channel.load_loss_percent * above;
            // Bursts of mean length B with mean gaps of B (1 - p) / p cover the share p of the time.
            let share = (percent / channel.burst_loss_percent).min(0.99);
            let burst = channel.loss_burst.as_secs_f64();
            if self.losses.chance(1.0 - libm::exp(-since * share / ((1.0 - share) * burst))) {
                self.burst_until = now + Duration::from_secs_f64(self.losses.exponential(burst));
            }
        }
        if now < self.burst_until && self.losses.chance(channel.burst_loss_percent / 100.0) {
            return None;
        }
        let retransmitted = self.errors.chance(channel.error_percent / 100.0);
        let error_delay = if retransmitted { channel.error_delay } else { Duration::ZERO };
        Some(Duration::from_secs_f64(load * channel.load_delay.as_secs_f64()) + error_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Rate;

    /// 8 Mb/s with a known variation.
    fn channel() -> scenario::Cellular {
        scenario::Cellular {
            rate: Rate(8_000_000),
            peak_rate: Rate(100_000_000),
            rate_sigma: 0.2,
            coherence: Duration::from_millis(300),
            ..scenario::Cellular::hspa()
        }
    }

    #[test]
    fn a_rate_without_variation_is_constant() {
        let constant = scenario::Cellular { rate_sigma: 0.0, ..channel() };
        let mut rate = VaryingRate::new(&constant, Stream::new(1, "rate"));
        // 1000 bytes per ms, and less than 1 us more since the rate is truncated to whole b/s.
        let mut at = Instant::ZERO;
        for n in 1..=100 {
            at = rate.serve(at, Bytes(1_000), 1000);
            assert!(at.since(Instant::from_millis(n)) < Duration::from_nanos(1000), "{at:?}");
        }
        assert!(rate.serve(at, Bytes(1_000), 500).since(at) >= Duration::from_millis(2));
    }

    #[test]
    fn the_rate_has_the_configured_mean_deviation_and_correlation() {
        let mut process = VaryingRate::new(&channel(), Stream::new(3, "rate"));
        let mut bytes = 0;
        let mut rates = Vec::new();
        for n in 1..=100_000u64 {
            let now = process.capacity(Instant::from_millis(10 * n));
            rates.push((now - bytes) as f64);
            bytes = now;
        }
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        // Values 60 steps apart are nearly independent: a standard error of 0.2 / sqrt(100000 / 60) = 0.5%.
        // Four of them.
        assert!((mean / 10_000.0 - 1.0).abs() < 0.02, "{mean}");
        let around = |lag: usize| {
            let pairs = rates.iter().zip(&rates[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n
        };
        let correlation = around(30) / around(0);
        assert!((correlation - libm::exp(-1.0)).abs() < 0.08, "{correlation} after 300 ms");
        let sigma = libm::sqrt(around(0)) / mean;
        assert!((sigma - 0.2).abs() < 0.02, "{sigma}");
    }

    #[test]
    fn back_to_back_packets_use_the_whole_capacity() {
        let mut rate = VaryingRate::new(&channel(), Stream::new(5, "rate"));
        let mut meter = rate.clone();
        let mut at = Instant::ZERO;
        for n in 1..=10_000u64 {
            at = rate.serve(at, Bytes(1_500), 1000);
            let capacity = meter.capacity(at);
            assert!(capacity.abs_diff(n * 1_500) <= 10, "{n}: {capacity}");
        }
    }

    #[test]
    fn the_configured_share_of_packets_arrives_later() {
        let late = Duration::from_millis(50);
        let channel = scenario::Cellular {
            error_percent: 12.0,
            error_delay: late,
            loss_percent: 0.0,
            load_loss_percent: 0.0,
            load_delay: Duration::ZERO,
            ..channel()
        };
        let mut downlink = Downlink::new(&channel, 7, "test");
        let delays: Vec<Duration> = (0..100_000)
            .map(|n| downlink.on_sent(Instant::from_millis(2 * n), Bytes(1_000)).unwrap())
            .collect();
        assert!(delays.iter().all(|delay| [Duration::ZERO, late].contains(delay)));
        let share = delays.iter().filter(|delay| **delay == late).count() as f64 / 1e5;
        // The standard error is 0.001; four of them.
        assert!((share - 0.12).abs() < 0.0042, "{share}");
    }

    #[test]
    fn losses_come_in_bursts_with_the_configured_share() {
        let (loss_burst, burst_loss_percent) = (Duration::from_millis(30), 100.0);
        let lossy = scenario::Cellular {
            loss_percent: 5.0,
            load_loss_percent: 0.0,
            loss_burst,
            burst_loss_percent,
            ..channel()
        };
        let mut downlink = Downlink::new(&lossy, 7, "test");
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        const PACKETS: u32 = 1_000_000;
        for n in 0..u64::from(PACKETS) {
            let is = downlink.on_sent(Instant::from_millis(2 * n), Bytes(1_000)).is_none();
            lost += u32::from(is);
            bursts += u32::from(is && !before);
            before = is;
        }
        let share = f64::from(lost) / f64::from(PACKETS);
        // About 3300 bursts: a standard error of about 2.5%. Four of them.
        assert!((share - 0.05).abs() < 0.005, "{share}");
        let length = f64::from(lost) / f64::from(bursts);
        assert!(
            (length - 15.5).abs() < 1.6,
            "a burst of 30 ms has 15 packets on average, rounded up: {length}"
        );
    }
}
