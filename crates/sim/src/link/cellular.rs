//! The downlink of a mobile channel whose rate varies, with the delay and the losses that grow with its load. What the
//! parameters are and where they come from: [`scenario::Cellular`](crate::scenario::Cellular).
//!
//! Some packets have a block that is sent again: they come later, and the pipe lets none that follows overtake them.
//!
//! The logarithm of the rate is a first-order autoregressive process, in steps of 10 ms. Bursts of losses come so often
//! that their share of the time is what the load of the moment says.

use crate::scenario;
use paceline_net::{Bytes, Duration, Instant, Stream};

/// Step of the rate process.
const STEP: Duration = Duration::from_millis(10);
/// Time over which the load is a mean.
const LOAD_OVER_S: f64 = 0.2;

/// A rate that varies.
#[derive(Clone, Debug)]
pub(crate) struct VaryingRate {
    /// Of the logarithm: mean, standard deviation, correlation from step to step.
    mean_ln: f64,
    sigma: f64,
    step_correlation: f64,
    peak: u64,
    stream: Stream,
    /// The state, standard normal.
    state: f64,
    /// End of the present step, and its rate in b/s.
    until: Instant,
    rate: u64,
    /// Bits times nanoseconds per second of all steps that are over.
    passed: u128,
}

impl VaryingRate {
    /// The process of a channel.
    pub fn new(channel: &scenario::Cellular, mut stream: Stream) -> Self {
        let sigma = channel.rate_sigma;
        let correlation = libm::exp(-STEP.as_secs_f64() / channel.coherence.as_secs_f64());
        let state = stream.normal();
        let mut process = Self {
            mean_ln: libm::log(channel.rate.0 as f64) - sigma * sigma / 2.0,
            sigma,
            step_correlation: correlation,
            peak: channel.peak_rate.0,
            stream,
            state,
            until: Instant::ZERO + STEP,
            rate: 0,
            passed: 0,
        };
        process.rate = process.rate_of_state();
        process
    }
    fn rate_of_state(&self) -> u64 {
        (libm::exp(self.mean_ln + self.sigma * self.state) as u64).clamp(1_000, self.peak)
    }
    fn step(&mut self) {
        self.passed += u128::from(self.rate) * u128::from(STEP.as_nanos());
        let rho = self.step_correlation;
        self.state = rho * self.state + libm::sqrt(1.0 - rho * rho) * self.stream.normal();
        self.rate = self.rate_of_state();
        self.until += STEP;
    }
    /// When `len` bytes have left whose sending begins at `start`, at `share` thousandths of the rate. Starts do not
    /// go back.
    pub fn serve(&mut self, start: Instant, len: Bytes, share: u64) -> Instant {
        let mut need = u128::from(len.0) * 8 * 1_000_000_000 * 1_000;
        let mut at = start;
        loop {
            while self.until <= at {
                self.step();
            }
            let rate = u128::from(self.rate) * u128::from(share);
            let can = rate * u128::from(self.until.since(at).as_nanos());
            if need <= can {
                return at + Duration::from_nanos(need.div_ceil(rate) as u64);
            }
            need -= can;
            at = self.until;
        }
    }
    /// Bytes that can have been sent by `now`; never asked for an earlier time again.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        while self.until <= now {
            self.step();
        }
        let step = STEP.as_nanos() - self.until.since(now).as_nanos();
        ((self.passed + u128::from(self.rate) * u128::from(step)) / 8_000_000_000) as u64
    }
}

/// What was sent of late, over the mean rate.
#[derive(Clone, Debug)]
struct Load {
    rate: f64,
    bits: f64,
    at: Instant,
}

impl Load {
    fn on_sent(&mut self, now: Instant, len: Bytes) -> f64 {
        self.bits *= libm::exp(-now.since(self.at).as_secs_f64() / LOAD_OVER_S);
        self.bits += len.0 as f64 * 8.0;
        self.at = now;
        (self.bits / (LOAD_OVER_S * self.rate)).min(1.0)
    }
}

/// The downlink.
#[derive(Clone, Debug)]
pub(crate) struct Downlink {
    channel: scenario::Cellular,
    rate: VaryingRate,
    load: Load,
    losses: Stream,
    errors: Stream,
    /// The present burst of losses, or the last one, ends then.
    burst_until: Instant,
}

