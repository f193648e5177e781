//! Traces of cellular links that are generated, not recorded: for comparisons that need no file of anybody's.
//!
//! The rate is log-normal: the exponential of two Ornstein-Uhlenbeck processes, a slow one (shadowing, the load of the
//! cell) and a fast one (what fading leaves after scheduling); now and then it is nothing, as in a handover. The numbers
//! of each kind are assumptions, of the order of recorded LTE traces: no trace was fitted. Left out: that the rate may
//! follow what is sent.

use super::trace::{OPPORTUNITY, Trace};
use paceline_net::Stream;

/// A kind of link.
struct Kind {
    name: &'static str,
    /// Mean rate in b/s, outages left out.
    mean: f64,
    /// Standard deviation of the logarithm of the rate, and time constant in ms: slow and fast.
    slow: (f64, f64),
    fast: (f64, f64),
    /// Mean time between outages and mean length of one, in ms; none if zero.
    outage: (f64, f64),
}

const KINDS: [Kind; 3] = [
    Kind { name: "stationary", mean: 20e6, slow: (0.2, 5000.0), fast: (0.2, 50.0), outage: (0.0, 0.0) },
    Kind { name: "walking", mean: 12e6, slow: (0.5, 3000.0), fast: (0.3, 80.0), outage: (30_000.0, 100.0) },
    Kind { name: "driving", mean: 8e6, slow: (0.9, 2000.0), fast: (0.4, 30.0), outage: (15_000.0, 300.0) },
];
/// Length of a trace.
const LENGTH_MS: u32 = 120_000;
/// What the names of generated traces begin with.
const PREFIX: &str = "generated:";

/// The trace that a name such as `generated:driving` or `generated:walking:7` stands for, with its seed (1 if left out);
/// none if the name is a file's. The error says what is allowed.
pub fn generated(name: &str) -> Option<Result<Trace, String>> {
    let rest = name.strip_prefix(PREFIX)?;
    let (kind, seed) = rest.split_once(':').unwrap_or((rest, "1"));
    let found = KINDS.iter().find(|known| known.name == kind).zip(seed.parse().ok());
    Some(found.map(|(kind, seed)| kind.trace(seed)).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        format!(
            "allowed: {PREFIX}KIND or {PREFIX}KIND:SEED with a whole number, and as kind {}",
            names.join(", ")
        )
    }))
}

/// A stationary Gaussian process of deviation 1 whose memory fades with a time constant, in steps of a millisecond.
struct OrnsteinUhlenbeck {
    value: f64,
    keep: f64,
    stream: Stream,
}

impl OrnsteinUhlenbeck {
    fn new(time_constant_ms: f64, mut stream: Stream) -> Self {
        Self { value: stream.normal(), keep: libm::exp(-1.0 / time_constant_ms), stream }
    }
    fn step(&mut self) -> f64 {
        let value = self.value;
        self.value = self.keep * value + (1.0 - self.keep * self.keep).sqrt() * self.stream.normal();
        value
    }
}

impl Kind {
    fn trace(&self, seed: u64) -> Trace {
        let stream = |part: &str| Stream::new(seed, &format!("trace/{}/{part}", self.name));
        let mut slow = OrnsteinUhlenbeck::new(self.slow.1, stream("slow"));
        let mut fast = OrnsteinUhlenbeck::new(self.fast.1, stream("fast"));
        let variance = self.slow.0 * self.slow.0 + self.fast.0 * self.fast.0;
        let mut outages = stream("outages");
        let mut next = if self.outage.0 > 0.0 { outages.exponential(self.outage.0) } else { f64::INFINITY };
        let (mut at_ms, mut bytes, mut resumes) = (Vec::new(), 0.0, 0.0);
        for ms in 1..=LENGTH_MS {
            let logarithm = self.slow.0 * slow.step() + self.fast.0 * fast.step() - variance / 2.0;
            if f64::from(ms) >= next {
                resumes = next + outages.exponential(self.outage.1);
                next = resumes + outages.exponential(self.outage.0);
            }
            if f64::from(ms) >= resumes {
                bytes += self.mean * libm::exp(logarithm) / 8000.0;
            }
            while bytes >= OPPORTUNITY as f64 {
                bytes -= OPPORTUNITY as f64;
                at_ms.push(ms);
            }
        }
        if at_ms.last() != Some(&LENGTH_MS) {
            at_ms.push(LENGTH_MS); // says how long it is
        }
        Trace::new(at_ms).expect("times rise and the last one is above zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_trace_and_another_seed_another_one() {
        let trace = |name| generated(name).unwrap().unwrap();
        assert_eq!(trace("generated:driving"), trace("generated:driving:1"));
        assert_ne!(trace("generated:driving"), trace("generated:driving:2"));
        assert_eq!(generated("driving.trace"), None);
        for bad in ["generated:flying", "generated:driving:x", "generated:", "generated:driving:1:2"] {
            let message = generated(bad).unwrap().unwrap_err();
            assert!(message.contains("stationary, walking, driving"), "{message}");
        }
    }

    #[test]
    fn the_mean_is_the_kinds_and_driving_varies_most() {
        let mut before = 0.0;
        for kind in &KINDS {
            let traces: Vec<Trace> = (0..40).map(|seed| kind.trace(seed)).collect();
            let mean = traces.iter().map(Trace::rate).sum::<f64>() / 40.0;
            let on = 1.0 - kind.outage.1 / (kind.outage.0 + kind.outage.1).max(1.0);
            assert!((mean / (kind.mean * on) - 1.0).abs() < 0.1, "{}: {mean}", kind.name);
            // Opportunities per tenth of a second, over all traces: deviation by mean.
            let mut counts = vec![0.0; 1200 * 40];
            for (seed, trace) in traces.iter().enumerate() {
                trace.at_ms().iter().for_each(|at| counts[seed * 1200 + (*at as usize - 1) / 100] += 1.0);
            }
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / counts.len() as f64;
            assert!(variance.sqrt() / mean > before, "{}", kind.name);
            before = variance.sqrt() / mean;
        }
    }
}
