//! Fast fading: the tapped delay lines of TS 36.101 Annex B.2 (EPA, EVA, ETU) and TS 38.101-4 (TDL), every tap with
//! Rayleigh amplitude and the Jakes spectrum.
//!
//! A tap is the sum of 16 sinusoids of equal power with random phases, whose angles of arrival are drawn one from
//! each sixteenth of the circle: its autocorrelation over drawings is exactly `J0(2 pi f_d tau)`. The channel is
//! evaluated at given frequencies and held over a TTI. A value depends on the drawing and the TTI only: phases are
//! computed from the absolute time every 1024 TTIs, and turned from there by fixed powers of the rotation per TTI,
//! always in the same order, so that any sequence of queries gives the same bits. Slow channels are evaluated at
//! nodes 2^n TTIs apart, at which the fastest path has turned by no more than 0.3 rad, and follow the cubic through
//! the four nodes around: of a path's gain that misses `0.3^4 * 3/128`, 0.0002, at most. Left out: line of sight in
//! taps, correlation between antennas (draw one fader each), changes of speed.

use crate::decibel::from_db;
use crate::prb::PRB_HZ;
use paceline_net::Stream;
use std::f64::consts::TAU;
use std::ops::Range;

/// Sinusoids per tap.
const SINUSOIDS: usize = 16;
/// Steps of 1, 2, 4 .. 512 TTIs.
const POWERS: usize = 10;
/// Nodes that a response is interpolated from, and that are kept: going back a little computes none again.
const NODES: usize = 4;
const KEPT: usize = 8;
/// Most that the fastest path's phase turns from one node to the next, in radians.
const MAX_TURN: f64 = 0.3;
/// Seconds of a TTI.
const TTI_SECONDS: f64 = 1e-3;
/// Sinusoids and frequencies are worked on in groups of this many, which every processor has instructions for.
pub const LANES: usize = 4;
/// Groups of sinusoids per tap.
const PARTS: usize = SINUSOIDS / LANES;

/// Delay and mean power of the taps.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Delay in seconds and share of the power.
    taps: Vec<(f64, f64)>,
}

impl Profile {
    /// The profile `EPA`, `EVA`, `ETU`, `TDLA30`, `TDLB100` or `TDLC300`; `None` for another name.
    pub fn named(name: &str) -> Option<Self> {
        let rows = include_str!("../../../data/fading_taps.csv").lines().filter_map(|line| {
            let mut fields = line.strip_prefix(name)?.strip_prefix(',')?.split(',').skip(1);
            let mut number = || fields.next()?.parse::<f64>().ok();
            Some((number()? * 1e-9, from_db(number()?)))
        });
        let taps: Vec<(f64, f64)> = rows.collect();
        let total: f64 = taps.iter().map(|tap| tap.1).sum();
        let shares = taps.into_iter().map(|(delay, power)| (delay, power / total));
        let profile = Self { taps: shares.collect() };
        (!profile.taps.is_empty()).then_some(profile)
    }
    /// A single tap: the same gain at all frequencies.
    pub fn flat() -> Self {
        Self { taps: vec![(0.0, 1.0)] }
    }
    /// Delays in seconds and shares of the power.
    pub fn taps(&self) -> &[(f64, f64)] {
        &self.taps
    }
    /// Correlation of the complex gains of two frequencies `spacing_hz` apart: real and imaginary part.
    pub fn frequency_correlation(&self, spacing_hz: f64) -> (f64, f64) {
        self.taps.iter().fold((0.0, 0.0), |(re, im), (delay, power)| {
            let (sin, cos) = libm::sincos(TAU * spacing_hz * delay);
            (re + power * cos, im - power * sin)
        })
    }
    /// Root mean square of the delay in seconds.
    pub fn delay_spread(&self) -> f64 {
        let mean: f64 = self.taps.iter().map(|(delay, power)| delay * power).sum();
        let square: f64 = self.taps.iter().map(|(delay, power)| delay * delay * power).sum();
        (square - mean * mean).sqrt()
    }
}

/// Doppler frequency in Hz of a station moving at `speed_kmh` with a carrier of `f_ghz`.
pub fn doppler_hz(speed_kmh: f64, f_ghz: f64) -> f64 {
    speed_kmh / 3.6 * f_ghz * 1e9 / 299_792_458.0
}

