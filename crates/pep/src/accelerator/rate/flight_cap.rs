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

use crate::accelerator::rate::short_buffer::is_lossy;
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
/// Growth of the cap in a round trip after a trial. Chosen: one overflow in some ten round trips costs about
/// a percent.
const GROWTH: f64 = 1.0 / 64.0;
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
    /// The capacity is not known yet. Only heavy losses count: a doubled window overflows a buffer by much.
    pub startup: bool,
    /// Bandwidth-delay product in bytes; a smaller cap would leave the path idle.
    pub bandwidth_delay: u64,
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
    /// Round trips since the last decrease.
    since_decrease: u8,
    ignored_until: Instant,
    backoff: Duration,
}

impl FlightCap {
    /// Bytes that may be in flight, if there is a cap.
    pub fn bytes(&self) -> Option<u64> {
        (self.cap > 0).then_some(self.cap)
    }
    /// An acknowledgment, with `in_flight` bytes before it, of which `beyond` were lost past the client's
    /// window. A drop of the client counts as well: more in flight is of no use then.
    pub fn on_ack(&mut self, in_flight: u64, beyond: u64) {
        self.most[0] = self.most[0].max(in_flight);
        self.beyond += beyond;
    }
    /// A round trip ended.
    pub fn on_round(&mut self, now: Instant, round: &FlightRound) {
        let most = self.most[0].max(self.most[1]);
        self.most = [0, self.most[0]];
        let delivered = round.delivered;
        let lost = round.lost + std::mem::take(&mut self.beyond);
        let lost = if round.recent_silence { 0 } else { lost };
        if round.had_room && is_notable(delivered, lost) {
            (self.cap, self.is_trial) = (0, false);
            return;
        }
        self.since_decrease = self.since_decrease.saturating_add(1);
        let counts = self.cap == 0 || self.since_decrease > UNCOUNTED_ROUNDS;
        let lossy = if round.startup { is_lossy(delivered, lost) } else { is_notable(delivered, lost) };
        if counts && lossy && now >= self.ignored_until {
            let from = if self.cap > 0 { most.min(self.cap) } else { most };
            self.cap = ((DECREASE * from as f64) as u64).max(round.bandwidth_delay);
            self.since_decrease = 0;
            if !self.is_trial {
                (self.is_trial, self.rounds, self.lossy_rounds) = (true, 0, 0);
                return;
            }
        }
        if self.is_trial {
            self.continue_trial(now, lost as f64 > TRIAL_LOSS_SHARE * (delivered + lost) as f64);
        } else if self.cap > UNUSED_FACTOR * most {
            self.cap = 0;
        } else {
            self.cap += (self.cap as f64 * GROWTH) as u64;
        }
    }
    fn continue_trial(&mut self, now: Instant, lossy: bool) {
        self.rounds += 1;
        self.lossy_rounds += u8::from(lossy && self.rounds > UNCOUNTED_ROUNDS);
        if self.rounds < UNCOUNTED_ROUNDS + TRIAL_ROUNDS {
            return;
        }
        self.is_trial = false;
        if self.lossy_rounds < FAILED_ROUNDS {
            self.backoff = Duration::ZERO;
        } else {
            self.backoff = (self.backoff * 2).max(FIRST_BACKOFF).min(MAX_BACKOFF);
            self.ignored_until = now + self.backoff;
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
        assert_eq!(caps[0], Some(850_000));
        let (caps, lost) = run(&mut cap, 1050, 1000, 800_000, 0.0);
        assert!(lost < 0.01, "{lost:.4}");
        assert!(
            caps.iter().all(|cap| cap.is_some_and(|bytes| (650_000..860_000).contains(&bytes))),
            "{caps:?}"
        );
    }

    #[test]
    fn losses_that_do_not_depend_on_the_bytes_in_flight_set_no_cap_for_long() {
        let mut cap = FlightCap::default();
        let (caps, _) = run(&mut cap, 50, 2000, 2_000_000, 0.05);
        let capped = caps.iter().filter(|cap| cap.is_some()).count();
        assert!(capped > 0 && capped < 50, "{capped} of 2000 round trips");
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
    fn at_the_start_only_heavy_losses_set_a_cap_and_none_is_below_the_bandwidth_delay_product() {
        let mut cap = FlightCap::default();
        let startup = FlightRound { startup: true, bandwidth_delay: 900_000, ..FlightRound::default() };
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
