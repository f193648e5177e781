//! Traces that look like a cellular downlink, from a seed: what comes with the program, and more of the kind.
//!
//! Model: the capacity's logarithm is the sum of two first-order autoregressive processes, one of the fast variation
//! (fading, the scheduler's other users) and one of the slow one (the way through the cell); now and then the link pauses,
//! as in a handover. Opportunities follow as a Poisson process of that capacity in each millisecond, up to a peak,
//! which gives the bursts of a scheduler. What the figures are is ours: walking pace in town, a car, a train.

use super::trace::{OPPORTUNITY, Trace, TraceError};
use paceline_net::{Duration, Rate, Stream};

/// Step of the processes, ms.
const STEP_MS: u32 = 10;

/// How a capacity varies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Motion {
    /// Standard deviation of the logarithm of the fast variation, and the time in which it forgets itself.
    pub fast: (f64, Duration),
    /// The same of the slow one.
    pub slow: (f64, Duration),
    /// Mean length of a pause, and mean distance of pauses.
    pub pause: (Duration, Duration),
}

/// The motions by name.
pub const MOTIONS: [(&str, Motion); 3] = [
    (
        "walk",
        Motion {
            fast: (0.25, Duration::from_millis(150)),
            slow: (0.35, Duration::from_secs(8)),
            pause: (Duration::from_millis(80), Duration::from_secs(40)),
        },
    ),
    (
        "drive",
        Motion {
            fast: (0.5, Duration::from_millis(60)),
            slow: (0.8, Duration::from_secs(4)),
            pause: (Duration::from_millis(150), Duration::from_secs(12)),
        },
    ),
    (
        "train",
        Motion {
            fast: (0.6, Duration::from_millis(30)),
            slow: (1.2, Duration::from_secs(3)),
            pause: (Duration::from_millis(400), Duration::from_secs(8)),
        },
    ),
];

/// A first-order autoregressive process with unit variance.
struct Wander {
    state: f64,
    correlation: f64,
}

impl Wander {
    fn new(coherence: Duration, stream: &mut Stream) -> Self {
        let correlation = libm::exp(-f64::from(STEP_MS) / coherence.as_millis_f64());
        Self { state: stream.normal(), correlation }
    }
    fn step(&mut self, stream: &mut Stream) -> f64 {
        let rho = self.correlation;
        self.state = rho * self.state + libm::sqrt(1.0 - rho * rho) * stream.normal();
        self.state
    }
}

/// A trace of `length` with a capacity of `mean` (over all seeds, pauses and the cut at the peak aside), at most
/// `peak`.
pub fn synthetic(
    motion: &Motion,
    mean: Rate,
    peak: Rate,
    length: Duration,
    seed: u64,
) -> Result<Trace, TraceError> {
    let mut stream = Stream::new(seed, "synthetic trace");
    let (mut fast, mut slow) =
        (Wander::new(motion.fast.1, &mut stream), Wander::new(motion.slow.1, &mut stream));
    let per_ms = |rate: f64| rate / (OPPORTUNITY as f64 * 8000.0);
    let correction = (motion.fast.0 * motion.fast.0 + motion.slow.0 * motion.slow.0) / 2.0;
    let length_ms = u32::try_from(length.as_millis()).unwrap_or(u32::MAX);
    let (mut at_ms, mut expected, mut pause_ends) = (Vec::new(), 0.0, 0.0);
    let mut pause_begins = stream.exponential(motion.pause.1.as_millis_f64());
    for ms in 0..length_ms {
        if ms % STEP_MS == 0 {
            let log = motion.fast.0 * fast.step(&mut stream) + motion.slow.0 * slow.step(&mut stream);
            let rate = mean.0 as f64 * libm::exp(log - correction);
            expected = per_ms(rate.min(peak.0 as f64));
        }
        let now = f64::from(ms);
        if now >= pause_begins {
            pause_ends = now + stream.exponential(motion.pause.0.as_millis_f64());
            pause_begins = pause_ends + stream.exponential(motion.pause.1.as_millis_f64());
        }
        if now >= pause_ends {
            let most = per_ms(peak.0 as f64).ceil() as usize;
            at_ms.extend(std::iter::repeat_n(ms, poisson(expected, &mut stream).min(most)));
        }
    }
    if at_ms.last().is_none_or(|last| *last < length_ms) {
        at_ms.push(length_ms);
    }
    Trace::new(at_ms)
}

/// A Poisson number of this mean, by Knuth's product of uniform numbers.
fn poisson(mean: f64, stream: &mut Stream) -> usize {
    let (end, mut product, mut count) = (libm::exp(-mean.min(500.0)), stream.uniform(), 0);
    while product > end {
        product *= stream.uniform();
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_trace_and_the_mean_is_what_was_asked_for() {
        let make = |motion: usize, seed| {
            let (mean, peak) = (Rate(12_000_000), Rate(100_000_000));
            synthetic(&MOTIONS[motion].1, mean, peak, Duration::from_secs(300), seed).unwrap()
        };
        assert_eq!(make(0, 1), make(0, 1));
        assert_ne!(make(0, 1), make(0, 2));
        for (motion, (name, _)) in MOTIONS.iter().enumerate() {
            let rates: Vec<f64> = (0..20).map(|seed| make(motion, seed).rate() / 12e6).collect();
            let mean = rates.iter().sum::<f64>() / 20.0;
            // The slow variation of a train has some 100 independent values in 300 s, each with a deviation of 1.8
            // times the mean: 4% over twenty seeds; pauses take up to 5%.
            assert!((0.8..1.15).contains(&mean), "{name}: {mean}");
        }
        let trace = make(1, 3);
        assert_eq!(trace.length_ms(), 300_000);
        let most = trace.at_ms().chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert!(most <= Some(9), "no more than the peak in a millisecond: {most:?}");
    }

    #[test]
    fn the_shipped_traces_are_what_the_generator_makes() {
        for (motion, mean, seed, text) in [
            ("walk", 10, 1, include_str!("../../../../scenarios/traces/walk.trace")),
            ("drive", 12, 1, include_str!("../../../../scenarios/traces/drive.trace")),
            ("train", 8, 1, include_str!("../../../../scenarios/traces/train.trace")),
        ] {
            let of = MOTIONS.iter().find(|(name, _)| *name == motion).unwrap().1;
            let (mean, peak) = (Rate(mean * 1_000_000), Rate(100_000_000));
            let made = synthetic(&of, mean, peak, Duration::from_secs(60), seed).unwrap();
            assert_eq!(Trace::parse(text).unwrap(), made, "{motion}");
        }
    }
}
