//! How long a worker gathers packets before it takes them.
//!
//! What is taken at once costs less each: the kernel merges what follows one another, and worker, server and client are
//! woken less often. After a turn that brought much, packets are gathered for a tick. At high rates they are gathered
//! whatever the last turn brought, since a worker that wakes for every packet never finds many, and for longer while that
//! brings less than pays. Light traffic is not gathered at all, nor is one connection whose ends wait for each other.

use super::socket::BATCH;
use paceline_net::{Duration, Instant};

/// Packets or bytes that are much for a turn.
const MUCH: usize = 4;
const MUCH_BYTES: u64 = 16 << 10;
/// Packets or bytes in a tick that are a high rate.
const HIGH: f64 = 8.0;
const HIGH_BYTES: f64 = MUCH_BYTES as f64;
/// Bytes of a turn beyond which a longer pause gains nothing: what is held until then should stay in a processor's cache.
const WANTED_BYTES: u64 = 256 << 10;
/// Longest pause, unless the tick is longer, and the time over which rates are measured.
const MOST: Duration = Duration::from_micros(500);

/// Finds the pauses between turns.
pub struct Gathering {
    tick: Duration,
    pause: Duration,
    turned_at: Instant,
    /// Packets and bytes of a tick.
    rates: [f64; 2],
}

impl Gathering {
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
        if !high && packets < MUCH && bytes < MUCH_BYTES {
            self.pause = self.tick;
            return None;
        }
        let longer = high && bytes < WANTED_BYTES && packets < BATCH;
        self.pause = if longer { self.pause * 5 / 4 } else { self.pause * 3 / 4 };
        self.pause = self.pause.clamp(self.tick, most);
        Some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_micros(100);

    /// A steady load of so many packets a second: the pauses at last, none where the worker wakes for each packet.
    fn settled(gathering: &mut Gathering, packets_per_second: u64, packet: u64) -> Vec<Option<Duration>> {
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
        settled(&mut Gathering::new(TICK), packets_per_second, packet)
    }

    #[test]
    fn light_traffic_is_not_gathered_whatever_was_before() {
        assert_eq!(fresh(60_000, 64), [None; 20]);
        let mut gathering = Gathering::new(TICK);
        assert_eq!(settled(&mut gathering, 10_000, 50_000), [Some(MOST); 20]);
        assert_eq!(settled(&mut gathering, 30_000, 64), [None; 20]);
    }

    #[test]
    fn much_at_once_is_followed_by_a_tick() {
        let mut gathering = Gathering::new(TICK);
        let at = |n: u64| Instant::from_millis(n);
        assert_eq!(gathering.on_turn(at(7), 3, 4500), None);
        assert_eq!(gathering.on_turn(at(14), 4, 6000), Some(TICK));
        assert_eq!(gathering.on_turn(at(21), 1, 40_000), Some(TICK));
        assert_eq!(gathering.on_turn(at(28), 0, 0), None);
    }

    #[test]
    fn a_worker_that_wakes_for_every_packet_notices_that_there_are_many() {
        assert!(fresh(200_000, 64).iter().all(|pause| pause.is_some_and(|pause| pause > TICK * 2)));
    }

    #[test]
    fn the_more_comes_the_less_long_it_is_gathered() {
        let within = |pauses: &[Option<Duration>], least: Duration, most: Duration| {
            pauses.iter().all(|pause| pause.is_some_and(|pause| least <= pause && pause <= most))
        };
        // 3, 10 and 40 Gb/s in super-packets.
        assert_eq!(fresh(7_500, 50_000), [Some(MOST); 20]);
        let ten = fresh(25_000, 50_000);
        assert!(within(&ten, TICK * 3 / 2, TICK * 3), "{ten:?}");
        let forty = fresh(100_000, 50_000);
        assert!(within(&forty, TICK, TICK * 5 / 4), "{forty:?}");
        // Small packets: as many as are taken in a call.
        let small = fresh(300_000, 64);
        assert!(within(&small, TICK * 3 / 2, TICK * 3), "{small:?}");
    }

    #[test]
    fn a_longer_tick_stays_and_another_is_taken_over() {
        let mut gathering = Gathering::new(Duration::from_millis(2));
        let now = Instant::from_millis(9);
        assert_eq!(gathering.on_turn(now, 4000, 4 << 20), Some(Duration::from_millis(2)));
        gathering.set_tick(TICK);
        assert_eq!(gathering.on_turn(now, 200, 1), Some(TICK));
    }
}
