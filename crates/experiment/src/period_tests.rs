//! Experiments whose shares change over time, at sites with one queue for all devices and with a queue for
//! each.

use super::*;
use crate::{Finding, Measure};
use paceline_net::Stream;

fn address(n: u32) -> IpAddr {
    std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
}
/// An experiment whose shares stay as they are.
fn begin(seed: u32) -> Experiment {
    let plan = Plan::new(Design::Parallel, seed, 0.5, Duration::from_secs(1000));
    Experiment::new(Plan { period: Duration::ZERO, ..plan })
}
fn measured(
    device: IpAddr,
    bytes: u64,
    time: Duration,
    (opened_at, began_at): (Instant, Instant),
) -> Measured {
    Measured { device, bytes, time, rtt: None, sent: bytes, repeated: 0, finished: true, opened_at, began_at }
}

/// Devices that transfer 300 kB again and again. `goodput` is that of a device, by whether it is
/// accelerated and the share of devices that are.
struct Site {
    devices: u32,
    goodput: fn(bool, f64) -> f64,
    /// How much longer all transfers take at the end than at the beginning.
    slowdown: f64,
}

impl Site {
    fn run(&self, design: Design, seed: u32, permutations: usize) -> Experiment {
        let mut experiment = Experiment::new(Plan::new(design, seed, 0.5, Duration::from_secs(2000)));
        let mut random = Stream::new(seed.into(), "site");
        let (mut now, step) = (Instant::ZERO, Duration::from_millis(500));
        let mut assignment = Assignment::ALL;
        while experiment.state() == State::Running {
            if let Some(next) = experiment.next_period() {
                assignment = next;
                experiment.begin_period(now);
            }
            (0..self.devices).for_each(|n| self.transfer(&mut experiment, &mut random, now, assignment, n));
            now += step;
            experiment.advance(step);
            if experiment.is_due() {
                let analysis = experiment.analyse_by(permutations);
                experiment.conclude(analysis);
            }
        }
        experiment
    }
    fn transfer(
        &self,
        experiment: &mut Experiment,
        random: &mut Stream,
        now: Instant,
        accelerated: Assignment,
        n: u32,
    ) {
        if !random.chance(0.3) {
            return;
        }
        let (device, bytes) = (address(n), 300_000);
        let arm = accelerated.arm(device) == Arm::Accelerated;
        let own = 0.5 * Stream::new(u64::from(n), "device").normal() + 0.3 * random.normal();
        let late = experiment.elapsed().as_secs_f64() / 2000.0 * self.slowdown;
        let goodput = (self.goodput)(arm, f64::from(accelerated.share) / 65_536.0) * libm::exp(own - late);
        let time = Duration::from_secs_f64(8.0 * bytes as f64 / goodput);
        let opened_and_began = (now, now + Duration::from_millis(20));
        experiment.record(&measured(device, bytes, time, opened_and_began));
    }
}

/// 100 Mb/s for all devices: an accelerated one takes ten times as much as an untouched one, and all
/// together gain 9%.
fn shared(accelerated: bool, share: f64) -> f64 {
    let weight = if accelerated { 10.0 } else { 1.0 };
    let all = 100e6 * (1.0 + 0.09 * share);
    all / 20.0 * weight / (10.0 * share + 1.0 - share)
}
/// A queue for each device.
fn own(accelerated: bool, _: f64) -> f64 {
    if accelerated { 14e6 } else { 10e6 }
}

/// Untouched devices that lose what accelerated ones take are noticed, and end the experiment, however
/// much better the rows look.
#[test]
fn harm_to_untouched_devices_ends_the_experiment() {
    for seed in 1..4 {
        let ended = Site { devices: 20, goodput: shared, slowdown: 0.0 }.run(Design::Parallel, seed, 999);
        let report = ended.report().unwrap();
        let neighbours = report.neighbours.as_ref().unwrap();
        assert_eq!((ended.state(), neighbours.finding), (State::Harm, Finding::Worse), "{report:?}");
        // By formula: 1 of 5.5 in place of 1 of 1, and half of the 9%.
        assert!((-0.85..-0.75).contains(&neighbours.change), "{neighbours:?}");
        assert!(report.look < LOOKS, "look {}", report.look);
    }
}

/// The effect of accelerating all is 9%, where devices that are accelerated beside others seem to gain
/// 900%; it is found also while everything becomes slower.
#[test]
fn a_switchback_estimates_the_effect_of_accelerating_all() {
    for (goodput, gain) in [(shared as fn(bool, f64) -> f64, 0.09), (own, 0.4)] {
        for seed in 1..4 {
            let ended = Site { devices: 20, goodput, slowdown: 1.0 }.run(Design::Switchback, seed, 4999);
            let report = ended.report().unwrap();
            let row = report.overall(Measure::Goodput).unwrap();
            assert!(row.interval[0] < gain && gain < row.interval[1], "seed {seed}, {gain}: {row:?}");
            assert!(row.interval[1] - row.interval[0] < 0.15, "{row:?}");
            assert_eq!((ended.state(), row.finding), (State::Complete, Finding::Better), "{row:?}");
            assert!(report.neighbours.is_none() && ended.transfers().iter().all(|count| *count > 1000));
        }
    }
}

