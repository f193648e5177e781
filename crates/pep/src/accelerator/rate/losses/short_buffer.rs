//! Drop-tail buffers that are shorter than the target delay, found by trial: the queue is kept shorter for a
//! few round trips, never below the bandwidth-delay product. If the losses stop, the queue stays short and
//! grows slowly; if not, they have another cause, and losses are ignored for a while.
//!
//! Fewer losses than one segment in ten, or a single burst, start no trial: radios lose as much. A cap grows
//! back within seconds, so that a mistake, or the buffer of a previous path, does not last.
//!
//! A client without SACK reveals its losses late, those of several round trips at once. The cap is then set
//! after the first lossy round trip and without a trial, which could not tell losses during it from those
//! before.

use paceline_net::{Duration, Instant};

/// Share of bytes lost in a round trip from which it is lossy, and the smallest number of lost bytes. Chosen:
/// radios lose less, and two segments are no sample.
const LOSSY_SHARE: f64 = 0.1;
const MIN_LOST_BYTES: u64 = 3000;
/// Consecutive lossy round trips that start a trial. Chosen: a single burst is no short buffer.
const LOSSY_ROUNDS: u8 = 3;
/// Growth of the cap per second, as a share of it, or of this many seconds where it is shorter. Chosen: a cap
/// doubles in nine seconds, so that a wrong one does not last.
const CAP_GROWTH: f64 = 0.08;
const MIN_GROWING_CAP_SECONDS: f64 = 0.015;
/// Round trips of a trial, and how many of them at its beginning do not count. Chosen: the packets sent
/// before the trial are acknowledged or found lost within these.
const TRIAL_ROUNDS: u8 = 8;
const UNCOUNTED_ROUNDS: u8 = 3;
/// Queue in a trial, as a share of the queue that lost packets. Chosen: clearly below the buffer's size, if
/// the buffer caused the losses.
const CAP_SHARE: f64 = 0.6;
/// Consecutive round trips with an almost empty queue after which the cap is removed: the path has changed.
/// Chosen: a single one may be empty by chance.
const EMPTY_ROUNDS: u8 = 4;
/// A bandwidth that has fallen by this factor removes the cap as well: the capped delay was no queue. Chosen:
/// beyond the usual variation of a bandwidth estimate.
const BANDWIDTH_FALL: f64 = 2.0;
/// Bits of a full-sized segment of 1500 bytes: a queue that waits no longer than one is empty.
/// Chosen: the MTU of Ethernet, which most paths have.
const SEGMENT_BITS: f64 = 12_000.0;
/// Time after a trial without success in which losses are ignored: at first, and at most; it doubles. Chosen:
/// a trial costs throughput.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Share of bytes lost before it.
    loss_before: f64,
    rounds: u8,
    delivered: u64,
    lost: u64,
}

/// The cap on the queueing delay of a device, if its path has a short buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct ShortBuffer {
    /// Longest queueing delay to keep, in seconds.
    cap: Option<f64>,
    /// Bandwidth in bit/s when the cap was set.
    bandwidth_at_cap: f64,
    trial: Option<Trial>,
    /// Losses are ignored until then, and how long the last backoff was.
    backoff_until: Instant,
    backoff: Duration,
    empty_rounds: u8,
    lossy_rounds: u8,
    /// Queueing delay in seconds, the shortest of the last round trip that gave a sample.
    queue: f64,
}

/// Whether more was lost than radios usually lose.
pub(in crate::accelerator) fn is_lossy(delivered: u64, lost: u64) -> bool {
    lost >= MIN_LOST_BYTES && loss_share(delivered, lost) > LOSSY_SHARE
}
fn loss_share(delivered: u64, lost: u64) -> f64 {
    lost as f64 / (delivered + lost).max(1) as f64
}

/// A finished round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Round {
    /// Bytes delivered and found lost.
    pub delivered: u64,
    pub lost: u64,
    /// Shortest queueing delay in it, in seconds; `None` without an RTT sample.
    pub queue: Option<f64>,
    /// Its length, in seconds.
    pub seconds: f64,
    /// The path's estimated bandwidth in bit/s.
    pub bandwidth: f64,
    /// The client does not use SACK: the losses may be those of several round trips.
    pub without_sack: bool,
}

impl Round {
    /// Whether more was lost than radios usually lose.
    pub fn is_lossy(&self) -> bool {
        is_lossy(self.delivered, self.lost)
    }
    fn loss_share(&self) -> f64 {
        loss_share(self.delivered, self.lost)
    }
}

impl ShortBuffer {
    /// Longest queueing delay to keep, in seconds; `None` while no short buffer is known.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }
    pub fn on_round(&mut self, now: Instant, round: &Round) {
        let queue = round.queue.unwrap_or(self.queue);
        // Without SACK, losses are found late: they may stem from the longest queue since the last cap.
        self.queue = if round.without_sack { queue.max(self.queue) } else { queue };
        if self.trial.is_some() {
            self.continue_trial(now, round);
            return;
        }
        self.lossy_rounds = if round.is_lossy() { self.lossy_rounds.saturating_add(1) } else { 0 };
        let needed = if round.without_sack { 1 } else { LOSSY_ROUNDS };
        if self.lossy_rounds >= needed && now >= self.backoff_until {
            self.set_cap(round);
        } else {
            self.grow_cap(round);
        }
    }

