//! The clock of a sender's timestamps (RFC 7323) on that of the capture: its tick, and the times of sending.

/// Ticks in a second of usual stacks: Linux since 4.13 has 1000, older ones their HZ of 250 or 100.
const RATES: [f64; 3] = [1000.0, 250.0, 100.0];
/// Least span from which the rate is found, ns. Chosen: 100 ticks of the slowest.
const LEAST_SPAN: u64 = 1_000_000_000;
/// Largest difference of a rate from a usual one. Chosen: far more than the drift of a clock, and less than
/// the distance of the rates.
const TOLERANCE: f64 = 0.05;

/// A clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct TsClock {
    first: Option<(u64, u32)>,
    last: (u64, u32),
}

impl TsClock {
    /// A segment with this TSval passed.
    pub fn add(&mut self, at: u64, value: u32) {
        let (_, last) = *self.first.get_or_insert((at, value));
        if self.last.0 == 0 || value.wrapping_sub(self.last.1) as i32 >= 0 || last == value {
            self.last = (at, value);
        }
    }
    /// The length of a tick in ns, if it is a usual one.
    pub fn tick(&self) -> Option<f64> {
        let (at, value) = self.first?;
        let span = self.last.0.saturating_sub(at);
        if span < LEAST_SPAN {
            return None;
        }
        let rate = f64::from(self.last.1.wrapping_sub(value)) / (span as f64 / 1e9);
        let near = RATES.iter().find(|known| (rate / **known - 1.0).abs() < TOLERANCE);
        near.map(|rate| 1e9 / rate)
    }
    /// Time of the tick of a TSval since the first one, ns.
    pub fn since_first(&self, value: u32) -> Option<f64> {
        let tick = self.tick()?;
        let (_, first) = self.first?;
        Some(f64::from(value.wrapping_sub(first) as i32) * tick)
    }
}
