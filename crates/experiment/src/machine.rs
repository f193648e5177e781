//! The course of an experiment: it collects transfers for a given time, looks at them at ten fixed times, and
//! ends early if a look finds harm.
//!
//! Looking repeatedly finds differences by chance more often than looking once. Therefore the looks share an
//! error of 5%: each of the nine before the end has a ninth of 2.5%, the last one 2.5% (alpha spending by
//! Bonferroni's inequality, which holds however the looks depend on each other; compare Lan and DeMets,
//! "Discrete sequential boundaries for clinical trials", 1983). Reports between two looks show the last one,
//! so that the reader may look as often as he likes.

use super::assignment::{Arm, Assignment};
use super::pairs::Pairs;
use super::plan::{Design, Plan};
use super::report::{Data, Report};
use super::sums::{DeviceSums, Measured};
use paceline_net::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Looks of an experiment. Chosen: harm is found within a tenth of the time; more looks would need clearer
/// differences at each.
pub const LOOKS: u32 = 10;
/// Probability of a false finding of all looks before the last one together. Chosen: half of 5%.
const INTERIM_LEVEL: f64 = 0.025;
/// Probability of a false finding of the last look. Chosen: the other half.
const FINAL_LEVEL: f64 = 0.025;
/// Random assignments of a test. Chosen: the least p-value, 1/20,000, is below a ninth of 2.5% divided by the
/// number of rows, so that one look can find harm.
const PERMUTATIONS: usize = 19_999;
/// Devices of which sums are kept at most. Chosen: 20 MB; further devices are not measured.
const MAX_DEVICES: usize = 65_536;
/// Periods whose transfers may still end. Chosen: more than pairs of which sums are kept.
const REMEMBERED_PERIODS: usize = 16;

/// The state of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Transfers are collected.
    Running,
    /// The time is over.
    Complete,
    /// A look found harm; acceleration is switched off.
    Harm,
    /// The operator has ended it.
    Stopped,
}

/// An experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Experiment {
    plan: Plan,
    state: State,
    /// Time in which transfers were collected.
    elapsed: Duration,
    devices: BTreeMap<IpAddr, DeviceSums>,
    #[serde(default)]
    pairs: Pairs,
    /// Finished transfers of a switchback: with acceleration, without.
    #[serde(default)]
    transfers: [u64; 2],
    /// Transfers of devices that had no place.
    left_out: u64,
    report: Option<Report>,
    /// The last periods, with the time of their beginning. Not those of an earlier gateway.
    #[serde(skip)]
    periods: VecDeque<(Instant, u64)>,
}

/// The result of a look, see [`Experiment::analyse`].
#[derive(Clone, Debug)]
pub struct Analysis {
    report: Report,
}

