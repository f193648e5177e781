//! Spectral lines of events in blocks of time, and the tests on them.

use crate::{Duration, Instant};

/// Frequencies of the lines in hertz: those of the periods of TS 38.331 and TS 36.211 and their harmonics, as
/// far as jitter of a millisecond leaves something of them.
pub const HERTZ: [u32; 8] = [50, 100, 200, 250, 400, 500, 600, 800];
/// Length of a block: two periods of 50 Hz, by definition of the lowest line.
pub const BLOCK: Duration = Duration::from_millis(40);
/// Bins of a block. Chosen: 100 us, an eighth of the shortest line's period.
const BINS: usize = 400;
/// Bins of one turn of 50 Hz, by definition.
const TURN: usize = 200;
/// Fewest events of a block that is used. Chosen: fewer give no spectrum.
const LEAST_EVENTS: u32 = 4;
/// Cosine and sine of 1/200 of a turn, by definition.
const STEP: (f64, f64) = (0.999_506_560_365_731_6, 0.031_410_759_078_128_29);
/// The unit circle in 200 steps, by definition.
static CIRCLE: [(f32, f32); TURN] = circle();

/// A complex value for each of [`HERTZ`].
pub type Spectrum = [(f64, f64); HERTZ.len()];

const fn circle() -> [(f32, f32); TURN] {
    let mut points = [(1.0, 0.0); TURN];
    let (mut cosine, mut sine, mut index) = (1.0, 0.0, 0);
    while index < TURN {
        points[index] = (cosine as f32, sine as f32);
        (cosine, sine) = (cosine * STEP.0 - sine * STEP.1, sine * STEP.0 + cosine * STEP.1);
        index += 1;
    }
    points
}

/// The events of the block of time that is under way.
#[derive(Clone, Debug)]
pub struct Block {
    number: u64,
    count: u32,
    events: Box<[u16; BINS]>,
    /// Sum of the values of a bin's events in milliseconds.
    values: Box<[f32; BINS]>,
    has_values: bool,
}

impl Default for Block {
    fn default() -> Self {
        let (events, values) = (Box::new([0; BINS]), Box::new([0.0; BINS]));
        Self { number: 0, count: 0, events, values, has_values: false }
    }
}

impl Block {
    /// Adds an event; returns the spectrum of the former block if this one begins another.
    pub fn add(&mut self, at: Instant, value: Option<Duration>) -> Option<Spectrum> {
        let number = at.as_nanos() / BLOCK.as_nanos();
        let mut ended = None;
        if number > self.number {
            ended = self.end();
            self.number = number;
        } else if number < self.number {
            return None; // a retransmission's echo, or a clock that went back: its block is closed
        }
        let bin = (at.as_nanos() % BLOCK.as_nanos() / (BLOCK.as_nanos() / BINS as u64)) as usize;
        self.events[bin] = self.events[bin].saturating_add(1);
        self.count = self.count.saturating_add(1);
        if let Some(value) = value {
            self.values[bin] += value.as_millis_f64() as f32;
            self.has_values = true;
        }
        ended
    }
    fn end(&mut self) -> Option<Spectrum> {
        let spectrum = (self.count >= LEAST_EVENTS).then(|| self.spectrum());
        self.count = 0;
        self.events.fill(0);
        self.values.fill(0.0);
        spectrum
    }
    /// Of the events, or of their values without mean and trend: a queue that grows in every block would have
    /// lines of a steady phase.
    fn spectrum(&self) -> Spectrum {
        let (mean, slope, middle) = if self.has_values { self.trend() } else { (0.0, 0.0, 0.0) };
        let mut sums = [(0.0_f32, 0.0_f32); HERTZ.len()];
        for (bin, (&events, &value)) in self.events.iter().zip(self.values.iter()).enumerate() {
            if events == 0 {
                continue;
            }
            let weight = f32::from(events);
            let expected = weight * (mean + slope * (bin as f32 - middle));
            let amount = if self.has_values { value - expected } else { weight };
            for (sum, hertz) in sums.iter_mut().zip(HERTZ) {
                let (cosine, sine) = CIRCLE[bin * (hertz / HERTZ[0]) as usize % TURN];
                *sum = (sum.0 + amount * cosine, sum.1 - amount * sine);
            }
        }
        sums.map(|(real, imaginary)| {
            let count = f64::from(self.count);
            (f64::from(real) / count, f64::from(imaginary) / count)
        })
    }
    /// Mean value, its slope per bin, and the mean bin. The slope is that between the means of the two turns,
    /// which contain whole periods: a least-squares line would turn a part of each sawtooth into a trend.
    fn trend(&self) -> (f32, f32, f32) {
        let mut sums = [(0.0_f32, 0.0_f32, 0.0_f32); 2];
        for (bin, (&events, &value)) in self.events.iter().zip(self.values.iter()).enumerate() {
            let (sum, events) = (&mut sums[bin / TURN], f32::from(events));
            *sum = (sum.0 + events, sum.1 + events * bin as f32, sum.2 + value);
        }
        let [first, second] = sums;
        let count = first.0 + second.0;
        let (mean_x, mean_y) = ((first.1 + second.1) / count, (first.2 + second.2) / count);
        if first.0 == 0.0 || second.0 == 0.0 {
            return (mean_y, 0.0, mean_x);
        }
        let slope = (second.2 / second.0 - first.2 / first.0) / (second.1 / second.0 - first.1 / first.0);
        (mean_y, slope, mean_x)
    }
}

