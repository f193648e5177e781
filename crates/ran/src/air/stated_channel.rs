//! The channel of one station and direction with a stated mean SINR, the same in every PRB.
//!
//! A Gaussian variation in dB with exponential autocorrelation (a first-order process per slot) is added to
//! the mean. Path loss, antennas, interference and frequency-selective fading are left out.

use crate::slot::{Slot, SlotSpan};
use paceline_net::Stream;

/// Variation around the mean SINR.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fading {
    /// Standard deviation in dB; zero for a constant channel.
    pub sigma_db: f64,
    /// Time in slots after which the autocorrelation has fallen to 1/e.
    pub coherence_slots: f64,
}

#[derive(Clone, Debug)]
pub struct StatedChannel {
    mean_db: f64,
    fading: Fading,
    /// Present deviation from the mean, in standard deviations.
    deviation: f64,
    at: Slot,
    /// The last span between two queries, with the autocorrelation over it and the share of a new draw: the
    /// same spans recur.
    step: (SlotSpan, f64, f64),
    stream: Stream,
}

impl StatedChannel {
    /// A channel whose variation starts in its stationary distribution.
    pub fn new(mean_db: f64, fading: Fading, mut stream: Stream) -> Self {
        let deviation = if fading.sigma_db > 0.0 { stream.normal() } else { 0.0 };
        Self { mean_db, fading, deviation, at: Slot(0), step: (SlotSpan(0), 1.0, 0.0), stream }
    }
    /// SINR in dB in `slot`, which must not be earlier than in the previous call.
    pub fn sinr_db(&mut self, slot: Slot) -> f64 {
        if self.fading.sigma_db > 0.0 && slot > self.at {
            let span = slot.since(self.at);
            if self.step.0 != span {
                let rho = libm::exp(-(span.0 as f64) / self.fading.coherence_slots);
                self.step = (span, rho, libm::sqrt(1.0 - rho * rho));
            }
            let (_, rho, new) = self.step;
            self.deviation = rho * self.deviation + new * self.stream.normal();
            self.at = slot;
        }
        self.mean_db + self.fading.sigma_db * self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_has_the_stated_spread_and_coherence() {
        let fading = Fading { sigma_db: 3.0, coherence_slots: 20.0 };
        let mut channel = StatedChannel::new(10.0, fading, Stream::new(1, "test"));
        let n = 400_000;
        let x: Vec<f64> = (0..n).map(|i| channel.sinr_db(Slot(i)) - 10.0).collect();
        let variance = x.iter().map(|v| v * v).sum::<f64>() / n as f64;
        let lagged = x.windows(21).map(|w| w[0] * w[20]).sum::<f64>() / (n - 20) as f64;
        // About 40 correlated samples are worth one: 10,000 independent samples, standard error 1.4%.
        assert!((variance / 9.0 - 1.0).abs() < 0.06, "{variance}");
        assert!((lagged / variance - libm::exp(-1.0)).abs() < 0.04, "{lagged}");
    }

    #[test]
    fn a_constant_channel_draws_nothing() {
        let mut channel =
            StatedChannel::new(7.0, Fading { sigma_db: 0.0, coherence_slots: 1.0 }, Stream::new(1, "test"));
        assert_eq!(channel.sinr_db(Slot(5)), 7.0);
    }
}
