//! The proof of gain in a synthetic population of devices: the time of each transfer was simulated, direct
//! and accelerated, so that the true gain is known. Over many populations, the experiment's intervals cover
//! it as often as they say.
//! `cargo test -p paceline-sim --test main experiment -- --nocapture` prints gains and coverage.

use paceline_experiment::{Arm, Design, Experiment, Finding, Measure, Measured, Plan, Row, SIZES, State};
use paceline_net::{Duration, Instant, Stream};
use paceline_sim::{scenario, simulate};
use std::net::{IpAddr, Ipv4Addr};

/// Kinds of places in the population: rate of the radio in Mb/s, its one-way delay in ms, its queue in kB.
const PLACES: [(u32, u32, u32); 4] = [(2, 40, 60), (8, 20, 60), (30, 15, 120), (30, 60, 120)];
/// Bytes of transfers, one for each of the first four sizes.
const BYTES: [u64; 4] = [6_000, 60_000, 400_000, 2_000_000];
const POPULATIONS: u64 = 60;
const DEVICES: u32 = 300;
/// Part of a 97.5% interval's half width within which half of the errors lie: quantiles of the normal
/// distribution, 0.674 / 2.241.
const HALF_OF_ERRORS: f64 = 0.301;
/// Devices of a small population.
const FEW: u32 = 50;

/// Seconds until the device has all bytes.
fn simulated(path: &str, (rate, delay, queue): (u32, u32, u32), bytes: u64) -> f64 {
    let text = format!(
        "[run]\nduration = \"40 s\"\nwarmup = \"0 s\"\n[core]\nproxy = \"{path}\"\n\
         hops = [{{ rate = \"1 Gb/s\", delay = \"20 ms\" }}]\n[link]\ndelay = \"{delay} ms\"\n\
         queue = \"{queue} kB\"\n[link.fixed]\ndownlink_rate = \"{rate} Mb/s\"\nuplink_rate = \"{rate} Mb/s\"\n\
         [[station]]\nfile = \"{bytes} B\"\nstart_spread = \"0 s\"\n"
    );
    let scenario = scenario::load_with("population.toml", &text, &[], &|_| unreachable!("no files"));
    let result = simulate(&scenario.unwrap(), 1, None, &mut |_| ());
    result.flows[0].received_s.expect("the file arrives")
}

/// Seconds of each transfer by place and size: accelerated, untouched.
type Times = Vec<[[f64; 2]; BYTES.len()]>;

fn times() -> Times {
    let both = |place, bytes| ["accelerator", "none"].map(|path| simulated(path, place, bytes));
    PLACES.iter().map(|place| BYTES.map(|bytes| both(*place, bytes))).collect()
}

/// The true gain in goodput for a size: the geometric mean over places, which are equally likely, less 1.
fn true_gain(times: &Times, size: usize) -> f64 {
    let logs = times.iter().map(|place| libm::log(place[size][1] / place[size][0]));
    libm::expm1(logs.sum::<f64>() / PLACES.len() as f64)
}

/// A population: each device has its place and its own speed, and heavy-tailed numbers of transfers; each
/// transfer a random factor of its own. With `treated` false, devices of both arms are untouched.
fn population(times: &Times, seed: u64, treated: bool, devices: u32) -> Experiment {
    let mut random = Stream::new(seed, "population");
    let duration = Duration::from_secs(86_400);
    let plan = Plan::new(Design::Parallel, random.next_u64() as u32, 0.5, duration);
    // A day without periods: the shares stay as they are.
    let mut experiment = Experiment::new(Plan { period: Duration::ZERO, ..plan });
    let assignment = plan.assignment;
    for n in 0..devices {
        let device: IpAddr = Ipv4Addr::from_bits(0x0a40_0000 + n).into();
        let place = random.below(PLACES.len() as u64) as usize;
        let own = 0.3 * random.normal();
        let touched = treated && assignment.arm(device) == Arm::Accelerated;
        // Pareto with shape 1.2: few devices have most transfers.
        let transfers = libm::pow(1.0 - random.uniform(), -1.0 / 1.2).min(500.0) as u32;
        for _ in 0..transfers {
            for (size, bytes) in BYTES.into_iter().enumerate() {
                let factor = libm::exp(own + 0.3 * random.normal());
                let seconds = times[place][size][usize::from(!touched)] * factor;
                let time = Duration::from_secs_f64(seconds);
                let rtt = Some(Duration::from_millis(50));
                experiment.record(&Measured {
                    device,
                    bytes,
                    time,
                    rtt,
                    sent: bytes,
                    repeated: 0,
                    finished: true,
                    opened_at: Instant::ZERO,
                    began_at: Instant::ZERO,
                });
            }
        }
    }
    experiment.advance(duration);
    experiment
}

