//! Detects a bottleneck that several devices share: one queue ahead of them all, such as a backhaul, an access
//! point or a shaper, in place of a queue for each device at its radio.
//!
//! Packets of different devices that enter one queue at the same time find it equally long, and are lost
//! together when it is full (Rubenstein, Kurose, Towsley, "Detecting Shared Congestion of Flows Via
//! End-to-end Measurement", IEEE/ACM ToN 2002; RFC 8382 groups flows by such statistics as well). Times are
//! therefore those of sending: round trips behind the queue may differ. Devices are followed in windows of a
//! second, divided into bins (`bins`); at the end of a window each pair of devices gets a vote on whether
//! their round-trip times moved together by as many milliseconds, and one on whether they lost in the same
//! bins. The mean of the last votes decides: a single event that all devices have in common, such as a pause
//! of a machine or the start of all transfers, is one vote.
//!
//! Queues of a cell's devices depend on each other too: one device more leaves the others less. Then delays
//! grow together once, and not by the same milliseconds from bin to bin. Left out: queues that are shared by
//! devices of different workers, of which each worker knows its own devices.

mod bins;
mod pair;

use crate::accelerator::sharing::bins::{BINS, Bins, Series};
use crate::accelerator::sharing::pair::Pair;
use paceline_net::{Duration, Instant};
use std::net::IpAddr;

/// Length of a window. Chosen: tens of round trips, so that a control's cycles of some round trips leave
/// no trend; a warning is there within seconds.
const WINDOW: Duration = Duration::from_secs(1);
/// Length of a bin: a multiple of the period of any TDD pattern (10 ms, TS 36.211 table 4.2-2), whose waiting
/// times all devices of a cell have in common.
const BIN: Duration = Duration::from_nanos(WINDOW.as_nanos() / BINS as u64);
/// Devices that are followed at the same time. Chosen: 496 pairs take some 50 us in a second, and 24 kB;
/// others follow when one is idle, and share its fate meanwhile.
const MAX_MEMBERS: usize = 32;
/// A device without a sample for this long gives its place. Chosen: longer than the pauses between the
/// transfers of a page.
const IDLE: Duration = Duration::from_secs(10);
/// A device without a sample for this long does not count. Chosen: an operator sees it after a transfer.
const FORGET: Duration = Duration::from_secs(60);

/// What is known about the bottleneck of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// Too little: it is idle, alone, or has neither queue nor losses.
    #[default]
    Unknown,
    /// Its queue and losses are its own.
    Alone,
    /// It shares a queue with other devices.
    Shared,
}

/// What an acknowledgment of a device reveals about its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct PathSample {
    /// When the newest delivered segment was sent, and its round-trip time, if it was sent once.
    pub delivered: Option<(Instant, Duration)>,
    /// When the first and the last of the segments were sent that were found lost.
    pub lost: Option<(Instant, Instant)>,
}

/// The place of a device in the detector: a hint that the device keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Place(u8);

#[derive(Clone, Debug)]
struct Member {
    address: IpAddr,
    sampled_at: Instant,
    /// The window of now and the one before, by the parity of their numbers.
    bins: [Bins; 2],
    standing: Standing,
}

/// The detector, over all devices of an accelerator.
#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct SharedBottleneck {
    members: Vec<Member>,
    /// The pair of the members `a` and `b < a` is at `a (a - 1) / 2 + b`.
    pairs: Vec<Pair>,
    /// Number of the window of now.
    window: u64,
}

fn index(a: usize, b: usize) -> usize {
    let (high, low) = (a.max(b), a.min(b));
    high * high.saturating_sub(1) / 2 + low
}

impl SharedBottleneck {
    /// An acknowledgment of a device arrives. Returns what is known about its bottleneck.
    pub fn on_sample(
        &mut self,
        now: Instant,
        address: IpAddr,
        place: &mut Place,
        sample: &PathSample,
    ) -> Standing {
        self.advance(now);
        let Some(at) = self.find(now, address, *place) else { return Standing::Unknown };
        *place = Place(at as u8);
        let window = self.window;
        let member = &mut self.members[at];
        if *sample == PathSample::default() {
            return member.standing;
        }
        member.sampled_at = now;
        let bin = |sent_at: Instant| {
            let number = sent_at.as_nanos() / WINDOW.as_nanos();
            let within = sent_at.as_nanos() % WINDOW.as_nanos() / BIN.as_nanos();
            (number + 1 >= window && number <= window).then_some((number as usize % 2, within as usize))
        };
        if let Some((sent_at, rtt)) = sample.delivered
            && let Some((parity, at)) = bin(sent_at)
        {
            member.bins[parity].on_delivered(at, rtt);
        }
        // Losses that one ACK reveals lie close together; those between first and last are not many.
        for sent_at in sample.lost.iter().flat_map(|(first, last)| [*first, *last]) {
            if let Some((parity, at)) = bin(sent_at) {
                member.bins[parity].on_lost(at);
            }
        }
        member.standing
    }

    /// Devices that were found to share a bottleneck with others lately.
    pub fn shared(&self, now: Instant) -> usize {
        let shares =
            |member: &&Member| member.standing == Standing::Shared && now.since(member.sampled_at) < FORGET;
        self.members.iter().filter(shares).count()
    }

    /// The member with this address, or a place for it.
    fn find(&mut self, now: Instant, address: IpAddr, Place(hint): Place) -> Option<usize> {
        let is = |member: &Member| member.address == address;
        if self.members.get(usize::from(hint)).is_some_and(is) {
            return Some(hint.into());
        }
        if let Some(at) = self.members.iter().position(is) {
            return Some(at);
        }
        let new = Member { address, sampled_at: now, bins: Default::default(), standing: Standing::Unknown };
        if self.members.len() < MAX_MEMBERS {
            self.pairs.extend((0..self.members.len()).map(|_| Pair::default()));
            self.members.push(new);
            return Some(self.members.len() - 1);
        }
        let at = self.members.iter().position(|member| now.since(member.sampled_at) >= IDLE)?;
        self.members[at] = new;
        (0..self.members.len()).filter(|other| *other != at).for_each(|other| {
            self.pairs[index(at, other)] = Pair::default();
        });
        Some(at)
    }

    /// Closes the windows whose packets have been answered: those before the last one.
    fn advance(&mut self, now: Instant) {
        let window = now.as_nanos() / WINDOW.as_nanos();
        if window == self.window {
            return;
        }
        let passed = window.saturating_sub(self.window).min(2);
        for closed in 0..passed {
            // The window before the last, whose place the new one takes.
            self.close((self.window + closed + 1) as usize % 2);
        }
        self.window = window;
    }
    fn close(&mut self, parity: usize) {
        let series: Vec<Option<Series>> =
            self.members.iter_mut().map(|member| std::mem::take(&mut member.bins[parity]).series()).collect();
        for a in 1..series.len() {
            for b in 0..a {
                if let (Some(first), Some(second)) = (&series[a], &series[b]) {
                    self.pairs[index(a, b)].vote(first, second);
                }
            }
        }
        for (at, series) in series.iter().enumerate() {
            if series.is_some() {
                let pairs = (0..self.members.len()).filter(|other| *other != at);
                let before = self.members[at].standing;
                let judged = pairs.map(|other| self.pairs[index(at, other)].judge(before));
                self.members[at].standing = judged.max_by_key(|standing| *standing as u8).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests;
