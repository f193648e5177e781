//! One device's round-trip times and losses in a window, by the time of sending.

use paceline_net::Duration;

/// Bins of a window.
pub(super) const BINS: usize = 50;
/// Bins with a sample below which a window says nothing. Chosen: half of them, a device that is busy.
const MIN_BINS: u32 = BINS as u32 / 2;
/// Share of the largest and of the smallest values that count as the next ones. Chosen: a pause of a machine
/// delays the packets of all devices in some bins, and must not outweigh the others.
const CLIPPED: usize = BINS / 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    /// Sum of the round-trip times in ms, and their number.
    rtts: [(f32, u16); BINS],
    /// A bit for each bin with a lost segment.
    lost: u64,
}

impl Default for Bins {
    fn default() -> Self {
        Self { rtts: [(0.0, 0); BINS], lost: 0 }
    }
}

/// A window of a device, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    /// Mean round-trip time of a bin in ms, without the window's trend, clipped; 0 without a sample.
    pub delays: [f32; BINS],
    /// Bins with a sample, with a loss, and with either.
    pub sampled: u64,
    pub lost: u64,
    pub active: u64,
}

impl Bins {
    pub fn on_delivered(&mut self, at: usize, rtt: Duration) {
        let (sum, count) = &mut self.rtts[at];
        *sum += rtt.as_millis_f64() as f32;
        *count = count.saturating_add(1);
    }
    pub fn on_lost(&mut self, at: usize) {
        self.lost |= 1 << at;
    }
    /// None of a device that was idle for the most part.
    pub fn series(&self) -> Option<Series> {
        let sampled = (0..BINS).filter(|at| self.rtts[*at].1 > 0).fold(0u64, |bits, at| bits | 1 << at);
        if sampled.count_ones() < MIN_BINS {
            return None;
        }
        let mut delays = [0.0; BINS];
        for at in bits(sampled) {
            let (sum, count) = self.rtts[at];
            delays[at] = sum / f32::from(count);
        }
        remove_trend(&mut delays, sampled);
        clip(&mut delays, sampled);
        Some(Series { delays, sampled, lost: self.lost, active: sampled | self.lost })
    }
}

/// The bins of a set.
pub(super) fn bits(set: u64) -> impl Iterator<Item = usize> {
    (0..BINS).filter(move |at| set >> at & 1 == 1)
}

/// Subtracts the line of least squares.
fn remove_trend(delays: &mut [f32; BINS], sampled: u64) {
    let count = sampled.count_ones() as f32;
    let mean = |of: &dyn Fn(usize) -> f32| bits(sampled).map(of).sum::<f32>() / count;
    let (at, delay) = (mean(&|at| at as f32), mean(&|at| delays[at]));
    let spread: f32 = bits(sampled).map(|n| (n as f32 - at) * (n as f32 - at)).sum();
    let slope = bits(sampled).map(|n| (n as f32 - at) * (delays[n] - delay)).sum::<f32>() / spread.max(1.0);
    for n in bits(sampled) {
        delays[n] -= delay + slope * (n as f32 - at);
    }
}

/// Bounds the values by those within the clipped shares.
fn clip(delays: &mut [f32; BINS], sampled: u64) {
    let mut sorted: Vec<f32> = bits(sampled).map(|at| delays[at]).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let (low, high) = (sorted[CLIPPED], sorted[sorted.len() - 1 - CLIPPED]);
    bits(sampled).for_each(|at| delays[at] = delays[at].clamp(low, high));
}
