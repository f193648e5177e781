//! Detects a bottleneck that several devices share: one queue ahead of them all, such as a backhaul, an access
//! point or a shaper, in place of a queue for each device at its radio.
//!
//! A queue grows by what enters it beyond its rate, and drops what enters it when it is full. In a queue of its
//! own, a device's round-trip times and losses follow what is sent to this device; in a shared one they follow
//! what is sent to the others just as much, byte for byte. So the growth of the delay from bin to bin, and the
//! share of lost bytes, are regressed (`regression`) on the bytes sent to the device and on those sent to all
//! others at the same time: times are those of sending, and round trips behind the queue may differ. Methods
//! that only compare delays and losses of flows (Rubenstein, Kurose, Towsley, "Detecting Shared Congestion of
//! Flows Via End-to-end Measurement", IEEE/ACM ToN 2002; RFC 8382) do not tell one queue from equal queues
//! whose senders do the same at the same time, as equal devices do that start together.
//!
//! In a cell, a device that is sent less leaves more capacity to the others only while its queue is empty, so
//! that others' bytes count for much less than its own. Left out: queues that are shared by devices of
//! different workers, of which each worker knows its own devices.

mod bins;
mod regression;

use crate::accelerator::sharing::bins::{BINS, Bins};
use crate::accelerator::sharing::regression::{Fit, Regression};
use paceline_net::{Duration, Instant};
use std::net::IpAddr;

/// Length of a window, after which observations are added. Chosen: longer than round trips, whose end is
/// awaited for as long again.
const WINDOW: Duration = Duration::from_secs(1);
/// Length of a bin: a multiple of the period of any TDD pattern (10 ms, TS 36.211 table 4.2-2), whose waiting
/// times all devices of a cell have in common.
const BIN: Duration = Duration::from_nanos(WINDOW.as_nanos() / BINS as u64);
/// Devices that are followed at the same time. Chosen: their windows take some 50 us in a second, and 90 kB;
/// others follow when one is idle.
const MAX_MEMBERS: usize = 32;
/// A device without a sample for this long gives its place. Chosen: longer than the pauses between the
/// transfers of a page.
const IDLE: Duration = Duration::from_secs(10);
/// A device without a sample for this long does not count. Chosen: an operator sees it after a transfer.
const FORGET: Duration = Duration::from_secs(60);
/// Weight of earlier windows at each window: some ten count. Chosen: a control's cycles of seconds, and a
/// warning within as many.
const MEMORY: f64 = 0.9;
/// Observations of which a regression takes notice. Chosen: four busy windows.
const LEAST: f64 = 150.0;
/// Standard errors from which on an influence is no chance. Chosen: with 32 devices in every second of a day,
/// independent observations reach 5.5 once; those of a control's cycles depend on each other.
const CERTAIN: f64 = 6.0;
/// Others' influence by byte, as a part of the device's own, from which on the queue is shared. Chosen: 1 in
/// one queue, less if some of the others have another one, and 0 in queues of their own.
const INFLUENCE: f64 = 0.25;
/// Part of what is sent to the others that must not follow from what is sent to the device. Chosen: devices
/// that do the same at the same time show nothing.
const LEAST_FREE: f64 = 0.3;
/// Part of [`CERTAIN`] and [`INFLUENCE`] below which a shared queue is none any more.
const LEAVING: f64 = 0.5;

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
    /// Bytes found lost, and when the first and the last of them were sent.
    pub lost: u64,
    pub lost_sent: Option<(Instant, Instant)>,
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
    /// Growth of the delay, and share of lost bytes.
    delays: Regression,
    losses: Regression,
    standing: Standing,
}

/// The detector, over all devices of an accelerator.
#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct SharedBottleneck {
    members: Vec<Member>,
    /// Number of the window of now.
    window: u64,
}

