//! Largest number of bytes in flight that the path takes without loss, as BBRv2's `inflight_hi`
//! (draft-ietf-ccwg-bbr, section 5.5.10).
//!
//! A radio's buffer holds a number of bytes, while the window follows the capacity. When the capacity falls
//! to a part within tens of milliseconds, all that is in flight is in the buffer, and it overflows though it
//! holds the target delay at most times. `short_buffer` does not see that: it needs heavy losses in several
//! round trips. Here a lossy round trip lowers the cap below what was in flight, as a trial. If the losses
//! end, the cap stays and grows slowly; if nearly every round trip of the trial loses packets, the buffer is
//! not the cause, and losses are ignored for a while. A buffer overflows only when it is full: losses while
//! it evidently had room (`buffer_high_water`) are the radio's, set no cap and remove one.

use crate::accelerator::rate::losses::short_buffer::is_lossy;
use paceline_net::{Duration, Instant};

/// Share of lost bytes in a round trip that lowers the cap: BBR.LossThresh (draft-ietf-ccwg-bbr, section
/// 2.7).
const LOSS_SHARE: f64 = 0.02;
/// Smallest number of lost bytes. Chosen: two segments are no sample.
const MIN_LOST_BYTES: u64 = 3000;
/// Factor of the bytes in flight after a lossy round trip. Chosen: BBR.Beta, 0.7, leaves a radio idle whose
/// capacity rises again.
const DECREASE: f64 = 0.85;
/// Round trips at the beginning of a trial that do not count. Chosen: packets sent before it are found lost
/// in these.
const UNCOUNTED_ROUNDS: u8 = 2;
/// Round trips that count in a trial, and those of them that lose packets without which it succeeds. Chosen:
/// a capacity that changes overflows the buffer in some of them; a radio loses packets in nearly all.
const TRIAL_ROUNDS: u8 = 8;
const FAILED_ROUNDS: u8 = 6;
/// Share of lost bytes in such a round trip. Chosen: half of [`LOSS_SHARE`], since a radio's losses vary.
const TRIAL_LOSS_SHARE: f64 = LOSS_SHARE / 2.0;
/// Round trips with heavy losses that end a backoff: a radio loses less. Chosen: a single one may be chance.
const HEAVY_ROUNDS: u8 = 3;
/// Growth of the cap in a round trip after a trial. Chosen: one overflow in some ten round trips costs about
/// a percent.
const GROWTH: f64 = 1.0 / 64.0;
/// Shortest round trip with such a growth; in shorter ones the cap grows, and losses are forgotten, in
/// proportion. Chosen: a radio's round trip with the shortest target delay; on a LAN the cap would overflow
/// the buffer every few milliseconds.
const GROWTH_TIME: Duration = Duration::from_millis(20);
/// Growth of the cap in a round trip while recent losses exceed their budget. Chosen: overflows become rare
/// within the memory of the budget.
const GROWTH_BEYOND_BUDGET: f64 = 1.0 / 512.0;
/// Share of lost bytes that growth may cost where the queue was never empty, and the round trips that are
/// remembered. Chosen: below [`LOSS_LIMIT`], over some seconds.
const LOSS_BUDGET: f64 = 0.0125;
const REMEMBERED_ROUNDS: f64 = 256.0;
/// Share of lost bytes at which growth is slow even where the queue was empty. Chosen: on a path without
/// losses of its own at most 2% may be sent again.
const LOSS_LIMIT: f64 = 0.02;
/// Share of lost bytes from which such growth becomes slower. Chosen: the middle of the two.
const LOSS_BRAKE: f64 = (LOSS_BUDGET + LOSS_LIMIT) / 2.0;
/// Time after a trial without success in which losses are ignored: at first, and at most; it doubles. Chosen:
/// as `short_buffer`.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(120);
/// A cap that exceeds the bytes in flight by this factor is removed. Chosen: the path has become slower.
const UNUSED_FACTOR: u64 = 3;

/// A finished round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct FlightRound {
    /// Bytes delivered, and found lost within the client's window.
    pub delivered: u64,
    pub lost: u64,
    /// A silence came within the last few round trips: the losses may be those of a fade.
    pub recent_silence: bool,
    /// The buffer evidently had room for the lost packets.
    pub had_room: bool,
    /// The queue was empty at some time in it.
    pub without_queue: bool,
    /// The capacity is not known yet. Only heavy losses count: a doubled window overflows a buffer by much.
    pub startup: bool,
    /// Bytes that the path was seen to carry without a queue; a smaller cap would leave it idle.
    pub carried: u64,
}

