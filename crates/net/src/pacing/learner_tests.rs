//! The learner on generated arrivals. `PACELINE_LEARNER_SEEDS=100` sets the seeds per pattern, whose default
//! is a sample for quick tests.

use super::*;
use crate::{SlotPattern, Stream};

/// One ACK: arrival and round-trip time in nanoseconds.
type Ack = (u64, u64);

const SECOND: u64 = 1_000_000_000;

/// The delay of a generated path besides its jitter, in nanoseconds each way. Chosen: an edge server.
const ONE_WAY: u64 = 3_000_000;

fn seeds(default: u64) -> u64 {
    std::env::var("PACELINE_LEARNER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// All NR patterns and LTE configurations, with their periods in microseconds.
fn patterns() -> Vec<(String, SlotPattern, Vec<u64>)> {
    let rows = include_str!("../../../ran/data/nr_tdd_patterns.csv").lines().skip(3);
    let nr = rows.map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let text = format!("{} {}", fields[0], fields[3..6].join(":"));
        let pattern = SlotPattern::from_letters(&text, 1).unwrap();
        let us = pattern.period().as_nanos() / 1000;
        (text, pattern, vec![us])
    });
    // Configurations 0, 1 and 2 repeat after 5 ms. The uplink of 6 nearly does: 3 and 2 subframes.
    let lte = (0..=6).map(|number| {
        let periods = [vec![5000], vec![5000], vec![5000], vec![10_000], vec![10_000], vec![10_000]];
        let periods = periods.get(usize::from(number)).cloned().unwrap_or(vec![5000, 10_000]);
        (format!("LTE {number}"), SlotPattern::lte(number, 7).unwrap(), periods)
    });
    nr.chain(lte).collect()
}

/// Waits at `at` for the end of a slot that `usable` accepts.
fn slot_end(pattern: &SlotPattern, at: u64, usable: impl Fn(crate::SlotKind) -> bool) -> u64 {
    let slot_ns = pattern.slot().as_nanos();
    let first = at / slot_ns;
    let slot = (first..).find(|slot| usable(pattern.kind(*slot))).unwrap();
    (slot + 1) * slot_ns
}

/// An AR(1) process with this standard deviation in nanoseconds.
struct Jitter {
    value: f64,
    sigma: f64,
}

impl Jitter {
    /// Chosen: 0.9 from ACK to ACK.
    fn next(&mut self, stream: &mut Stream) -> f64 {
        const CORRELATION: f64 = 0.9;
        let fresh = libm::sqrt(1.0 - CORRELATION * CORRELATION) * self.sigma * stream.normal();
        self.value = CORRELATION * self.value + fresh;
        self.value
    }
}

/// ACKs of a paced flow over a path: `cell` gives the time at which the ACK of a packet leaves the cell, for
/// the time at which the packet reached it.
fn acks(
    seed: u64,
    rate_mbps: u64,
    sigma_ms: f64,
    until: u64,
    mut cell: impl FnMut(&mut Stream, u64) -> u64,
) -> Vec<Ack> {
    let mut stream = Stream::new(seed, "arrivals");
    let mut jitter = Jitter { value: 0.0, sigma: sigma_ms * 1e6 };
    let spacing = (2 * 1500 * 8 * 1000 / rate_mbps) as f64;
    let (mut sent, mut last, mut acks) = (stream.below(5_000_000) as f64, 0, Vec::new());
    while (sent as u64) < until {
        let left = cell(&mut stream, sent as u64 + ONE_WAY);
        let delay = (ONE_WAY as f64 + 4.0 * jitter.sigma + jitter.next(&mut stream)).max(0.0);
        last = (left + delay as u64).max(last);
        acks.push((last, last - sent as u64));
        // The pace varies as the window and the round-trip time do.
        sent += spacing * stream.uniform_in(0.7, 1.3);
    }
    acks
}

fn tdd(pattern: &SlotPattern) -> impl FnMut(&mut Stream, u64) -> u64 {
    move |_, at| {
        let received = slot_end(pattern, at, |slot| slot.down > 0);
        slot_end(pattern, received, |slot| slot == crate::SlotKind::UP)
    }
}

