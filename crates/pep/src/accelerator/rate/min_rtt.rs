//! The path's own delay: the shortest round trip, and the search for it.
//!
//! It holds for ten seconds. When it expires, or when every round trip of a second has been far above it, the window
//! shrinks to below what the path itself holds until the queue is gone, and the shortest is measured anew: so a path that
//! became longer is told from a queue of our own making.
//!
//! **Delay that grows with the load** is no queue, and the shortest round trip of a quiet path says nothing of a busy one.
//! When no round trip of a second came near the shortest, it is tried: the window shrinks by a quarter of what the lowest
//! of them stands for. A queue would be shorter by then; if the round trips have not become shorter, there was none, and
//! what they took is the path's own delay. A trial that found a queue doubles the time until the next.
//!
//! **On a radio that fades** only round trips under load count (`loaded`): a silence leaves the path without any. The
//! silences empty the queue as well, so that what is found while the window is small is believed without a comparison.

use crate::accelerator::rate::AckSample;
use crate::accelerator::rate::loaded_rtt::Loaded;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// Life of a minimum round-trip time.
const LIFE: Duration = Duration::from_secs(10);
/// All round trips of so long above the minimum make it doubtful.
const DOUBT: Duration = Duration::from_secs(1);
/// Longest search.
const MAX_SEARCH: Duration = Duration::from_secs(3);
/// Round trip assumed before one is measured, to pace the first window.
const INITIAL: Duration = Duration::from_millis(50);
/// A queueing delay below this is none.
const LEAST_QUEUE: Duration = Duration::from_millis(2);
/// Bits of a packet, and the longest time that it is taken to need.
const PACKET: f64 = 12_000.0;
const LONGEST_PACKET: Duration = Duration::from_millis(100);
/// Of what the path holds, what is sent in a search.
const KEPT: f64 = 0.75;
/// The same where the silences of a radio that fades empty the queue as well: the link has nothing to send for the rest.
const FADING_KEPT: f64 = 0.85;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Aim {
    /// A new minimum, whatever the old one was.
    Minimum,
    /// Whether these round trips have a queue in them.
    Queue(Duration),
    /// The round trip under load, which was so at the lowest.
    Loaded(Duration),
}

/// The window is small.
#[derive(Clone, Copy, Debug)]
struct Search {
    since: Instant,
    aim: Aim,
    /// When the excess had drained, and the lowest round trip of what was sent since.
    drained: Option<(Instant, Duration)>,
}

#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct Floor {
    min: Option<(Duration, Instant)>,
    /// Lowest round trip of the current second, and when that began.
    lowest: Option<Duration>,
    second: Instant,
    search: Option<Search>,
    /// No trial before then, and how long the last pause was.
    trial_at: Instant,
    pause: Duration,
    /// What a packet needs at the path's rate.
    packet_time: Duration,
    pub loaded: Loaded,
}

