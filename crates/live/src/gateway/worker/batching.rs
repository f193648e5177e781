//! How long a worker gathers packets before it takes them.
//!
//! What is taken at once costs less each: worker, server and client are woken less often. After a turn that brought many
//! packets, others are gathered for a tick. At high rates they are gathered whatever the last turn brought, since a worker
//! that wakes for every packet never finds many, and for longer while that brings less than pays. Not gathered are light
//! traffic, one connection whose ends wait for each other, and whatever comes after a turn that brought many bytes: the
//! kernel has merged those already, their price is by the byte, and a pause would only lengthen the servers' round trips.

use crate::gateway::datapath::socket::BATCH;
use paceline_net::{Duration, Instant};

/// Packets that are many for a turn.
const MANY: usize = 4;
/// Packets or bytes in a tick that are a high rate.
const HIGH: f64 = 8.0;
const HIGH_BYTES: f64 = 16384.0;
/// Bytes of a turn after which a pause gains nothing. Of 16 KiB to 256 KiB, with pauses of up to 100 us to 1 ms, this and
/// [`MOST`] were among the best both in processor time for a byte and in what was moved.
const ENOUGH_BYTES: u64 = 32 << 10;
/// Longest pause, unless the tick is longer, and the time over which rates are measured.
const MOST: Duration = Duration::from_micros(300);

/// Finds the pauses between turns.
pub struct Batching {
    tick: Duration,
    pause: Duration,
    turned_at: Instant,
    /// Packets and bytes of a tick.
    rates: [f64; 2],
}

impl Batching {
    /// Pauses of a tick at least.
    pub fn new(tick: Duration) -> Self {
        Self { tick, pause: tick, turned_at: Instant::ZERO, rates: [0.0; 2] }
    }
    /// Another tick, from now on.
    pub fn set_tick(&mut self, tick: Duration) {
        *self = Self::new(tick);
    }
    /// A turn that began `now` brought so much. How long after its beginning the next one is made; none if that waits for
    /// a packet.
    pub fn on_turn(&mut self, now: Instant, packets: usize, bytes: u64) -> Option<Duration> {
        let (tick, most) = (self.tick.as_nanos() as f64, MOST.max(self.tick));
        let since = now.since(self.turned_at).min(most).as_nanos() as f64;
        self.turned_at = now;
        let memory = most.as_nanos() as f64;
        for (rate, new) in self.rates.iter_mut().zip([packets as f64, bytes as f64]) {
            *rate = (*rate * memory + new * tick) / (memory + since);
        }
        let [packet_rate, byte_rate] = self.rates;
        let high = packet_rate >= HIGH || byte_rate >= HIGH_BYTES;
        if !high && packets < MANY {
            self.pause = self.tick;
            return None;
        }
        let enough = bytes >= ENOUGH_BYTES;
        let longer = high && !enough && packets < BATCH;
        self.pause = if longer { self.pause * 5 / 4 } else { self.pause * 3 / 4 };
        self.pause = self.pause.clamp(self.tick, most);
        (!enough).then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_micros(100);

    /// A steady load of so many packets a second: the pauses at last, none where the worker wakes for each packet.
    fn settled(gathering: &mut Batching, packets_per_second: u64, packet: u64) -> Vec<Option<Duration>> {
        let gap = 1_000_000_000 / packets_per_second;
        let (mut now, mut taken) = (gathering.turned_at.as_nanos(), 0);
        let start = now;
        let mut turn = || {
            let packets = (now - start) / gap - taken;
            taken += packets;
            let pause = gathering.on_turn(Instant::from_nanos(now), packets as usize, packets * packet);
            now = pause.map_or(start + (taken + 1) * gap, |pause| now + pause.as_nanos());
            pause
        };
        for _ in 0..2000 {
            turn();
        }
        (0..20).map(|_| turn()).collect()
    }
    fn fresh(packets_per_second: u64, packet: u64) -> Vec<Option<Duration>> {
        settled(&mut Batching::new(TICK), packets_per_second, packet)
    }

    #[test]
    fn light_traffic_is_not_gathered_whatever_was_before() {
        assert_eq!(fresh(60_000, 64), [None; 20]);
        let mut gathering = Batching::new(TICK);
        assert!(settled(&mut gathering, 200_000, 64).iter().all(Option::is_some));
        assert_eq!(settled(&mut gathering, 30_000, 64), [None; 20]);
    }

    #[test]
    fn many_at_once_are_followed_by_a_tick_and_many_bytes_by_none() {
        let mut gathering = Batching::new(TICK);
        let at = |n: u64| Instant::from_millis(n);
        assert_eq!(gathering.on_turn(at(7), 3, 4500), None);
        assert_eq!(gathering.on_turn(at(14), 4, 6000), Some(TICK));
        assert_eq!(gathering.on_turn(at(21), 1, 40_000), None);
        assert_eq!(gathering.on_turn(at(28), 40, 60_000), None);
        assert_eq!(gathering.on_turn(at(35), 0, 0), None);
    }

    #[test]
    fn a_worker_that_wakes_for_every_packet_notices_that_there_are_many() {
        assert!(fresh(200_000, 64).iter().all(|pause| pause.is_some_and(|pause| pause > TICK * 2)));
    }

    #[test]
    fn super_packets_are_not_gathered_and_what_nothing_merged_is_until_it_is_enough() {
        // 1, 3 and 40 Gb/s.
        for rate in [2_500, 7_500, 100_000] {
            assert_eq!(fresh(rate, 50_000), [None; 20], "{rate}");
        }
        // 3 Gb/s in single packets: a pause that brings enough, no pause, the first that comes then, and so on.
        let single = fresh(250_000, 1514);
        assert!(single.contains(&None), "{single:?}");
        assert!(single.iter().flatten().all(|pause| *pause <= TICK * 2), "{single:?}");
        assert!(single.iter().flatten().count() >= 10, "{single:?}");
    }

    #[test]
    fn the_more_packets_come_the_less_long_they_are_gathered() {
        // As many as are taken in a call.
        let small = fresh(300_000, 64);
        let within = |pause: &Duration| TICK * 3 / 2 <= *pause && *pause <= TICK * 3;
        assert!(small.iter().all(|pause| pause.as_ref().is_some_and(within)), "{small:?}");
    }

    #[test]
    fn a_longer_tick_stays_and_another_is_taken_over() {
        let mut gathering = Batching::new(Duration::from_millis(2));
        let now = Instant::from_millis(9);
        assert_eq!(gathering.on_turn(now, 400, 30_000), Some(Duration::from_millis(2)));
        gathering.set_tick(TICK);
        assert_eq!(gathering.on_turn(now, 200, 1), Some(TICK));
    }
}