impl Experiment {
    /// An experiment that begins.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            state: State::Running,
            elapsed: Duration::ZERO,
            devices: BTreeMap::new(),
            pairs: Pairs::default(),
            transfers: [0; 2],
            left_out: 0,
            report: None,
            periods: VecDeque::new(),
        }
    }
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// The state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Time in which transfers were collected.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
    /// Transfers of devices that had no place.
    pub fn left_out(&self) -> u64 {
        self.left_out + self.pairs.left_out()
    }
    /// The last look; None before the first.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }
    /// Finished transfers so far: of accelerated and of untouched devices.
    pub fn transfers(&self) -> [u64; 2] {
        self.devices.iter().fold(self.transfers, |mut sums, (device, of)| {
            sums[usize::from(self.plan.assignment.arm(*device) == Arm::Untouched)] += of.transfers();
            sums
        })
    }

    /// The devices to be accelerated in the period that begins now; None while the last one goes on. To be
    /// followed by [`Self::begin_period`] when they are.
    pub fn next_period(&self) -> Option<Assignment> {
        let period = self.plan.period_at(self.elapsed);
        let begun = self.periods.back().is_some_and(|(_, last)| *last == period);
        (self.state == State::Running && !begun).then(|| self.plan.assignment_in(period))
    }
    /// New connections are treated as [`Self::next_period`] says from now on.
    pub fn begin_period(&mut self, now: Instant) {
        self.periods.push_back((now, self.plan.period_at(self.elapsed)));
        if self.periods.len() > REMEMBERED_PERIODS {
            self.periods.pop_front();
        }
    }
    /// The period of a transfer that counts; None of one whose connection was opened in another period, or
    /// that began while such connections were many.
    fn period_of(&self, transfer: &Measured) -> Option<u64> {
        if self.plan.period == Duration::ZERO {
            return Some(0);
        }
        let find = |at: Instant| self.periods.iter().rev().find(|(start, _)| *start <= at);
        let (start, period) = *find(transfer.began_at)?;
        let same = find(transfer.opened_at).is_some_and(|(_, opened)| *opened == period);
        (same && transfer.began_at.since(start) >= self.plan.washout()).then_some(period)
    }

    /// Adds a transfer.
    pub fn record(&mut self, transfer: &Measured) {
        let Some(period) = self.period_of(transfer).filter(|_| self.state == State::Running) else { return };
        let part = self.plan.part(period);
        let untouched = self.plan.assignment.arm(transfer.device) == Arm::Untouched;
        let switchback = self.plan.design == Design::Switchback;
        if let Some(part) = part.filter(|_| switchback || untouched) {
            self.pairs.record(part, transfer);
        }
        match part {
            Some(part) if switchback => {
                self.transfers[usize::from(!part.on)] += u64::from(transfer.finished && transfer.bytes > 0);
            }
            Some(part) if !part.on => {}
            _ if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&transfer.device) => {
                self.left_out += 1;
            }
            _ => self.devices.entry(transfer.device).or_default().add(transfer),
        }
    }
    /// Lets time pass.
    pub fn advance(&mut self, time: Duration) {
        if self.state == State::Running {
            self.elapsed += time;
        }
    }
    /// Ends it on the operator's wish. The last look stays.
    pub fn stop(&mut self) {
        if self.state == State::Running {
            self.state = State::Stopped;
        }
    }
    /// Looks that are due by now, done or not.
    fn looks_due(&self) -> u32 {
        let share = self.elapsed.as_secs_f64() / self.plan.duration.as_secs_f64().max(1e-9);
        if self.elapsed >= self.plan.duration { LOOKS } else { (share * f64::from(LOOKS)) as u32 }
    }
    /// Whether a look is due.
    pub fn is_due(&self) -> bool {
        let done = self.report.as_ref().map_or(0, |report| report.look);
        self.state == State::Running && self.looks_due().min(LOOKS) > done
    }
    /// Takes a look. This may take seconds with thousands of devices.
    pub fn analyse(&self) -> Analysis {
        self.analyse_by(PERMUTATIONS)
    }
    /// Takes a look, by so many random assignments.
    pub fn analyse_by(&self, permutations: usize) -> Analysis {
        let look = self.looks_due().min(LOOKS);
        let level = if look == LOOKS { FINAL_LEVEL } else { INTERIM_LEVEL / f64::from(LOOKS - 1) };
        let complete = self.plan.pairs_by(self.plan.period_at(self.elapsed));
        let pairs = self.pairs.values(complete);
        let data = Data { devices: &self.devices, pairs, look: (look, level), permutations };
        let mut report = Report::new(&self.plan, &data);
        if self.plan.design == Design::Switchback {
            report.transfers = self.transfers;
        }
        Analysis { report }
    }
    /// Draws the conclusion of a look.
    pub fn conclude(&mut self, analysis: Analysis) {
        if self.state != State::Running {
            return;
        }
        let (harm, last) = (analysis.report.harm().next().is_some(), analysis.report.look == LOOKS);
        self.report = Some(analysis.report);
        self.state = match (harm, last) {
            (true, _) => State::Harm,
            (false, true) => State::Complete,
            (false, false) => State::Running,
        };
    }
}