/// Weighted sums of one line's values over blocks.
#[derive(Clone, Copy, Default, Debug)]
pub struct Line {
    weight: f64,
    squared_weight: f64,
    sum: (f64, f64),
    squares: f64,
}

impl Line {
    /// Adds a block's value; older ones lose weight by the factor `forget`.
    pub fn add(&mut self, (real, imaginary): (f64, f64), forget: f64) {
        self.weight = self.weight * forget + 1.0;
        self.squared_weight = self.squared_weight * forget * forget + 1.0;
        self.sum = (self.sum.0 * forget + real, self.sum.1 * forget + imaginary);
        self.squares = self.squares * forget + real * real + imaginary * imaginary;
    }
    /// Number of equally weighted blocks with the same variance of the mean.
    pub fn blocks(&self) -> f64 {
        if self.weight > 0.0 { self.weight * self.weight / self.squared_weight } else { 0.0 }
    }
    fn mean(&self) -> (f64, f64) {
        (self.sum.0 / self.weight, self.sum.1 / self.weight)
    }
    /// Squared amplitude of the mean; not a number before the first block.
    pub fn mean_power(&self) -> f64 {
        let (real, imaginary) = self.mean();
        real * real + imaginary * imaginary
    }
    /// Variance of a block's complex value.
    fn variance(&self) -> f64 {
        let blocks = self.blocks();
        let variance = (self.squares / self.weight - self.mean_power()) * blocks / (blocks - 1.0);
        variance.max(1e-12 * self.squares / self.weight).max(f64::MIN_POSITIVE)
    }
    /// Common logarithm of the probability that noise has such a mean: M |mean|^2 / variance is distributed
    /// as F(2, 2M - 2), whose tail is (1 + F / (M - 1))^-(M - 1). 0 with fewer than `least` blocks.
    pub fn log10_chance(&self, least: f64) -> f64 {
        let blocks = self.blocks();
        if blocks < least {
            return 0.0;
        }
        log10_tail(blocks * self.mean_power() / self.variance(), blocks)
    }
    /// Probability that values of the same line have a mean as far from its mean; 1 for a difference whose
    /// square is below `least`.
    pub fn chance_of_change(&self, values: impl ExactSizeIterator<Item = (f64, f64)>, least: f64) -> f64 {
        let (blocks, count) = (self.blocks(), values.len() as f64);
        let (real, imaginary) = values.fold((0.0, 0.0), |sum, value| (sum.0 + value.0, sum.1 + value.1));
        let mean = self.mean();
        let (real, imaginary) = (real / count - mean.0, imaginary / count - mean.1);
        if real * real + imaginary * imaginary < least {
            return 1.0;
        }
        let variance = self.variance() * (1.0 / count + 1.0 / blocks);
        libm::pow(10.0, log10_tail((real * real + imaginary * imaginary) / variance, blocks))
    }
    /// Angle of the mean in radians.
    pub fn angle(&self) -> f64 {
        let (real, imaginary) = self.mean();
        libm::atan2(imaginary, real)
    }
    /// Standard deviation of the angle in radians.
    pub fn angle_error(&self) -> f64 {
        libm::sqrt(self.variance() / (2.0 * self.blocks() * self.mean_power()).max(f64::MIN_POSITIVE))
    }
}

/// Common logarithm of the tail of F(2, 2M - 2) at `f`.
fn log10_tail(f: f64, blocks: f64) -> f64 {
    let freedom = (blocks - 1.0).max(1.0);
    -freedom * libm::log10(1.0 + f / freedom)
}
