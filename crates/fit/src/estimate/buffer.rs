//! Buffer: the bytes in the bottleneck's queue when a segment was lost.
//!
//! The queue that a lost segment met is the data that passed before it and were delivered later than it would
//! have been through an empty queue. Losses at one length of the queue are those of a full buffer; losses at
//! shorter ones have other causes.

use super::{Confidence, Estimate, quantile};
use crate::path::{Path, Side};

/// Segments around a loss of which the one that waited longest counts. Chosen: a block of some Mb/s has a
/// few, and the queue changes by little in so many.
const AROUND: usize = 16;
/// Losses within this time belong to one overflow, ns. Chosen: a slow start overflows for one round trip.
const EPISODE: u64 = 200_000_000;
/// Queues of at least this share of the longest are those of a full buffer. Chosen: jitter of the radio's
/// delay is below a fifth of queues that are worth the name.
const FULL: f64 = 0.8;
/// Overflows for high confidence. Chosen: two could agree by chance.
const MANY: usize = 3;
/// Share of losses that come from overflows, for a claim. Chosen: with fewer the longest queue may be one of
/// random losses.
const MOSTLY: f64 = 0.4;
/// Largest factor by which the queue is longer elsewhere without a loss. Chosen: the tolerance of a claim.
const LARGEST_EXCESS: f64 = 1.15;

/// The buffer, and losses beside those of the full buffer.
#[derive(Clone, Debug)]
pub struct Found {
    /// Bytes of the buffer, if it overflowed.
    pub buffer: Option<Estimate<f64>>,
    /// Longest queue that was seen, bytes.
    pub longest: f64,
    /// Times at which losses met a shorter queue.
    pub other_losses: usize,
    /// Overflows.
    pub overflows: usize,
}

/// Bytes in the queue when a segment behind `last` came to it at `at`.
fn queue(path: &Path, last: usize, at: u64) -> f64 {
    let deliveries = &path.deliveries[..=last];
    let sum = |later: &dyn Fn(u64) -> bool, until: u64| {
        let mut bytes = 0u64;
        for delivery in deliveries.iter().rev() {
            // Older data were delivered before.
            if path.side == Side::Behind && delivery.passed + path.longest < at {
                break;
            }
            if later(delivery.delivered) && delivery.delivered <= until {
                bytes += u64::from(delivery.wire);
            }
            if path.side == Side::Before && !later(delivery.delivered) {
                break;
            }
        }
        bytes as f64
    };
    match path.side {
        Side::Behind => {
            let empty = at as f64 + path.least;
            sum(&|delivered| delivered as f64 > empty, u64::MAX)
        }
        Side::Before => {
            // Segments of one block arrive at one time: of those around the loss, the one that waited longest
            // was the last in the full queue.
            let waited = deliveries.iter().rev().take(AROUND).filter_map(|d| d.queue).fold(0.0, f64::max);
            let from = at as f64 - waited;
            sum(&|delivered| delivered as f64 > from, at)
        }
    }
}

/// Finds the buffer.
pub fn find(path: &Path) -> Found {
    let mut queues: Vec<f64> = Vec::new();
    let mut last: Option<u64> = None;
    for loss in &path.losses {
        if last.is_some_and(|last| loss.at.saturating_sub(last) < EPISODE) {
            last = Some(loss.at);
            continue;
        }
        last = Some(loss.at);
        let met = queue(path, loss.before, loss.at);
        // The segment behind a loss before the point found room, at the end of the full queue.
        let next = path.deliveries.get(loss.before + 1).filter(|_| path.side == Side::Before);
        queues.push(next.map_or(met, |next| met.max(queue(path, loss.before + 1, next.passed))));
    }
    // The queue at every hundredth segment.
    let step = (path.deliveries.len() / 2000).max(1);
    let seen: Vec<f64> = (0..path.deliveries.len())
        .step_by(step)
        .map(|index| queue(path, index, path.deliveries[index].passed))
        .collect();
    let longest = quantile(&seen, 0.99).unwrap_or(0.0);
    let most = queues.iter().copied().fold(0.0, f64::max);
    let full: Vec<f64> = queues.iter().copied().filter(|queue| *queue >= FULL * most).collect();
    let other_losses = queues.len() - full.len();
    let share = full.len() as f64 / queues.len().max(1) as f64;
    let buffer = quantile(&full, 0.5).filter(|middle| *middle > 0.0).map(|middle| {
        let agrees = share >= MOSTLY && longest <= LARGEST_EXCESS * middle;
        let confidence = match full.len() {
            MANY.. if agrees => Confidence::High,
            _ if agrees => Confidence::Medium,
            _ => Confidence::Low,
        };
        let from = format!(
            "the queue at {} of {} times of loss; longest queue seen {:.0} kB",
            full.len(),
            queues.len(),
            longest / 1e3
        );
        Estimate::new(middle, confidence, from)
    });
    Found { buffer, longest, other_losses, overflows: full.len() }
}
