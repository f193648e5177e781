//! Fast fading: the tapped delay lines of TS 36.101 Annex B.2 (EPA, EVA, ETU) and TS 38.101-4 (TDL). Every
//! tap has a Rayleigh amplitude and the Jakes spectrum.
//!
//! A tap is the sum of 16 sinusoids of equal power with random phases and one angle of arrival from each
//! sixteenth of the circle, so that the autocorrelation over draws is exactly `J0(2 pi f_d tau)`. A value
//! depends on the draw and the slot alone, not on earlier queries: phases are computed from the absolute time
//! every 1024 slots and rotated from there by fixed powers of the rotation per slot, always in the same
//! order. Slow channels are evaluated at nodes 2^n slots apart and interpolated by the cubic through four
//! nodes; the fastest path turns by at most 0.3 rad between nodes, which bounds the error of a path's gain by
//! `0.3^4 * 3/128`, 0.0002. Left out: line of sight, antenna correlation, changes of speed.

use crate::decibel::from_db;
use crate::slot::Numerology;
use paceline_net::Stream;
use std::f64::consts::TAU;
use std::ops::Range;

/// Sinusoids per tap. Chosen: the autocorrelation of one draw follows the Bessel function within 0.03 (test).
const SINUSOIDS: usize = 16;
/// Number of tabulated rotations, over 1, 2, 4 .. 512 slots. Chosen: phases are exact again after 1024 slots.
const POWERS: usize = 10;
/// Nodes of the interpolation. Derived: four for a cubic.
const NODES: usize = 4;
/// Nodes that are kept. Chosen: twice the interpolation's, so that a query for a slightly earlier slot
/// computes no node.
const KEPT: usize = 8;
/// Largest turn of the fastest path's phase between two nodes, in radians. Chosen: the interpolation error is
/// at most 0.0002.
const MAX_TURN: f64 = 0.3;
/// Sinusoids and frequencies that are computed at once. Chosen: four f32 fit the vector registers of every
/// processor.
pub const LANES: usize = 4;
/// Groups of [`LANES`] sinusoids per tap. Derived.
const PARTS: usize = SINUSOIDS / LANES;

/// Delay and mean power of the taps.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Delay in seconds and share of the power of each tap.
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
}

/// Doppler frequency in Hz of a station moving at `speed_kmh` with a carrier of `f_ghz`.
pub fn doppler_hz(speed_kmh: f64, f_ghz: f64) -> f64 {
    speed_kmh / 3.6 * f_ghz * 1e9 / 299_792_458.0
}

/// Centres, in Hz from the carrier, of subbands of `size` PRBs of `prb_hz` each; the last may be narrower (TS
/// 36.213 §7.2.1).
pub fn subband_centres(n_prb: u32, size: u32, prb_hz: f64) -> Vec<f64> {
    let middle = f64::from(n_prb) / 2.0;
    let bands = (0..n_prb).step_by(size.max(1) as usize).map(|first| {
        let end = (first + size.max(1)).min(n_prb);
        ((f64::from(first) + f64::from(end)) / 2.0 - middle) * prb_hz
    });
    bands.collect()
}

/// A profile evaluated at a set of frequencies; shared by all faders.
#[derive(Clone, Debug)]
pub struct FadingModel {
    profile: Profile,
    slot_seconds: f64,
    frequencies: usize,
    /// Per group of frequencies and tap: the amplitude of a sinusoid times the phase of the delay.
    twiddles: Vec<Complex>,
}

/// [`LANES`] complex numbers, real and imaginary parts apart.
#[derive(Clone, Copy, Debug)]
struct Complex {
    re: [f32; LANES],
    im: [f32; LANES],
}

impl Complex {
    /// Zero in every lane, by definition.
    const ZERO: Self = Self { re: [0.0; LANES], im: [0.0; LANES] };