impl Floor {
    pub fn rtt(&self) -> Duration {
        self.min.map_or(INITIAL, |(rtt, _)| rtt)
    }
    /// Reads each of its cache lines.
    pub fn look_at(&self) {
        black_box((self.min, self.second, self.packet_time));
    }
    /// The path carries so many bit/s.
    pub fn on_bandwidth(&mut self, bandwidth: f64) {
        self.packet_time = Duration::from_secs_f64(PACKET / bandwidth.max(1.0)).min(LONGEST_PACKET);
    }
    /// Whether a round trip of so long has no queue in it: less than a packet, or what a path varies by itself.
    pub fn is_near(&self, rtt: Duration) -> bool {
        let min = self.rtt();
        rtt.saturating_sub(min) < LEAST_QUEUE.max(min / 16).max(self.packet_time)
    }
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }
    /// For how long the window is to be worth sending while the search lasts, in seconds.
    pub fn span(&self) -> Option<f64> {
        self.search.map(|search| match search.aim {
            Aim::Minimum => KEPT * self.rtt().as_secs_f64(),
            Aim::Queue(rtt) => KEPT * rtt.as_secs_f64(),
            Aim::Loaded(rtt) => FADING_KEPT * rtt.as_secs_f64(),
        })
    }
    /// A first idea of the round trip.
    pub fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.min.get_or_insert((rtt, now));
    }
    /// A radio that fades was silent: what is found now is that of a path without load.
    pub fn on_fade(&mut self, now: Instant) {
        if self.search.take().is_some() {
            // Another try needs other round trips: with a window that is too small, sending has gaps like fades.
            self.loaded.look(now);
        }
        self.loaded.on_fade(now);
    }
    /// A round trip; whether it tells of the path.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration, fades: bool) -> bool {
        if fades && !self.loaded.on_rtt(now, rtt, self.rtt()) {
            return false;
        }
        if self.min.is_none_or(|(min, _)| rtt <= min) {
            self.min = Some((rtt, now));
        }
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        // What was sent before the excess had drained has waited for it.
        if let Some(Search { drained: Some((at, lowest)), .. }) = &mut self.search
            && now.since(*at) >= rtt
        {
            *lowest = (*lowest).min(rtt);
        }
        true
    }
    /// Starts, follows and ends a search. A queue of `slack` above the minimum is ours. Returns by how many seconds the
    /// minimum was too low for the load.
    pub fn follow(
        &mut self,
        now: Instant,
        sample: &AckSample,
        window: u64,
        slack: Duration,
        may_try: bool,
    ) -> Option<f64> {
        let (min, at) = self.min?;
        if let Some(search) = &mut self.search {
            match search.drained {
                None if sample.in_flight <= window => {
                    search.drained = Some((now, Duration::MAX));
                }
                Some((drained_at, lowest)) => {
                    let aim = search.aim;
                    let rtt = if let Aim::Queue(rtt) = aim { rtt } else { min };
                    if now.since(drained_at) > rtt * 5 / 4 && (lowest < Duration::MAX || aim != Aim::Minimum)
                    {
                        return self.end(now, min, aim, lowest);
                    }
                }
                _ => {}
            }
            if self.search.is_some_and(|search| now.since(search.since) > MAX_SEARCH) {
                // It has not drained: nothing was learned.
                self.min = Some((min, now));
                self.begin_second(now);
                self.search = None;
            }
            return None;
        }
        let begin = |aim| Some(Search { since: now, aim, drained: None });
        if sample.fades {
            let lowest = self.loaded.due(now, min)?;
            self.search = begin(Aim::Loaded(lowest));
            return None;
        }
        let second = now.since(self.second) >= DOUBT.max(min * 4);
        let above = self.lowest.filter(|_| second);
        if now.since(at) > LIFE || above.is_some_and(|lowest| lowest > min + slack) {
            self.search = begin(Aim::Minimum);
        } else if let Some(lowest) =
            above.filter(|lowest| may_try && now >= self.trial_at && !self.is_near(*lowest))
        {
            self.search = begin(Aim::Queue(lowest));
        } else if second {
            self.begin_second(now);
        }
        None
    }
    fn end(&mut self, now: Instant, min: Duration, aim: Aim, lowest: Duration) -> Option<f64> {
        self.search = None;
        self.begin_second(now);
        let found = match aim {
            Aim::Minimum => {
                self.min = Some((lowest, now));
                return None;
            }
            Aim::Queue(tried) => {
                let own = lowest < Duration::MAX && lowest > tried * 15 / 16;
                self.pause = if own { DOUBT } else { (self.pause * 2).max(DOUBT).min(LIFE) };
                self.trial_at = now + self.pause;
                Some(lowest).filter(|_| own)
            }
            Aim::Loaded(_) => self.loaded.look(now),
        }?;
        self.min = Some((found, now));
        Some(found.as_secs_f64() - min.as_secs_f64())
    }
    fn begin_second(&mut self, now: Instant) {
        (self.lowest, self.second) = (None, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second and a half of round trips that depend on the window: on a path of 100 bytes a millisecond, of which 40 ms are
    /// its own at any load, or as the load says; the window is worth 80 ms of it but while something is tried.
    fn searched(rtt: impl Fn(u64) -> u64) -> (Floor, f64, u64) {
        let mut floor = Floor::default();
        floor.on_handshake(Instant::ZERO, Duration::from_millis(40));
        let (mut rise, mut small) = (0.0, 0);
        for at in 1..1_500 {
            let now = Instant::from_millis(at);
            let window = floor.span().map_or(8_000, |span| (span * 100_000.0) as u64);
            small += u64::from(window < 8_000);
            let rtt = Duration::from_millis(rtt(window));
            let sample = AckSample {
                bytes: 100,
                lost: 0,
                rtt: Some(rtt),
                sent_at: None,
                in_flight: window,
                app_limited: false,
                fades: false,
                unselective: false,
            };
            floor.on_rtt(now, rtt, false);
            let slack = Duration::from_millis(60);
            rise += floor.follow(now, &sample, window, slack, true).unwrap_or(0.0);
        }
        (floor, rise, small)
    }

    #[test]
    fn a_queue_shrinks_with_the_window_and_leaves_the_minimum() {
        let (floor, rise, small) = searched(|window| window / 100);
        assert_eq!((floor.rtt(), rise), (Duration::from_millis(40), 0.0));
        assert!((90..150).contains(&small), "{small} ms with a small window");
    }

    #[test]
    fn delay_of_the_load_does_not_and_is_the_paths_own() {
        let (floor, rise, _) = searched(|_| 80);
        assert_eq!(floor.rtt(), Duration::from_millis(80));
        assert!((rise - 0.04).abs() < 1e-9, "{rise}");
    }

    #[test]
    fn what_waited_through_an_outage_is_no_round_trip_of_the_path() {
        let mut floor = Floor::default();
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        floor.on_handshake(at(0), ms(40));
        let ack = |rtt| AckSample {
            bytes: 100,
            lost: 0,
            rtt: Some(rtt),
            sent_at: None,
            in_flight: 3_000,
            app_limited: false,
            fades: false,
            unselective: false,
        };
        // Twelve seconds of silence, and what was in the queue all the while.
        for n in 12_000..12_200 {
            floor.on_rtt(at(n), ms(11_900), false);
            floor.follow(at(n), &ack(ms(11_900)), 3_000, Duration::ZERO, true);
        }
        assert_eq!((floor.rtt(), floor.is_searching()), (ms(40), true));
        floor.on_rtt(at(12_200), ms(50), false);
        floor.follow(at(12_200), &ack(ms(50)), 3_000, Duration::ZERO, true);
        assert_eq!((floor.rtt(), floor.is_searching()), (ms(50), false));
    }

    #[test]
    fn a_silence_of_a_radio_that_fades_ends_the_search_and_what_it_looked_for() {
        let mut floor = Floor::default();
        let (at, rtt) = (Instant::from_millis, Duration::from_millis(60));
        let sample = AckSample {
            bytes: 100,
            lost: 0,
            rtt: Some(rtt),
            sent_at: None,
            in_flight: 6_000,
            app_limited: false,
            fades: true,
            unselective: false,
        };
        floor.on_handshake(Instant::ZERO, Duration::from_millis(20));
        floor.on_fade(at(5_000));
        assert!(!floor.on_rtt(at(5_100), rtt / 2, true), "that was without load");
        assert!(floor.on_rtt(at(5_500), rtt, true));
        floor.follow(at(5_500), &sample, 9_000, Duration::ZERO, true);
        assert!((floor.span().unwrap() - 0.051).abs() < 1e-9);
        floor.on_fade(at(5_550));
        assert_eq!((floor.span(), floor.rtt()), (None, Duration::from_millis(20)));
        floor.follow(at(6_500), &sample, 9_000, Duration::ZERO, true);
        assert!(!floor.is_searching(), "other round trips are waited for");
    }
}
