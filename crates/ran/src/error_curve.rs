//! The block error curve of a transport block, and the verdict on a transmission.
//!
//! A code block fails with `Q(z)`, the tail of the normal distribution, z standard deviations above the SINR
//! where half of them fail, and a transport block of C code blocks with `1 - (1 - Q(z))^C`. A uniform draw
//! decides. Bounds of `Q` from a table decide most draws as the exact probability does; `erfc` and the
//! logarithm of libm are needed for one draw in a hundred. LTE and NR give the parameters of the curve.

use crate::decibel::Sinr;
use std::sync::LazyLock;

/// Deviations beyond which a code block is taken to be decoded or to fail always. Chosen: the tail is below
/// 1e-9 there, less than the draws of a run can resolve.
const LIMIT: f64 = 6.0;
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

/// The tail of the normal distribution.
fn tail(deviations: f64) -> f64 {
    0.5 * libm::erfc(deviations * std::f64::consts::FRAC_1_SQRT_2)
}

/// `base^exponent` by squaring.
fn power(base: f64, exponent: u32) -> f64 {
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
    LazyLock::new(|| std::array::from_fn(|index| tail(index as f64 / STEPS - LIMIT)));

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
    /// The probability that the block fails at a SINR in dB.
    pub fn error(&self, sinr_db: f64) -> f64 {
        let deviations = (sinr_db - self.s50_db) / self.sigma_db;
        if deviations > LIMIT {
            return 0.0;
        }
        if deviations < -LIMIT {
            return 1.0;
        }
        // The success of a code block as a tail of its own, not as a difference from one.
        1.0 - power(tail(-deviations), self.code_blocks)
    }
    /// Whether a uniform draw decodes the block: whether it is at least the probability of failure.
    #[inline]
    pub fn decodes(&self, sinr: Sinr, draw: f64) -> bool {
        self.decided_by_bounds(sinr, draw).unwrap_or_else(|| draw >= self.error(sinr.db()))
    }
    /// The same; none where the bounds leave it open.
    #[inline]
    fn decided_by_bounds(&self, sinr: Sinr, draw: f64) -> Option<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::from_db;
    use paceline_net::Stream;

    #[test]
    fn verdicts_are_those_of_the_exact_probability() {
        let mut stream = Stream::new(1, "verdicts");
        let (mut drawn, mut open) = (0, 0);
        for _ in 0..200_000 {
            let curve = ErrorCurve {
                s50_db: stream.uniform_in(-10.0, 30.0),
                sigma_db: stream.uniform_in(0.126, 1.2),
                code_blocks: 1 + stream.below(150) as u32,
            };
            let sinr_db = curve.s50_db + curve.sigma_db * 3.0 * stream.normal();
            for sinr in [Sinr::Db(sinr_db), Sinr::Linear(from_db(sinr_db))] {
                let error = curve.error(sinr.db());
                // Draws are below 1.
                let (draw, at) = (stream.uniform(), error.min(1.0f64.next_down()));
                for draw in [draw, draw * draw * draw, at, at.next_down().max(0.0), 0.0] {
                    assert_eq!(curve.decodes(sinr, draw), draw >= error, "{curve:?} {sinr:?} {draw}");
                }
                drawn += 1;
                open += u32::from(curve.decided_by_bounds(sinr, draw).is_none());
            }
        }
        assert!(100 * open < 2 * drawn, "{open} of {drawn} draws need the exact probability");
    }

    #[test]
    fn extreme_ratios_have_a_verdict() {
        let curve = ErrorCurve { s50_db: 3.0, sigma_db: 0.2, code_blocks: 3 };
        for (sinr, decodes) in [(0.0, false), (f64::MIN_POSITIVE / 2.0, false), (f64::INFINITY, true)] {
            assert_eq!(curve.decodes(Sinr::Linear(sinr), 0.5), decodes, "{sinr}");
        }
        for step in -3..=3 {
            // At the limits themselves, within the error of the bounds.
            let edge = curve.s50_db + curve.sigma_db * (LIMIT + f64::from(step) * 1e-9);
            for sinr_db in [edge, 2.0 * curve.s50_db - edge] {
                let draw = curve.error(sinr_db).min(1.0f64.next_down());
                assert_eq!(curve.decodes(Sinr::Db(sinr_db), draw), draw >= curve.error(sinr_db));
            }
        }
    }
}