/// Centres in Hz from the carrier of subbands of `blocks` resource blocks each; the last may be narrower
/// (TS 36.213 §7.2.1).
pub fn subband_centres(resource_blocks: u32, blocks: u32) -> Vec<f64> {
    let middle = f64::from(resource_blocks) / 2.0;
    let bands = (0..resource_blocks).step_by(blocks.max(1) as usize).map(|first| {
        let end = (first + blocks.max(1)).min(resource_blocks);
        ((f64::from(first) + f64::from(end)) / 2.0 - middle) * PRB_HZ
    });
    bands.collect()
}

/// A profile seen at a set of frequencies; shared by all faders.
#[derive(Clone, Debug)]
pub struct FadingModel {
    profile: Profile,
    frequencies: usize,
    /// Per group of frequencies and tap: the amplitude of a sinusoid times the phase of the delay.
    twiddles: Vec<Complex>,
}

/// Complex numbers in two arrays.
#[derive(Clone, Copy, Debug)]
struct Complex {
    re: [f32; LANES],
    im: [f32; LANES],
}

impl Complex {
    const ZERO: Self = Self { re: [0.0; LANES], im: [0.0; LANES] };

    /// The products, number by number.
    #[inline(always)]
    fn times(&self, by: &Self) -> Self {
        Self {
            re: std::array::from_fn(|i| self.re[i] * by.re[i] - self.im[i] * by.im[i]),
            im: std::array::from_fn(|i| self.re[i] * by.im[i] + self.im[i] * by.re[i]),
        }
    }
    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        Self {
            re: std::array::from_fn(|i| self.re[i] + other.re[i]),
            im: std::array::from_fn(|i| self.im[i] + other.im[i]),
        }
    }
    #[inline(always)]
    fn scaled(&self, by: f32) -> Self {
        Self { re: self.re.map(|re| re * by), im: self.im.map(|im| im * by) }
    }
    /// Squares of their sizes.
    #[inline(always)]
    fn powers(&self) -> [f32; LANES] {
        std::array::from_fn(|i| self.re[i] * self.re[i] + self.im[i] * self.im[i])
    }
    /// Unit numbers at angles in turns.
    fn at_turns(turns: &[f64; LANES]) -> Self {
        let pairs = turns.map(|turns| libm::sincos(TAU * (turns - turns.floor())));
        Self { re: pairs.map(|pair| pair.1 as f32), im: pairs.map(|pair| pair.0 as f32) }
    }
}

