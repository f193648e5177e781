//! The period of a TDD pattern, learned from the arrivals of ACKs and their round-trip times.
//!
//! Time is cut into blocks of 40 ms. Each block gives the spectrum of its arrivals, and that of the
//! round-trip times by *send* time, which jitter on the way of the ACKs does not blur. A line whose phase
//! stays the same from block to block (F test) belongs to the cell; the period is the inverse of the lines'
//! greatest common divisor. Left out: lines at 1 and 2 kHz, which the slots of any cell have; which slots are
//! downlink.

use super::spectrum::{Block, HERTZ, Line, Spectrum};
use crate::{Duration, Instant};

/// Probability of a false line per test. Chosen: a false period in 2,000 windows of 2 s stays improbable.
const FALSE_LINE: f64 = 1e-7;
/// Probability per test that an unchanged line counts as changed. Chosen: with 25 blocks per second, 8 lines
/// and 2 signals one in a month.
const FALSE_CHANGE: f64 = 1e-9;
/// Share of the strongest line's amplitude by which a changed line differs at least. Chosen: 50 ppm of clock
/// drift, which the lines follow, stay below it.
const LEAST_CHANGE: f64 = 0.25;
/// Least amplitude of a line as a share of the strongest one of its signal. Chosen: rounding and the edges of
/// blocks leave less, and patterns whose halves differ leave more.
const LEAST_SHARE: f64 = 0.02;
/// Least evidence for a line, the logarithm of its probability, as a share of that for the most evident line
/// of its signal. Bunches of ACKs that alternate in size keep their order from round trip to round trip, so
/// that their blocks are not independent and the test takes twice the period for a pattern. Chosen: between
/// 0.54 and 1, as patterns of two unequal halves have, and 0.09 to 0.24, as such senders have
/// (`crates/sim/tests/learned_period.rs`, 30 seeds).
const LEAST_EVIDENCE: f64 = 0.35;
/// Least amplitude of a strong line, likewise. Chosen: synchronisation blocks every 20 ms leave a twentieth.
const STRONG_SHARE: f64 = 0.2;
/// Blocks before the first test. Chosen: fewer blocks need a line far stronger than noise.
const LEAST_BLOCKS: f64 = 8.0;
/// Blocks whose mean is compared with the former mean. Chosen: 400 ms, to notice a change within 1 s.
const RECENT: usize = 10;
/// Factor by which old blocks lose weight per block while no period is known. Chosen: 8 s.
const FORGET_UNLOCKED: f64 = 0.995;
/// The same while one is known: 1 s, so that 50 ppm of clock drift are 50 us of phase.
const FORGET_LOCKED: f64 = 0.96;
/// Tests in a row that must agree on a period. Chosen: the next line may still change the period.
const AGREEING: u32 = 2;

/// The learned period.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Learned {
    /// The period: of the pattern, of scheduling requests, or a divisor of it.
    pub period: Duration,
    /// The period of the strong lines alone: of the pattern, without weak lines of a multiple of it, such as
    /// those of synchronisation blocks.
    pub strong_period: Duration,
    /// A send time of the least round-trip time of the fundamental, modulo the period; none without a line in
    /// the round-trip times.
    pub phase: Option<Duration>,
    /// Standard deviation of `phase`; the period without a phase.
    pub error: Duration,
    /// Common logarithm of the probability that noise has the strongest line, at least -300.
    pub log10_chance: f64,
}

/// Learns the period from one flow, or from the flows of one cell.
#[derive(Clone, Debug)]
pub struct Learner {
    arrivals: Block,
    round_trips: Block,
    lines: [[Line; HERTZ.len()]; 2],
    /// The lines without the recent blocks, with which these are compared.
    settled: [[Line; HERTZ.len()]; 2],
    recent: [[Spectrum; RECENT]; 2],
    blocks: [u64; 2],
    candidate: (Option<u32>, u32),
    learned: Option<Learned>,
    /// Number of times that a known period was given up.
    changes: u64,
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            arrivals: Block::default(),
            round_trips: Block::default(),
            lines: [[Line::default(); HERTZ.len()]; 2],
            settled: [[Line::default(); HERTZ.len()]; 2],
            recent: [[Spectrum::default(); RECENT]; 2],
            blocks: [0; 2],
            candidate: (None, 0),
            learned: None,
            changes: 0,
        }
    }
}

