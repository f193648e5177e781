//! Detector of harm done by the ACK filter (safety rule 20): compares retransmissions and timeouts of servers
//! between filtered connections and as many that are held out ([`super::Holdout`] assigns them).
//!
//! In every period connections are assigned to the groups anew at random. If the filter changes nothing, a
//! period's difference between the groups is as likely to be positive as negative, for any traffic.
//! Then the sum of differences divided by the root of the sum of their squares exceeds x with a
//! probability of at most exp(-x²/2) (Hoeffding's inequality on the signs, as in Efron 1969), for any
//! distribution: bursts of loss, single slow devices and unequal periods included. A t-test requires normal
//! differences, which these are not.
//!
//! Left out: the gain of a filter, which the operator sees in the rates; connections without data.

use paceline_net::Duration;
use std::fmt;

/// The filter does harm when the sum of differences exceeds this many roots of the sum of their squares.
/// Derived: by chance once in four million looks; with a look each 10 s at two quantities, less than twice a
/// year.
const LIMIT: f64 = 5.5;
/// Smallest ratio of the two groups' quantities that counts as harm. Chosen: a certain but small difference
/// does not matter.
const MIN_RATIO: f64 = 1.1;
/// Weight of the past after one more period. Chosen: the last hour counts, at 10 s per period.
const MEMORY: f64 = 1.0 - 1.0 / 360.0;
/// A period in which either group received fewer bytes is left out. Chosen: shares of few bytes are noise.
const MIN_BYTES: u64 = 100_000;

/// Payload that servers sent to a group of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Payload bytes.
    pub bytes: u64,
    /// Payload bytes among them that had been sent before.
    pub retransmitted: u64,
    /// Retransmissions after a silence, which stand for timeouts.
    pub timeouts: u64,
}

/// The quantity that is higher where connections are filtered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// Retransmitted bytes.
    Retransmissions,
    /// Retransmission timeouts.
    Timeouts,
}

/// A proof that the filter does harm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Finding {
    /// The quantity that is higher.
    pub harm: Harm,
    /// Its value for filtered connections: retransmitted bytes as a share of all, or timeouts per megabyte.
    pub filtered: f64,
    /// The same for connections that are held out.
    pub held_out: f64,
}

/// Compares the two groups, period by period.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    retransmissions: Trend,
    timeouts: Trend,
}

impl Comparison {
    /// How long connections stay in their groups. Chosen: longer than the effects of the filter take to show.
    pub const PERIOD: Duration = Duration::from_secs(10);

    /// Adds a period: the payload sent to filtered connections, and to as many that were held out.
    pub fn add(&mut self, filtered: Sent, held_out: Sent) -> Option<Finding> {
        if filtered.bytes < MIN_BYTES || held_out.bytes < MIN_BYTES {
            return None;
        }
        let share = |sent: Sent| sent.retransmitted as f64 / sent.bytes as f64;
        let timeouts = |sent: Sent| 1e6 * sent.timeouts as f64 / sent.bytes as f64;
        self.retransmissions.add(share(filtered), share(held_out));
        self.timeouts.add(timeouts(filtered), timeouts(held_out));
        let retransmissions = self.retransmissions.finding(Harm::Retransmissions);
        retransmissions.or_else(|| self.timeouts.finding(Harm::Timeouts))
    }
}

/// Sums of one quantity in both groups, with the weights of [`MEMORY`].
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    periods: f64,
    filtered: f64,
    held_out: f64,
    /// Squares of the differences, each with its weight squared.
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
        let certain = self.filtered - self.held_out > LIMIT * self.squares.sqrt();
        let matters = self.filtered > MIN_RATIO * self.held_out;
        let mean = |sum: f64| sum / self.periods;
        (certain && matters).then(|| Finding {
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
            Harm::Retransmissions => write!(
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

    /// A group in a period: connections with few losses, and now and then one with many.
    fn group(chance: &mut Stream, harm: f64) -> Sent {
        let mut sent = Sent::default();
        for _ in 0..20 {
            let bytes = 50_000 + chance.below(1_000_000);
            let bad = chance.below(200) == 0;
            let share = if bad { 0.5 } else { 0.01 * chance.uniform() };
            sent.bytes += bytes;
            sent.retransmitted += (bytes as f64 * share * harm).min(bytes as f64) as u64;
            sent.timeouts += u64::from(bad) * (1 + chance.below(5));
        }
        sent
    }

    // keeps: ack-filter.20
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

    // keeps: ack-filter.20
    #[test]
    fn twice_the_retransmissions_are_found_within_an_hour() {
        for seed in 0..20 {
            let mut chance = Stream::new(seed, "comparison");
            let mut comparison = Comparison::default();
            let add = |_| comparison.add(group(&mut chance, 2.0), group(&mut chance, 1.0));
            let finding = (0..360).find_map(add).unwrap_or_else(|| panic!("seed {seed}: not found"));
            assert!(finding.filtered > 1.5 * finding.held_out, "seed {seed}: {finding}");
        }
    }

    #[test]
    fn small_differences_and_periods_with_few_bytes_do_not_count() {
        let sent = |retransmitted| Sent { bytes: 1_000_000, retransmitted, timeouts: 0 };
        let mut comparison = Comparison::default();
        assert!((0..1000).all(|_| comparison.add(sent(10_500), sent(10_000)).is_none()));
        let little = |retransmitted| Sent { bytes: MIN_BYTES - 1, retransmitted, timeouts: 9 };
        assert!((0..1000).all(|_| comparison.add(little(50_000), sent(0)).is_none()));
        assert!((0..1000).all(|_| comparison.add(sent(50_000), little(0)).is_none()));
        // A difference with the same sign in every period is certain after 31 periods.
        let mut comparison = Comparison::default();
        let found = (1..).find_map(|n| Some((n, comparison.add(sent(20_000), sent(10_000))?)));
        let (periods, finding) = found.unwrap();
        assert_eq!((periods, finding.harm), (31, Harm::Retransmissions));
        assert!(finding.to_string().contains("2.00% again"), "{finding}");
    }

    #[test]
    fn timeouts_are_compared_too() {
        let sent = |timeouts| Sent { bytes: 1_000_000, retransmitted: 0, timeouts };
        let mut comparison = Comparison::default();
        let finding = (0..40).find_map(|_| comparison.add(sent(2), sent(1))).unwrap();
        assert_eq!(finding.harm, Harm::Timeouts);
        assert!(finding.to_string().contains("2.000 times a megabyte"), "{finding}");
    }
}
