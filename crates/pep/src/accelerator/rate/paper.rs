//! The published rate control: K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP
//! Performance in Mobile Data Networks" (IWCMC 2011).
//!
//! - Each `k` ACKs give a bandwidth sample, `R_i = (ack[i+k] - ack[i]) / (t[i+k] - t[i])`, which is smoothed:
//!   `R = (1 - lambda) R + lambda R_i`.
//! - Each ACK with a round-trip time above `beta` sets `R_max = R`; one below `alpha` sets
//!   `R_max = mu R_max + (1 - mu) R_cap`; in between the rate stays.
//!
//! Before the first sample `R_max` is `R_cap`. Only the buffer bounds the data in flight, and losses do not
//! change the rate. Unlike the paper, whose experiments had one connection, one control serves all
//! connections of a device, and SACKed bytes count as delivered.

use crate::accelerator::rate::sample::AckSample;
use paceline_net::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// Parameters of the published control, by the paper's symbols.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PaperParameters {
    /// ACKs of a bandwidth sample; at least 1.
    pub k: u32,
    /// Weight of a new sample, 0 to 1.
    pub lambda: f64,
    /// Below this round-trip time the rate grows.
    pub alpha: Duration,
    /// Above this round-trip time the rate becomes the measured bandwidth.
    pub beta: Duration,
    /// Weight of the old rate when it grows, 0 to 1.
    pub mu: f64,
    /// The rate to grow to: the radio's capacity, which the operator has to know.
    pub r_cap: Rate,
}

impl Default for PaperParameters {
    /// The paper's values for 3G.
    fn default() -> Self {
        Self {
            k: 250,
            lambda: 0.2,
            alpha: Duration::from_millis(140),
            beta: Duration::from_millis(260),
            mu: 0.8,
            r_cap: Rate(5_600_000),
        }
    }
}

impl PaperParameters {
    /// The paper's values for LTE.
    pub fn lte() -> Self {
        Self { r_cap: Rate(100_000_000), ..Self::default() }
    }
}

/// Lowest rate. Chosen: one segment of 1500 bytes in 1.5 s; a slower pacer would look stuck.
const MIN_RATE_BPS: f64 = 8_000.0;

#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Paper {
    parameters: PaperParameters,
    /// Bytes delivered in total, and that total at each of the last `k` ACKs.
    delivered: u64,
    acks: VecDeque<(Instant, u64)>,
    /// The smoothed bandwidth in bit/s.
    smoothed: Option<f64>,
    /// `R_max` in bit/s.
    rate: f64,
    min_rtt: Option<Duration>,
}

impl Paper {
    pub fn new(parameters: PaperParameters) -> Self {
        let unit = |share: f64| if share >= 0.0 { share.min(1.0) } else { 0.0 };
        let parameters = PaperParameters {
            k: parameters.k.clamp(1, 1 << 16),
            lambda: unit(parameters.lambda),
            mu: unit(parameters.mu),
            ..parameters
        };
        let rate = (parameters.r_cap.0 as f64).max(MIN_RATE_BPS);
        Self { parameters, delivered: 0, acks: VecDeque::new(), smoothed: None, rate, min_rtt: None }
    }

    pub fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        if sample.delivered == 0 {
            return;
        }
        let p = self.parameters;
        self.delivered += sample.delivered;
        self.acks.push_back((now, self.delivered));
        if self.acks.len() > p.k as usize
            && let Some((at, delivered)) = self.acks.pop_front()
            && now > at
        {
            let measured = 8.0 * (self.delivered - delivered) as f64 / now.since(at).as_secs_f64();
            self.smoothed =
                Some(self.smoothed.map_or(measured, |r| (1.0 - p.lambda) * r + p.lambda * measured));
        }
        let Some(rtt) = sample.rtt else { return };
        self.on_rtt(rtt);
        if rtt > p.beta {
            self.rate = self.smoothed.unwrap_or(self.rate).max(MIN_RATE_BPS);
        } else if rtt < p.alpha {
            self.rate = p.mu * self.rate + (1.0 - p.mu) * (p.r_cap.0 as f64).max(MIN_RATE_BPS);
        }
    }
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt.unwrap_or_default()
    }
    pub fn rate(&self) -> Rate {
        Rate(self.rate as u64)
    }
    pub fn bandwidth_delay(&self) -> u64 {
        (self.rate / 8.0 * self.min_rtt().as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(control: &mut Paper, at_ms: u64, rtt_ms: u64) {
        let sample =
            AckSample { delivered: 1000, rtt: Some(Duration::from_millis(rtt_ms)), ..AckSample::default() };
        control.on_ack(Instant::from_millis(at_ms), &sample);
    }

    /// Calculated by hand: one ACK of 1000 bytes each 4 ms is 2 Mb/s.
    #[test]
    fn the_rate_follows_the_papers_formulas() {
        let mut control = Paper::new(PaperParameters { k: 5, ..PaperParameters::default() });
        assert_eq!(control.rate(), Rate(5_600_000));
        for n in 0..5 {
            ack(&mut control, 4 * n, 300);
        }
        assert_eq!(control.rate(), Rate(5_600_000), "no sample before k ACKs have followed the first");
        ack(&mut control, 20, 300);
        assert_eq!(control.rate(), Rate(2_000_000), "above beta: the measured rate");
        ack(&mut control, 24, 200);
        assert_eq!(control.rate(), Rate(2_000_000), "in between: unchanged");
        ack(&mut control, 28, 100);
        assert_eq!(control.rate(), Rate(2_720_000), "below alpha: a fifth of the way to the cap");
        // Twice as fast: five ACKs in 4 + 4 + 4 + 4 + 2 ms; R = 0.8 * 2 + 0.2 * 2.2222.
        ack(&mut control, 30, 300);
        assert_eq!(control.rate().0, 2_044_444);
    }
}