impl Learner {
    /// An ACK arrived at `now` for a packet that was sent `rtt` earlier, if that is known.
    pub fn on_ack(&mut self, now: Instant, rtt: Option<Duration>) {
        if let Some(spectrum) = self.arrivals.add(now, None) {
            self.on_block(0, spectrum);
        }
        let Some(rtt) = rtt else { return };
        let sent = Instant::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
        if let Some(spectrum) = self.round_trips.add(sent, Some(rtt)) {
            self.on_block(1, spectrum);
        }
    }
    /// The period, while it is known.
    pub fn learned(&self) -> Option<Learned> {
        self.learned
    }
    /// Number of times that a known period was given up: the pattern changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn on_block(&mut self, signal: usize, spectrum: Spectrum) {
        let slot = (self.blocks[signal] % RECENT as u64) as usize;
        let old = std::mem::replace(&mut self.recent[signal][slot], spectrum);
        if self.blocks[signal] >= RECENT as u64 {
            for (line, value) in self.settled[signal].iter_mut().zip(old) {
                line.add(value, FORGET_LOCKED);
            }
        }
        self.blocks[signal] += 1;
        if self.learned.is_some() && self.is_changed(signal) {
            *self = Self {
                arrivals: std::mem::take(&mut self.arrivals),
                round_trips: std::mem::take(&mut self.round_trips),
                changes: self.changes + 1,
                ..Self::default()
            };
            return;
        }
        let forget = if self.learned.is_some() { FORGET_LOCKED } else { FORGET_UNLOCKED };
        for (line, value) in self.lines[signal].iter_mut().zip(spectrum) {
            line.add(value, forget);
        }
        self.test();
    }
    /// Whether the mean of the recent blocks differs from that of those before, in any frequency.
    fn is_changed(&self, signal: usize) -> bool {
        let strongest = self.settled[signal].iter().map(Line::mean_power).fold(0.0, f64::max);
        let least = LEAST_CHANGE * LEAST_CHANGE * strongest;
        self.settled[signal].iter().enumerate().any(|(index, line)| {
            let values = self.recent[signal].iter().map(|spectrum| spectrum[index]);
            line.blocks() >= LEAST_BLOCKS && line.chance_of_change(values, least) < FALSE_CHANGE
        })
    }
    /// Finds the significant lines, and the period from them.
    fn test(&mut self) {
        let mut least: f64 = 0.0;
        let (mut common, mut strong) = (0, 0);
        let least_power = self
            .lines
            .each_ref()
            .map(|lines| LEAST_SHARE * LEAST_SHARE * lines.iter().map(Line::mean_power).fold(0.0, f64::max));
        let all = [0, 1].map(|signal| self.chances(signal, least_power[signal]));
        for (index, hertz) in HERTZ.into_iter().enumerate() {
            let chances = all.map(|signal| signal[index]);
            let chance = chances[0].min(chances[1]);
            if chance < libm::log10(FALSE_LINE) {
                common = gcd(common, hertz);
                let is_strong = [0, 1].map(|signal| {
                    let (line, ratio) = (&self.lines[signal][index], STRONG_SHARE / LEAST_SHARE);
                    chances[signal] <= chance && line.mean_power() >= ratio * ratio * least_power[signal]
                });
                strong = if is_strong.contains(&true) { gcd(strong, hertz) } else { strong };
            }
            least = least.min(chance);
        }
        let found = (common > 0).then_some(common);
        self.candidate = if self.candidate.0 == found { (found, self.candidate.1 + 1) } else { (found, 1) };
        if let (Some(hertz), AGREEING..) = self.candidate {
            self.learned = Some(self.describe(hertz, strong, least));
        }
    }
    /// Common logarithms of the chances that noise has the lines of a signal; 0 for a line that is below
    /// `least_power`, or has too little evidence beside the others.
    fn chances(&self, signal: usize, least_power: f64) -> [f64; HERTZ.len()] {
        let of = |line: &Line| {
            if line.mean_power() >= least_power { line.log10_chance(LEAST_BLOCKS) } else { 0.0 }
        };
        let chances = self.lines[signal].each_ref().map(of);
        let most = chances.into_iter().fold(0.0, f64::min);
        chances.map(|chance| if chance <= LEAST_EVIDENCE * most { chance } else { 0.0 })
    }
    fn describe(&self, hertz: u32, strong: u32, log10_chance: f64) -> Learned {
        let period_of = |hertz: u32| Duration::from_nanos(1_000_000_000 / u64::from(hertz));
        let (period, strong_period) = (period_of(hertz), period_of(if strong > 0 { strong } else { hertz }));
        let fundamental = HERTZ.iter().position(|known| *known == hertz).map(|index| self.lines[1][index]);
        let line = fundamental.filter(|line| line.log10_chance(LEAST_BLOCKS) < libm::log10(FALSE_LINE));
        let radians = std::f64::consts::TAU / period.as_secs_f64();
        let phase = line.map(|line| {
            // The sum's angle is minus that of the maximum; the minimum is half a period later.
            let angle = std::f64::consts::PI - line.angle();
            Duration::from_secs_f64(
                libm::fmod(angle + std::f64::consts::TAU, std::f64::consts::TAU) / radians,
            )
        });
        let error = line.map_or(period, |line| Duration::from_secs_f64(line.angle_error() / radians));
        Learned { period, strong_period, phase, error, log10_chance: log10_chance.max(-300.0) }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
#[path = "learner_tests.rs"]
mod tests;
