//! The pause between two turns of a worker, in which packets are batched.
//!
//! A larger batch costs less per packet, since worker, server and client are woken less often. The rules:
//! - After a turn with [`MANY_PACKETS`], the worker pauses for one tick.
//! - At high rates it pauses after every turn, since a worker that wakes for each packet never finds many,
//!   and up to [`MAX_PAUSE`] as long as turns bring less than a full batch.
//! - The worker does not pause under light traffic, for a single connection whose ends wait for each other,
//!   or after a turn with [`ENOUGH_BYTES`]: those packets were merged by the kernel already, their cost is
//!   per byte, and a pause would only lengthen the servers' round trips.

use crate::datapath::socket::BATCH;
use paceline_net::{Duration, Instant};

/// Packets of a turn after which the worker pauses. Chosen: a single connection whose ends wait for each
/// other brings fewer.
const MANY_PACKETS: usize = 4;
/// Packets per tick that are a high rate. Chosen: twice [`MANY_PACKETS`].
const HIGH_PACKETS_PER_TICK: f64 = 8.0;
/// Bytes per tick that are a high rate: 1.3 Gb/s at a tick of 100 us. Chosen: half of [`ENOUGH_BYTES`].
const HIGH_BYTES_PER_TICK: f64 = 16384.0;
/// Bytes of a turn after which a pause gains nothing. Measured among 16 KiB to 256 KiB, with longest pauses
/// of 100 us to 1 ms: this value and [`MAX_PAUSE`] were among the best in processor time per byte and in
/// throughput..
const ENOUGH_BYTES: u64 = 32 << 10;
/// Longest pause, unless the tick is longer, and the time constant of the rates. Measured with
/// [`ENOUGH_BYTES`].
const MAX_PAUSE: Duration = Duration::from_micros(300);

/// Computes the pauses of one worker.
pub struct Batching {
    tick: Duration,
    pause: Duration,
    turned_at: Instant,
    /// Packets and bytes per tick.
    rates: [f64; 2],
}

impl Batching {
    /// Starts with pauses of one tick, the shortest.
    pub fn new(tick: Duration) -> Self {
        Self { tick, pause: tick, turned_at: Instant::ZERO, rates: [0.0; 2] }
    }
    /// Changes the tick, and starts anew.
    pub fn set_tick(&mut self, tick: Duration) {
        *self = Self::new(tick);
    }
    /// Records a turn that began at `now`. Returns the time from its beginning to the next turn; None if the
    /// worker has to sleep until a packet or a timer is due.
    pub fn on_turn(&mut self, now: Instant, packets: usize, bytes: u64) -> Option<Duration> {
        let (tick, max_pause) = (self.tick.as_nanos() as f64, MAX_PAUSE.max(self.tick));
        let since = now.since(self.turned_at).min(max_pause).as_nanos() as f64;
        self.turned_at = now;
        let time_constant = max_pause.as_nanos() as f64;
        for (rate, new) in self.rates.iter_mut().zip([packets as f64, bytes as f64]) {
            *rate = (*rate * time_constant + new * tick) / (time_constant + since);
        }
        let [packet_rate, byte_rate] = self.rates;
        let high = packet_rate >= HIGH_PACKETS_PER_TICK || byte_rate >= HIGH_BYTES_PER_TICK;
        if !high && packets < MANY_PACKETS {
            self.pause = self.tick;
            return None;
        }
        let enough = bytes >= ENOUGH_BYTES;
        let longer = high && !enough && packets < BATCH;
        self.pause = if longer { self.pause * 5 / 4 } else { self.pause * 3 / 4 };
        self.pause = self.pause.clamp(self.tick, max_pause);
        (!enough).then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_micros(100);

    /// The pauses under a steady load of `packets_per_second`, each of `packet` bytes, after 2000 turns.
    fn steady_pauses(batching: &mut Batching, packets_per_second: u64, packet: u64) -> Vec<Option<Duration>> {
        let gap = 1_000_000_000 / packets_per_second;
        let (mut now, mut taken) = (batching.turned_at.as_nanos(), 0);
        let start = now;
        let mut turn = || {
            let packets = (now - start) / gap - taken;
            taken += packets;
            let pause = batching.on_turn(Instant::from_nanos(now), packets as usize, packets * packet);
            now = pause.map_or(start + (taken + 1) * gap, |pause| now + pause.as_nanos());
            pause
        };
        for _ in 0..2000 {
            turn();
        }
        (0..20).map(|_| turn()).collect()
    }
    fn steady_pauses_from_start(packets_per_second: u64, packet: u64) -> Vec<Option<Duration>> {
        steady_pauses(&mut Batching::new(TICK), packets_per_second, packet)
    }

    #[test]
    fn light_traffic_is_not_batched_even_after_a_high_rate() {
        assert_eq!(steady_pauses_from_start(60_000, 64), [None; 20]);
        let mut batching = Batching::new(TICK);
        assert!(steady_pauses(&mut batching, 200_000, 64).iter().all(Option::is_some));
        assert_eq!(steady_pauses(&mut batching, 30_000, 64), [None; 20]);
    }

    #[test]
    fn many_packets_are_followed_by_a_pause_and_many_bytes_by_none() {
        let mut batching = Batching::new(TICK);
        let at = |n: u64| Instant::from_millis(n);
        assert_eq!(batching.on_turn(at(7), 3, 4500), None);
        assert_eq!(batching.on_turn(at(14), 4, 6000), Some(TICK));
        assert_eq!(batching.on_turn(at(21), 1, 40_000), None);
        assert_eq!(batching.on_turn(at(28), 40, 60_000), None);
        assert_eq!(batching.on_turn(at(35), 0, 0), None);
    }

    #[test]
    fn a_high_packet_rate_is_detected_even_if_each_turn_brings_one_packet() {
        assert!(
            steady_pauses_from_start(200_000, 64)
                .iter()
                .all(|pause| pause.is_some_and(|pause| pause > TICK * 2))
        );
    }

    #[test]
    fn super_packets_are_not_batched_and_single_packets_are_until_a_turn_has_enough_bytes() {
        // 1, 3 and 40 Gb/s.
        for rate in [2_500, 7_500, 100_000] {
            assert_eq!(steady_pauses_from_start(rate, 50_000), [None; 20], "{rate}");
        }
        // 3 Gb/s in single packets: a turn with enough bytes, hence no pause; a turn with one packet, hence a
        // pause; and so on.
        let single = steady_pauses_from_start(250_000, 1514);
        assert!(single.contains(&None), "{single:?}");
        assert!(single.iter().flatten().all(|pause| *pause <= TICK * 2), "{single:?}");
        assert!(single.iter().flatten().count() >= 10, "{single:?}");
    }

    #[test]
    fn pauses_shrink_when_turns_bring_full_batches() {
        // A batch of 64 packets takes 213 us.
        let small = steady_pauses_from_start(300_000, 64);
        let within = |pause: &Duration| TICK * 3 / 2 <= *pause && *pause <= TICK * 3;
        assert!(small.iter().all(|pause| pause.as_ref().is_some_and(within)), "{small:?}");
    }

    #[test]
    fn a_tick_longer_than_the_longest_pause_is_kept_and_can_be_changed() {
        let mut batching = Batching::new(Duration::from_millis(2));
        let now = Instant::from_millis(9);
        assert_eq!(batching.on_turn(now, 400, 30_000), Some(Duration::from_millis(2)));
        batching.set_tick(TICK);
        assert_eq!(batching.on_turn(now, 200, 1), Some(TICK));
    }
}
