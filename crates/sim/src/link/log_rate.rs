//! The process behind every varying rate of a link: its logarithm is a first-order autoregressive process, an
//! Ornstein-Uhlenbeck process in steps.

use paceline_net::Stream;

/// A stationary process of mean 0 and standard deviation 1.
#[derive(Clone, Debug)]
pub(super) struct OrnsteinUhlenbeck {
    value: f64,
    /// Correlation from step to step.
    correlation: f64,
    stream: Stream,
}

impl OrnsteinUhlenbeck {
    /// A process whose steps are a share of its time constant.
    pub fn new(step_share: f64, mut stream: Stream) -> Self {
        Self { value: stream.normal(), correlation: libm::exp(-step_share), stream }
    }
    /// The present value.
    pub fn value(&self) -> f64 {
        self.value
    }
    /// Advances by a step; gives the value before.
    pub fn step(&mut self) -> f64 {
        let value = self.value;
        let rho = self.correlation;
        self.value = rho * value + libm::sqrt(1.0 - rho * rho) * self.stream.normal();
        value
    }
    /// Begins anew at a random place.
    pub fn restart(&mut self) {
        self.value = self.stream.normal();
    }
}
