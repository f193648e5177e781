//! Generated traces of cellular links, for comparisons without recorded trace files.
//!
//! The logarithm of the rate is the sum of two Ornstein-Uhlenbeck processes: a slow one (shadowing, the load
//! of the cell) and a fast one (the part of fading that scheduling does not remove). Random outages, as in
//! handovers, set the rate to zero. The parameters are assumptions of the order of recorded LTE traces; none
//! was fitted. Left out: a rate that depends on the sent traffic.

use super::trace::{OPPORTUNITY_BYTES, Trace};
use paceline_net::Stream;

/// Parameters of one kind of link.
struct Kind {
    name: &'static str,
    /// Mean rate outside of outages, b/s.
    mean_rate: f64,
    /// Standard deviation of the logarithm of the rate and time constant in ms, of the slow and the fast
    /// process.
    slow: (f64, f64),
    fast: (f64, f64),
    /// Mean time between outages and mean length of one, ms; no outages if zero.
    outage: (f64, f64),
}

/// The kinds of links. Chosen: see the module's text.
const KINDS: [Kind; 5] = [
    Kind { name: "stationary", mean_rate: 20e6, slow: (0.2, 5000.0), fast: (0.2, 50.0), outage: (0.0, 0.0) },
    Kind {
        name: "walking",
        mean_rate: 12e6,
        slow: (0.5, 3000.0),
        fast: (0.3, 80.0),
        outage: (30_000.0, 100.0),
    },
    Kind {
        name: "driving",
        mean_rate: 8e6,
        slow: (0.9, 2000.0),
        fast: (0.4, 30.0),
        outage: (15_000.0, 300.0),
    },
    // 5G at millimetre waves: blockage halves the rate within tens of milliseconds, or ends it for some.
    Kind {
        name: "mmwave-walking",
        mean_rate: 800e6,
        slow: (0.3, 1000.0),
        fast: (0.3, 50.0),
        outage: (20_000.0, 50.0),
    },
    Kind {
        name: "mmwave-driving",
        mean_rate: 490e6,
        slow: (0.5, 500.0),
        fast: (0.4, 20.0),
        outage: (10_000.0, 80.0),
    },
];
/// Length of a trace. Chosen: some outages of each kind that has them.
const LENGTH_MS: u32 = 120_000;
/// Prefix of the names of generated traces.
const PREFIX: &str = "generated:";

/// The trace with a name such as `generated:driving` or `generated:walking:7`; the last part is the seed, 1
/// if left out. None if the name has another prefix and so is a file's. The error lists the allowed names.
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

/// A stationary Ornstein-Uhlenbeck process of standard deviation 1, in steps of 1 ms.
struct OrnsteinUhlenbeck {
    value: f64,
    /// Correlation from step to step.
    correlation: f64,
    stream: Stream,
}

impl OrnsteinUhlenbeck {
    fn new(time_constant_ms: f64, mut stream: Stream) -> Self {
        Self { value: stream.normal(), correlation: libm::exp(-1.0 / time_constant_ms), stream }
    }
    fn step(&mut self) -> f64 {
        let value = self.value;
        self.value = self.correlation * value
            + (1.0 - self.correlation * self.correlation).sqrt() * self.stream.normal();
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
                bytes += self.mean_rate * libm::exp(logarithm) / 8000.0;
            }
            while bytes >= OPPORTUNITY_BYTES as f64 {
                bytes -= OPPORTUNITY_BYTES as f64;
                at_ms.push(ms);
            }
        }
        if at_ms.last() != Some(&LENGTH_MS) {
            at_ms.push(LENGTH_MS); // the last line is the length
        }
        Trace::new(at_ms).expect("times rise and the last one is above zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_depends_on_its_name_and_seed_alone() {
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
    fn each_kind_has_its_mean_rate_and_driving_varies_most() {
        let mut before = 0.0;
        for kind in &KINDS[..3] {
            let traces: Vec<Trace> = (0..40).map(|seed| kind.trace(seed)).collect();
            let mean = traces.iter().map(Trace::rate).sum::<f64>() / 40.0;
            let on = 1.0 - kind.outage.1 / (kind.outage.0 + kind.outage.1).max(1.0);
            assert!((mean / (kind.mean_rate * on) - 1.0).abs() < 0.1, "{}: {mean}", kind.name);
            // Standard deviation over mean of the opportunities per 100 ms, over all traces.
            let mut counts = vec![0.0; 1200 * 40];
            for (seed, trace) in traces.iter().enumerate() {
                trace.at_ms().for_each(|at| counts[seed * 1200 + (at as usize - 1) / 100] += 1.0);
            }
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / counts.len() as f64;
            assert!(variance.sqrt() / mean > before, "{}", kind.name);
            before = variance.sqrt() / mean;
        }
    }

    #[test]
    fn millimetre_waves_have_their_mean_rate_and_change_within_tens_of_milliseconds() {
        for kind in &KINDS[3..] {
            let traces: Vec<Trace> = (0..4).map(|seed| kind.trace(seed)).collect();
            let mean = traces.iter().map(Trace::rate).sum::<f64>() / 4.0;
            assert!((mean / kind.mean_rate - 1.0).abs() < 0.1, "{}: {mean}", kind.name);
            // Differences of the opportunities of 100 ms and of the next 100 ms, by the mean.
            let mut counts = vec![0.0; 1200];
            traces[0].at_ms().for_each(|at| counts[(at as usize - 1) / 100] += 1.0);
            let mean = counts.iter().sum::<f64>() / 1200.0;
            let change = counts.windows(2).map(|pair| (pair[0] - pair[1]).abs()).sum::<f64>() / 1199.0 / mean;
            assert!(change > 0.1 && change < 0.6, "{}: {change}", kind.name);
        }
    }
}
