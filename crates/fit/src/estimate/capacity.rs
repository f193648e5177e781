//! Capacity: the rate of deliveries while the bottleneck has a queue.

use super::{Confidence, Estimate, quantile};
use crate::path::Path;
use serde::Serialize;

/// Length of a window, ns. Chosen: ten frames of the radio, so that slots, scheduling requests and bunches of
/// acknowledgments change its rate by little.
pub const WINDOW: u64 = 100_000_000;
/// Delay above the least one at all times of a window with a queue, ns. Chosen: above the steps of a
/// timestamp clock of 1 ms and the wait for a slot of usual patterns.
const QUEUED: f64 = 3e6;
/// The same of a window whose slots are all full, ns. Chosen: the longest run of slots of one direction has 5
/// ms (TS 38.331 §6.3.2: a period of 10 ms), and as much for the other way.
const FULL: f64 = 10e6;
/// Least segments with a delay in a window. Chosen: fewer do not show that the queue lasted.
const LEAST_SEGMENTS: usize = 5;
/// Windows for a claim, and for high confidence. Chosen: half a second, and two.
const FEW: usize = 5;
const MANY: usize = 20;
/// Largest standard error of a claim, as a share of the mean. Chosen: less than half of the 5% that a claim
/// must keep.
const LARGEST_ERROR: f64 = 0.02;

/// Share of the windows, from the first queue to the last one, that have a queue, for a claim about a rate
/// that varies, and the ratio of rates from which it does. Chosen: in the rest of the windows the rate may be
/// higher.
const LASTING: f64 = 0.8;
const VARIES: f64 = 1.2;

/// The rate in one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowRate {
    /// Start since the first packet, s.
    pub time_s: f64,
    /// Rate of deliveries, Mb/s of datagrams.
    pub mbps: f64,
    /// Whether the bottleneck had a queue all the time, so that the rate is its capacity.
    pub queued: bool,
    /// Whether that queue was longer than any wait for a slot, so that every slot was full.
    #[serde(skip)]
    pub full: bool,
}

/// Rates over time.
pub fn windows(path: &Path, start: u64) -> Vec<WindowRate> {
    let end = path.deliveries.iter().map(|delivery| delivery.delivered).max().unwrap_or(start);
    let count = (end.saturating_sub(start) / WINDOW) as usize;
    let mut bytes = vec![0u64; count + 1];
    let mut least = vec![(f64::INFINITY, 0usize); count + 1];
    for delivery in &path.deliveries {
        let window = (delivery.delivered.saturating_sub(start) / WINDOW) as usize;
        bytes[window] += u64::from(delivery.wire);
        if let Some(queue) = delivery.queue {
            let (known, segments) = &mut least[window];
            *known = known.min(queue);
            *segments += 1;
        }
    }
    let seconds = WINDOW as f64 / 1e9;
    let rate = |index: usize| {
        let (least, segments) = least[index];
        WindowRate {
            time_s: index as f64 * seconds,
            mbps: bytes[index] as f64 * 8.0 / seconds / 1e6,
            queued: segments >= LEAST_SEGMENTS && least > QUEUED,
            full: segments >= LEAST_SEGMENTS && least > FULL,
        }
    };
    // The last window is not complete.
    (0..count).map(rate).collect()
}

/// The mean capacity in Mb/s of datagrams.
pub fn capacity(windows: &[WindowRate]) -> Option<Estimate<f64>> {
    // A window beside one without a queue may be queued in part.
    let is_inner = |index: usize| {
        let near = |other: Option<usize>| other.and_then(|other| windows.get(other)).is_none_or(|w| w.queued);
        windows[index].queued && near(index.checked_sub(1)) && near(index.checked_add(1))
    };
    let rates: Vec<f64> =
        (0..windows.len()).filter(|index| is_inner(*index)).map(|index| windows[index].mbps).collect();
    let count = rates.len();
    if count == 0 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / count as f64;
    // Means of ten windows: rates of neighbours are alike.
    let blocks: Vec<f64> =
        rates.chunks(10).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect();
    let variance = blocks.iter().map(|block| (block - mean) * (block - mean)).sum::<f64>()
        / (blocks.len().max(2) - 1) as f64;
    let error = (variance / blocks.len() as f64).sqrt() / mean;
    let spread = quantile(&rates, 0.9)? / quantile(&rates, 0.1)?.max(1e-9);
    // A queue that comes and goes with the rate shows the low rates.
    let queued = |window: &WindowRate| window.queued;
    let span = windows.iter().rposition(queued)? + 1 - windows.iter().position(queued)?;
    let lasts = windows.iter().filter(|window| window.queued).count() as f64 >= LASTING * span as f64;
    let confidence = match count {
        _ if !lasts && spread > VARIES => Confidence::Low,
        MANY.. if error <= LARGEST_ERROR => Confidence::High,
        FEW.. if error <= LARGEST_ERROR => Confidence::Medium,
        _ => Confidence::Low,
    };
    let from = format!(
        "{:.1} s with a queue of {:.0} ms or more; 80% of the rates of 100 ms within a factor of {spread:.2}",
        count as f64 * WINDOW as f64 / 1e9,
        QUEUED / 1e6
    );
    Some(Estimate::new(mean, confidence, from))
}