fn goodput(experiment: &Experiment, size: usize) -> &Row {
    let rows = &experiment.report().expect("a look").rows;
    let is_wanted =
        |row: &&Row| row.measure == Measure::Goodput && row.size.as_deref() == Some(SIZES[size].0);
    rows.iter().find(is_wanted).expect("a row for each size")
}

#[test]
fn intervals_cover_the_true_gain_as_often_as_they_say() {
    let times = times();
    let gains: Vec<f64> = (0..BYTES.len()).map(|size| true_gain(&times, size)).collect();
    println!("true gains: {gains:.3?}");
    let (mut covered, mut near, mut found, mut harmed, mut level) = (0, 0, 0, 0, 0.0);
    for seed in 0..POPULATIONS {
        let mut experiment = population(&times, seed, true, DEVICES);
        let analysis = experiment.analyse_by(999);
        experiment.conclude(analysis);
        harmed += usize::from(experiment.state() == State::Harm);
        level = experiment.report().unwrap().level;
        for (size, gain) in gains.iter().enumerate() {
            let row = goodput(&experiment, size);
            covered += usize::from(row.interval[0] <= *gain && *gain <= row.interval[1]);
            let [low, high] = row.interval.map(libm::log1p);
            let distance = (libm::log1p(*gain) - f64::midpoint(low, high)).abs();
            near += usize::from(distance <= HALF_OF_ERRORS * (high - low) / 2.0);
            found += usize::from(row.finding == Finding::Better);
        }
    }
    let all = POPULATIONS as usize * BYTES.len();
    println!(
        "{covered} of {all} intervals cover, {near} near their middle; {found} gains found, {harmed} false harms; level {level}"
    );
    // 97.5% of 240: 234, with a standard deviation of 2.4, twice that if the sizes of a population agree.
    assert!(covered >= 234 - 3 * 5, "{covered} of {all}");
    // Half of them, within three standard deviations of populations whose sizes all agree: sqrt(60 / 4) * 4.
    // Intervals that are too wide by half have 69%, those too narrow by half 26%.
    assert!(near.abs_diff(all / 2) <= 3 * 15, "{near} of {all}: the width is not that of 97.5%");
    assert!(harmed <= 5, "2.5% of {POPULATIONS} populations: {harmed}");
}

/// Devices in places with a fifteenth of the others' rate differ so much that fifty of them show few gains.
/// The report says so: the gain that it could have found is larger than the true one.
#[test]
fn a_small_population_says_that_it_could_not_have_found_the_gain() {
    let times = times();
    let (mut found, mut detectable) = (0, vec![Vec::new(); BYTES.len()]);
    for seed in 2000..2000 + POPULATIONS {
        let mut experiment = population(&times, seed, true, FEW);
        let analysis = experiment.analyse_by(4999);
        experiment.conclude(analysis);
        for (size, detectable) in detectable.iter_mut().enumerate() {
            let row = goodput(&experiment, size);
            found += usize::from(row.finding == Finding::Better);
            detectable.extend(row.detectable);
        }
    }
    println!("populations of {FEW} devices: {found} of {} gains found", POPULATIONS as usize * BYTES.len());
    for (size, of_size) in detectable.iter_mut().enumerate() {
        of_size.sort_by(f64::total_cmp);
        let (median, gain) = (of_size[of_size.len() / 2], true_gain(&times, size));
        println!("{}: true gain {gain:+.3}, could find {median:+.3}", SIZES[size].0);
        assert!(median > gain, "{} of {median} could be found, there is {gain}", SIZES[size].0);
    }
}

#[test]
fn a_population_without_an_effect_has_no_difference() {
    let times = times();
    let mut alarms = 0;
    for seed in 1000..1000 + POPULATIONS {
        let mut experiment = population(&times, seed, false, DEVICES);
        let analysis = experiment.analyse_by(9999);
        experiment.conclude(analysis);
        let rows = &experiment.report().unwrap().rows;
        alarms += usize::from(rows.iter().any(|row| matches!(row.finding, Finding::Better | Finding::Worse)));
    }
    println!("{alarms} of {POPULATIONS} populations without an effect have a finding");
    // 2.5% of 60 is 1.5, with a standard deviation of 1.2.
    assert!(alarms <= 5, "{alarms} of {POPULATIONS}");
}
