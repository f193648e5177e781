//! Conversion between decibels and linear ratios.

use std::sync::LazyLock;

/// A linear ratio from dB, or a power in mW from dBm.
pub fn from_db(db: f64) -> f64 {
    libm::exp(db * (std::f64::consts::LN_10 / 10.0))
}
/// A ratio in dB from a linear one, or a power in dBm from mW.
pub fn to_db(linear: f64) -> f64 {
    10.0 * libm::log10(linear)
}

/// Bits of a mantissa that choose an entry of [`LOGARITHMS`]. Chosen: the argument of the series below is at
/// most 1/128, so that four terms are exact to 1e-11.
const INDEX_BITS: u32 = 6;

/// For each interval of the mantissa: the reciprocal of its middle, and the middle in dB.
static LOGARITHMS: LazyLock<[(f64, f64); 1 << INDEX_BITS]> = LazyLock::new(|| {
    std::array::from_fn(|index| {
        let middle = 1.0 + (index as f64 + 0.5) / f64::from(1u32 << INDEX_BITS);
        (1.0 / middle, to_db(middle))
    })
});

/// A ratio in dB as a whole number of 1/1000 dB; 0 if it is negative.
fn millidecibels(db: f64) -> u64 {
    (1000.0 * db.max(0.0) + 0.5) as u64
}

/// [`to_db`] of a normal positive number, with an error below 1e-10 dB: by a table and a series. A logarithm
/// of libm costs five times as much.
fn nearly_db(linear: f64) -> f64 {
    debug_assert!(linear.is_normal() && linear > 0.0);
    let bits = linear.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1.0f64.to_bits());
    let (reciprocal, middle_db) = LOGARITHMS[(bits >> (52 - INDEX_BITS)) as usize % (1 << INDEX_BITS)];
    let r = mantissa * reciprocal - 1.0;
    let series = r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * 0.25)));
    f64::from(exponent) * (10.0 * std::f64::consts::LOG10_2)
        + middle_db
        + series * (10.0 * std::f64::consts::LOG10_E)
}

/// [`millidecibels`] of a linear ratio above an origin in dB. By [`nearly_db`] where its error cannot change
/// the result.
fn millidecibels_above(linear: f64, origin_db: f64) -> u64 {
    /// Difference from a whole number below which the logarithm of libm decides. Chosen: 100 times the
    /// error of [`nearly_db`] in 1/1000 dB.
    const DOUBT: f64 = 1e-5;
    if !linear.is_normal() || linear < 0.0 {
        return millidecibels(to_db(linear) - origin_db);
    }
    let value = 1000.0 * (nearly_db(linear) - origin_db).max(0.0) + 0.5;
    let rounded = value as u64;
    let above = value - rounded as f64;
    if (DOUBT..1.0 - DOUBT).contains(&above) { rounded } else { millidecibels(to_db(linear) - origin_db) }
}

/// A signal-to-interference-and-noise ratio in the form in which it is known. A conversion costs an
/// exponential function or a logarithm, which most blocks do not need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sinr {
    /// In dB.
    Db(f64),
    /// As a ratio.
    Linear(f64),
}

impl Sinr {
    /// The ratio.
    pub fn linear(self) -> f64 {
        match self {
            Self::Db(db) => from_db(db),
            Self::Linear(linear) => linear,
        }
    }
    /// In dB.
    pub fn db(self) -> f64 {
        match self {
            Self::Db(db) => db,
            Self::Linear(linear) => to_db(linear),
        }
    }
    /// In dB with an error below 1e-10; none for ratios without a finite logarithm.
    pub fn nearly_db(self) -> Option<f64> {
        match self {
            Self::Db(db) => db.is_finite().then_some(db),
            Self::Linear(linear) => (linear.is_normal() && linear > 0.0).then(|| nearly_db(linear)),
        }
    }
    /// The SINR relative to an origin in dB, as a whole number of 1/1000 dB; 0 if it is negative.
    pub fn millidecibels_above(self, origin_db: f64) -> u64 {
        match self {
            Self::Db(db) => millidecibels(db - origin_db),
            Self::Linear(linear) => millidecibels_above(linear, origin_db),
        }
    }
    /// The sum of both ratios.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::Linear(self.linear() + other.linear())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    #[test]
    fn millidecibels_are_those_of_the_exact_logarithm() {
        let mut stream = Stream::new(1, "ratios");
        let exact = |linear: f64| (1000.0 * (to_db(linear) + 100.0).max(0.0) + 0.5) as u64;
        assert_eq!(Sinr::Db(12.3456).millidecibels_above(-100.0), 112_346);
        let sum = Sinr::Db(3.0).plus(Sinr::Linear(from_db(3.0)));
        assert!((sum.db() - 6.0103).abs() < 1e-4, "{sum:?}");
        assert_eq!([Sinr::Linear(0.0), Sinr::Db(f64::NEG_INFINITY)].map(Sinr::nearly_db), [None; 2]);
        let boundaries = (0..2000).map(|i| from_db(f64::from(i) * 0.0105 - 0.0005));
        let drawn: Vec<f64> = (0..200_000).map(|_| from_db(stream.uniform_in(-120.0, 60.0))).collect();
        let special = [0.0, f64::MIN_POSITIVE, 1e-310, 1.0, 2.0, 4096.0, 1.0f64.next_down(), 1e300];
        for linear in boundaries.chain(drawn).chain(special) {
            assert_eq!(millidecibels_above(linear, -100.0), exact(linear), "{linear:e}");
            if linear.is_normal() {
                assert!((nearly_db(linear) - to_db(linear)).abs() < 1e-10, "{linear:e}");
            }
        }
    }
}
