//! Target delay: length of the standing queue to keep, as a queueing delay. The radio sends from this queue
//! until the first ACK shows that its capacity has risen.
//!
//! The target follows the link. A round-trip time within a packet's time of the minimum means that the queue
//! was empty. The target grows while the queue is empty and shrinks slowly while it is not, so that few round
//! trips find it empty: a steady link keeps a short queue, a bursty one a longer one. The queue also has to
//! last through a radio's pauses, where it serves its stations in turns, and through in-order stalls of layer
//! 2 (`in_order_stalls`).

use crate::accelerator::rate::in_order_stalls::InOrderStalls;
use crate::accelerator::rate::losses::ack_due::MIN_SILENCE;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// Smallest number of bytes that the radio could have delivered in a pause. Chosen: a few segments of a slow
/// radio are no pause.
const MIN_PAUSE_BYTES: f64 = 6_000.0;
/// Longest pause that the queue is to bridge. Chosen: a longer one is an outage.
pub(in crate::accelerator) const MAX_PAUSE: Duration = Duration::from_millis(200);
/// Time in which a pause is forgotten. Chosen: the pauses of a scheduler recur much sooner.
const PAUSE_MEMORY_SECONDS: f64 = 1.0;
/// Shortest interval of a delivery-rate sample, in halves of a pause. Chosen: one and a half pauses contain
/// turns of the radio as well; a shorter interval would measure the rate of a single turn. The target's upper
/// bound is at least as long, because a shorter queue would not last until the next turn.
const MIN_INTERVAL_HALF_PAUSES: u64 = 3;
/// The target is at least one over this of a pause. Chosen: where every round trip contains a pause, no RTT
/// is near the minimum, the queue never seems empty, and the target would shrink to its minimum.
const PAUSE_DIVISOR: u64 = 4;
/// The target is at least this many quarters of an in-order stall. Chosen: the queue lasts for the stall and
/// a quarter more.
const STALL_QUARTERS: u64 = 5;
/// Part of the allowed share of empty round trips that applies on a radio that fades. Chosen: the fades
/// themselves leave the queue empty for the rest.
const FADING_SHARE: f64 = 0.4;
/// The target's upper bound is at least this many halves of the minimum RTT. Chosen: a radio whose capacity
/// changes within a round trip needs a queue of about that length. With a round trip of 60 ms, 13 cellular
/// traces were used to 95.7%, instead of 93.8% with 100 ms (`make traces`).
const MAX_TARGET_HALF_RTTS: u64 = 3;
/// Relative growth of the target in a round trip that finds the queue empty throughout. Chosen: the target
/// doubles in four such round trips.
const GROWTH: f64 = 0.2;

/// The time since the previous acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct AckGap {
    pub length: Duration,
    /// Bytes delivered in total before it, and bytes that the radio could have delivered in it.
    pub delivered: u64,
    pub missed: f64,
    /// No fade, and enough was in flight: the radio paused.
    pub may_be_pause: bool,
    /// The client uses SACK. Without it, a repaired hole releases many bytes at once, as an in-order stall
    /// does.
    pub with_sack: bool,
}

/// Target delay of one device.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct TargetDelay {
    min: Duration,
    max: Duration,
    empty_queue_share: f64,
    /// The target.
    seconds: f64,
    sampled_at: Instant,
    /// The queue was empty at the last sample.
    was_empty: bool,
    /// The longest recent pause of the radio, decaying with time.
    pause: Duration,
    stalls: InOrderStalls,
}

impl TargetDelay {
    /// A target between `min` and `max`. `empty_queue_share`: share of round trips that may find the queue
    /// empty.
    pub fn new(min: Duration, max: Duration, empty_queue_share: f64) -> Self {
        let min = min.max(Duration::from_millis(1));
        let max = max.max(min);
        Self {
            min,
            max,
            empty_queue_share: if empty_queue_share > 0.0 { empty_queue_share.min(0.5) } else { 0.001 },
            seconds: (min * 2).min(max).as_secs_f64(),
            sampled_at: Instant::ZERO,
            was_empty: false,
            pause: Duration::ZERO,
            stalls: InOrderStalls::default(),
        }
    }
    /// Queueing delay to keep, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    /// The smallest target that the configuration allows.
    pub fn min(&self) -> Duration {
        self.min
    }
    /// Shortest interval of a delivery-rate sample that averages over the radio's turns and pauses.
    pub fn min_rate_interval(&self) -> Duration {
        self.pause * MIN_INTERVAL_HALF_PAUSES / 2
    }