    /// Products of the numbers, lane by lane.
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
    /// Squared magnitudes.
    #[inline(always)]
    fn powers(&self) -> [f32; LANES] {
        std::array::from_fn(|i| self.re[i] * self.re[i] + self.im[i] * self.im[i])
    }
    /// Numbers of magnitude 1 at these angles, in turns.
    fn at_turns(turns: &[f64; LANES]) -> Self {
        let pairs = turns.map(|turns| libm::sincos(TAU * (turns - turns.floor())));
        Self { re: pairs.map(|pair| pair.1 as f32), im: pairs.map(|pair| pair.0 as f32) }
    }
}

impl FadingModel {
    /// The channel with `profile` at `frequencies_hz` from the carrier, in slots of `numerology`.
    pub fn new(profile: Profile, frequencies_hz: &[f64], numerology: Numerology) -> Self {
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
        let slot_seconds = numerology.slot_seconds();
        Self { profile, slot_seconds, frequencies: frequencies_hz.len(), twiddles }
    }
    /// Number of frequencies.
    pub fn frequencies(&self) -> usize {
        self.frequencies
    }
}

/// One tap of one link.
#[derive(Clone, Debug)]
struct Tap {
    /// Turns per slot of each sinusoid.
    rate: [f64; SINUSOIDS],
    /// Turns at slot 0.
    start: [f64; SINUSOIDS],
    /// Rotation over 1, 2, 4 .. Slots.
    powers: [[Complex; PARTS]; POWERS],
    /// The sinusoids at the last computed multiple of 1024 slots, and of 32 slots.
    coarse: [Complex; PARTS],
    fine: [Complex; PARTS],
}

/// All sinusoids at these angles, in turns.
fn at_turns(turns: impl Fn(usize) -> f64) -> [Complex; PARTS] {
    std::array::from_fn(|part| {
        let turns = std::array::from_fn(|i| turns(part * LANES + i));
        Complex::at_turns(&turns)
    })
}

impl Tap {
    fn new(turns_per_slot: f64, stream: &mut Stream) -> Self {
        let (mut rate, mut start) = ([0.0; SINUSOIDS], [0.0; SINUSOIDS]);
        for i in 0..SINUSOIDS {
            let angle = TAU * (i as f64 + stream.uniform()) / SINUSOIDS as f64;
            rate[i] = turns_per_slot * libm::cos(angle);
            start[i] = stream.uniform();
        }
        let powers = std::array::from_fn(|bit| at_turns(|i| rate[i] * f64::from(1u32 << bit)));
        let none = [Complex::ZERO; PARTS];
        Self { rate, start, powers, coarse: none, fine: none }
    }
    /// Shifts the tap in time by so many slots.
    fn delay(&mut self, slots: u32) {
        for (start, rate) in self.start.iter_mut().zip(&self.rate) {
            *start -= rate * f64::from(slots);
        }
    }
    fn load_coarse(&mut self, slot: u64) {
        self.coarse = at_turns(|i| self.start[i] + self.rate[i] * slot as f64);
    }
    /// `from` rotated by the slots of five bits of `slot` from bit `low` on, the highest bit first.
    #[inline(always)]
    fn stepped(&self, mut from: [Complex; PARTS], slot: u64, low: usize) -> [Complex; PARTS] {
        // Unrolled by hand: in a loop, compilers keep the numbers in memory instead of registers.
        self.step(&mut from, slot, low + 4);
        self.step(&mut from, slot, low + 3);
        self.step(&mut from, slot, low + 2);
        self.step(&mut from, slot, low + 1);
        self.step(&mut from, slot, low);
        from
    }
    #[inline(always)]
    fn step(&self, numbers: &mut [Complex; PARTS], slot: u64, bit: usize) {
        if slot >> bit & 1 == 1 {
            let [a, b, c, d] = &self.powers[bit];
            *numbers = [numbers[0].times(a), numbers[1].times(b), numbers[2].times(c), numbers[3].times(d)];
        }
    }
}

