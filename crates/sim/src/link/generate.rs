//! Generated traces of cellular links, for comparisons without recorded trace files.
//!
//! The logarithm of the rate is the sum of two Ornstein-Uhlenbeck processes: a slow one (shadowing, the load
//! of the cell) and a fast one (the part of fading that scheduling does not remove). Random outages, as in
//! handovers, set the rate to zero. The parameters are assumptions of the order of recorded traces; none was
//! fitted, but for the drives of `drive`. Left out: a rate that depends on the sent traffic.

use super::drive::DRIVES;
use super::log_rate::OrnsteinUhlenbeck;
use paceline_net::Stream;
use paceline_net::trace::{OPPORTUNITY_BYTES, Trace};

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
    /// Time after which the slow process begins anew at a random place, ms; never if zero.
    reassignment: f64,
}

/// A kind without outages and reassignments. Chosen: the neutral values.
const PLAIN: Kind = Kind {
    name: "",
    mean_rate: 1e6,
    slow: (0.0, 1000.0),
    fast: (0.0, 1000.0),
    outage: (0.0, 0.0),
    reassignment: 0.0,
};

/// The kinds of links. Chosen: see the module's text.
const KINDS: [Kind; 10] = [
    Kind { name: "stationary", mean_rate: 20e6, slow: (0.2, 5000.0), fast: (0.2, 50.0), ..PLAIN },
    Kind {
        name: "walking",
        mean_rate: 12e6,
        slow: (0.5, 3000.0),
        fast: (0.3, 80.0),
        outage: (30_000.0, 100.0),
        ..PLAIN
    },
    Kind {
        name: "driving",
        mean_rate: 8e6,
        slow: (0.9, 2000.0),
        fast: (0.4, 30.0),
        outage: (15_000.0, 300.0),
        ..PLAIN
    },
    // 5G at millimetre waves: blockage halves the rate within tens of milliseconds, or ends it for some.
    Kind {
        name: "mmwave-walking",
        mean_rate: 800e6,
        slow: (0.3, 1000.0),
        fast: (0.3, 50.0),
        outage: (20_000.0, 50.0),
        ..PLAIN
    },
    Kind {
        name: "mmwave-driving",
        mean_rate: 490e6,
        slow: (0.5, 500.0),
        fast: (0.4, 20.0),
        outage: (10_000.0, 80.0),
        ..PLAIN
    },
    // 3G: below 1.5 Mb/s, with long pauses.
    Kind {
        name: "3g-evdo",
        mean_rate: 0.6e6,
        slow: (0.5, 4000.0),
        fast: (0.4, 100.0),
        outage: (20_000.0, 500.0),
        ..PLAIN
    },
    Kind {
        name: "3g-umts",
        mean_rate: 1.2e6,
        slow: (0.4, 3000.0),
        fast: (0.3, 60.0),
        outage: (30_000.0, 300.0),
        ..PLAIN
    },
    // 5G below 6 GHz from a car.
    Kind {
        name: "5g-driving",
        mean_rate: 150e6,
        slow: (0.8, 1500.0),
        fast: (0.3, 30.0),
        outage: (20_000.0, 150.0),
        ..PLAIN
    },
    // The satellites of Starlink's terminals are reassigned every 15 s (N. Mohan et al., "A Multifaceted Look
    // at Starlink Performance", WWW 2024).
    Kind {
        name: "starlink",
        mean_rate: 100e6,
        slow: (0.3, 30_000.0),
        fast: (0.15, 50.0),
        outage: (30_000.0, 60.0),
        reassignment: 15_000.0,
    },
    // A wireless LAN whose other stations take the medium for milliseconds at a time.
    Kind {
        name: "wifi",
        mean_rate: 60e6,
        slow: (0.2, 2000.0),
        fast: (0.5, 5.0),
        outage: (5_000.0, 20.0),
        ..PLAIN
    },
];
/// Length of a trace. Chosen: some outages of each kind that has them.
const LENGTH_MS: u32 = 120_000;
/// Prefix of the names of generated traces.
pub const PREFIX: &str = "generated:";

