//! The plan of an experiment: which devices are accelerated when.
//!
//! Shares change from period to period. In the design `switchback` pairs of periods follow each other, of
//! which a random one accelerates all devices and the other none (Bojinov, Simchi-Levi, Zhao, "Design and
//! Analysis of Switchback Experiments", Management Science 2023): the difference is the effect of
//! accelerating all, also where devices take capacity from each other. In the design `parallel` a share of
//! the devices is accelerated; a quarter of the periods, one of each four, accelerates none, and the
//! untouched devices are compared with themselves in the period beside it: the difference is the effect of
//! others' acceleration on them.

use super::assignment::Assignment;
use paceline_net::{Duration, Stream};
use serde::{Deserialize, Serialize};

/// Periods of an experiment. Chosen: 24 or 48 pairs find what would change by 0.6 or 0.4 standard deviations
/// of a pair, and those of a day last a quarter of an hour, far longer than most transfers.
const PERIODS: u64 = 96;
/// Least length of a period, unless the experiment had fewer than [`LEAST_PERIODS`] then. Chosen: longer than
/// most transfers.
const LEAST_PERIOD: Duration = Duration::from_secs(5);
/// Periods of a short experiment. Chosen: six pairs of the parallel design can just be judged.
const LEAST_PERIODS: u64 = 24;
/// Periods shorter than this are no periods: shares stay as they are. Chosen: a second and a washout.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1500);
/// Transfers do not count that begin in the first part, one over this, of a period: connections from before
/// are still there. Chosen: a fifth.
const WASHOUT_DIVISOR: u64 = 5;

/// How shares change over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// A share of devices is accelerated, and for a quarter of the time none.
    #[default]
    Parallel,
    /// All devices are accelerated for half of the time, in random order, and none for the other half.
    Switchback,
}

/// The plan of an experiment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Which devices are accelerated; the seed gives the order of periods as well.
    pub assignment: Assignment,
    /// Time that transfers are collected for.
    pub duration: Duration,
    /// How shares change over time.
    #[serde(default)]
    pub design: Design,
    /// Length of a period; zero if shares do not change.
    #[serde(default)]
    pub period: Duration,
    /// Smallest change of a ratio that matters, such as 0.05; of a share a fifth of it.
    #[serde(default = "default_practical")]
    pub practical: f64,
}

/// Chosen: smaller changes of goodput are no reason to run a gateway, nor to take one away.
fn default_practical() -> f64 {
    0.05
}

/// A period's part in a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Number of the pair.
    pub pair: u64,
    /// Whether it accelerates devices.
    pub on: bool,
}

impl Plan {
    /// A plan with the usual length of periods.
    pub fn new(design: Design, seed: u32, share: f64, duration: Duration) -> Self {
        let period = (duration / PERIODS).max(LEAST_PERIOD).min(duration / LEAST_PERIODS);
        let period = if period < SHORTEST_PERIOD { Duration::ZERO } else { period };
        let assignment = Assignment::new(seed, share);
        Self { assignment, duration, design, period, practical: default_practical() }
    }
    /// The same plan with another smallest change that matters.
    #[must_use]
    pub fn with_practical(self, practical: f64) -> Self {
        Self { practical, ..self }
    }
    /// Least duration of a switchback experiment.
    pub fn least_switchback() -> Duration {
        SHORTEST_PERIOD * LEAST_PERIODS
    }
    /// Number of the period at a time since the beginning.
    pub(super) fn period_at(&self, elapsed: Duration) -> u64 {
        elapsed.as_nanos().checked_div(self.period.as_nanos()).unwrap_or(0)
    }
    /// Time after the beginning of a period from which transfers count.
    pub(super) fn washout(&self) -> Duration {
        self.period / WASHOUT_DIVISOR
    }
    /// Periods from the beginning of a pair to that of the next one.
    fn stride(&self) -> u64 {
        match self.design {
            Design::Parallel => 4,
            Design::Switchback => 2,
        }
    }
    /// Pairs that are complete after so many periods.
    pub(super) fn pairs_by(&self, periods: u64) -> u64 {
        periods / self.stride() + u64::from(periods % self.stride() >= 2)
    }
    /// The period's part in a pair; None if it has none.
    pub(super) fn part(&self, period: u64) -> Option<Part> {
        let (pair, place) = (period / self.stride(), period % self.stride());
        let name = format!("experiment/pair/{pair}");
        let first_is_on = Stream::new(self.assignment.seed.into(), &name).chance(0.5);
        (self.period > Duration::ZERO && place < 2).then_some(Part { pair, on: (place == 0) == first_is_on })
    }
    /// Which devices are accelerated in a period.
    pub(super) fn assignment_in(&self, period: u64) -> Assignment {
        let Assignment { seed, .. } = self.assignment;
        match (self.part(period), self.design) {
            (Some(Part { on: false, .. }), _) => Assignment { seed, share: 0 },
            (_, Design::Switchback) => Assignment { seed, ..Assignment::ALL },
            (_, Design::Parallel) => self.assignment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(plan: &Plan) -> Vec<u32> {
        let periods = plan.period_at(plan.duration);
        (0..periods).map(|period| plan.assignment_in(period).share).collect()
    }

    #[test]
    fn half_of_the_periods_of_a_switchback_accelerate_all_in_random_order() {
        let plan = Plan::new(Design::Switchback, 7, 0.5, Duration::from_secs(86_400));
        assert_eq!(plan.period, Duration::from_secs(900));
        let shares = shares(&plan);
        assert_eq!(shares.len(), 96);
        assert!(shares.chunks(2).all(|pair| pair == [0, 1 << 16] || pair == [1 << 16, 0]), "{shares:?}");
        let first = shares.chunks(2).filter(|pair| pair[0] > 0).count();
        assert!((12..=36).contains(&first), "{first} of 48: 24 with a deviation of 3.5");
        assert_eq!([0, 1, 2, 3, 96].map(|periods| plan.pairs_by(periods)), [0, 0, 1, 1, 48]);
    }

    #[test]
    fn a_quarter_of_the_periods_beside_untouched_devices_accelerates_none() {
        let plan = Plan::new(Design::Parallel, 9, 0.5, Duration::from_secs(86_400));
        let shares = shares(&plan);
        assert_eq!(shares.iter().filter(|share| **share == 0).count(), 24);
        for (pair, four) in shares.chunks(4).enumerate() {
            assert!(four[2] == 1 << 15 && four[3] == 1 << 15 && four[0] + four[1] == 1 << 15, "{four:?}");
            let parts = (0..4).map(|n| plan.part(4 * pair as u64 + n).map(|part| part.pair));
            assert_eq!(parts.collect::<Vec<_>>(), [Some(pair as u64), Some(pair as u64), None, None]);
        }
        assert_eq!([1, 2, 5, 6, 96].map(|periods| plan.pairs_by(periods)), [0, 1, 1, 2, 24]);
    }

    #[test]
    fn short_experiments_have_short_periods_and_the_shortest_have_none() {
        let period = |seconds| Plan::new(Design::Parallel, 1, 0.5, Duration::from_secs(seconds)).period;
        for (seconds, ms) in [(7200, 75_000), (480, 5000), (120, 5000), (60, 2500), (36, 1500), (35, 0)] {
            assert_eq!(period(seconds), Duration::from_millis(ms), "{seconds} s");
        }
        let plan = Plan::new(Design::Parallel, 1, 0.5, Duration::from_secs(10));
        assert_eq!((plan.assignment_in(0), plan.part(0)), (plan.assignment, None));
    }
}
