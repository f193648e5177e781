//! The votes of windows on whether two devices share a queue.

use crate::accelerator::sharing::Standing;
use crate::accelerator::sharing::bins::{BINS, Series, bits};

/// Bins that both devices need in common. Chosen: a third of a window.
const MIN_COMMON: u32 = BINS as u32 / 3;
/// Least standard deviation of both devices' round-trip times in ms for a vote. Chosen: below it they have no
/// queue that varies, and the timing of ACKs remains.
const MIN_DEVIATION_MS: f32 = 0.5;
/// Least number of separate runs of bins with losses in each device for a vote. Chosen: an event that all
/// devices have in common, such as a pause of a machine, is one run.
const MIN_LOSS_RUNS: u32 = 3;
/// Weight of all earlier votes at each vote: some ten count.
const MEMORY: f32 = 0.9;
/// Weight of votes from which on the mean is used. Chosen: seven votes, whose mean has a third of the
/// deviation of one.
const MIN_WEIGHT: f32 = 5.0;
/// Mean concordance of the delays from which on a queue is shared, and below which it is not any more.
/// Chosen: half of the deviation is common; that of independent queues is 0 with a deviation of 0.1.
const SHARED_DELAYS: f32 = 0.5;
/// The same of losses.
const SHARED_LOSSES: f32 = 0.3;
/// Part of these means below which a device is alone again.
const LEAVING: f32 = 0.5;

/// A mean of votes, of which later ones count more.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f32,
    weight: f32,
}

impl Mean {
    fn add(&mut self, vote: f32) {
        self.sum = MEMORY * self.sum + vote;
        self.weight = MEMORY * self.weight + 1.0;
    }
    fn known(&self) -> Option<f32> {
        (self.weight >= MIN_WEIGHT).then(|| self.sum / self.weight)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    delays: Mean,
    losses: Mean,
}

impl Pair {
    pub fn vote(&mut self, first: &Series, second: &Series) {
        if let Some(vote) = concordance(first, second) {
            self.delays.add(vote);
        }
        if let Some(vote) = coincidence(first, second) {
            self.losses.add(vote);
        }
    }
    /// The standing of either device by this pair alone.
    pub fn judge(&self, before: Standing) -> Standing {
        let factor = if before == Standing::Shared { LEAVING } else { 1.0 };
        let means = [(self.delays.known(), SHARED_DELAYS), (self.losses.known(), SHARED_LOSSES)];
        if means.iter().any(|(mean, limit)| mean.is_some_and(|mean| mean >= factor * limit)) {
            Standing::Shared
        } else if means.iter().any(|(mean, _)| mean.is_some()) {
            Standing::Alone
        } else {
            Standing::Unknown
        }
    }
}

/// Concordance of the delays (Lin 1989, without the difference of the means, which is that of the paths): 1 if
/// they move by the same milliseconds, 0 if independently.
fn concordance(first: &Series, second: &Series) -> Option<f32> {
    let both = first.sampled & second.sampled;
    let count = both.count_ones();
    if count < MIN_COMMON {
        return None;
    }
    let (mut products, mut squares) = (0.0, [0.0; 2]);
    for at in bits(both) {
        let (x, y) = (first.delays[at], second.delays[at]);
        products += x * y;
        squares[0] += x * x;
        squares[1] += y * y;
    }
    let least = MIN_DEVIATION_MS * MIN_DEVIATION_MS * count as f32;
    (squares[0].min(squares[1]) >= least).then(|| 2.0 * products / (squares[0] + squares[1]))
}

/// Coincidence of the losses: the correlation of the bins with losses (phi coefficient).
fn coincidence(first: &Series, second: &Series) -> Option<f32> {
    let both = first.active & second.active;
    let count = both.count_ones() as f32;
    let (x, y) = (first.lost & both, second.lost & both);
    let runs = |set: u64| (set & !(set << 1)).count_ones();
    if both.count_ones() < MIN_COMMON || runs(x).min(runs(y)) < MIN_LOSS_RUNS {
        return None;
    }
    let [a, b, joint] = [x, y, x & y].map(|set| set.count_ones() as f32 / count);
    let variance = a * (1.0 - a) * b * (1.0 - b);
    // With losses in every bin nothing can be said.
    (variance > 0.0).then(|| (joint - a * b) / libm::sqrtf(variance))
}
