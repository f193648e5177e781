//! One device's packets in a window, by the time of sending: bytes, round-trip times, losses.

use paceline_net::Duration;

/// Bins of a window.
pub(super) const BINS: usize = 50;
/// Share of the largest and of the smallest values that count as the next ones. Chosen: a pause of a machine
/// delays the packets of all devices in some bins, and must not outweigh the others.
const CLIPPED: usize = BINS / 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    pub sent: [f32; BINS],
    pub lost: [f32; BINS],
    /// Sum of the round-trip times in ms, and their number.
    rtts: [(f32, u16); BINS],
}

impl Default for Bins {
    fn default() -> Self {
        Self { sent: [0.0; BINS], lost: [0.0; BINS], rtts: [(0.0, 0); BINS] }
    }
}

impl Bins {
    pub fn on_delivered(&mut self, at: usize, rtt: Duration) {
        let (sum, count) = &mut self.rtts[at];
        *sum += rtt.as_millis_f64() as f32;
        *count = count.saturating_add(1);
    }
    /// Changes of the mean round-trip time from each bin to the next one in ms, clipped; None without samples.
    pub fn changes(&self) -> [Option<f64>; BINS] {
        let mean = |at: usize| {
            let (sum, count) = *self.rtts.get(at)?;
            (count > 0).then(|| f64::from(sum) / f64::from(count))
        };
        let mut changes: [Option<f64>; BINS] = std::array::from_fn(|at| Some(mean(at + 1)? - mean(at)?));
        let mut sorted: Vec<f64> = changes.iter().flatten().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        if let (Some(low), Some(high)) = (sorted.get(CLIPPED), sorted.iter().rev().nth(CLIPPED))
            && low <= high
        {
            changes.iter_mut().flatten().for_each(|change| *change = change.clamp(*low, *high));
        }
        changes
    }
}
