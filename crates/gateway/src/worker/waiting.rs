//! Frames that the queue of an interface has refused (a qdisc that is full, such as a shaper): each device's
//! frames wait for themselves, in order, and are tried again after a pause. Nothing says when the queue has
//! room again, and other devices may have queues of their own. A refusal doubles the pause, and a success
//! shortens it, so that there are fewer refusals than frames.
//!
//! Left out: queues that drop without a word (a qdisc that drops another packet, or reports no error).

use crate::datapath::frame::Outgoing;
use paceline_net::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Shortest and longest pause. Chosen: the shortest is short beside the time that a full queue takes to
/// empty; the longest delays a frame less than a radio's scheduling does.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(4)];
/// Time after which a frame that is refused all the time is lost. Chosen: the longest queue of a usual shaper
/// has emptied by then; the interface is rather down.
const PATIENCE: Duration = Duration::from_secs(2);
/// Frames of one device that wait at most. Chosen: what the accelerator sends for a device before it learns
/// of the refusal is less; further frames are forwarded ones, which a full queue drops.
const MAX_FRAMES: usize = 256;
/// Devices that are tried in a turn without success. Chosen: bounds the cost of a queue that all devices
/// share, at 2 us for a refusal.
const MAX_FAILURES: usize = 4;

/// One device's frames.
struct Group {
    frames: VecDeque<Outgoing>,
    since: Instant,
    retry_at: Instant,
}

/// The frames that wait, by device; those without an address together.
pub struct Waiting {
    groups: BTreeMap<Option<IpAddr>, Group>,
    /// The group that is tried first.
    next: Option<IpAddr>,
    /// The pause after the next refusal.
    pause: Duration,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { groups: BTreeMap::new(), next: None, pause: PAUSES[0] }
    }
}

/// The result of sending one device's frames.
pub enum Sent {
    /// Some or all were sent; the rest finds no room in the socket.
    Some(usize),
    /// The interface's queue has refused the first one.
    Refused,
}

