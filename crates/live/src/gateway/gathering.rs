//! How long a worker gathers packets before it takes them.
//!
//! What is taken at once costs less each: the kernel merges what follows one another, and worker, server and client are
//! woken less often. While there is much traffic, packets are gathered for a tick, and for longer while that brings less
//! than pays. What is much is a rate, so that a longer pause does not make more of the same traffic. Many packets
//! with few bytes gain nothing by waiting, and light traffic is not gathered at all.

use super::socket::BATCH;
use paceline_net::Duration;

/// Packets or bytes in a tick from which on there is much traffic.
const BUSY: u64 = 4;
const BUSY_BYTES: u64 = 16 << 10;
/// Bytes of a turn beyond which a longer pause gains nothing: what is held until then should stay in a processor's cache.
const WANTED_BYTES: u64 = 256 << 10;
/// Longest pause, unless the tick is longer.
const MOST: Duration = Duration::from_micros(500);

/// Finds the pauses between turns.
pub struct Gathering {
    tick: Duration,
    pause: Duration,
}

impl Gathering {
    /// Pauses of a tick at least.
    pub fn new(tick: Duration) -> Self {
        Self { tick, pause: tick }
    }
    /// Another tick, from now on.
    pub fn set_tick(&mut self, tick: Duration) {
        *self = Self::new(tick);
    }
    /// A turn brought so much. How long after its beginning the next one is made; none if that waits for a packet.
    pub fn on_turn(&mut self, packets: usize, bytes: u64) -> Option<Duration> {
        let (tick, pause) = (self.tick.as_nanos(), self.pause.as_nanos());
        let (much, heavy) =
            (packets as u64 * tick >= BUSY * pause, bytes.saturating_mul(tick) >= BUSY_BYTES * pause);
        let longer = heavy && bytes < WANTED_BYTES && packets < BATCH;
        self.pause = if longer { self.pause * 5 / 4 } else { self.pause * 3 / 4 };
        self.pause = self.pause.clamp(self.tick, MOST.max(self.tick));
        if !much && !heavy {
            self.pause = self.tick;
            return None;
        }
        Some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_micros(100);

    /// The pause at which a steady load settles; packets of so many bytes.
    fn settled(bytes_per_second: u64, packet: u64) -> Option<Duration> {
        let mut gathering = Gathering::new(TICK);
        let (mut pause, mut waiting) = (Some(TICK), 0);
        for _ in 0..200 {
            waiting += bytes_per_second * pause.unwrap_or(TICK).as_nanos() / 1_000_000_000;
            let packets = waiting / packet;
            waiting -= packets * packet;
            pause = gathering.on_turn(packets as usize, packets * packet);
        }
        pause
    }

    #[test]
    fn light_traffic_is_not_gathered() {
        assert_eq!(settled(2_000_000, 1500), None);
        let mut gathering = Gathering::new(TICK);
        for _ in 0..20 {
            assert!(gathering.on_turn(4, 64 << 10).is_some());
        }
        // What was heavy in a tick is not heavy in five.
        assert_eq!(gathering.on_turn(2, 40_000), None);
        assert_eq!(gathering.on_turn(4, 6000), Some(TICK));
    }

    #[test]
    fn the_more_comes_the_less_long_it_is_gathered() {
        let gigabit = 125_000_000;
        assert_eq!(settled(3 * gigabit, 50_000), Some(MOST));
        let ten = settled(10 * gigabit, 50_000).unwrap();
        assert!((TICK * 3 / 2..TICK * 3).contains(&ten), "{ten:?}");
        assert!(settled(40 * gigabit, 60_000).unwrap() < TICK * 5 / 4);
    }

    #[test]
    fn small_packets_gain_nothing_by_waiting() {
        assert_eq!(settled(64_000_000, 64), Some(TICK));
    }

    #[test]
    fn a_tick_that_is_longer_stays() {
        let mut gathering = Gathering::new(Duration::from_millis(2));
        assert_eq!(gathering.on_turn(40, 4 << 20), Some(Duration::from_millis(2)));
        gathering.set_tick(TICK);
        assert_eq!(gathering.on_turn(4, 1), Some(TICK));
    }
}
