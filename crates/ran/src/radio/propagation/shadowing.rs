//! Log-normal shadowing between one station and every site (TR 36.814 A.2.1.1, TR 38.901 §7.5): a
//! correlation between sites of 0.5 (TR 36.814) or 0 (TR 38.901), 1 between the sectors of a site, `exp(-d /
//! d_corr)` over a path of `d` metres.
//!
//! The value of a site is the sum of a part that all sites share and one of its own. Both are first-order
//! processes along the station's path. Stations are independent of each other at any distance, and a station
//! that returns to a place gets new values there. Where sites have different correlation distances (with and
//! without line of sight), the shared part uses their mean.

use paceline_net::Stream;

/// Shadowing of one station.
#[derive(Clone, Debug)]
pub struct Shadowing {
    shared: f64,
    own: Vec<f64>,
    /// Weights of the shared part and of a site's own.
    weights: (f64, f64),
    stream: Stream,
}

impl Shadowing {
    /// Draws the values towards `sites` sites, with a `correlation` between any two of them.
    pub fn new(sites: usize, correlation: f64, mut stream: Stream) -> Self {
        let weights = (correlation.sqrt(), (1.0 - correlation).sqrt());
        let shared = stream.normal();
        let own = (0..sites).map(|_| stream.normal()).collect();
        Self { shared, own, weights, stream }
    }
    /// The value towards `site` in standard deviations.
    pub fn deviations(&self, site: usize) -> f64 {
        self.weights.0 * self.shared + self.weights.1 * self.own[site]
    }
    /// Moves the station by `way_m` metres; `correlation_m` has the correlation distance of every site.
    pub fn advance(&mut self, way_m: f64, correlation_m: impl Fn(usize) -> f64) {
        if way_m <= 0.0 || self.own.is_empty() {
            return;
        }
        let mut total = 0.0;
        for (site, own) in self.own.iter_mut().enumerate() {
            let distance = correlation_m(site);
            total += distance;
            *own = step(*own, way_m / distance, &mut self.stream);
        }
        self.shared = step(self.shared, way_m / (total / self.own.len() as f64), &mut self.stream);
    }
}

/// A value of a unit-variance first-order process after `lengths` correlation lengths.
pub(crate) fn step(value: f64, lengths: f64, stream: &mut Stream) -> f64 {
    let rho = libm::exp(-lengths);
    rho * value + (1.0 - rho * rho).sqrt() * stream.normal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_correlated_by_half_and_stations_are_not() {
        let n = 40_000;
        let (mut square, mut sites, mut stations, mut last) = (0.0, 0.0, 0.0, 0.0);
        for station in 0..n {
            let shadowing = Shadowing::new(19, 0.5, Stream::new(1, &format!("station{station}/shadowing")));
            let value = shadowing.deviations(3);
            square += value * value;
            sites += value * shadowing.deviations(11);
            stations += value * last;
            last = value;
        }
        let n = f64::from(n);
        // Standard errors about sqrt(2/n) = 0.007; four of them.
        assert!((square / n - 1.0).abs() < 0.028, "{}", square / n);
        assert!((sites / n - 0.5).abs() < 0.025, "{}", sites / n);
        assert!((stations / n).abs() < 0.02, "{}", stations / n);
    }

    #[test]
    fn correlation_falls_exponentially_along_the_way() {
        let (n, step_m, distance) = (400_000, 5.0, 50.0);
        let mut shadowing = Shadowing::new(2, 0.5, Stream::new(2, "way"));
        let mut values = Vec::new();
        for _ in 0..n {
            values.push(shadowing.deviations(1));
            shadowing.advance(step_m, |_| distance);
        }
        for lag in [1, 5, 10, 20] {
            let products = values.windows(lag + 1).map(|w| w[0] * w[lag]);
            let got = products.sum::<f64>() / (n - lag) as f64;
            let expected = libm::exp(-(lag as f64) * step_m / distance);
            // About 20 correlated samples count once: standard error sqrt(2 * 10 / n) = 0.007.
            assert!((got - expected).abs() < 0.03, "{lag} {got} {expected}");
        }
    }

    #[test]
    fn standing_still_changes_nothing() {
        let mut shadowing = Shadowing::new(7, 0.5, Stream::new(3, "still"));
        let before = shadowing.deviations(5);
        shadowing.advance(0.0, |_| 50.0);
        assert_eq!(shadowing.deviations(5), before);
    }
}
