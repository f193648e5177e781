//! Whether an ACK filter does harm: what servers send again to connections that are filtered, beside as many that are held
//! out (safety rule 20; [`super::Holdout`] deals them).
//!
//! In every period chance deals the connections anew, so that where the filter changes nothing, a period's difference is
//! as likely to be positive as negative, whatever the traffic is like. Then the sum of differences over the root of
//! their squares' sum exceeds x with a probability of at most exp(-x²/2) (Hoeffding's inequality on the signs, as in
//! Efron 1969), for any distribution: bursts of loss, single slow devices and unequal periods included. A t-test promises
//! that only for differences that are normal, which these are not.
//!
//! Left out: what a filter gains, which the operator sees in the rates; and connections of which no data were seen.

use paceline_net::Duration;
use std::fmt;

/// The filter has done harm when the sum of differences is so many roots of their squares' sum. By chance that is so once
/// in four million looks: with one every ten seconds at two quantities, less than twice a year.
const LIMIT: f64 = 5.5;
/// And when the harm is at least so large: a difference that is sure, and does not matter, stops nothing.
const LEAST_RATIO: f64 = 1.1;
/// Weight of what was, after one more period: what counts is the last hour, at 10 s a period.
const MEMORY: f64 = 1.0 - 1.0 / 360.0;
/// A period in which a group has less says nothing.
const LEAST_BYTES: u64 = 100_000;

/// What servers sent to a group of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Bytes of payload.
    pub bytes: u64,
    /// Of them, such as had been sent before.
    pub repeated: u64,
    /// Times that something came again after a silence.
    pub timeouts: u64,
}

/// What rose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// What servers send again.
    Repetitions,
    /// How often they wait for a retransmission timer.
    Timeouts,
}

/// The filter does harm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Finding {
    /// What rose.
    pub harm: Harm,
    /// Repeated bytes of all, or timeouts in a megabyte, of connections that are filtered.
    pub filtered: f64,
    /// And of those that are not.
    pub held_out: f64,
}

/// Compares two groups, period by period.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    repetitions: Trend,
    timeouts: Trend,
}

impl Comparison {
    /// How long connections should stay in their groups: longer than what the filter does takes to show.
    pub const PERIOD: Duration = Duration::from_secs(10);

    /// A period has ended, in which so much was sent to connections that were filtered, and to as many that were not.
    pub fn add(&mut self, filtered: Sent, held_out: Sent) -> Option<Finding> {
        if filtered.bytes < LEAST_BYTES || held_out.bytes < LEAST_BYTES {
            return None;
        }
        let share = |sent: Sent| sent.repeated as f64 / sent.bytes as f64;
        let timeouts = |sent: Sent| 1e6 * sent.timeouts as f64 / sent.bytes as f64;
        self.repetitions.add(share(filtered), share(held_out));
        self.timeouts.add(timeouts(filtered), timeouts(held_out));
        let repetitions = self.repetitions.finding(Harm::Repetitions);
        repetitions.or_else(|| self.timeouts.finding(Harm::Timeouts))
    }
}

/// One quantity in both groups, over periods.
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    periods: f64,
    filtered: f64,
    held_out: f64,
    /// Of the differences' squares, each with its weight squared.
    squares: f64,
}

impl Trend {
    fn add(&mut self, filtered: f64, held_out: f64) {
        let difference = filtered - held_out;
        self.periods = self.periods * MEMORY + 1.0;
        self.filtered = self.filtered * MEMORY + filtered;
        self.held_out = self.held_out * MEMORY + held_out;
        self.squares = self.squares * MEMORY * MEMORY + difference * difference;
    }
    fn finding(&self, harm: Harm) -> Option<Finding> {
        let sure = self.filtered - self.held_out > LIMIT * self.squares.sqrt();
        let matters = self.filtered > LEAST_RATIO * self.held_out;
        let mean = |sum: f64| sum / self.periods;
        (sure && matters).then(|| Finding {
            harm,
            filtered: mean(self.filtered),
            held_out: mean(self.held_out),
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { harm, filtered, held_out } = self;
        match harm {
            Harm::Repetitions => write!(
                f,
                "servers sent {:.2}% again to connections that are filtered, and {:.2}% to others",
                100.0 * filtered,
                100.0 * held_out
            ),
            Harm::Timeouts => write!(
                f,
                "servers waited for timeouts {filtered:.3} times a megabyte where connections are filtered, and \
                 {held_out:.3} times elsewhere"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    /// A group in a period: connections that lose little, and now and then one that loses much.
    fn group(chance: &mut Stream, harm: f64) -> Sent {
        let mut sent = Sent::default();
        for _ in 0..20 {
            let bytes = 50_000 + chance.below(1_000_000);
            let bad = chance.below(200) == 0;
            let share = if bad { 0.5 } else { 0.01 * chance.uniform() };
            sent.bytes += bytes;
            sent.repeated += (bytes as f64 * share * harm).min(bytes as f64) as u64;
            sent.timeouts += u64::from(bad) * (1 + chance.below(5));
        }
        sent
    }

    #[test]
    fn a_filter_that_changes_nothing_is_never_stopped() {
        for seed in 0..20 {
            let mut chance = Stream::new(seed, "comparison");
            let mut comparison = Comparison::default();
            for period in 0..20_000 {
                let (one, other) = (group(&mut chance, 1.0), group(&mut chance, 1.0));
                let found = comparison.add(one, other);
                assert_eq!(found, None, "seed {seed}, period {period}");
            }
        }
    }

    #[test]
    fn what_doubles_repetitions_is_found_within_an_hour() {
        for seed in 0..20 {
            let mut chance = Stream::new(seed, "comparison");
            let mut comparison = Comparison::default();
            let add = |_| comparison.add(group(&mut chance, 2.0), group(&mut chance, 1.0));
            let finding = (0..360).find_map(add).unwrap_or_else(|| panic!("seed {seed}: not found"));
            assert!(finding.filtered > 1.5 * finding.held_out, "seed {seed}: {finding}");
        }
    }

    #[test]
    fn what_is_sure_and_small_stops_nothing_and_neither_do_periods_with_little() {
        let sent = |repeated| Sent { bytes: 1_000_000, repeated, timeouts: 0 };
        let mut comparison = Comparison::default();
        assert!((0..1000).all(|_| comparison.add(sent(10_500), sent(10_000)).is_none()));
        let little = |repeated| Sent { bytes: LEAST_BYTES - 1, repeated, timeouts: 9 };
        assert!((0..1000).all(|_| comparison.add(little(50_000), sent(0)).is_none()));
        assert!((0..1000).all(|_| comparison.add(sent(50_000), little(0)).is_none()));
        // Never one of the two where the other has many: a sign that is always the same takes 31 periods.
        let mut comparison = Comparison::default();
        let found = (1..).find_map(|n| Some((n, comparison.add(sent(20_000), sent(10_000))?)));
        let (periods, finding) = found.unwrap();
        assert_eq!((periods, finding.harm), (31, Harm::Repetitions));
        assert!(finding.to_string().contains("2.00% again"), "{finding}");
    }

    #[test]
    fn timeouts_count_as_well() {
        let sent = |timeouts| Sent { bytes: 1_000_000, repeated: 0, timeouts };
        let mut comparison = Comparison::default();
        let finding = (0..40).find_map(|_| comparison.add(sent(2), sent(1))).unwrap();
        assert_eq!(finding.harm, Harm::Timeouts);
        assert!(finding.to_string().contains("2.000 times a megabyte"), "{finding}");
    }
}