/// With a queue for each device, untouched devices are as fast beside accelerated ones as without, also
/// where the time of day makes all slower: at most 5% of 60 experiments say otherwise, and two standard
/// deviations of that.
#[test]
fn untouched_devices_of_independent_queues_are_not_found_to_slow_down() {
    let mut alarms = 0;
    for seed in 100..160 {
        let ended = Site { devices: 20, goodput: own, slowdown: 2.0 }.run(Design::Parallel, seed, 399);
        let neighbours = ended.report().unwrap().neighbours.clone().unwrap();
        alarms += usize::from(neighbours.finding == Finding::Worse);
    }
    assert!(alarms <= 6, "{alarms} of 60");
}

/// Accelerated devices transfer more at once: then a row over all sizes would compare large transfers
/// with small ones, and there is none.
#[test]
fn arms_of_other_sizes_have_no_rows_over_all_sizes() {
    for (large, mixed) in [(1.0, false), (1.05, false), (1.3, true), (10.0, true)] {
        let mut experiment = begin(1);
        for n in 0..40 {
            let accelerated = experiment.plan().assignment.arm(address(n)) == Arm::Accelerated;
            let bytes = if accelerated { (50_000.0 * large) as u64 } else { 50_000 };
            experiment.record(&measured(
                address(n),
                bytes,
                Duration::from_millis(100 + u64::from(n)),
                (Instant::ZERO, Instant::ZERO),
            ));
        }
        experiment.advance(Duration::from_secs(1000));
        let report = experiment.analyse_by(99).report;
        let all: Vec<Measure> =
            report.rows.iter().filter(|row| row.size.is_none()).map(|row| row.measure).collect();
        assert_eq!((report.mixed, all.len()), (mixed, if mixed { 1 } else { 5 }), "{large}: {all:?}");
        assert!(all.contains(&Measure::Unfinished) && report.rows.len() >= 21);
    }
}

/// A certain difference that is smaller than matters is no finding.
#[test]
fn a_certain_difference_may_be_too_small_to_matter() {
    let small = |practical, factor| {
        let mut experiment = Experiment::new(begin(2).plan().with_practical(practical));
        let mut random = Stream::new(2, "small");
        for n in 0..200 {
            let accelerated = experiment.plan().assignment.arm(address(n)) == Arm::Accelerated;
            let seconds = libm::exp(0.01 * random.normal()) * if accelerated { factor } else { 1.0 };
            experiment.record(&measured(
                address(n),
                50_000,
                Duration::from_secs_f64(seconds),
                (Instant::ZERO, Instant::ZERO),
            ));
        }
        experiment.advance(Duration::from_secs(1000));
        let row = experiment.analyse_by(4999).report.overall(Measure::Goodput).unwrap().clone();
        assert!(row.chance < 0.01, "{row:?}");
        row.finding
    };
    assert_eq!([small(0.05, 0.98), small(0.01, 0.98)], [Finding::Small, Finding::Better]);
    // Harm is harm, however large a gain would have to be.
    assert_eq!([small(0.3, 1.1), small(0.3, 0.9)], [Finding::Worse, Finding::Small]);
}

/// Transfers whose connection had another treatment, or that began beside connections with another one,
/// do not count; nor do those of a period that an earlier gateway began.
#[test]
fn transfers_of_connections_from_another_period_do_not_count() {
    let plan = Plan::new(Design::Switchback, 1, 0.5, Duration::from_secs(2000));
    assert_eq!(plan.period.as_millis(), 20_833);
    let mut experiment = Experiment::new(plan);
    let at = Instant::from_millis;
    for (start, _) in [(0, 0), (21_000, 1)] {
        assert!(experiment.next_period().is_some());
        experiment.begin_period(at(start));
        assert_eq!(experiment.next_period(), None);
        experiment.advance(Duration::from_secs(21));
    }
    let count = |experiment: &Experiment| experiment.transfers().iter().sum::<u64>();
    let record = |experiment: &mut Experiment, opened: u64, began: u64| {
        let before = count(experiment);
        experiment.record(&measured(address(1), 1000, Duration::from_millis(10), (at(opened), at(began))));
        count(experiment) - before
    };
    assert_eq!(record(&mut experiment, 10_000, 10_001), 1);
    assert_eq!(record(&mut experiment, 1_000, 1_001), 0, "in the first fifth");
    assert_eq!(record(&mut experiment, 1_000, 20_000), 1);
    assert_eq!(record(&mut experiment, 20_000, 30_000), 0, "opened in the period before");
    assert_eq!(record(&mut experiment, 30_000, 30_000), 1);
    let text = serde_json::to_string(&experiment).unwrap();
    let mut later: Experiment = serde_json::from_str(&text).unwrap();
    assert_eq!(record(&mut later, 30_000, 30_000), 0);
    assert!(later.next_period().is_some());
}