/// The fading of one link: one draw of all taps.
#[derive(Clone, Debug)]
pub struct Fader {
    taps: Vec<Tap>,
    /// The multiples of 1024 and of 32 slots that the taps hold.
    coarse_at: u64,
    fine_at: u64,
    /// The sum of each tap at the node computed last, repeated in all lanes.
    sums: Vec<Complex>,
    /// Slots between nodes as a power of two, and its reciprocal.
    spacing: u32,
    step: f64,
    /// Per group of frequencies, the responses at the kept nodes; and the numbers of these nodes.
    nodes: Vec<[Complex; KEPT]>,
    held: [u64; KEPT],
    /// Places of the nodes around the present slot, and their interpolation weights.
    places: [usize; NODES],
    weights: [f32; NODES],
}

impl Fader {
    /// Draws a link of `model` with a maximum Doppler frequency; zero gives a constant channel.
    pub fn new(model: &FadingModel, doppler_hz: f64, stream: &mut Stream) -> Self {
        let mut taps: Vec<Tap> = (0..model.profile.taps.len())
            .map(|_| Tap::new(doppler_hz * model.slot_seconds, stream))
            .collect();
        let turn = TAU * doppler_hz * model.slot_seconds;
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
    /// Moves to any slot, earlier or later; `model` is the one of [`Fader::new`].
    pub fn go_to(&mut self, model: &FadingModel, slot: u64) {
        if self.spacing == 0 {
            return self.compute_node(model, slot, 0);
        }
        // The taps are shifted by one node, so that the node before slot 0 is node 0.
        let first = slot >> self.spacing;
        self.places = std::array::from_fn(|node| (first as usize + node) % KEPT);
        for (node, place) in (first..).zip(self.places) {
            if self.held[place] != node {
                self.held[place] = node;
                self.compute_node(model, node << self.spacing, place);
            }
        }
        let rest = slot & ((1 << self.spacing) - 1);
        self.weights = lagrange(rest as f64 * self.step).map(|weight| weight as f32);
    }
    fn compute_node(&mut self, model: &FadingModel, slot: u64, place: usize) {
        let (coarse_at, fine_at) = (slot >> POWERS, slot >> (POWERS / 2));
        let (new_coarse, new_fine) = (coarse_at != self.coarse_at, fine_at != self.fine_at);
        for (tap, sum) in self.taps.iter_mut().zip(&mut self.sums) {
            if new_coarse {
                tap.load_coarse(coarse_at << POWERS);
            }
            if new_fine {
                tap.fine = tap.stepped(tap.coarse, slot, POWERS / 2);
            }
            *sum = total(&tap.stepped(tap.fine, slot, 0));
        }
        (self.coarse_at, self.fine_at) = (coarse_at, fine_at);
        for (nodes, twiddles) in self.nodes.iter_mut().zip(model.twiddles.chunks_exact(self.sums.len())) {
            nodes[place] = response(&self.sums, twiddles);
        }
    }
    /// Complex gains of groups of four frequencies in the present slot.
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
    /// Linear power gains with mean 1 of groups of four frequencies in the present slot. Lanes beyond the
    /// last frequency are undefined.
    pub fn power_gains(&self, groups: Range<usize>, out: &mut [[f32; LANES]]) {
        for (out, response) in out.iter_mut().zip(self.responses(groups)) {
            *out = response.powers();
        }
    }
}

/// Weights of the values at -1, 0, 1 and 2 in the cubic through them, for an argument between 0 and 1.
fn lagrange(x: f64) -> [f64; NODES] {
    // By definition of the cubic.
    const SIXTH: f64 = 1.0 / 6.0;
    let (a, b, c) = (x + 1.0, x - 1.0, x - 2.0);
    [-x * b * c * SIXTH, a * b * c * 0.5, -a * x * c * 0.5, a * x * b * SIXTH]
}

/// Complex gains of a group of frequencies.
#[inline(always)]
fn response(sums: &[Complex], twiddles: &[Complex]) -> Complex {
    sums.iter().zip(twiddles).fold(Complex::ZERO, |total, (sum, twiddle)| total.plus(&sum.times(twiddle)))
}

/// The sum of all sinusoids, repeated in every lane; the order of additions is fixed.
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