impl FadingModel {
    /// The channel with `profile` at `frequencies_hz` from the carrier.
    pub fn new(profile: Profile, frequencies_hz: &[f64]) -> Self {
        let mut twiddles = Vec::with_capacity(profile.taps.len() * frequencies_hz.len().div_ceil(LANES));
        for group in frequencies_hz.chunks(LANES) {
            for (delay, power) in &profile.taps {
                let amplitude = (power / SINUSOIDS as f64).sqrt() as f32;
                let mut turns = [0.0; LANES];
                for (turns, frequency) in turns.iter_mut().zip(group) {
                    *turns = -frequency * delay;
                }
                let Complex { re, im } = Complex::at_turns(&turns);
                twiddles.push(Complex { re: re.map(|re| re * amplitude), im: im.map(|im| im * amplitude) });
            }
        }
        Self { profile, frequencies: frequencies_hz.len(), twiddles }
    }
    /// Number of frequencies.
    pub fn frequencies(&self) -> usize {
        self.frequencies
    }
    /// Its profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}

/// One tap of one link, its sinusoids in groups.
#[derive(Clone, Debug)]
struct Tap {
    /// Turns per TTI of each sinusoid.
    rate: [f64; SINUSOIDS],
    /// Turns at TTI 0.
    start: [f64; SINUSOIDS],
    /// Rotation over 1, 2, 4 .. TTIs.
    powers: [[Complex; PARTS]; POWERS],
    /// The sinusoids at the last multiple of 1024 and of 32 TTIs.
    coarse: [Complex; PARTS],
    fine: [Complex; PARTS],
}

/// Unit numbers of all sinusoids at angles in turns.
fn at_turns(turns: impl Fn(usize) -> f64) -> [Complex; PARTS] {
    std::array::from_fn(|part| {
        let turns = std::array::from_fn(|i| turns(part * LANES + i));
        Complex::at_turns(&turns)
    })
}

impl Tap {
    fn new(doppler_hz: f64, stream: &mut Stream) -> Self {
        let (mut rate, mut start) = ([0.0; SINUSOIDS], [0.0; SINUSOIDS]);
        for i in 0..SINUSOIDS {
            let angle = TAU * (i as f64 + stream.uniform()) / SINUSOIDS as f64;
            rate[i] = doppler_hz * TTI_SECONDS * libm::cos(angle);
            start[i] = stream.uniform();
        }
        let powers = std::array::from_fn(|bit| at_turns(|i| rate[i] * f64::from(1u32 << bit)));
        let none = [Complex::ZERO; PARTS];
        Self { rate, start, powers, coarse: none, fine: none }
    }
    /// Lets everything happen so many TTIs later.
    fn delay(&mut self, ttis: u32) {
        for (start, rate) in self.start.iter_mut().zip(&self.rate) {
            *start -= rate * f64::from(ttis);
        }
    }
    fn load_coarse(&mut self, tti: u64) {
        self.coarse = at_turns(|i| self.start[i] + self.rate[i] * tti as f64);
    }
    /// `from` after the steps of five bits of `tti` from `low` on, as far as they are set, the largest first.
    #[inline(always)]
    fn stepped(&self, mut from: [Complex; PARTS], tti: u64, low: usize) -> [Complex; PARTS] {
        // Written out: as a loop, compilers leave the numbers in memory.
        self.step(&mut from, tti, low + 4);
        self.step(&mut from, tti, low + 3);
        self.step(&mut from, tti, low + 2);
        self.step(&mut from, tti, low + 1);
        self.step(&mut from, tti, low);
        from
    }
    #[inline(always)]
    fn step(&self, numbers: &mut [Complex; PARTS], tti: u64, bit: usize) {
        if tti >> bit & 1 == 1 {
            let [a, b, c, d] = &self.powers[bit];
            *numbers = [numbers[0].times(a), numbers[1].times(b), numbers[2].times(c), numbers[3].times(d)];
        }
    }
}

/// The fading of one link: a drawing of all taps.
#[derive(Clone, Debug)]
pub struct Fader {
    taps: Vec<Tap>,
    /// Which multiples of 1024 and of 32 TTIs the taps hold.
    coarse_at: u64,
    fine_at: u64,
    /// The sums of the taps at the node computed last, each repeated in all lanes.
    sums: Vec<Complex>,
    /// TTIs between nodes, as a power of two, and what a TTI is of that.
    spacing: u32,
    step: f64,
    /// Per group of frequencies, the responses at the nodes that are kept, and which nodes they are.
    nodes: Vec<[Complex; KEPT]>,
    held: [u64; KEPT],
    /// Places of the nodes that the TTI that it was sent to is interpolated from, and their weights.
    places: [usize; NODES],
    weights: [f32; NODES],
}

impl Fader {
    /// Draws a link of `model` with a maximum Doppler frequency; zero gives a channel that never changes.
    pub fn new(model: &FadingModel, doppler_hz: f64, stream: &mut Stream) -> Self {
        let mut taps: Vec<Tap> =
            (0..model.profile.taps.len()).map(|_| Tap::new(doppler_hz, stream)).collect();
        let turn = TAU * doppler_hz * TTI_SECONDS;
        let fits = |spacing: &u32| turn * f64::from(1u32 << spacing) <= MAX_TURN;
        let spacing = (1..=POWERS as u32).rev().find(fits).unwrap_or(0);
        if spacing > 0 {
            taps.iter_mut().for_each(|tap| tap.delay(1 << spacing));
        }
        let groups = model.frequencies.div_ceil(LANES);
        Self {
            coarse_at: u64::MAX,
            fine_at: u64::MAX,
            sums: vec![Complex::ZERO; taps.len()],
            taps,
            spacing,
            step: 1.0 / f64::from(1u32 << spacing),
            nodes: vec![[Complex::ZERO; KEPT]; groups],
            held: [u64::MAX; KEPT],
            places: [0; NODES],
            weights: [1.0, 0.0, 0.0, 0.0],
        }
    }
    /// Goes to a TTI, earlier or later; `model` is the one that this fader was drawn from.
    pub fn go_to(&mut self, model: &FadingModel, tti: u64) {
        if self.spacing == 0 {
            return self.compute_node(model, tti, 0);
        }
        // The taps are one node late, so that the node before the first one is node 0.
        let first = tti >> self.spacing;
        self.places = std::array::from_fn(|node| (first as usize + node) % KEPT);
        for (node, place) in (first..).zip(self.places) {
            if self.held[place] != node {
                self.held[place] = node;
                self.compute_node(model, node << self.spacing, place);
            }
        }
        let rest = tti & ((1 << self.spacing) - 1);
        self.weights = lagrange(rest as f64 * self.step).map(|weight| weight as f32);
    }
    fn compute_node(&mut self, model: &FadingModel, tti: u64, place: usize) {
        let (coarse_at, fine_at) = (tti >> POWERS, tti >> (POWERS / 2));
        let (new_coarse, new_fine) = (coarse_at != self.coarse_at, fine_at != self.fine_at);
        for (tap, sum) in self.taps.iter_mut().zip(&mut self.sums) {
            if new_coarse {
                tap.load_coarse(coarse_at << POWERS);
            }
            if new_fine {
                tap.fine = tap.stepped(tap.coarse, tti, POWERS / 2);
            }
            *sum = total(&tap.stepped(tap.fine, tti, 0));
        }
        (self.coarse_at, self.fine_at) = (coarse_at, fine_at);
        for (nodes, twiddles) in self.nodes.iter_mut().zip(model.twiddles.chunks_exact(self.sums.len())) {
            nodes[place] = response(&self.sums, twiddles);
        }
    }
    /// The complex gains of some groups of four frequencies, one by one.
    #[inline(always)]
    fn responses(&self, groups: Range<usize>) -> impl Iterator<Item = Complex> {
        let ([a, b, c, d], [at_a, at_b, at_c, at_d]) = (self.weights, self.places.map(|place| place % KEPT));
        self.nodes[groups].iter().map(move |nodes| match self.spacing {
            0 => nodes[0],
            _ => {
                let (before, behind) = (nodes[at_b].scaled(b), nodes[at_c].scaled(c));
                nodes[at_a].scaled(a).plus(&before).plus(&behind.plus(&nodes[at_d].scaled(d)))
            }
        })
    }
    /// Power gains with mean 1 in the TTI that it was sent to, of some groups of four frequencies; beyond the last
    /// frequency they mean nothing.
    pub fn power_gains(&self, groups: Range<usize>, out: &mut [[f32; LANES]]) {
        for (out, response) in out.iter_mut().zip(self.responses(groups)) {
            *out = response.powers();
        }
    }
}

/// Weights of the values at -1, 0, 1 and 2 in the cubic through them, between 0 and 1.
fn lagrange(x: f64) -> [f64; NODES] {
    const SIXTH: f64 = 1.0 / 6.0;
    let (a, b, c) = (x + 1.0, x - 1.0, x - 2.0);
    [-x * b * c * SIXTH, a * b * c * 0.5, -a * x * c * 0.5, a * x * b * SIXTH]
}

/// The complex gains of a group of frequencies, from the sums of the taps and their twiddles.
#[inline(always)]
fn response(sums: &[Complex], twiddles: &[Complex]) -> Complex {
    sums.iter().zip(twiddles).fold(Complex::ZERO, |total, (sum, twiddle)| total.plus(&sum.times(twiddle)))
}

/// The sum of all sinusoids in every lane, by halves.
#[inline(always)]
fn total(sinusoids: &[Complex; PARTS]) -> Complex {
    let [a, b, c, d] = sinusoids;
    let four = a.plus(c).plus(&b.plus(d));
    let sum = |four: &[f32; LANES]| [(four[0] + four[2]) + (four[1] + four[3]); LANES];
    Complex { re: sum(&four.re), im: sum(&four.im) }
}

#[cfg(test)]
#[path = "fading_tests.rs"]
mod tests;