impl Downlink {
    /// The downlink of a channel; its streams are named after `name`.
    pub fn new(channel: &scenario::Cellular, seed: u64, name: &str) -> Self {
        Self {
            channel: channel.clone(),
            rate: VaryingRate::new(channel, Stream::new(seed, &format!("{name}/rate"))),
            load: Load { rate: channel.rate.0 as f64, bits: 0.0, at: Instant::ZERO },
            losses: Stream::new(seed, &format!("{name}/losses")),
            errors: Stream::new(seed, &format!("{name}/errors")),
            burst_until: Instant::ZERO,
        }
    }
    /// When a packet has left whose sending begins at `start` while `queued` bytes wait.
    pub fn serve(&mut self, start: Instant, len: Bytes, queued: Bytes) -> Instant {
        let congested = queued > self.channel.congested_queue;
        let share = if congested { (self.channel.congested_share * 1000.0).round() as u64 } else { 1000 };
        self.rate.serve(start, len, share.max(1))
    }
    /// Bytes that can have been sent by `now` without congestion.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        self.rate.capacity(now)
    }
    /// A packet was sent: the delay that the load and errors add to it; none if it is lost.
    pub fn on_sent(&mut self, now: Instant, len: Bytes) -> Option<Duration> {
        let since = now.since(self.load.at.max(self.burst_until)).as_secs_f64();
        let load = self.load.on_sent(now, len).min(self.channel.load_full);
        let channel = &self.channel;
        if now >= self.burst_until {
            let above = (load - channel.load_loss_from).max(0.0) / (1.0 - channel.load_loss_from);
            let percent = channel.loss_percent + channel.load_loss_percent * above;
            // Bursts of mean length B at mean distances B (1 - p) / p take the share p of the time.
            let share = (percent / channel.burst_loss_percent).min(0.99);
            let burst = channel.loss_burst.as_secs_f64();
            if self.losses.chance(1.0 - libm::exp(-since * share / ((1.0 - share) * burst))) {
                self.burst_until = now + Duration::from_secs_f64(self.losses.exponential(burst));
            }
        }
        if now < self.burst_until && self.losses.chance(channel.burst_loss_percent / 100.0) {
            return None;
        }
        let again = self.errors.chance(channel.error_percent / 100.0);
        let error_delay = if again { channel.error_delay } else { Duration::ZERO };
        Some(Duration::from_secs_f64(load * channel.load_delay.as_secs_f64()) + error_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Rate;

    /// 8 Mb/s with the variation that the tests below count on.
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
        let still = scenario::Cellular { rate_sigma: 0.0, ..channel() };
        let mut rate = VaryingRate::new(&still, Stream::new(1, "rate"));
        // 1000 bytes a millisecond, and a little more for the truncated logarithm.
        let mut at = Instant::ZERO;
        for n in 1..=100 {
            at = rate.serve(at, Bytes(1_000), 1000);
            assert!(at.since(Instant::from_millis(n)) < Duration::from_nanos(1000), "{at:?}");
        }
        assert!(rate.serve(at, Bytes(1_000), 500).since(at) >= Duration::from_millis(2));
    }

    #[test]
    fn the_rate_has_the_mean_and_the_correlation_that_are_asked_for() {
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
        // Sixty steps between independent values: a standard error of 0.2 / sqrt(100000 / 60) = 0.5%; four of them.
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
    fn what_is_served_is_what_the_capacity_says() {
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
    fn a_share_of_the_packets_comes_later() {
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
        // A standard error of 0.001; four of them.
        assert!((share - 0.12).abs() < 0.0042, "{share}");
    }

    #[test]
    fn losses_come_in_bursts_and_have_their_share() {
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
        // Some 3300 bursts: a standard error of about 2.5%; four of them.
        assert!((share - 0.05).abs() < 0.005, "{share}");
        let length = f64::from(lost) / f64::from(bursts);
        assert!(
            (length - 15.5).abs() < 1.6,
            "bursts of 30 ms have 15 packets, and are cut to whole ones: {length}"
        );
    }
}