    fn continue_trial(&mut self, now: Instant, round: &Round) {
        let Some(trial) = &mut self.trial else { return };
        trial.rounds += 1;
        if trial.rounds > UNCOUNTED_ROUNDS {
            trial.delivered += round.delivered;
            trial.lost += round.lost;
        }
        if trial.rounds >= TRIAL_ROUNDS {
            let successful = loss_share(trial.delivered, trial.lost) < trial.loss_before / 2.0;
            self.trial = None;
            if !successful {
                self.backoff = (self.backoff * 2).max(FIRST_BACKOFF).min(MAX_BACKOFF);
                self.backoff_until = now + self.backoff;
                self.cap = None;
            }
        }
    }

    fn set_cap(&mut self, round: &Round) {
        self.lossy_rounds = 0;
        let queue = self.cap.map_or(self.queue, |cap| cap.min(self.queue));
        self.queue = if round.without_sack { 0.0 } else { self.queue };
        (self.cap, self.bandwidth_at_cap) = (Some((CAP_SHARE * queue).max(0.001)), round.bandwidth);
        let trial = Trial { loss_before: round.loss_share(), rounds: 0, delivered: 0, lost: 0 };
        self.trial = (!round.without_sack).then_some(trial);
    }

    fn grow_cap(&mut self, round: &Round) {
        let Some(cap) = &mut self.cap else { return };
        *cap += CAP_GROWTH * round.seconds * cap.max(MIN_GROWING_CAP_SECONDS);
        let segment_time = SEGMENT_BITS / round.bandwidth.max(1.0);
        let empty = round.queue.is_some_and(|queue| queue < segment_time.max(*cap / 4.0));
        self.empty_rounds = if empty { self.empty_rounds + 1 } else { 0 };
        if self.empty_rounds >= EMPTY_ROUNDS || BANDWIDTH_FALL * round.bandwidth < self.bandwidth_at_cap {
            (self.cap, self.empty_rounds) = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct MeasuredPath {
        buffer: ShortBuffer,
        ms: u64,
    }

    impl MeasuredPath {
        fn new() -> Self {
            Self { buffer: ShortBuffer::default(), ms: 0 }
        }
        /// After three round trips in which a full queue of 20 ms lost a fifth.
        fn with_cap() -> Self {
            let mut path = Self::new();
            path.run(3, 20_000, Some(0.02), 1e7);
            path.assert_capped();
            path
        }
        /// Round trips of 50 ms with 80,000 bytes delivered in each.
        fn run(&mut self, rounds: u64, lost: u64, queue: Option<f64>, bandwidth: f64) {
            for _ in 0..rounds {
                self.ms += 50;
                let (delivered, seconds, without_sack) = (80_000, 0.05, false);
                let round = Round { delivered, lost, queue, seconds, bandwidth, without_sack };
                self.buffer.on_round(Instant::from_millis(self.ms), &round);
            }
        }
        #[track_caller]
        fn assert_capped(&self) {
            let cap = self.buffer.cap().expect("a cap");
            assert!((cap - CAP_SHARE * 0.02).abs() < 1e-9, "{:?}", self.buffer);
        }
    }

    #[test]
    fn a_cap_that_ends_the_losses_stays_and_grows_slowly() {
        let mut path = MeasuredPath::with_cap();
        path.run(8 + 200, 0, Some(0.01), 1e7);
        let cap = path.buffer.cap().unwrap();
        assert!((0.015..0.05).contains(&cap), "{cap} s after ten seconds");
    }

    #[test]
    fn a_cap_that_does_not_end_them_is_removed_for_ten_seconds() {
        let mut path = MeasuredPath::with_cap();
        path.run(8, 20_000, Some(0.01), 1e7);
        assert_eq!(path.buffer.cap(), None);
        path.run(190, 20_000, Some(0.02), 1e7);
        assert_eq!(path.buffer.cap(), None, "{} ms", path.ms);
        path.run(12, 20_000, Some(0.02), 1e7);
        assert!(path.buffer.cap().is_some());
    }

    #[test]
    fn losses_count_in_round_trips_without_an_rtt_sample() {
        let mut path = MeasuredPath::new();
        path.run(1, 0, Some(0.02), 1e7);
        path.run(3, 20_000, None, 1e7);
        path.assert_capped();
        path.run(100, 0, None, 1e7);
        assert!(path.buffer.cap().is_some(), "no sample does not mean an empty queue");
    }

    #[test]
    fn a_fall_of_the_bandwidth_to_less_than_half_removes_the_cap() {
        let mut path = MeasuredPath::with_cap();
        path.run(10, 0, Some(0.01), 6e6);
        assert!(path.buffer.cap().is_some());
        path.run(1, 0, Some(0.01), 4e6);
        assert_eq!(path.buffer.cap(), None);
    }
}