/// The trace with a name such as `generated:driving` or `generated:walking:7`; the last part is the seed, 1
/// if left out. None if the name has another prefix and so is a file's. The error lists the allowed names.
pub fn generated(name: &str) -> Option<Result<Trace, String>> {
    let rest = name.strip_prefix(PREFIX)?;
    let (kind, seed) = rest.split_once(':').unwrap_or((rest, "1"));
    let of_kind = |seed| match KINDS.iter().find(|known| known.name == kind) {
        Some(kind) => Some(trace_of(kind.rates(seed))),
        None => DRIVES.iter().find(|drive| drive.name == kind).map(|drive| trace_of(drive.rates(seed))),
    };
    Some(seed.parse().ok().and_then(of_kind).ok_or_else(|| {
        let names: Vec<&str> = generated_kinds().collect();
        format!(
            "allowed: {PREFIX}KIND or {PREFIX}KIND:SEED with a whole number, and as kind {}",
            names.join(", ")
        )
    }))
}

/// The names of the kinds.
pub fn generated_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name).chain(DRIVES.iter().map(|drive| drive.name))
}

/// The trace of rates in b/s in the milliseconds from 1 on.
fn trace_of(rates: impl Iterator<Item = f64>) -> Trace {
    let (mut at_ms, mut bytes) = (Vec::new(), 0.0);
    for (ms, rate) in (1..=LENGTH_MS).zip(rates) {
        bytes += rate / 8000.0;
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

impl Kind {
    /// Rates in b/s in the milliseconds from 1 on.
    fn rates(&self, seed: u64) -> impl Iterator<Item = f64> {
        let stream = |part: &str| Stream::new(seed, &format!("trace/{}/{part}", self.name));
        let mut slow = OrnsteinUhlenbeck::new(1.0 / self.slow.1, stream("slow"));
        let mut fast = OrnsteinUhlenbeck::new(1.0 / self.fast.1, stream("fast"));
        let variance = self.slow.0 * self.slow.0 + self.fast.0 * self.fast.0;
        let mut outages = stream("outages");
        let mut next = if self.outage.0 > 0.0 { outages.exponential(self.outage.0) } else { f64::INFINITY };
        let mut resumes = 0.0;
        (1_u32..).map(move |ms| {
            if self.reassignment > 0.0 && ms % self.reassignment as u32 == 0 {
                slow.restart();
            }
            let logarithm = self.slow.0 * slow.step() + self.fast.0 * fast.step() - variance / 2.0;
            if f64::from(ms) >= next {
                resumes = next + outages.exponential(self.outage.1);
                next = resumes + outages.exponential(self.outage.0);
            }
            if f64::from(ms) >= resumes { self.mean_rate * libm::exp(logarithm) } else { 0.0 }
        })
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
            let traces: Vec<Trace> = (0..40).map(|seed| trace_of(kind.rates(seed))).collect();
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
        for kind in &KINDS[3..5] {
            let traces: Vec<Trace> = (0..4).map(|seed| trace_of(kind.rates(seed))).collect();
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

    #[test]
    fn the_other_kinds_have_their_mean_rates_and_starlink_changes_every_15_s() {
        for kind in &KINDS[5..] {
            let traces: Vec<Trace> = (0..10).map(|seed| trace_of(kind.rates(seed))).collect();
            let mean = traces.iter().map(Trace::rate).sum::<f64>() / 10.0;
            assert!((mean / kind.mean_rate - 1.0).abs() < 0.2, "{}: {mean}", kind.name);
        }
        // Changes of the rate from second to second, at the reassignments and between them.
        let (mut at, mut between) = (0.0, 0.0);
        for seed in 0..10 {
            let trace = generated(&format!("generated:starlink:{seed}")).unwrap().unwrap();
            let mut rates = vec![0.0; 120];
            trace.at_ms().for_each(|ms| rates[(ms as usize - 1) / 1000] += 1.0);
            for (second, pair) in rates.windows(2).enumerate() {
                let change = f64::abs(pair[1] - pair[0]);
                *(if second % 15 == 14 { &mut at } else { &mut between }) += change;
            }
        }
        assert!(
            at / 70.0 > 2.5 * between / 1120.0,
            "{at} at 70 reassignments, {between} at 1120 other seconds"
        );
    }
}
