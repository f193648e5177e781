//! Deliveries over the slots of 20 ms, the span that whole TDD periods fill (TS 38.213 §11.1).
//!
//! Either the arrivals themselves show the slots, or the timestamps that the receiver wrote at the arrivals,
//! whose clock has steps of 1 ms.

use libm::{atan2, cos, hypot, sin};
use std::f64::consts::TAU;

/// Span of a profile, ns (TS 38.213 §11.1).
pub const SPAN: f64 = 20e6;
/// Lengths of slots, ns (TS 38.211 Table 4.3.2-1).
pub const SLOTS: [f64; 4] = [1e6, 500e3, 250e3, 125e3];
/// Least length of the mean vector of arrivals on a lattice. Chosen: 0.8 is a spread of a tenth of a slot.
const ON_LATTICE: f64 = 0.75;
/// Span in which clocks of capture and cell run alike, ns. Chosen: 50 ppm are 50 us in it.
const BLOCK: u64 = 1_000_000_000;

/// Weights of the bins of 20 ms.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Length of a bin, ns.
    pub bin: f64,
    /// Deliveries in each bin, bytes.
    pub weights: Vec<f64>,
    /// Bursts or acknowledgments that it has.
    pub count: usize,
    /// Length of the mean vector: how sharply the arrivals are on a lattice of slots; 1 for timestamps.
    pub sharpness: f64,
}

impl Profile {
    /// The profile of arrivals, ns and bytes in order, on slots of this length; none if they are not on such
    /// a lattice.
    pub fn of_arrivals(arrivals: &[(u64, f64)], slot: f64) -> Option<Self> {
        let bins = (SPAN / slot + 0.5) as usize;
        let mut weights = vec![0.0; bins];
        let start = arrivals.first()?.0;
        let (mut phase, mut sum, mut count) = (None::<f64>, 0.0, 0usize);
        for block in arrivals.chunk_by(|a, b| (a.0 - start) / BLOCK == (b.0 - start) / BLOCK) {
            let (mut x, mut y) = (0.0, 0.0);
            for (at, _) in block {
                let angle = TAU * ((at - start) as f64 / slot).fract();
                x += cos(angle);
                y += sin(angle);
            }
            sum += hypot(x, y);
            count += block.len();
            // The phase follows the drift of the clocks.
            let found = atan2(y, x) / TAU * slot;
            let base = phase.map_or(found, |last| found + ((last - found) / slot + 0.5).floor() * slot);
            phase = Some(base);
            for (at, bytes) in block {
                let index = (((at - start) as f64 - base) / slot + 0.5).floor();
                weights[index.rem_euclid(bins as f64) as usize % bins] += bytes;
            }
        }
        let sharpness = sum / count.max(1) as f64;
        (sharpness >= ON_LATTICE).then_some(Self { bin: slot, weights, count, sharpness })
    }
    /// The profile of timestamps with a clock of 1 ms, in ticks and bytes.
    pub fn of_ticks(ticks: &[(i64, f64)]) -> Self {
        let mut weights = vec![0.0; 20];
        for (tick, bytes) in ticks {
            weights[tick.rem_euclid(20) as usize] += bytes;
        }
        Self { bin: 1e6, weights, count: ticks.len(), sharpness: 1.0 }
    }
    /// Squares of the weights.
    pub fn power(&self) -> f64 {
        self.weights.iter().map(|weight| weight * weight).sum()
    }
}