impl Member {
    fn new(now: Instant, address: IpAddr) -> Self {
        Self {
            address,
            sampled_at: now,
            bins: Default::default(),
            delays: Regression::default(),
            losses: Regression::default(),
            standing: Standing::Unknown,
        }
    }
    /// Adds a window. `all`: what was sent to all devices.
    fn observe(&mut self, bins: &Bins, all: &[f32; BINS]) {
        // Bytes in units whose squares keep their digits.
        let own = |at: usize| f64::from(bins.sent[at]) / 1e4;
        let others = |at: usize| f64::from(all[at] - bins.sent[at]) / 1e4;
        self.delays.fade(MEMORY);
        self.losses.fade(MEMORY);
        for (at, change) in bins.changes().into_iter().enumerate() {
            if let Some(change) = change {
                // From the middle of a bin to that of the next one.
                self.delays.add([own(at), own(at + 1), (others(at) + others(at + 1)) / 2.0], change);
            }
        }
        if bins.lost.iter().all(|lost| *lost == 0.0) {
            return;
        }
        for at in (1..BINS).filter(|at| bins.sent[*at] > 0.0) {
            let lost = f64::from(bins.lost[at] / bins.sent[at]).min(1.0);
            self.losses.add([own(at - 1), own(at), others(at)], lost);
        }
    }
    fn judge(&mut self) {
        let factor = if self.standing == Standing::Shared { LEAVING } else { 1.0 };
        let fits = [&self.delays, &self.losses].map(|regression| regression.fit(LEAST));
        let known = |fit: &&Fit| fit.free >= LEAST_FREE;
        let shared =
            |fit: &Fit| fit.t >= factor * CERTAIN && fit.last >= factor * INFLUENCE * fit.others.max(0.0);
        self.standing = if fits.iter().flatten().filter(known).any(shared) {
            Standing::Shared
        } else if fits.iter().flatten().any(|fit| known(&fit)) {
            Standing::Alone
        } else {
            Standing::Unknown
        };
    }
}

impl SharedBottleneck {
    /// Bytes are sent to a device that has had an acknowledgment.
    pub fn on_send(&mut self, now: Instant, address: IpAddr, Place(place): Place, bytes: u64) {
        self.advance(now);
        let (window, at) = position(now);
        if let Some(member) =
            self.members.get_mut(usize::from(place)).filter(|member| member.address == address)
        {
            member.bins[window as usize % 2].sent[at] += bytes as f32;
        }
    }
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
        let open = |sent_at: Instant| {
            let (number, at) = position(sent_at);
            (number + 1 >= window && number <= window).then_some((number as usize % 2, at))
        };
        if let Some((sent_at, rtt)) = sample.delivered
            && let Some((parity, at)) = open(sent_at)
        {
            member.sampled_at = now;
            member.bins[parity].on_delivered(at, rtt);
        }
        // Losses that one ACK reveals lie close together.
        for sent_at in sample.lost_sent.iter().flat_map(|(first, last)| [*first, *last]) {
            if let Some((parity, at)) = open(sent_at) {
                member.bins[parity].lost[at] += sample.lost as f32 / 2.0;
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
        let new = Member::new(now, address);
        if self.members.len() < MAX_MEMBERS {
            self.members.push(new);
            return Some(self.members.len() - 1);
        }
        let at = self.members.iter().position(|member| now.since(member.sampled_at) >= IDLE)?;
        self.members[at] = new;
        Some(at)
    }

    /// Closes the windows whose packets have been answered: those before the last one.
    fn advance(&mut self, now: Instant) {
        let (window, _) = position(now);
        let passed = window.saturating_sub(self.window).min(2);
        for closed in 0..passed {
            // The window before the last, whose place the new one takes.
            self.close((self.window + closed + 1) as usize % 2);
        }
        self.window = self.window.max(window);
    }
    fn close(&mut self, parity: usize) {
        let mut all = [0.0; BINS];
        for member in &self.members {
            all.iter_mut().zip(member.bins[parity].sent).for_each(|(sum, sent)| *sum += sent);
        }
        for member in &mut self.members {
            let bins = std::mem::take(&mut member.bins[parity]);
            if bins.sent.iter().any(|sent| *sent > 0.0) {
                member.observe(&bins, &all);
                member.judge();
            }
        }
    }
}

/// Number of the window of a time, and of the bin in it.
fn position(at: Instant) -> (u64, usize) {
    let (window, within) = (at.as_nanos() / WINDOW.as_nanos(), at.as_nanos() % WINDOW.as_nanos());
    (window, (within / BIN.as_nanos()) as usize)
}

#[cfg(test)]
mod tests;
