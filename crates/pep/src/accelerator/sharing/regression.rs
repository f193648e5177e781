//! Linear regression by least squares over sums that fade: how far a response follows the last regressor,
//! where the others explain nothing of it.

/// Largest number of regressors, with the constant.
const MOST: usize = 4;

/// Sums of products of the constant 1, the regressors and the response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Regression {
    sums: [[f64; MOST + 1]; MOST + 1],
}

/// The coefficients of a regression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Of the last regressor.
    pub last: f64,
    /// Sum of those of the regressors before it.
    pub others: f64,
    /// The last coefficient in its standard errors (Student's t).
    pub t: f64,
    /// Part of the last regressor's variance that the others do not explain.
    pub free: f64,
}

impl Regression {
    /// All sums count less from now on.
    pub fn fade(&mut self, factor: f64) {
        self.sums.iter_mut().flatten().for_each(|sum| *sum *= factor);
    }
    /// Adds an observation.
    pub fn add(&mut self, regressors: [f64; MOST - 1], response: f64) {
        let [a, b, c] = regressors;
        let row = [1.0, a, b, c, response];
        for (sums, x) in self.sums.iter_mut().zip(row) {
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        }
    }
    /// The fit; None with fewer than `least` observations, or if the regressors depend on each other.
    pub fn fit(&self, least: f64) -> Option<Fit> {
        let count = self.sums[0][0];
        if count < least {
            return None;
        }
        // About the means, the constant falls out.
        let centred = |a: usize, b: usize| self.sums[a][b] - self.sums[0][a] * self.sums[0][b] / count;
        let matrix: [[f64; 3]; 3] = std::array::from_fn(|a| std::array::from_fn(|b| centred(a + 1, b + 1)));
        let response: [f64; 3] = std::array::from_fn(|a| centred(a + 1, MOST));
        let inverse = invert(matrix)?;
        let dot = |row: &[f64; 3]| row.iter().zip(response).map(|(x, y)| x * y).sum::<f64>();
        let coefficients = inverse.each_ref().map(dot);
        let explained: f64 = coefficients.iter().zip(response).map(|(x, y)| x * y).sum();
        let error = (centred(MOST, MOST) - explained).max(0.0) / (count - MOST as f64).max(1.0);
        let deviation = libm::sqrt(error * inverse[2][2]);
        Some(Fit {
            last: coefficients[2],
            others: coefficients[0] + coefficients[1],
            t: if deviation > 0.0 { coefficients[2] / deviation } else { 0.0 },
            free: 1.0 / (inverse[2][2] * matrix[2][2]),
        })
    }
}

/// Inverse of a symmetric positive matrix (Gauss and Jordan); None if it has none.
fn invert(mut matrix: [[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let mut inverse: [[f64; 3]; 3] =
        std::array::from_fn(|a| std::array::from_fn(|b| f64::from(u8::from(a == b))));
    let scale: [f64; 3] = std::array::from_fn(|n| matrix[n][n]);
    for n in 0..3 {
        let pivot = matrix[n][n];
        // Chosen: rounding leaves no digits of less.
        if pivot <= 1e-9 * scale[n] || scale[n] <= 0.0 {
            return None;
        }
        for column in 0..3 {
            matrix[n][column] /= pivot;
            inverse[n][column] /= pivot;
        }
        for row in (0..3).filter(|row| *row != n) {
            let factor = matrix[row][n];
            for column in 0..3 {
                matrix[row][column] -= factor * matrix[n][column];
                inverse[row][column] -= factor * inverse[n][column];
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    #[test]
    fn coefficients_are_found_and_chance_is_told_from_influence() {
        for (influence, t) in [(0.5, 20.0..1000.0), (0.0, -4.0..4.0)] {
            let (mut regression, mut random) = (Regression::default(), Stream::new(1, "regression"));
            for _ in 0..500 {
                let [a, b, c] = [0; 3].map(|_: i32| random.normal());
                let c = c + a;
                regression.add([a, b, c], 7.0 + a - 2.0 * b + influence * c + 0.3 * random.normal());
            }
            let fit = regression.fit(100.0).unwrap();
            assert!((fit.last - influence).abs() < 0.06 && t.contains(&fit.t), "{fit:?}");
            assert!((fit.others + 1.0).abs() < 0.1 && (0.4..0.6).contains(&fit.free), "{fit:?}");
            regression.fade(0.1);
            assert!(regression.fit(100.0).is_none());
        }
    }

    #[test]
    fn regressors_that_depend_on_each_other_have_no_fit() {
        let (mut regression, mut random) = (Regression::default(), Stream::new(1, "regression"));
        for _ in 0..200 {
            let [a, b] = [0; 2].map(|_: i32| random.normal());
            regression.add([a, b, 7.0 * a], a);
        }
        assert!(regression.fit(100.0).is_none());
    }
}