/// Whether enough bytes were lost for the cause to matter.
pub(in crate::accelerator) fn is_notable(delivered: u64, lost: u64) -> bool {
    lost >= MIN_LOST_BYTES && lost as f64 > LOSS_SHARE * (delivered + lost) as f64
}

/// Cap of the bytes in flight to one device.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct FlightCap {
    /// Bytes; 0 for none.
    cap: u64,
    /// The most bytes in flight in this round trip, and in the last one.
    most: [u64; 2],
    /// Bytes found lost in this round trip that had been sent past the client's window.
    beyond: u64,
    /// A trial is under way, with so many round trips, of which some lost packets.
    is_trial: bool,
    rounds: u8,
    lossy_rounds: u8,
    /// Bytes delivered and lost in the round trips of the trial that count.
    trial_bytes: (u64, u64),
    /// One of them had heavy losses.
    trial_heavy: bool,
    /// Round trips with heavy losses since the backoff began.
    heavy_rounds: u8,
    /// Bytes delivered and lost in recent round trips, older ones counting less.
    recent: (f64, f64),
    /// Round trips since the last decrease.
    since_decrease: u8,
    /// End of the last round trip.
    round_at: Instant,
    ignored_until: Instant,
    backoff: Duration,
}

impl FlightCap {
    /// Bytes that may be in flight, if there is a cap.
    pub fn bytes(&self) -> Option<u64> {
        (self.cap > 0).then_some(self.cap)
    }
    /// The most bytes in flight in this round trip and the last one.
    pub fn most(&self) -> u64 {
        self.most[0].max(self.most[1])
    }
    /// An acknowledgment, with `in_flight` bytes before it, of which `beyond` were lost past the client's
    /// window. A drop of the client counts as well: more in flight is of no use then.
    pub fn on_ack(&mut self, in_flight: u64, beyond: u64) {
        self.most[0] = self.most[0].max(in_flight);
        self.beyond += beyond;
    }
    /// A round trip ended.
    pub fn on_round(&mut self, now: Instant, round: &FlightRound) {
        let most = self.most();
        let length = now.since(std::mem::replace(&mut self.round_at, now)).min(GROWTH_TIME);
        self.most = [0, self.most[0]];
        let delivered = round.delivered;
        let lost = round.lost + std::mem::take(&mut self.beyond);
        // The budget has those after a silence as well: they may be the buffer's.
        let spent = lost;
        let lost = if round.recent_silence { 0 } else { lost };
        if round.had_room && is_notable(delivered, lost) {
            (self.cap, self.is_trial) = (0, false);
            return;
        }
        let share = length.as_secs_f64() / GROWTH_TIME.as_secs_f64();
        let remember = |sum: f64, bytes: u64| sum * (1.0 - share / REMEMBERED_ROUNDS) + bytes as f64;
        self.recent = (remember(self.recent.0, delivered), remember(self.recent.1, spent));
        self.since_decrease = self.since_decrease.saturating_add(1);
        let counts = self.cap == 0 || self.since_decrease > UNCOUNTED_ROUNDS;
        let heavy = is_lossy(delivered, lost);
        let lossy = if round.startup { heavy } else { is_notable(delivered, lost) };
        if heavy && now < self.ignored_until {
            self.heavy_rounds += 1;
            if self.heavy_rounds >= HEAVY_ROUNDS {
                (self.ignored_until, self.backoff) = (now, Duration::ZERO);
            }
        }
        if counts && lossy && now >= self.ignored_until {
            let from = if self.cap > 0 { most.min(self.cap) } else { most };
            // Heavy losses show how many bytes were too many.
            let fitted = if heavy { most.saturating_sub(lost) } else { u64::MAX };
            self.cap = ((DECREASE * from as f64) as u64).min(fitted).max(round.carried);
            self.since_decrease = 0;
            if !self.is_trial {
                (self.is_trial, self.rounds, self.lossy_rounds, self.trial_bytes) = (true, 0, 0, (0, 0));
                return;
            }
        }
        if self.is_trial {
            self.continue_trial(now, delivered, lost);
        } else if self.cap > UNUSED_FACTOR * most {
            self.cap = 0;
        } else {
            self.cap += (self.cap as f64 * self.growth(round.without_queue) * share) as u64;
        }
    }
    /// Share of the bytes that were lost in recent round trips.
    fn recent_share(&self) -> f64 {
        self.recent.1 / (self.recent.0 + self.recent.1).max(1.0)
    }
    /// Whether the buffer lost so much recently that data past the client's window, which are lost with the
    /// first lost packet, would cost too much.
    pub fn is_beyond_limit(&self) -> bool {
        self.cap > 0 && self.recent_share() > LOSS_LIMIT
    }
    /// Growth of the cap in a round trip. An empty queue is lost capacity, for which more may be lost.
    fn growth(&self, without_queue: bool) -> f64 {
        let recent = self.recent_share();
        let (from, to) = if without_queue { (LOSS_BRAKE, LOSS_LIMIT) } else { (LOSS_BUDGET, LOSS_BUDGET) };
        let beyond = if recent <= from { 0.0 } else { ((recent - from) / (to - from)).min(1.0) };
        GROWTH + (GROWTH_BEYOND_BUDGET - GROWTH) * beyond
    }
    fn continue_trial(&mut self, now: Instant, delivered: u64, lost: u64) {
        self.rounds += 1;
        if self.rounds > UNCOUNTED_ROUNDS {
            self.lossy_rounds += u8::from(lost as f64 > TRIAL_LOSS_SHARE * (delivered + lost) as f64);
            self.trial_bytes.0 += delivered;
            self.trial_bytes.1 += lost;
            self.trial_heavy |= is_lossy(delivered, lost);
        }
        if self.rounds < UNCOUNTED_ROUNDS + TRIAL_ROUNDS {
            return;
        }
        self.is_trial = false;
        let heavy = std::mem::take(&mut self.trial_heavy);
        if heavy || self.lossy_rounds < FAILED_ROUNDS || is_lossy(self.trial_bytes.0, self.trial_bytes.1) {
            self.backoff = Duration::ZERO;
        } else {
            self.backoff = (self.backoff * 2).max(FIRST_BACKOFF).min(MAX_BACKOFF);
            (self.ignored_until, self.heavy_rounds) = (now + self.backoff, 0);
            self.cap = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 50 ms with a megabyte in flight at most, of which the bytes above `buffer` are lost,
    /// and a share in addition. Returns the cap after each and the share that was lost in all.
    fn run(
        cap: &mut FlightCap,
        from_ms: u64,
        rounds: u64,
        buffer: u64,
        share: f64,
    ) -> (Vec<Option<u64>>, f64) {
        let (mut caps, mut all, mut all_lost) = (Vec::new(), 0, 0);
        for round in 0..rounds {
            let in_flight = cap.bytes().unwrap_or(u64::MAX).min(1_000_000);
            let lost = in_flight.saturating_sub(buffer) + (share * in_flight as f64) as u64;
            cap.on_ack(in_flight, 0);
            let end = FlightRound { delivered: in_flight - lost, lost, ..FlightRound::default() };
            cap.on_round(Instant::from_millis(from_ms + 50 * round), &end);
            caps.push(cap.bytes());
            (all, all_lost) = (all + in_flight, all_lost + lost);
        }
        (caps, all_lost as f64 / all as f64)
    }

    #[test]
    fn a_buffer_overflows_rarely_after_the_first_time() {
        let mut cap = FlightCap::default();
        let (caps, _) = run(&mut cap, 50, 20, 800_000, 0.0);
        assert_eq!(caps[0], Some(800_000));
        let (caps, lost) = run(&mut cap, 1050, 1000, 800_000, 0.0);
        assert!(lost < 0.01, "{lost:.4}");
        assert!(
            caps.iter().all(|cap| cap.is_some_and(|bytes| (650_000..860_000).contains(&bytes))),
            "{caps:?}"
        );
    }

    #[test]
    fn in_short_round_trips_the_cap_grows_by_time() {
        let grown = |round_us: u64| {
            let mut cap = FlightCap::default();
            run(&mut cap, 50, 20, 800_000, 0.0);
            let before = cap.bytes().unwrap();
            for round in 1..=100_000 / round_us {
                cap.on_ack(before, 0);
                let end = FlightRound { delivered: before, without_queue: true, ..FlightRound::default() };
                cap.on_round(Instant::from_nanos(1_000_000_000 + 1000 * round * round_us), &end);
            }
            cap.bytes().unwrap() as f64 / before as f64
        };
        // A tenth of a second: five round trips of 20 ms, or 200 of half a millisecond.
        assert!((grown(20_000) - grown(500)).abs() < 0.01, "{} {}", grown(20_000), grown(500));
        assert!(grown(50_000) < grown(20_000));
    }

    #[test]
    fn after_losses_beyond_their_limit_the_cap_grows_slowly_though_the_queue_is_empty() {
        // Two seconds without a queue, after overflows that lost a share of all bytes.
        let grown = |lost: u64, delivered: u64| {
            let mut cap = FlightCap::default();
            run(&mut cap, 50, 20, 800_000, 0.0);
            let before = cap.bytes().unwrap();
            cap.recent = (1e6 * delivered as f64, 1e6 * lost as f64);
            for round in 1..=50 {
                cap.on_ack(before, 0);
                let end = FlightRound { delivered: 1000, without_queue: true, ..FlightRound::default() };
                cap.on_round(Instant::from_millis(2000 + 40 * round), &end);
            }
            cap.bytes().unwrap() as f64 / before as f64
        };
        assert!(grown(14, 986) > 2.0, "{}", grown(14, 986));
        assert!(grown(25, 975) < 1.15, "{}", grown(25, 975));
    }

    #[test]
    fn losses_after_a_silence_set_no_cap_but_count_for_the_budget() {
        let mut cap = FlightCap::default();
        let lossy = FlightRound { delivered: 950_000, lost: 50_000, ..FlightRound::default() };
        cap.on_ack(1_000_000, 0);
        cap.on_round(Instant::from_millis(50), &FlightRound { recent_silence: true, ..lossy });
        assert!(
            cap.bytes().is_none() && !cap.is_beyond_limit(),
            "no cap, so the buffer is not known to be full"
        );
        cap.on_ack(1_000_000, 0);
        cap.on_round(Instant::from_millis(100), &lossy);
        assert!(cap.bytes().is_some() && cap.is_beyond_limit());
        assert!(cap.recent.1 > 90_000.0);
    }

    #[test]
    fn losses_that_do_not_depend_on_the_bytes_in_flight_set_no_cap_for_long() {
        let mut cap = FlightCap::default();
        let (caps, _) = run(&mut cap, 50, 2000, 2_000_000, 0.05);
        let capped = caps.iter().filter(|cap| cap.is_some()).count();
        assert!(capped > 0 && capped < 50, "{capped} of 2000 round trips");
    }

    #[test]
    fn a_trial_with_heavy_losses_has_not_failed() {
        // Each round trip of the trial loses 1.5%, which a radio may lose, and in the second case one of them
        // a quarter, which shows that too many bytes were in flight.
        let capped_after = |heavy: u64| {
            let mut cap = FlightCap::default();
            for round in 0..12 {
                cap.on_ack(1_000_000, 0);
                let lost = if round == 5 {
                    heavy
                } else if round == 0 {
                    30_000
                } else {
                    15_000
                };
                let end = FlightRound { delivered: 1_000_000 - lost, lost, ..FlightRound::default() };
                cap.on_round(Instant::from_millis(50 + 50 * round), &end);
            }
            cap.bytes().is_some()
        };
        assert!(!capped_after(15_000));
        assert!(capped_after(250_000));
    }

    #[test]
    fn drops_past_the_clients_window_count() {
        let mut cap = FlightCap::default();
        cap.on_ack(1_000_000, 100_000);
        cap.on_round(Instant::from_millis(50), &FlightRound { delivered: 900_000, ..FlightRound::default() });
        assert_eq!(cap.bytes(), Some(850_000));
    }

    #[test]
    fn a_cap_far_above_the_bytes_in_flight_is_removed() {
        let mut cap = FlightCap::default();
        run(&mut cap, 50, 20, 800_000, 0.0);
        for _ in 0..15 {
            cap.on_ack(100_000, 0);
            let round = FlightRound { delivered: 100_000, ..FlightRound::default() };
            cap.on_round(Instant::from_millis(2000), &round);
        }
        assert_eq!(cap.bytes(), None);
    }

    #[test]
    fn losses_while_the_buffer_had_room_set_no_cap_and_remove_one() {
        let lossy = FlightRound { delivered: 950_000, lost: 50_000, ..FlightRound::default() };
        let at = Instant::from_millis;
        let mut cap = FlightCap::default();
        cap.on_ack(1_000_000, 0);
        cap.on_round(at(50), &FlightRound { had_room: true, ..lossy });
        assert_eq!(cap.bytes(), None);
        cap.on_round(at(100), &lossy);
        assert!(cap.bytes().is_some());
        cap.on_round(at(150), &FlightRound { had_room: true, delivered: 999_000, lost: 1_000, ..lossy });
        assert!(cap.bytes().is_some(), "few bytes were lost");
        cap.on_round(at(200), &FlightRound { had_room: true, ..lossy });
        assert_eq!(cap.bytes(), None);
    }

    #[test]
    fn at_the_start_only_heavy_losses_set_a_cap_and_none_is_below_what_the_path_carries() {
        let mut cap = FlightCap::default();
        let startup = FlightRound { startup: true, carried: 900_000, ..FlightRound::default() };
        cap.on_ack(1_000_000, 0);
        cap.on_round(Instant::from_millis(50), &FlightRound { delivered: 950_000, lost: 50_000, ..startup });
        assert_eq!(cap.bytes(), None);
        cap.on_round(
            Instant::from_millis(100),
            &FlightRound { delivered: 700_000, lost: 300_000, ..startup },
        );
        assert_eq!(cap.bytes(), Some(900_000));
    }
}