#[cfg(test)]
#[path = "period_tests.rs"]
mod period_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, Measure, Row, SIZES};
    use paceline_net::Stream;

    const DURATION: Duration = Duration::from_secs(1000);

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }
    fn begin(seed: u64) -> Experiment {
        // Without periods: the shares stay as they are.
        let plan = Plan::new(Design::Parallel, seed as u32, 0.5, DURATION);
        Experiment::new(Plan { period: Duration::ZERO, ..plan })
    }
    /// A tenth of the time, in which each device has some transfers. Accelerated ones take `factor` times as
    /// long. The devices differ by a factor of e (one standard deviation), their transfers as well.
    fn tenth(experiment: &mut Experiment, random: &mut Stream, devices: u32, factor: f64) {
        for n in 0..devices {
            let arm = experiment.plan().assignment.arm(address(n));
            let own = Stream::new(u64::from(n), "device").normal();
            for _ in 0..=random.below(5) {
                let bytes = (3000.0 * libm::pow(1.0 - random.uniform(), -1.0 / 1.2)).min(1e9);
                let seconds = 0.1 * libm::exp(own + random.normal()) * libm::pow(bytes / 3000.0, 0.7);
                let seconds = if arm == Arm::Accelerated { seconds * factor } else { seconds };
                let (time, bytes) = (Duration::from_secs_f64(seconds), bytes as u64);
                let repeated = if random.chance(0.1) { bytes / 50 } else { 0 };
                let finished = !random.chance(0.02);
                let device = address(n);
                let rtt = Some(Duration::from_secs_f64(0.05 * libm::exp(0.3 * random.normal())));
                let (sent, opened_at, began_at) = (bytes, Instant::ZERO, Instant::ZERO);
                experiment.record(&Measured {
                    device,
                    bytes,
                    time,
                    rtt,
                    sent,
                    repeated,
                    finished,
                    opened_at,
                    began_at,
                });
            }
        }
        experiment.advance(DURATION / u64::from(LOOKS));
    }
    fn run(seed: u64, devices: u32, factor: f64, permutations: usize) -> Experiment {
        let (mut experiment, mut random) = (begin(seed), Stream::new(seed, "transfers"));
        while experiment.state() == State::Running {
            tenth(&mut experiment, &mut random, devices, factor);
            assert!(experiment.is_due());
            let analysis = experiment.analyse_by(permutations);
            experiment.conclude(analysis);
            assert!(!experiment.is_due());
        }
        experiment
    }

    /// All looks and rows together find a difference where there is none in at most 5% of experiments: 100 of
    /// them, limit 5% and two and a half standard deviations of it (2.2%).
    #[test]
    fn without_an_effect_there_is_no_difference() {
        let mut alarms = 0;
        for seed in 0..100 {
            let report = run(seed, 40, 1.0, 1999).report().cloned().unwrap();
            let differs = |finding| matches!(finding, Finding::Better | Finding::Worse);
            alarms += usize::from(report.rows.iter().any(|row| differs(row.finding)));
        }
        assert!(alarms <= 10, "{alarms} of 100");
    }

    #[test]
    fn a_harmful_result_ends_the_experiment_early_and_a_gain_is_found_at_the_end() {
        let harmed = run(1, 100, 4.0, PERMUTATIONS);
        let report = harmed.report().unwrap();
        assert_eq!(harmed.state(), State::Harm);
        assert!(report.look < LOOKS && report.harm().all(|row| row.measure != Measure::Rtt), "{report:?}");
        let gained = run(2, 100, 0.4, 9999);
        let row = gained.report().unwrap().overall(Measure::Goodput).unwrap().clone();
        assert_eq!((gained.state(), row.finding), (State::Complete, Finding::Better));
        assert!(row.interval[0] < 1.5 && 1.5 < row.interval[1], "{row:?}");
        let time = gained.report().unwrap().overall(Measure::Time).unwrap();
        assert!(time.finding == Finding::Better && time.change < 0.0, "{time:?}");
    }

    /// A row without a difference has the gain that it could have found: less with more devices, and none
    /// with so few that no assignment is rare enough (5 and 5 have 252; a row of the last look has a level of
    /// about 0.001).
    #[test]
    fn rows_without_a_difference_say_what_they_could_have_found() {
        let detectable = |seed, devices, measure| {
            let report = run(seed, devices, 1.0, 4999).report().cloned().unwrap();
            // Of few devices the mixes of sizes differ.
            let is_wanted = |row: &&Row| row.size.as_deref() == Some(SIZES[0].0) && row.measure == measure;
            let row = report.rows.iter().find(is_wanted).unwrap().clone();
            assert_eq!(row.finding, Finding::NoDifference, "{row:?}");
            row.detectable
        };
        let [few, many] = [40, 400].map(|devices| detectable(5, devices, Measure::Goodput).unwrap());
        // The devices' logarithms differ by 1 and a little more. 40: (3.5 + 0.84) 2/sqrt(40) is 1.4, which is
        // +300%, and 400: 0.41 to 0.43, +50%.
        assert!((1.5..6.0).contains(&few) && (0.4..0.8).contains(&many), "{few} {many}");
        assert!(detectable(5, 400, Measure::Time).unwrap() < -0.2);
        let accelerated = |seed| {
            (0..10).filter(move |n| begin(seed).plan().assignment.arm(address(*n)) == Arm::Accelerated)
        };
        let equal = (0..100).find(|seed| accelerated(*seed).count() == 5).expect("arms of 5 and 5");
        assert_eq!(detectable(equal, 10, Measure::Goodput), None);
    }

    #[test]
    fn an_experiment_survives_as_json_and_a_stopped_one_takes_nothing_more() {
        let (mut experiment, mut random) = (begin(3), Stream::new(3, "transfers"));
        assert!(!experiment.is_due() && experiment.report().is_none());
        tenth(&mut experiment, &mut random, 20, 1.0);
        experiment.conclude(experiment.analyse_by(99));
        let text = serde_json::to_string(&experiment).unwrap();
        assert_eq!(serde_json::from_str::<Experiment>(&text).unwrap(), experiment);
        experiment.stop();
        let before = experiment.clone();
        tenth(&mut experiment, &mut random, 20, 1.0);
        assert_eq!((experiment.state(), experiment.is_due()), (State::Stopped, false));
        assert_eq!(experiment, before);
    }

    #[test]
    fn devices_have_a_limit() {
        let mut experiment = begin(4);
        for n in 0..MAX_DEVICES as u32 + 7 {
            let device = address(n);
            let time = Duration::from_millis(10);
            experiment.record(&Measured {
                device,
                bytes: 1,
                time,
                rtt: None,
                sent: 1,
                repeated: 0,
                finished: true,
                opened_at: Instant::ZERO,
                began_at: Instant::ZERO,
            });
        }
        assert_eq!((experiment.devices.len(), experiment.left_out()), (MAX_DEVICES, 7));
    }
}