    pub fn on_ack(&mut self, now: Instant, gap: &AckGap) {
        let AckGap { length, delivered, missed, may_be_pause, with_sack } = *gap;
        self.stalls.on_ack(now, length, delivered);
        let forgotten = (length.as_secs_f64() / PAUSE_MEMORY_SECONDS).min(1.0);
        self.pause = Duration::from_secs_f64(self.pause.as_secs_f64() * (1.0 - forgotten));
        if length > MIN_SILENCE && missed > MIN_PAUSE_BYTES && may_be_pause {
            self.pause = self.pause.max(length.min(MAX_PAUSE));
            if with_sack {
                self.stalls.on_pause(now, length, delivered, missed);
            }
        }
    }
    /// An RTT sample that shows whether the queue is empty.
    pub fn on_sample(&mut self, now: Instant, empty: bool, min_rtt: Duration, fading: bool) {
        let share = now.since(self.sampled_at).min(min_rtt).as_secs_f64() / min_rtt.as_secs_f64().max(1e-4);
        // The time since the last sample counts by the state at that sample: a radio that serves in turns
        // finds the queue empty at the end of a turn, and the bytes that it could have sent after that are
        // not seen.
        let allowed = self.empty_queue_share * if fading { FADING_SHARE } else { 1.0 };
        let step = if std::mem::replace(&mut self.was_empty, empty) { share } else { -allowed * share };
        let stall = self.stalls.longest() * STALL_QUARTERS / 4;
        let min = self.min.max(self.pause / PAUSE_DIVISOR).max(stall);
        let max = self.max.max(min_rtt * MAX_TARGET_HALF_RTTS / 2).max(self.min_rate_interval());
        self.seconds =
            (self.seconds * (1.0 + GROWTH * step)).clamp(min.as_secs_f64(), max.max(min).as_secs_f64());
        self.sampled_at = now;
    }
    /// An RTT sample that does not show it: the time until now is left out.
    pub fn on_unusable_sample(&mut self, now: Instant) {
        self.sampled_at = now;
    }
    /// Loads its cache lines.
    pub fn prefetch(&self) {
        black_box((self.min, self.pause, self.stalls.longest()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn target() -> TargetDelay {
        TargetDelay::new(Duration::from_millis(15), Duration::from_millis(100), 0.04)
    }
    /// Round trips of which one in `every` finds the queue empty.
    fn find_empty(target: &mut TargetDelay, round_trips: u64, every: u64) {
        for n in 1..=round_trips {
            target.on_sample(Instant::from_millis(40 * n), n % every == 0, RTT, false);
        }
    }

    #[test]
    fn the_target_grows_where_more_than_one_round_trip_in_25_finds_the_queue_empty() {
        let mut rarely = target();
        find_empty(&mut rarely, 2_000, 100);
        assert!(rarely.seconds() < 0.02, "{rarely:?}");
        let mut often = target();
        find_empty(&mut often, 2_000, 10);
        assert!((often.seconds() - 0.1).abs() < 0.01, "{often:?}");
    }

    #[test]
    fn a_pause_of_the_radio_is_bridged_and_forgotten() {
        let mut target = target();
        let gap = |length, missed, may_be_pause| AckGap {
            length,
            delivered: 0,
            missed,
            may_be_pause,
            with_sack: true,
        };
        let pause = Duration::from_millis(120);
        target.on_ack(Instant::from_millis(120), &gap(pause, 1e6, false));
        target.on_ack(Instant::from_millis(240), &gap(pause, 1e3, true));
        assert_eq!(target.min_rate_interval(), Duration::ZERO, "a fade, and a slow radio");
        target.on_ack(Instant::from_millis(360), &gap(pause, 1e6, true));
        target.on_sample(Instant::from_millis(360), false, RTT, false);
        assert_eq!(target.min_rate_interval(), pause * 3 / 2);
        assert!(target.seconds() >= 0.03, "{target:?}");
        for ms in 361..3_000 {
            target.on_ack(Instant::from_millis(ms), &gap(Duration::from_millis(1), 0.0, true));
        }
        assert!(target.min_rate_interval() < Duration::from_millis(20), "{target:?}");
    }

    #[test]
    fn impossible_parameters_become_the_nearest_possible() {
        let target = TargetDelay::new(Duration::ZERO, Duration::ZERO, f64::NAN);
        assert_eq!(target.min(), Duration::from_millis(1));
        assert!(target.seconds() > 0.0 && target.empty_queue_share > 0.0, "{target:?}");
    }
}