/// FDD: slots of this length, and a retransmission 8 slots later for every tenth block.
fn fdd(slot_ns: u64) -> impl FnMut(&mut Stream, u64) -> u64 {
    let (mut last, mut block) = (0, 0);
    let mut failed = false;
    move |stream, at| {
        if at / slot_ns != block {
            (block, failed) = (at / slot_ns, stream.chance(0.1));
        }
        let delivered = (block + if failed { 9 } else { 1 }) * slot_ns;
        last = last.max(delivered) / slot_ns * slot_ns;
        last + 4 * slot_ns
    }
}

/// Wi-Fi: aggregates leave at random times, 2 ms apart in the mean.
fn wifi() -> impl FnMut(&mut Stream, u64) -> u64 {
    random_opportunities(|stream| 300_000.0 + stream.exponential(1_700_000.0))
}

/// Cable: grants that contention and load delay by 2 to 8 ms.
fn cable() -> impl FnMut(&mut Stream, u64) -> u64 {
    random_opportunities(|stream| stream.uniform_in(2e6, 8e6))
}

fn random_opportunities(gap: impl Fn(&mut Stream) -> f64) -> impl FnMut(&mut Stream, u64) -> u64 {
    let mut opportunity = 0;
    move |stream, at| {
        while opportunity < at {
            opportunity += gap(stream) as u64;
        }
        opportunity
    }
}

/// Feeds the ACKs that arrive until `until`.
fn feed(learner: &mut Learner, acks: &[Ack], until: u64) -> Option<u64> {
    for &(at, rtt) in acks.iter().filter(|ack| ack.0 < until) {
        learner.on_ack(Instant::from_nanos(at), Some(Duration::from_nanos(rtt)));
    }
    learner.learned().map(|learned| learned.period.as_nanos() / 1000)
}

fn learn(acks: &[Ack], until: u64) -> Option<u64> {
    feed(&mut Learner::default(), acks, until)
}

#[test]
fn the_period_of_every_pattern_is_learned_within_two_seconds() {
    let seeds = seeds(3);
    for (rate, sigma) in [(20, 0.0), (20, 1.0), (50, 1.0), (200, 1.0)] {
        let (mut runs, mut right, mut wrong, mut misses) = (0, [0, 0], 0, String::new());
        for (name, pattern, periods) in patterns() {
            for seed in 0..seeds {
                let trace = acks(seed, rate, sigma, 4 * SECOND, tdd(&pattern));
                runs += 1;
                for (index, after) in [2, 4].into_iter().enumerate() {
                    let found = learn(&trace, after * SECOND);
                    right[index] += u64::from(found.is_some_and(|us| periods.contains(&us)));
                    wrong += u64::from(found.is_some_and(|us| !periods.iter().any(|p| p % us == 0)));
                    if !found.is_some_and(|us| periods.contains(&us)) {
                        misses += &format!("{name} seed {seed} after {after} s: {found:?}; ");
                    }
                }
            }
        }
        let share = right.map(|count| count as f64 / runs as f64);
        println!("{rate} Mb/s, sigma {sigma} ms: {share:.3?} of {runs} right, {wrong} wrong; {misses}");
        assert!(share[0] >= 0.93 && share[1] >= 0.99 && wrong * 100 <= runs, "{share:?} {misses}");
    }
}

#[test]
fn links_without_a_pattern_have_no_period() {
    let windows = seeds(5) * 4;
    for seed in 0..windows {
        for (name, trace) in [
            ("FDD, 1 ms", acks(seed, 20, 0.5, 2 * SECOND, fdd(1_000_000))),
            ("FDD, 0.5 ms", acks(seed, 50, 0.0, 2 * SECOND, fdd(500_000))),
            ("Wi-Fi", acks(seed, 50, 0.0, 2 * SECOND, wifi())),
            ("cable", acks(seed, 20, 0.5, 2 * SECOND, cable())),
        ] {
            assert_eq!(learn(&trace, 2 * SECOND), None, "{name} seed {seed}");
        }
    }
}

#[test]
fn scheduling_requests_are_a_period() {
    let sr = |_: &mut Stream, at: u64| (at / 10_000_000 + 1) * 10_000_000;
    assert_eq!(learn(&acks(1, 20, 1.0, 2 * SECOND, sr), 2 * SECOND), Some(10_000));
}

