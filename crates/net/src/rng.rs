//! Named streams of random numbers (PCG), and samplers on them.
//!
//! Each component has a stream of its own, named by its place in the model (`"cell0/fading/3"`), so that an
//! added component changes no other's numbers. The samplers use `libm`, so that every machine draws the same
//! values.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::fmt;

/// A stream of random numbers, determined by the run's seed and a name.
#[derive(Clone)]
pub struct Stream {
    generator: Pcg64Mcg,
    spare_normal: Option<f64>,
}

impl Stream {
    /// The stream `name` of the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then SplitMix64 to spread seed and name over the 128 bits of state.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut state = seed ^ hash.rotate_left(32);
        let high = split_mix(&mut state);
        let low = split_mix(&mut state) ^ hash;
        Self { generator: Pcg64Mcg::new((u128::from(high) << 64) | u128::from(low)), spare_normal: None }
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }
    /// Uniform in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Uniform in `[low, high)`.
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
    /// Uniform in `0..bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.uniform() < p
    }
    /// Standard normal (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare_normal.take() {
            return value;
        }
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        let angle = std::f64::consts::TAU * self.uniform();
        self.spare_normal = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }
    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let draw = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(draw(1, "cell0/harq"), draw(1, "cell0/harq"));
        assert_ne!(draw(1, "cell0/harq"), draw(2, "cell0/harq"));
        assert_ne!(draw(1, "cell0/harq"), draw(1, "cell0/fading"));
    }

    #[test]
    fn golden_values_hold_on_every_machine() {
        let mut stream = Stream::new(7, "golden");
        let drawn = [stream.uniform(), stream.normal(), stream.normal(), stream.exponential(2.0)];
        assert_eq!(drawn.map(f64::to_bits), GOLDEN);
    }
    const GOLDEN: [u64; 4] =
        [4605846134989296504, 4607669747750652132, 13827756698880189127, 4613464873637458706];

    #[test]
    fn moments_are_right() {
        let mut stream = Stream::new(3, "moments");
        let n = 200_000;
        let normals: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(n);
        let variance = normals.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        // Four standard errors: 1/sqrt(n) = 0.0022, sqrt(2/n) = 0.0032.
        assert!(mean.abs() < 0.009, "{mean}");
        assert!((variance - 1.0).abs() < 0.013, "{variance}");
        let exponential = (0..n).map(|_| stream.exponential(5.0)).sum::<f64>() / f64::from(n);
        assert!((exponential - 5.0).abs() < 0.045, "{exponential}");
        let below = (0..n).map(|_| stream.below(10)).sum::<u64>() as f64 / f64::from(n);
        assert!((below - 4.5).abs() < 0.026, "{below}");
    }
}