impl Waiting {
    /// Whether frames of this device wait, so that its next ones have to wait as well.
    pub fn holds(&self, device: Option<IpAddr>) -> bool {
        !self.groups.is_empty() && self.groups.contains_key(&device)
    }
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
    /// Keeps a frame that was refused, or that is behind one. False if it is lost for lack of room.
    pub fn keep(&mut self, now: Instant, device: Option<IpAddr>, frame: Outgoing) -> bool {
        if !self.groups.contains_key(&device) {
            let retry_at = now + self.on_refusal();
            self.groups.insert(device, Group { frames: VecDeque::new(), since: now, retry_at });
        }
        let Some(group) = self.groups.get_mut(&device) else { return false };
        let fits = group.frames.len() < MAX_FRAMES;
        if fits {
            group.frames.push_back(frame);
        }
        fits
    }
    fn on_refusal(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES[1]);
        pause
    }
    /// The interface's queue had room.
    pub fn on_sent(&mut self) {
        self.pause = (self.pause * 4 / 5).max(PAUSES[0]);
    }
    /// Discards all frames; their number.
    pub fn clear(&mut self) -> u64 {
        let count = self.groups.values().map(|group| group.frames.len() as u64).sum();
        self.groups.clear();
        count
    }
    /// When [`Self::retry`] is to be called.
    pub fn next_at(&self) -> Option<Instant> {
        self.groups.values().map(|group| group.retry_at).min()
    }
    /// The devices whose frames wait, and until when.
    pub fn devices(&self) -> impl Iterator<Item = (IpAddr, Instant)> + '_ {
        self.groups.iter().filter_map(|(device, group)| Some(((*device)?, group.retry_at)))
    }
    /// Tries the groups that are due, in turn. Returns the numbers of frames that were sent, refused and
    /// lost.
    pub fn retry(&mut self, now: Instant, mut send: impl FnMut(&VecDeque<Outgoing>) -> Sent) -> [u64; 3] {
        let (mut sent, mut refused, mut lost, mut failures) = (0, 0, 0, 0);
        let first = self.next;
        let (later, earlier) = (self.groups.range(first..), self.groups.range(..first));
        let due = later.chain(earlier).filter(|(_, group)| group.retry_at <= now);
        let due: Vec<Option<IpAddr>> = due.map(|(device, _)| *device).collect();
        for device in due {
            let Some(mut group) = self.groups.remove(&device) else { continue };
            if failures == MAX_FAILURES {
                self.next = device;
                failures += 1;
            }
            if failures > MAX_FAILURES {
                group.retry_at = now + self.pause;
            }
            while !group.frames.is_empty() && failures <= MAX_FAILURES {
                match send(&group.frames) {
                    Sent::Some(0) => {
                        failures = MAX_FAILURES + 1; // the socket has no room for any device
                        group.retry_at = now + PAUSES[0];
                    }
                    Sent::Some(count) => {
                        group.frames.drain(..count);
                        group.since = now;
                        sent += count as u64;
                        self.on_sent();
                    }
                    Sent::Refused => {
                        refused += 1;
                        failures += 1;
                        if now.since(group.since) > PATIENCE {
                            lost += group.frames.len() as u64;
                            group.frames.clear();
                        }
                        group.retry_at = now + self.on_refusal();
                        break;
                    }
                }
            }
            if !group.frames.is_empty() {
                self.groups.insert(device, group);
            }
        }
        [sent, refused, lost]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::frame::Link;
    use paceline_net::test_support::segment;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1000 * us)
    }
    fn device(n: u8) -> Option<IpAddr> {
        Some([10, 0, 0, n].into())
    }
    fn frame() -> Outgoing {
        Outgoing::new(Link::plain([0; 12], true), segment().datagram(b"abc"), 0)
    }

    #[test]
    fn a_refused_device_waits_for_pauses_that_double_and_others_are_sent() {
        let mut waiting = Waiting::default();
        for n in [1, 1, 1, 2] {
            assert!(waiting.keep(at(0), device(n), frame()));
        }
        let mut tries = Vec::new();
        let mut now = 0;
        while now < 20_000 {
            now += 100;
            let result = waiting
                .retry(at(now), |frames| if frames.len() == 1 { Sent::Some(1) } else { Sent::Refused });
            tries.extend((result[1] > 0).then_some(now));
        }
        assert!(waiting.holds(device(1)) && !waiting.holds(device(2)));
        let pauses: Vec<u64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.is_sorted() && pauses.ends_with(&[4000, 4000]) && tries.len() < 12, "{tries:?}");
        assert_eq!(waiting.devices().map(|(device, _)| Some(device)).collect::<Vec<_>>(), [device(1)]);
        assert_eq!(waiting.retry(at(30_000), |frames| Sent::Some(frames.len())), [3, 0, 0]);
        assert!(waiting.is_empty() && waiting.next_at().is_none());
    }

    #[test]
    fn the_frames_of_a_device_are_bounded_and_one_refused_for_long_is_lost() {
        let mut waiting = Waiting::default();
        let kept = (0..300).filter(|_| waiting.keep(at(0), device(1), frame())).count();
        assert_eq!(kept, MAX_FRAMES);
        assert_eq!(waiting.retry(at(1_000_000), |_| Sent::Refused), [0, 1, 0]);
        assert_eq!(waiting.retry(at(2_100_000), |_| Sent::Refused), [0, 1, MAX_FRAMES as u64]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_queue_that_all_share_is_tried_a_few_times_in_a_turn_and_all_get_their_turn() {
        let mut waiting = Waiting::default();
        (0..100).for_each(|n| assert!(waiting.keep(at(0), device(n), frame())));
        let (mut sent, mut refused, mut now) = (0, 0, 0);
        while !waiting.is_empty() {
            now += 1000;
            let mut room = 3; // of the queue, in this turn
            let result = waiting.retry(at(now), |_| {
                room -= 1;
                if room >= 0 { Sent::Some(1) } else { Sent::Refused }
            });
            assert!(result[1] <= MAX_FAILURES as u64);
            (sent, refused) = (sent + result[0], refused + result[1]);
        }
        assert_eq!(sent, 100);
        assert!(now < 500_000 && refused < 200, "{now} us, {refused} refusals");
    }
}