#[test]
fn a_changed_pattern_is_noticed_within_a_second() {
    let all = patterns();
    let (mut runs, mut misses) = (0, String::new());
    for (before, after) in [(0, 1), (1, 0), (0, 4), (4, 5)] {
        for seed in 0..seeds(3) {
            let (first, second) = (&all[before].1, &all[after].1);
            let mut learner = Learner::default();
            let trace = acks(seed, 50, 0.5, 7 * SECOND, |stream, at| {
                if at < 3 * SECOND { tdd(first)(stream, at) } else { tdd(second)(stream, at) }
            });
            assert_eq!(feed(&mut learner, &trace, 3 * SECOND), Some(all[before].2[0]), "seed {seed}");
            assert_eq!(learner.changes(), 0, "seed {seed}");
            let rest: Vec<Ack> = trace.into_iter().filter(|ack| ack.0 >= 3 * SECOND).collect();
            feed(&mut learner, &rest, 4 * SECOND);
            assert!(learner.changes() > 0, "{before} to {after}, seed {seed}");
            let rest: Vec<Ack> = rest.into_iter().filter(|ack| ack.0 >= 4 * SECOND).collect();
            let found = feed(&mut learner, &rest, 7 * SECOND);
            runs += 1;
            if found != Some(all[after].2[0]) {
                misses += &format!("{before} to {after}, seed {seed}: {found:?}; ");
                assert!(found.is_none_or(|us| all[after].2[0].is_multiple_of(us)), "wrong: {misses}");
            }
        }
    }
    println!("{runs} changes, not learned again within four seconds: {misses}");
    assert!(misses.matches("seed").count() * 100 <= runs, "{misses}");
}

/// A clock that is 50 ppm fast moves the phase by 50 us per second; the phase follows within the error at
/// which the gate is used.
#[test]
fn a_drifting_clock_is_followed() {
    let pattern = SlotPattern::from_letters("DDDSU", 1).unwrap();
    let trace = acks(3, 50, 0.5, 12 * SECOND, tdd(&pattern));
    let skewed = |ns: u64| ns + ns / 20_000;
    let mut learner = Learner::default();
    let mut phases = Vec::new();
    for second in 2..12 {
        let span = (second - u64::from(second > 2)) * SECOND;
        let window: Vec<Ack> = trace.iter().filter(|ack| second == 2 || ack.0 >= span).copied().collect();
        for (at, rtt) in window.into_iter().filter(|ack| ack.0 < second * SECOND) {
            let (arrived, sent) = (skewed(at), skewed(at - rtt));
            let rtt = Duration::from_nanos(arrived - sent);
            learner.on_ack(Instant::from_nanos(arrived), Some(rtt));
        }
        let learned = learner.learned().unwrap();
        let true_shift = (second * SECOND / 20_000) as f64 / 1e6;
        phases.push(learned.phase.unwrap().as_millis_f64() - true_shift);
        assert!(learned.error < Duration::from_micros(300), "{learned:?}");
    }
    let turn = |ms: f64| ms - 2.5 * libm::round(ms / 2.5);
    for phase in &phases {
        assert!(turn(phase - phases[0]).abs() < 0.15, "{phases:?}");
    }
}

/// A cell whose pattern is known stays known: noise is no change.
#[test]
fn a_steady_pattern_is_kept() {
    for (name, pattern, _) in patterns() {
        let trace = acks(7, 50, 1.0, 10 * SECOND, tdd(&pattern));
        let mut learner = Learner::default();
        assert!(feed(&mut learner, &trace, 20 * SECOND).is_some(), "{name}");
        assert_eq!(learner.changes(), 0, "{name}");
    }
}

#[test]
fn arbitrary_arrivals_do_no_harm() {
    for seed in 0..20 {
        let mut stream = Stream::new(seed, "arbitrary");
        let (mut learner, mut now) = (Learner::default(), 0_u64);
        for _ in 0..5000 {
            let bits = stream.below(64);
            now = if stream.chance(0.05) {
                stream.next_u64() >> bits
            } else {
                now.saturating_add(stream.next_u64() >> 44)
            };
            let rtt = stream.chance(0.8).then(|| Duration::from_nanos(stream.next_u64() >> bits));
            learner.on_ack(Instant::from_nanos(now), rtt);
            if let Some(learned) = learner.learned() {
                assert!(learned.period >= Duration::from_micros(1250) && learned.log10_chance < -6.0);
            }
        }
    }
}
