//! The verdict on a transport block without its exact error probability.
//!
//! A code block fails with `Q(z)`, the tail of the normal distribution at z standard deviations, and a
//! transport block of C code blocks with `1 - (1 - Q(z))^C`. A uniform draw decides. Bounds of `Q` from a
//! table decide most draws as the exact probability does; `erfc` and the logarithm of libm are needed for
//! one draw in a hundred.

use crate::decibel::Sinr;
use std::sync::LazyLock;

/// Deviations beyond which a code block is taken to be decoded or to fail always. Chosen: the tail is below
/// 1e-9 there, less than the draws of a run can resolve.
pub const LIMIT: f64 = 6.0;
/// Entries of the table per standard deviation. Chosen: two neighbours differ by at most 0.013, the share of
/// draws that the bounds leave open.
const STEPS: f64 = 32.0;
/// Number of entries, `2 * LIMIT * STEPS` and both ends. Follows from these.
const ENTRIES: usize = 385;
/// Largest error of the deviations. Chosen: ten times that of [`Sinr::nearly_db`] over the least sigma, 0.13
/// dB.
const DEVIATION_ERROR: f64 = 1e-8;
/// Largest error of a computed probability. Chosen: far above the rounding of 1000 products.
const PROBABILITY_ERROR: f64 = 1e-12;

/// The probability that a code block fails at a number of standard deviations above its 50% point.
pub fn code_block_error(deviations: f64) -> f64 {
    0.5 * libm::erfc(deviations * std::f64::consts::FRAC_1_SQRT_2)
}

/// `base^exponent` by squaring.
pub fn power(base: f64, exponent: u32) -> f64 {
    let (mut square, mut left, mut product) = (base, exponent, 1.0);
    while left > 0 {
        if left % 2 == 1 {
            product *= square;
        }
        square *= square;
        left /= 2;
    }
    product
}

/// `Q` at `-LIMIT`, `-LIMIT + 1 / STEPS`, ..., `LIMIT`.
static TAIL: LazyLock<[f64; ENTRIES]> =
    LazyLock::new(|| std::array::from_fn(|index| code_block_error(index as f64 / STEPS - LIMIT)));

/// The error curve of a transport block.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCurve {
    /// SINR in dB at which half of the code blocks fail.
    pub s50_db: f64,
    /// Standard deviation in dB.
    pub sigma_db: f64,
    /// Number of code blocks.
    pub code_blocks: u32,
}

impl ErrorCurve {
    /// Whether a block with this SINR is decoded by a uniform draw, `draw >= error`; none where the bounds
    /// leave it open.
    #[inline]
    pub fn decodes(&self, sinr: Sinr, draw: f64) -> Option<bool> {
        let deviations = (sinr.nearly_db()? - self.s50_db) / self.sigma_db;
        if deviations.abs() >= LIMIT - DEVIATION_ERROR {
            let beyond = deviations.abs() > LIMIT + DEVIATION_ERROR;
            return beyond.then_some(deviations > 0.0);
        }
        let entry = |deviations: f64| ((deviations + LIMIT) * STEPS) as usize;
        let most = TAIL[entry(deviations - DEVIATION_ERROR)];
        if draw >= most * f64::from(self.code_blocks) + PROBABILITY_ERROR {
            return Some(true); // 1 - (1 - Q)^C is at most C Q
        }
        let error = |one: f64| 1.0 - power(1.0 - one, self.code_blocks);
        if draw >= error(most) + PROBABILITY_ERROR {
            return Some(true);
        }
        let least = TAIL[entry(deviations + DEVIATION_ERROR) + 1];
        (draw < error(least) - PROBABILITY_ERROR).then_some(false)
    }
}
